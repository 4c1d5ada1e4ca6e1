"""What an agent may not say to whoever reads its words: the strong rules.

An agent's words are mostly what it did, found and thinks, and much of that is worded as a request,
so the rules for tools and strangers would hold back half of it.  Four things stand in no honest
note: to set aside what the reader was told before, to send keys and credentials away, to fetch
something and run it at once, and text that no reader can see.  They hold in whatever an agent, or
a principal that is not the owner, writes: evidence, facts, loops, tasks, briefs, drafts.

What is told ("I ignored the earlier rules", "the installer runs curl ... | sh") is no order.

Source: remem(7), ADMISSION.
"""

from __future__ import annotations

import re
from functools import cache

VERSION = "agents/1"

# Words without one of which no rule below can fire; most text is told apart by them alone.
_SIGNS = (
    "ignor",
    "disregard",
    "forget",
    "overrid",
    "vergiss",
    "missachte",
    "oubli",
    "olvid",
    "descart",
    "omit",
    "zapomnij",
    "\u5ffd\u7565",
    "\u6307\u793a",
    "\u6307\u4ee4",
)
_AWAY = ("send", "post", "upload", "forward", "mail", "transmit", "exfiltrate", "leak")
_FETCHES = ("curl", "wget", "iwr", "webrequest", "fetch", "iex")

# To set aside what was said before, in other languages.
IGNORE_ABROAD = (
    r"\b(?:ignorier|vergiss|missachte)\w*\b[^.\n]{0,40}\b(?:anweisung|vorgabe|regel|befehl)"
    r"|\b(?:ignore[zr]?|oublie[zr]?)\b[^.\n]{0,40}\b(?:consignes?|r\u00e8gles?)"
    r"|\b(?:ignore[zr]|oublie[zr]?)\b[^.\n]{0,40}\binstructions?"
    r"|\bignore\b (?:toutes?|tous|les|ces)\b[^.\n]{0,40}\binstructions?"
    r"|\b(?:ignora|olvida|descarta|omite)\w*\b[^.\n]{0,40}\b(?:instrucci|instru\u00e7"
    r"|reglas|istruzion|\u00f3rdenes)"
    r"|\b(?:ignoruj|zignoruj|zapomnij)\b[^.\n]{0,40}\b(?:instrukcj|polece)"
)
IGNORE_CJK = (
    r"\u5ffd\u7565[^\u3002\n]{0,12}\u6307\u4ee4|\u5ffd\u7565[^\u3002\n]{0,12}\u6307\u793a"
    r"|\u6307\u793a\u3092\u7121\u8996"
)
# Files that hold keys and nothing else.
CREDENTIAL_FILES = (
    r"(?:(?<![\w.])(?:~|\$home|/home/\w+|/root)/\.(?:ssh|aws|gnupg|netrc|pgpass|kube)\b(?!\S*\.pub)"
    r"|(?<!\w)id_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|/etc/shadow\b"
    r"|(?<![\w.])\.env\b(?![.\w-])|(?<![\w.])\.(?:netrc|pgpass)\b)"
)

# Who tells of himself, or tells somebody not to, gives no such order.
_NO_ORDER = (
    r"(?<!\bi )(?<!\bwe )(?<!\bi'll )(?<!\bwe'll )(?<!\bi will )(?<!\bwe will )(?<!\bi can )"
    r"(?<!\bnot )(?<!n't )(?<!\bnever )(?<!\bnot to )(?<!\bcannot )"
)
_TOLD = r"(?:instructions?|prompts?|directions|guidelines|directives|safeguards|safety rules)"
_BEFORE = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|former|past|existing|original|initial"
    r"|system|developer|owner's|user's|safety)"
)


@cache
def _ignores() -> re.Pattern[str]:
    return re.compile(
        rf"{_NO_ORDER}\b(?:ignore|disregard|forget|override)\b[^.\n]{{0,30}}?(?:"
        rf"\b{_BEFORE}\b[^.\n]{{0,20}}?\b(?:{_TOLD}|rules|orders|policies|restrictions)\b"
        rf"|\b(?:all|any|your|these|those|every)\b[^.\n]{{0,12}}?\b{_TOLD}\b)"
        rf"|{_NO_ORDER}\b(?:ignore|disregard|forget) (?:everything|all|anything)(?: \w+)?"
        r" (?:above|before|previous|prior|you (?:were|have been|know))\b"
        rf"|{IGNORE_ABROAD}|{IGNORE_CJK}"
    )


@cache
def _sends() -> re.Pattern[str]:
    """Keys and credentials sent away; how a program hands one to its own server is no sending."""
    verbs = r"(?:send|post|upload|forward|e-?mail|transmit|exfiltrate|leak)"
    return re.compile(
        rf"{_NO_ORDER}(?<![\w-])\b{verbs}\b(?!-)[^.\n]{{0,40}}?(?:"
        r"\b(?:the|all|any|every|your|my|our|their|his|her|\w+'s)\b[^.\n]{0,30}?"
        r"\b(?:passwords?|credentials|(?:api|ssh|private|secret|access|signing)[ _-]?keys?"
        r"|access tokens?|secrets|environment variables|cookies)\b"
        r"(?![^.\n]{0,60}\b(?:header|headers|bearer|request|endpoint|login|form|cookie jar"
        r"|authori[sz]ation|authentication|handshake)\b)"
        rf"|{CREDENTIAL_FILES})"
    )


@cache
def _runs() -> re.Pattern[str]:
    """An order to run something, in the words before a command that fetches and runs."""
    return re.compile(
        r"(?:^|[.!?:;,(\n]\s{0,3}|\b(?:and|then|please|must|should|always|now|first|also|you|to)\s)"
        r"[\"'`*]{0,3}(?:run|execute|eval|source|paste|type|invoke|use|start|call|do|try)\b"
        r"[^|\n]{0,60}\Z",
        re.IGNORECASE,
    )


@cache
def _secret() -> re.Pattern[str]:
    return re.compile(
        rf"{CREDENTIAL_FILES}|\b(?:passwords?|credentials?|secrets?|tokens?|private[ _-]?key)\b",
        re.IGNORECASE,
    )


def names(plain: str) -> set[str]:
    """Names of the rules that fire on the words of an agent, as a reader takes them in."""
    from remem.objects.instruction_advice import dangers

    low = plain.casefold()
    found = set()
    if any(sign in low for sign in _SIGNS) and _ignores().search(_joined(low)):
        found.add("override")
    if any(sign in low for sign in _AWAY) and _sends().search(_joined(low)):
        found.add("exfiltrate")
    if any(sign in low for sign in _FETCHES):
        for name, pattern in dangers():
            for match in pattern.finditer(plain):
                if name == "remote-code":
                    before = plain[max(0, match.start() - 100) : match.start()]
                    fires = _runs().search(before)
                else:
                    fires = _secret().search(match.group())
                if fires is not None:
                    found.add(name)
                    break
    return found


_WRAP = re.compile(r"\n(?=[a-z])")


def _joined(low: str) -> str:
    """A text with its wrapped lines joined."""
    return _WRAP.sub(" ", low)
