"""Finding secrets in text: own patterns first, then a library for the services that it knows.

A cheap look decides whether a text can hold a secret at all; nothing else runs, and nothing is
compiled, for a text that cannot.  The own patterns (`remem.objects.secret_rules`) find what a
library of token shapes misses: whole PEM blocks, headers, passwords in URLs and options,
assignments.  ``detect_secrets`` adds the token shapes of services; it is slow to import, so it is
loaded only for a text that its own hint, a superset of its patterns, lets through.  Only its
patterns are used: it asks no service whether a secret is valid.

Source: detect-secrets 1.5, plugins.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Span = tuple[int, int, str]  # start, end, kind

OWN = "secret-rules/2"
LIBRARY = "detect-secrets/1.5"
MARK = "[redacted:"

_TOKEN_RUN = 14  # characters that every token has at least, which few words of prose have
_UNNAMED = 24  # characters of the shortest token that only the word before it tells
_RUN_OF = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/+=.?&:-"
_RUNS = bytes(97 if byte in _RUN_OF else 32 for byte in range(256))
_LONG = b"a" * _TOKEN_RUN
# Prose that names a secret and gives it has one of these: a plain word is taken for no secret.
_TELLING = re.compile(r'[0-9"`@#$%^&*~+=|]')


def possible(text: str) -> bool:
    """Whether a text can hold a secret: cheap, and never False for one that does."""
    dashed = "-" in text and (" -" in text or "--" in text)
    given = dashed or ":" in text or "=" in text
    if given or _TELLING.search(text) is not None:
        # An assignment, a header, a URL, an option; or prose that names a secret and gives it.
        low = text.lower()
        # Of each word that names one a part that few other words have: most texts have none.
        if (
            "pass" in low
            or "key" in low
            or "ken" in low
            or "cre" in low
            or "pwd" in low
            or "bearer" in low
            or "contrase" in low
            or "assw" in low
            or "identified" in low
        ) and _names_one(low):
            return True
        if given and _runs_one(text):
            return True
    line = dashed or "/" in text or "|" in text or "_" in text or "@" in text or "=" in text
    if line:
        from remem.objects import secret_commands

        if secret_commands.possible(text):
            return True
    return _is_long(text) and _token_like(text)


def _token_like(text: str) -> bool:
    """Whether a long run begins as tokens do, or is so long that a word before it may tell."""
    runs = _unusual(text)
    if any(_begins().search(run) is not None for run in runs):
        return True
    if not any(len(run) >= _UNNAMED for run in runs):
        return False
    low = text.lower()
    return "key" in low or "pass" in low or "pw" in low or "aws" in low


def _is_long(text: str) -> bool:
    """Whether a text has a run that is long enough for a token."""
    return _LONG in text.encode("utf-8", "surrogatepass").translate(_RUNS)


def _unusual(text: str) -> list[str]:
    """Long runs of a text that are no plain words."""
    found = []
    for run in _long_runs().findall(text):
        word = run.strip(".?&:/+=-")
        if not (word.isalpha() and word[1:].islower()):
            found.append(run)
    return found


# Far more words have "pass" and "key" in them than name a secret.
_PASSES = ("passw", "passph", "passc", "-pass", "_pass", "sshpass", "userpass", "dbpass")
_OWNERS = (
    "api|access|auth|account|admin|client|consumer|encryption|master|private|secret|service"
    "|session|signing|shared|storage|ssh|webhook|bot|app|deploy|license"
)
_OWNERS_OF_KEYS = (*_OWNERS.split("|"), "putty", "x-")


def _names_one(low: str) -> bool:
    # Written out: a loop over the words takes twice as long.
    if "pass" in low and any(word in low for word in _PASSES):
        return True
    if "key" in low and any(word in low for word in _OWNERS_OF_KEYS) and _named().search(low):
        return True
    return (
        "secret" in low
        or "token" in low
        or "pwd" in low
        or "bearer" in low
        or "credential" in low
        or "kennwort" in low
        or "contrase" in low
        or ("assw" in low and "send" in low)
        or "identified " in low
    )


def _runs_one(text: str) -> bool:
    """Whether a text holds a URL, a header or a command that takes a password."""
    return (
        "://" in text
        or "ookie:" in text
        or "OOKIE:" in text
        or "uthoriz" in text
        or "UTHORIZ" in text
        or "_auth" in text
    )


@cache
def _named() -> re.Pattern[str]:
    return re.compile(rf"(?:{_OWNERS})[_.\- ]?key|\bx-[a-z-]*key|user-key")


@cache
def _begins() -> re.Pattern[str]:
    from remem.objects import secret_rules

    return re.compile(secret_rules.BEGINS)


@cache
def _long_runs() -> re.Pattern[str]:
    signs = _RUN_OF.decode().replace("-", "")
    return re.compile(f"[{re.escape(signs)}-]{{{_TOKEN_RUN},}}")


def find(text: str) -> list[Span]:
    """Places of the secrets in a text, in order, without overlaps.

    Args:
        text: any text.

    Returns:
        (start, end, kind) for each; start and end are offsets of code points.
    """
    if not possible(text):
        return []
    from remem.objects import secret_rules

    low = text.lower()
    has_run = _is_long(text) and bool(_unusual(text))
    spans: list[Span] = []
    for kind, words, pattern, place in secret_rules.rules():
        if not any(word in low for word in words) if words else not has_run:
            continue
        for match in pattern.finditer(text):
            found = place(match)
            if found is not None and found[0] < found[1]:
                spans.append((*found, kind))
    from remem.objects import secret_commands

    spans += [(*span, "password") for span in secret_commands.find(text)]
    spans = _merged(spans)
    return _merged([*spans, *_by_library(text, spans)]) if has_run else spans


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The same places in order; what overlaps becomes one, of the kind that begins first."""
    found: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda s: (s[0], -s[1])):
        if found and start < found[-1][1]:
            before = found[-1]
            found[-1] = (before[0], max(before[1], end), before[2])
        else:
            found.append((start, end, kind))
    return found


# -- the library --------------------------------------------------------------------------------

# Modules and classes of its plugins, and the kind that each finds.  Left out: the ones by entropy
# (they take digests for secrets), by keyword, private key and URL (the own patterns are wider).
_PLUGINS = (
    ("artifactory", "ArtifactoryDetector", "artifactory-key"),
    ("aws", "AWSKeyDetector", "aws-key"),
    ("azure_storage_key", "AzureStorageKeyDetector", "azure-key"),
    ("cloudant", "CloudantDetector", "cloudant-key"),
    ("discord", "DiscordBotTokenDetector", "discord-token"),
    ("github_token", "GitHubTokenDetector", "github-token"),
    ("gitlab_token", "GitLabTokenDetector", "gitlab-token"),
    ("ibm_cloud_iam", "IbmCloudIamDetector", "ibm-key"),
    ("ibm_cos_hmac", "IbmCosHmacDetector", "ibm-key"),
    ("jwt", "JwtTokenDetector", "jwt"),
    ("mailchimp", "MailchimpDetector", "mailchimp-key"),
    ("npm", "NpmDetector", "npm-token"),
    ("openai", "OpenAIDetector", "openai-key"),
    ("pypi_token", "PypiTokenDetector", "pypi-token"),
    ("sendgrid", "SendGridDetector", "sendgrid-key"),
    ("slack", "SlackDetector", "slack-token"),
    ("softlayer", "SoftlayerDetector", "softlayer-key"),
    ("square_oauth", "SquareOAuthDetector", "square-key"),
    ("stripe", "StripeDetector", "stripe-key"),
    ("telegram_token", "TelegramBotTokenDetector", "telegram-token"),
    ("twilio", "TwilioKeyDetector", "twilio-key"),
)
# Lets through whatever one of them could match.
_HINT = (
    r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}|[0-9a-zA-Z/+]{40}|AccountKey="
    r"|AKC[a-zA-Z0-9]{10}|AP[\dA-F][a-zA-Z0-9]{8}|[\w-]{23}\.[\w-]{6}\.|gh[opusr]_|GR1348941"
    r"|gl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas)-|eyJ|[0-9a-z]{32}-us\d|_authToken|pypi-Ag"
    r"|SG\.|xox|hooks\.slack|[a-zA-Z]{24}|sq0csp|[sr]k_live|\d{8}:|(?:AC|SK)[a-z0-9]{32}|sk-"
)


@cache
def _plugins() -> list[tuple[str, Callable[[str], Iterable[str]]]]:
    """(kind, what yields the secrets of a line) of every plugin that is used."""
    from importlib import import_module

    found = []
    for module, name, kind in _PLUGINS:
        plugin = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        found.append((kind, plugin.analyze_string))
    return found


@cache
def _hint() -> re.Pattern[str]:
    return re.compile(_HINT)


def _by_library(text: str, known: list[Span]) -> list[Span]:
    """What the library finds in what the own patterns left."""
    rest = text
    if known:
        pieces, at = [], 0
        for start, end, _ in known:
            pieces += [text[at:start], " " * (end - start)]
            at = end
        rest = "".join((*pieces, text[at:]))
    if _hint().search(rest) is None:
        return []
    from remem.objects.secret_rules import is_mixed

    found: list[Span] = []
    for line in re.finditer(r"[^\r\n]+", rest):
        if _hint().search(line[0]) is None:
            continue
        for kind, secrets_of in _plugins():
            for secret in set(secrets_of(line[0])):
                value = secret.strip(" \t\"':=")
                # Its Artifactory pattern is so short that it takes words in capitals.
                if len(value) < _TOKEN_RUN or not is_mixed(value):
                    continue
                for same in re.finditer(re.escape(value) + r"[A-Za-z0-9_-]*", line[0]):
                    found.append((line.start() + same.start(), line.start() + same.end(), kind))
    return found
