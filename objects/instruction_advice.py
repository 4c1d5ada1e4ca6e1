"""Signs of dangerous advice: to get round a safeguard, to fetch and run, to send data away.

Compiled on first use: only text that comes from tools or strangers is looked at.
"""

from __future__ import annotations

import re
from functools import cache

from remem.objects.instruction_forms import Form, Index, words

_GUARD = (
    r"(?:validat\w+|checks?|checking|reviews?|reviewing|tests?|testing|gates?|schema|audits?"
    r"|consent|warnings?"
    r"|verif\w+|approval\w*|authenticat\w+|authoriz\w+|safeguards?|sanit\w+|monitor\w+|security"
    r"|scans?|lint\w*"
    r"|alerts?|quality|certificates?|permissions?|encryption|backups?|logging|logs|limits?"
    r"|guardrails?|firewall"
    r"|recomput\w+|revalidat\w+|sign-?off|compliance|privacy|assertions?|dq|ssl|tls|2fa|mfa)"
)
_FINE = (
    r"(?:pass(?:ed|ing)?|complete[d]?|success(?:ful)?|succeeded|final|clean(?:ed)?|saniti[sz]ed"
    r"|approved|validated"
    r"|verified|ok|okay|green|done|safe|ready|compliant|resolved|anonymi[sz]ed|reviewed"
    r"|signed off|healthy|trusted)"
)


_GET_ROUND = (
    "skip skips skipped skipping bypass bypasses bypassed bypassing disable disables disabled"
    " disabling ignore ignores ignored ignoring suppress suppresses suppressed suppressing turn"
    " force forces forced forcing fake fakes faked faking circumvent circumvents circumventing"
    " evade evades evading omit omits omitted omitting avoid avoids avoided avoiding silence"
    " silences silenced silencing monkeypatch monkeypatches monkeypatched monkeypatching monkey"
    " stub stubs stubbed stubbing mute mutes muted muting override overrides overrode overridden"
    " overriding remove removes removed removing drop drops dropped dropping relax relaxes relaxed"
    " relaxing weaken weakens weakened weakening comment"
)
_FINE_WORDS = (
    "pass passed passing complete completed success successful succeeded final clean cleaned"
    " sanitised sanitized approved validated verified ok okay green done safe ready compliant"
    " resolved anonymised anonymized reviewed signed healthy trusted skipped true"
)


@cache
def shortcuts() -> tuple[Form, ...]:
    """Signs of advice to get round a safeguard; each alone may be innocent."""
    i = re.IGNORECASE
    rows: tuple[tuple[str, str, str], ...] = (
        # words, parts of words by "|", pattern
        (
            _GET_ROUND,
            "",
            rf"\b(?:skip|bypass|disabl|ignor|suppress|turn off|forc|fak|circumvent|evad"
            rf"|omit|avoid|silenc|monkey-?patch|stub|mut|overrid|overrod|remov|drop|relax|weaken"
            rf"|comment out)\w*\b[^.;\n]{{0,40}}?\b{_GUARD}\b"
            # An option and the words that explain it are one sign.
            r"|--(?:no-verify|insecure|force|skip-\w+|no-check\w*)\b",
        ),
        (
            _FINE_WORDS,
            "mark|flag|label|record|report|stamp|set|declar|tag|log|treat|claim",
            rf"\b(?:mark|flag|label|record|report|stamp|set|declare|tag|log|treat"
            rf"|claim)\w*\b[^.;\n]{{0,40}}?\b(?:as|to|=|:)?\s*['\"]?{_FINE}\b",
        ),
        (
            _FINE_WORDS,
            "=",
            r"(?:status|check|valid|approved|clean|passed|(?<![a-z])(?<!exist_)ok)\w*(?:['\"]?\])?"
            rf"\s*=\s*['\"]?(?:{_FINE}|skipped|true|ready)",
        ),
        (
            "skip force disable bypass no ignore",
            "_",
            r"\b(?-i:(?:SKIP|FORCE|DISABLE|BYPASS|NO|IGNORE)_[A-Z_]+|[A-Z_]+_(?:FORCE|SKIP)[A-Z_]*)"
            r"\s*=\s*(?:1|true|yes|on)\b",
        ),
        (
            "regardless even without instead",
            "",
            r"\b(?:regardless of|even if|without|instead of)\b[^.;\n]{0,30}?\b(?:checks?|stale"
            r"|failing|failed|review\w*|waiting|approval|validat\w+|rerunning|delay\w*"
            r"|outdated|consent)\b",
        ),
        (
            "always auto automatically green unblock save speed instantly lambda",
            "",
            r"\b(?:always|auto|automatically) (?:pass|return true|succeed|approve)\b"
            r"|\bkeeps? [^.;\n]{0,20}green\b"
            r"|\bto (?:unblock|save time|speed (?:it|things) up)\b|\bfinishes instantly\b"
            r"|\blambda \*a\b",
        ),
    )
    return tuple(
        Form("bypass", re.compile(pattern, i), words(held), parts=tuple(parts.split("|")))
        for held, parts, pattern in rows
    )


@cache
def index() -> Index:
    """The signs by the words that they need."""
    return Index(shortcuts())


FETCHES = words("curl wget iwr invoke fetch httpie http iex eval")


@cache
def dangers() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Advice that is dangerous by itself."""
    i = re.IGNORECASE
    return (
        (
            "remote-code",
            re.compile(
                r"\b(?:curl|wget|iwr|invoke-webrequest"
                r"|fetch)\b[^|\n]{0,200}\|\s*(?:sudo\s+)?(?:env\s+)?"
                r"(?:ba|z|da|k)?sh\b|\b(?:curl|wget)\b[^|\n]{0,200}\|\s*(?:sudo\s+)?(?:python"
                r"|perl|ruby|node|php)"
                r"|\b(?:ba)?sh\s+(?:-c\s+)?[\"']?[<$]\(\s*(?:curl|wget)\b|\biex\s*\(|\|\s*iex\b"
                r"|\beval\s+[\"']?\$\((?:curl|wget)",
                i,
            ),
        ),
        (
            "exfiltrate",
            re.compile(
                r"\b(?:curl|wget|httpie|http)\b[^\n]{0,120}?(?:-F\s*\S*=@|--data(?:-binary"
                r"|-raw)?[= ]@|-d\s*@"
                r"|-T\s+\S+|--upload-file|--post-file)[^\n]{0,160}?https?://"
                r"|\bcurl\b[^\n]{0,160}?https?://[^\n]{0,160}?(?:-F\s*\S*=@|--data(?:-binary"
                r"|-raw)?[= ]@|-d\s*@"
                r"|-T\s+\S+|--upload-file)",
                i,
            ),
        ),
    )
