"""Own patterns for secrets: what each looks like, and the judge of what was matched.

Each rule names words of which one stands in the lower-cased text wherever the rule can match, so
that most rules need not run.  A judge returns the place of the secret, or None where the match is
none: a variable, a placeholder, a plain word.

Source: RFC 6750 (bearer), RFC 7468 (PEM), RFC 3986 section 3.2.1 (user information).
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Place = Callable[[re.Match[str]], tuple[int, int] | None]

    # kind, words, pattern, judge
    Rule = tuple[str, tuple[str, ...], re.Pattern[str], Place]

BEFORE = 40  # code points before a key word that may belong to its name

# A value that is no secret: it stands for one, or is taken from somewhere.
STANDS = re.compile(
    r"\[redacted:|\$|%[A-Za-z_(]|<|\{|\*|x{3,}|X{3,}|\.{3}|\u2026|\u2022|_{3,}|#\{|@\w+@"
    r"|(?i:none|null|nil|true|false|undefined|string|str|bytes|required|optional|empty|changeme"
    r"|redacted|masked|hidden|removed|omitted|placeholder|secret|password|passwd|token"
    r"|your[\w-]*|my[_-]?(?:password|secret|token|key)|example)(?![\w-])"
)
_CALL = re.compile(
    r"[A-Za-z_][\w.]*(?:\(|\[|\.[A-Za-z_])|[A-Za-z_][\w.]*::|(?:await|new|not|lambda)\b"
)
_WORD = re.compile(r"[A-Za-z_]+\Z")
_NAME = re.compile(r"[\w.-]*\Z")
_ARGUMENT = re.compile(r"[(,]\s*\Z")
_OF_AWS = re.compile(r"(?<![A-Za-z0-9])(?:aws(?![a-z])|(?:AKIA|ASIA)[A-Z0-9]{16})", re.IGNORECASE)
_NO_VALUES = frozenset(
    ("password", "passwd", "pass", "pwd", "passphrase", "value", "text", "prompt", "self", "auto")
)
_KEPT_AT = ("file:", "env:", "fd:", "stdin")  # where a program is told to read a secret
_SIGNS = frozenset("@#$%^&*~+=|")

_PASSWORD = (
    r"pass(?:word|wd|phrase|code|wort)|pwd|userpass|dbpass|sshpass|kennwort|contrase[nñ]a"
    r"|(?:user|db|become|root|admin|smtp|mail|ftp|ssh|sudo|proxy|login|wifi|ldap|auth)_pass(?![a-z])"
)
_PASSWORD_WORDS = ("pass", "pwd", "kennwort", "contrase")
PASSWORD_NAME = re.compile(_PASSWORD, re.IGNORECASE)
_TOKEN = (
    r"(?:api|access|auth|account|admin|client|consumer|encryption|master|private|secret|service"
    r"|session|signing|shared|storage|ssh|webhook|bot|app|deploy|license)[_.\- ]?key(?![_.\- ]?id)"
    r"|secret|token|credential"
)
SECRET_NAME = re.compile(_TOKEN, re.IGNORECASE)
_TOKEN_WORDS = ("key", "secret", "token", "credential")
_AFTER = r"(?:[_-]?\d{1,2})?"
_SEPARATOR = r"(?P<sep>\\?[\"'\]`]{0,2}\s{0,4}(?::=|=>|={1,3}|!==?|:(?!//))\s{0,4}@?)"
_NOT_IN = r"(?<![A-Za-z0-9])"


# -- judges -------------------------------------------------------------------------------------


def is_mixed(value: str) -> bool:
    """True for a digit and a letter together."""
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def is_strong(value: str) -> bool:
    """True for what looks chosen to be hard to guess, as no word of prose or code does."""
    if len(value) < 5:
        return False
    return any(c.isdigit() for c in value) or any(c in _SIGNS for c in value)


def _whole(match: re.Match[str]) -> tuple[int, int]:
    return match.span()


def _mixed(match: re.Match[str]) -> tuple[int, int] | None:
    """Words joined by hyphens are no token, nor are names of words run together."""
    if is_mixed(match[0]) or _is_scattered(match[0]):
        return match.span()
    return None


def _is_scattered(value: str) -> bool:
    """True where capitals stand among small letters as chance puts them, and no writer does."""
    letters = [c.isupper() for c in value if c.isalpha()]
    turns = sum(a != b for a, b in pairwise(letters))
    return len(letters) >= 20 and turns >= 0.4 * len(letters)


def _cell(match: re.Match[str]) -> tuple[int, int] | None:
    """Forty letters and digits of both cases: no digest, which has one case."""
    value = match[0]
    cased = any(c.isupper() for c in value) and any(c.islower() for c in value)
    if not cased or not is_mixed(value) or _OF_AWS.search(match.string) is None:
        return None
    return match.span()


def _given(match: re.Match[str]) -> tuple[int, int] | None:
    return None if STANDS.match(match["v"]) else match.span("v")


def _digits(match: re.Match[str]) -> tuple[int, int] | None:
    return match.span("v") if any(c.isdigit() for c in match["v"]) else None


def _assigned(match: re.Match[str]) -> tuple[int, int] | None:
    """Judge the value of ``name = value``: secrets, and not code that merely passes one on."""
    value, start = match["v"], match.start("v")
    if STANDS.match(value):
        return None
    if match["q"]:
        return None if value.isspace() or value[0] in ",;:)]}" else match.span("v")
    value = value.rstrip(",;.)]}>\"'`\\")
    end = start + len(value)
    path = value[:1] in "/~" and "/" in value[1:]
    if len(value) < 3 or path or _CALL.match(value):
        return None
    before = match.string[max(0, match.start() - BEFORE) : match.start()]
    lead = _NAME.search(before)
    name = (lead[0] if lead else "") + match["name"]
    tight = match["sep"] == "="
    if tight and name.isupper():  # as in an environment, where a value is meant as it stands
        return start, end
    strict = PASSWORD_NAME.search(name) is not None
    if _WORD.match(value):
        argument = match.string[end : end + 1] in (")", ",") or _ARGUMENT.search(before)
        plain = argument or value.lower() in _NO_VALUES
        return (start, end) if strict and tight and not plain else None
    if strict:
        return (start, end) if is_strong(value) or (tight and not value.isdigit()) else None
    long = len(value) >= 8 and not value.isdigit()
    return (start, end) if long and is_strong(value) else None


def _said(match: re.Match[str]) -> tuple[int, int] | None:
    """``the password is hunter2``: prose, so only what is no plain word."""
    value, start = match["v"].rstrip(".,;:!?)\"'"), match.start("v")
    if STANDS.match(value) or "://" in value or len(value) < 4:
        return None
    return (start, start + len(value)) if match["q"] or is_strong(value) else None


def _option(match: re.Match[str]) -> tuple[int, int] | None:
    value = match["v"].strip("\"'")
    if STANDS.match(value) or value.startswith(("-", "@", *_KEPT_AT)) or len(value) < 3:
        return None
    start = match.start("v") + match["v"].index(value)
    return start, start + len(value)


# -- rules --------------------------------------------------------------------------------------

_SERVICES = (  # beginning, and the rest of it
    r"hf_[A-Za-z]{10}\w{10,}",
    r"r8_\w{24,}",
    r"gsk_\w{20,}",
    r"(?:xai|pplx)-\w{24,}",
    r"dckr_(?:pat|oat)_[\w-]{16,}",
    r"do[opr]_v1_[a-f0-9]{32,}",
    r"dapi[a-f0-9]{32}",
    r"hv[sbr]\.[\w-]{20,}",
    r"\w{14}\.atlasv1\.[\w-]{20,}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    r"sq0[a-z]{3}-[\w-]{20,}",
    r"EAAC\w{30,}",
    r"lin_api_\w{20,}",
    r"ntn_\w{20,}",
    r"secret_[A-Za-z0-9]{40,}",
    r"figd_[\w-]{20,}",
    r"PMAK-[\w-]{20,}",
    r"gl(?:c|sa)_[\w+/=]{20,}",
    r"NR(?:AK|JS)-\w{20,}",
    r"HRKU-[\w-]{20,}",
    r"dp\.(?:pt|st|ct)\.[\w.-]{20,}",
    r"sntry[su]_[\w+/=]{20,}",
    r"pscale_(?:tkn|pw|oauth)_[\w.-]{20,}",
    r"sbp_[a-f0-9]{32,}",
    r"tskey-\w+-[\w-]{10,}",
    r"rubygems_[a-f0-9]{32,}",
    r"cio[A-Za-z0-9]{32}",
    r"ATATT3[\w=-]{20,}",
    r"ATBB\w{24,}",
    r"key-[0-9a-f]{32}",
)
# Beginnings of all tokens, as one of them stands in a text with a token of any rule.
BEGINS = (
    r"A(?:KIA|SIA|BIA|CCA|3T[A-Z0-9]|Iza|KC|P[\dA-F]|TATT|TBB|C[a-z0-9]{30})"
    r"|GR1348|GOCSPX|SG\.|SK[a-z0-9]{30}|PMAK|NRAK|NRJS|HRKU|EAAC"
    r"|eyJ|ya29|xox|xapp-|gh[opusr]_|github_p|gl[a-z]{2,5}-|glsa_|glc_"
    r"|[sr]k[-_]|whsec_|npm_|pypi-|hf_|r8_|gsk_|xai-|pplx-|dckr_|do[opr]_v|dapi|hv[sbr]\."
    r"|atlasv1|shp[a-z]{2}_|sq0|lin_api|ntn_|figd_|dp\.|sntry|pscale_|sbp_|rubygems_|cio"
    r"|remem_|1//0|_auth|[?&](?:sig|X-Amz)|-us\d|hooks\.sl|soap/v3|\d{8}:|[MNO][\w-]{23}"
)


@cache
def rules() -> tuple[Rule, ...]:
    """All rules; the kind of an earlier one stands where two find the same."""
    i = re.IGNORECASE
    pem = r"PRIVATE KEY(?: BLOCK)?-----"
    rows: list[tuple[str, tuple[str, ...], str, int, Place]] = [
        (
            "private-key",
            ("private key", "putty-user-key", "age-secret-key"),
            rf"-----BEGIN [A-Z0-9 ]*{pem}(?:[\s\S]*?-----END [A-Z0-9 ]*{pem}|[\s\S]*)"
            r"|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
            r"(?:[\s\S]*?---- END SSH2 ENCRYPTED PRIVATE KEY ----|[\s\S]*)"
            r"|PuTTY-User-Key-File-\d:(?:[\s\S]*?Private-MAC: *\w+|[\s\S]*)"
            r"|AGE-SECRET-KEY-1[0-9A-Za-z]{20,}",
            0,
            _whole,
        ),
        (
            "url-password",
            ("://",),
            r"://[^\s/:@'\"<>\[\]]*:(?P<v>[^\s/'\"<>]+)@(?=[\w\[.$-])",
            0,
            _given,
        ),
        (
            "url-password",
            ("://",),
            r"://(?P<v>(?=[^\s/@]*\d)[A-Za-z0-9_-]{16,})@(?=[\w\[])",
            0,
            _given,
        ),
        (
            "authorization",
            ("authoriz",),
            r"(?<![A-Za-z])(?:[Aa]uthorization|AUTHORIZATION)\\?[\"']?\s*[:=]\s*\\?[\"']?"
            r"(?:(?i:basic|bearer|token|digest|negotiate|apikey|aws4-hmac-sha256|key)\s+)?"
            r"(?P<v>[^\s\"'\\,;][^\"'\\\r\n]*)",
            0,
            _given,
        ),
        ("bearer", ("bearer",), r"\bbearer\s+(?P<v>[A-Za-z0-9_\-.~+/=]{12,})", i, _digits),
        (
            "cookie",
            ("cookie",),
            r"(?<![\w-])(?:[Ss]et-|SET-)?(?:[Cc]ookie|COOKIE):[ \t]*(?P<v>[^\s=;\"']+=[^\r\n\"']+)",
            0,
            _given,
        ),
        (
            "api-key",
            ("key", "token", "secret"),
            r"\bx-[a-z-]{0,30}(?:key|token|secret)\s*:\s*(?P<v>[^\s\"'\\,;]{6,})",
            i,
            _given,
        ),
        (
            "aws-key",
            ("a3t", "abia", "acca", "akia", "asia"),
            r"(?<![A-Z0-9])(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}(?![A-Z0-9])",
            0,
            _whole,
        ),
        (
            "jwt",
            ("eyj",),
            _NOT_IN + r"eyJ[\w-]{8,}\.(?:eyJ[\w-]{4,}(?:\.[\w-]*)?|[\w-]{8,}\.[\w-]{8,}"
            r"(?:\.[\w-]*\.[\w-]*)?)",
            0,
            _whole,
        ),
        (
            "github-token",
            ("gho_", "ghp_", "ghu_", "ghs_", "ghr_", "github_pat_"),
            _NOT_IN + r"(?:gh[opusr]_[A-Za-z0-9]{16,255}|github_pat_\w{20,})",
            0,
            _whole,
        ),
        (
            "gitlab-token",
            ("gl", "gr1348941"),
            _NOT_IN + r"(?:gl(?:pat|dt|ft|soat|rt|rtr|cbt|ptt|imt|agent|oas|ffct|wt)-[\w-]{16,}"
            r"|GR1348941[\w-]{16,})",
            0,
            _mixed,
        ),
        (
            "slack-token",
            ("xox", "xapp-", "hooks.slack"),
            _NOT_IN + r"(?:xox[a-z](?:\.xox[a-z])?-[\w-]{10,}|xapp-\d-[\w-]{10,})"
            r"|hooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{10,}",
            0,
            _mixed,
        ),
        (
            "google-key",
            ("aiza", "ya29", "gocspx", "1//0"),
            _NOT_IN + r"(?:AIza[\w-]{30,}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{16,}|1//0[\w-]{30,})",
            0,
            _whole,
        ),
        ("remem-token", ("remem_",), _NOT_IN + r"remem_[A-Za-z0-9_-]{43,}", 0, _whole),
        ("anthropic-key", ("sk-ant-",), _NOT_IN + r"sk-ant-[\w-]{10,}", 0, _whole),
        ("openai-key", ("sk-",), _NOT_IN + r"(?<!-)sk-[A-Za-z0-9_-]{20,}", 0, _mixed),
        (
            "stripe-key",
            ("k_live_", "k_test_", "whsec_"),
            _NOT_IN + r"(?:[sr]k_(?:live|test)_\w{10,}|whsec_[\w+/]{16,})",
            0,
            _whole,
        ),
        ("npm-token", ("npm_",), _NOT_IN + r"npm_[A-Za-z0-9]{20,}", 0, _mixed),
        ("npm-token", ("_auth",), r"_auth(?:Token)?\s*=\s*(?P<v>[^\s\"']{6,})", 0, _given),
        ("pypi-token", ("pypi-",), _NOT_IN + r"pypi-(?:AgE[\w-]{10,}|[\w-]{70,})", 0, _whole),
        (
            "token",
            (),
            _NOT_IN + r"(?:" + "|".join(_SERVICES) + r")(?![A-Za-z0-9])",
            0,
            _mixed,
        ),
        (
            "aws-key",
            ("aws", "akia", "asia"),
            r"(?<![\w/+=-])[A-Za-z0-9/+]{40}(?![\w/+=-])",
            0,
            _cell,
        ),
        (
            "signature",
            ("?sig=", "&sig=", "x-amz-s"),
            r"[?&](?:sig|X-Amz-Signature|X-Amz-Security-Token)=(?P<v>[\w%+/=.-]{16,})",
            0,
            _given,
        ),
        (
            "password",
            _PASSWORD_WORDS,
            rf"(?P<name>(?:{_PASSWORD}){_AFTER}){_SEPARATOR}"
            r"(?P<q>\\?[\"'`])?(?P<v>(?(q)[^\"'`\r\n\\]{3,400}(?=[\"'`\\]|\Z)|[^\s\"'`]{3,400}))",
            i,
            _assigned,
        ),
        (
            "secret",
            _TOKEN_WORDS,
            rf"(?P<name>(?:{_TOKEN}){_AFTER}){_SEPARATOR}"
            r"(?P<q>\\?[\"'`])?(?P<v>(?(q)[^\"'`\s\\]{8,400}(?=[\"'`\\]|\Z)|[^\s\"'`&]{4,400}))",
            i,
            _assigned,
        ),
        (
            "password",
            _PASSWORD_WORDS,
            rf"(?<![\w-])--?(?:[\w-]{{0,30}}(?:{_PASSWORD})|pass(?:in|out)?)(?:\s+|=)"
            r"(?P<v>\"[^\"\r\n]+\"|'[^'\r\n]+'|[^\s\"']+)",
            i,
            _option,
        ),
        (
            "secret",
            _TOKEN_WORDS,
            r"(?<![\w-])--[\w-]{0,30}(?:token|secret|api-?key|(?:access|private|secret|auth|account"
            r"|encryption|master|shared|signing|storage)-key|credential)"
            r"(?:\s+|=)(?P<v>\"[^\"\r\n]+\"|'[^'\r\n]+'|[^\s\"']{6,})",
            i,
            _option,
        ),
        (
            "password",
            ("send",),
            r"(?i:assw(?:ord|d)|passphrase|\bpin\b)[^\r\n]{0,40}[\"'\\)}][\s\S]{0,80}?"
            r"\bsend(?:line)?\b(?:\s+--)?\s*[({]?\s*\\?[\"'](?P<v>[^\"'\\\r\n]{3,200})",
            0,
            _given,
        ),
        (
            "password",
            ("identified ", "password"),
            r"\b(?:identified\s+(?:with\s+\S{1,60}\s+)?(?:by|as)(?:\s+password)?"
            r"|(?:with|encrypted|unencrypted|user|role|set)\b[^\r\n;]{0,120}?\bpassword(?:\s*=)?"
            r"(?:\s+for\b[^=\r\n]{1,80}=)?(?:\s*password)?)\s*\(?\s*\\?'(?P<v>[^'\\\r\n]{3,200})'",
            i,
            _given,
        ),
        (
            "password",
            _PASSWORD_WORDS,
            rf"\b(?:{_PASSWORD})\s+(?:is|was|to|ist|lautet|es)\s*:?\s+"
            r"(?P<q>[\"`])?(?P<v>[^\s\"`]{4,200})",
            i,
            _said,
        ),
        (
            "secret",
            _TOKEN_WORDS,
            r"\b(?:(?:api|access|auth|secret|private|signing)[ _-]?(?:key|token)|token|secret)\s+"
            r"(?:is|was|ist)\s*:?\s+(?P<q>[\"`])?(?P<v>[^\s\"`]{12,400})",
            i,
            _said,
        ),
    ]
    return tuple(
        (kind, words, re.compile(pattern, flags), judge)
        for kind, words, pattern, flags, judge in rows
    )
