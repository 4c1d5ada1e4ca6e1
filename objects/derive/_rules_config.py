"""Statements of how something is set up: "deploy host is beta-3", "the budget for 2024 is 40k".

The subject ends in a noun of a closed table, or has one before "of" or "for", and is qualified:
"the port is 8080" says of no port in particular.  The value must be of the form that the noun asks
for and end its clause, so that "the build server is 10 years old" is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive import _rules_words as words
from remem.objects.derive._rules_dates import DATE, adjunct
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_phrase import follows
from remem.objects.derive._rules_sentence import NAME, Family, Part, Sentence, is_name, stands
from remem.objects.derive._rules_text import QUOTED, is_left_standing, is_open
from remem.objects.derive.claim import Claim

_TOKEN = (
    r"`[^`\s]+`|\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|https?://[^\s,;)]*[\w/]"
    r"|(?=[A-Za-z][\w./:@-]*(?:[\d_@]|[.:]\w))[A-Za-z][\w./:@-]*\w"
)
_NUMBER = r"\d[\d,.]*\d|\d"
_AMOUNT = (
    rf"(?:[$€£¥] ?|(?:USD|EUR|GBP) )?(?:{_NUMBER})(?: ?(?:k|K|m|M|bn|B|million|thousand"
    rf"|billion)(?![A-Za-z]))?"
    r"(?: ?(?:[$€£¥%]|(?:euros?|dollars?|pounds?|percent|USD|EUR|GBP|CHF|people|seats|requests"
    r"|[kMGT]i?B|gigabytes|megabytes|items|users)\b))?"
    r"(?: ?(?:/|per |an? )(?:hour|day|week|month|year|minute|second|mo|yr|s|h|min))?"
)
_SPAN = (
    rf"(?:{_NUMBER}) ?(?:ms|s|sec|secs|seconds?|m|min|mins|minutes?|h|hrs?|hours?|d|days?|weeks?"
    r"|months?|years?)(?!\w)"
)
_WHEN = (
    rf"(?:on )?(?:{DATE}|(?i:{'|'.join(words.MONTHS)}) \d{{1,2}}(?:st|nd|rd|th)?"
    rf"|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?i:{'|'.join(words.MONTHS)})"
    rf"|(?i:{'|'.join(words.WEEKDAYS)})(?: at \d{{1,2}}(?::\d\d)?(?: ?[ap]m)?)?)"
)
_PATH = r"`[^`\s]+`|(?:~|\.{1,2})?/[\w./~@+-]*\w|\w[\w.-]*/[\w./-]*\w|[\w-]+\.[a-z]\w{1,4}"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_STREET = r"\d{1,5}[a-z]? [A-Z]\w+(?: [A-Z]\w+){0,3}"
_BRANCH = (
    rf"{_TOKEN}|\w+/[\w./-]*\w|(?:main|master|develop|dev|trunk|staging|production|release|next"
    r"|stable)(?![\w/])"
)
_ZONE = r"(?:UTC|GMT)(?: ?[+-]\d{1,2}(?::\d\d)?)?|[A-Z]{3,4}|[A-Z]\w+/[A-Z]\w+"

_KINDS = {
    _TOKEN: "host hostname server machine node vm instance cluster region zone namespace bucket"
    " database db schema table queue topic container image tag device router gateway proxy domain"
    " subdomain nameserver registry ip username",
    r"\d{2,5}": "port",
    rf"{_TOKEN}|{_STREET}": "address",
    rf"{_TOKEN}|[\w-]+(?:\.[\w-]+)+/\S*\w": "url endpoint website homepage link repo repository"
    " webhook wiki dashboard",
    _BRANCH: "branch",
    r"`[^`\s]+`|v?\d+(?:\.\d+)*(?:[.+-]?[a-z]\w*|[.+-][\w.+-]*\w)?": "version release",
    _AMOUNT: "budget cost price rent salary limit quota fee rate headcount capacity deposit size",
    rf"{_SPAN}|{_AMOUNT}": "timeout interval ttl retention delay",
    _WHEN: "deadline date launch meeting standup appointment",
    _PATH: "path directory folder dir file",
    _MAIL: "email e-mail mail",
    NAME: "owner lead maintainer manager ceo cto reviewer assignee landlord dentist doctor teacher",
    _ZONE: "timezone",
    rf"`[^`\s]+`|{NAME}": "codename",
}
_FORMS = {head: Form(rf"(?:{form})") for form, heads in _KINDS.items() for head in heads.split()}
HEADS = frozenset(_FORMS)

_NOT_IN_SUBJECT = (
    "a an any some another every each no your his her their its this that these those if i we you"
    " he"
    " she it they is are was were be been has have had do does did will can should must may might"
    " think know believe hope guess said says say tell told and or but so because since as when"
    " while where who which what how why not with from to than then yeah yes no ok okay hey hi now"
    " also well please thanks maybe whether make sure use using set"
).split()
_W = rf"(?!(?i:{'|'.join(_NOT_IN_SUBJECT)})\b)[A-Za-z\d][\w'./-]*"
_HEAD = "|".join(sorted(map(re.escape, HEADS), key=len, reverse=True))
_SUBJECT = (
    r"(?<![\w'@./-])(?:(?P<whose>[Tt]he|[Oo]ur|[Mm]y) )?"
    rf"(?P<subject>(?:(?!(?:the|our|my|The|Our|My|of|for|in|on"
    rf"|at) ){_W} ){{0,4}}?(?i:(?P<head>{_HEAD}))"
    rf"(?: (?:for|of|in|on|at)(?: (?:the|our|my))? (?P<of>(?:(?!(?:the|our"
    rf"|my) ){_W} ){{0,4}}?{_W}))?)"
)
_ADVERB = r"(?: (?:now|currently|still|actually|always|officially|set to|set at))*"
_IS = Form(
    rf"{_SUBJECT}(?:(?P<ended> is no longer| is not| isn't)|(?P<used> used to be)"
    rf"|(?P<now> is{_ADVERB}|'s now| has changed to| changed to| was changed to| is changed to"
    rf"| has been (?:changed|set|moved) to| was set to"
    r"|(?: has| was| has been|'s)?(?: just)? (?:moved|changed|switched|migrated)(?: over)?"
    r" from (?:[\w$€£`][\w$€£`.,:/@-]*)(?: [\w$€£`][\w$€£`.,:/@-]*){0,3}? to)) ?"
)
_VALUE_END = Form(
    r"\s*(?:$|[.,;!)](?=\s|$)|[\u2013\u2014(]| -+ )| +(?:and|but|now|since|as of|instead|because"
    r"|so|not|from|which|again|these days|today|yesterday|last|this|any ?more|any longer"
    r"|in (?:production|staging|prod))\b"
)
_ANY_MORE = Form(r" any ?(?:more|longer)\b")
_CALLED = Form(
    rf"(?<![\w'@./-])(?P<whose>[Tt]he|[Oo]ur"
    rf"|[Mm]y) (?P<subject>(?:{_W} ){{0,3}}?{_W}) is (?:called|named) "
    rf"(?:(?P<name>{NAME})|`(?P<code>[^`\s]+)`|\"(?P<title>{QUOTED}{{2,40}})\")"
)
_PERSONS = frozenset(" ".join((*words.ONE_KIN, *words.MANY_KIN, *words.PETS, "friend")).split())
_THING = r"(?:[A-Z][\w.-]*\w(?: [A-Z][\w.-]*\w){0,2}|`[^`\s]+`|(?=[\w.-]*\d)[\w.-]*\w)"
_PERSONAL = frozenset(
    "email e-mail mail address timezone salary rent landlord dentist doctor username"
    " manager".split()
)
_NO_QUALIFIER = frozenset(
    """new current latest old other same right wrong correct first second third next previous
    only actual real exact given full final last total whole entire original resulting usual
    """.split()
)
_DATED = frozenset(("deadline", "launch", "meeting", "standup", "appointment"))
_MOVED = Form(
    rf"(?<![\w'@./-])(?P<whose>[Tt]he|[Oo]ur|[Mm]y) (?P<subject>(?:{_W} ){{0,3}}?{_W}) "
    rf"(?:has |have |was |has been "
    rf"|had )?(?:just )?moved (?:over )?from {_THING} to (?P<object>{_THING})"
)


def settings(s: Sentence) -> Iterator[Claim]:
    """Derive how things are set up."""
    for found in _IS.finditer(s.said):
        subject, value = _subject(s, found), _value(s, found)
        if subject is None or value is None or not stands(s, found, value.after):
            continue
        begin, _, after, _ = adjunct(s, value.after)
        if not _VALUE_END.match(s.said, after):
            continue
        ends, past = found["ended"] is not None, found["used"] is not None
        if ends and "no longer" not in found["ended"] and not _ANY_MORE.match(s.said, after):
            continue
        written = s.cut(value.start, value.end)
        verb = "is no longer" if ends else "used to be" if past else "is"
        yield s.claim(
            "is",
            subject,
            written,
            f"{subject} {verb} {written}",
            found.start(),
            after,
            single=not past,
            ends=ends or (past and s.asserted is None),
            valid_from=None if ends or past else begin,
            valid_to=s.asserted if past else begin if ends else None,
        )


def called(s: Sentence) -> Iterator[Claim]:
    """Derive what things are called."""
    for found in _CALLED.finditer(s.said):
        group = next(name for name in ("name", "code", "title") if found[name])
        subject = _qualified(s, found["whose"], found["subject"])
        if found["subject"].split()[-1].lower() in _PERSONS or not is_open(s.said, found.start()):
            continue
        if found["whose"].lower() == "the" and " " not in found["subject"]:
            continue
        if not follows(s.said, found.end()) or not is_left_standing(s.said, found.end()):
            continue
        value = s.cut(*found.span(group))
        yield s.claim("name", subject, value, f"{subject} is called {value}", *found.span())


def moved(s: Sentence) -> Iterator[Claim]:
    """Derive where things have moved to: "the office has moved from Leeds to York"."""
    for found in _MOVED.finditer(s.said):
        last = found["subject"].split()[-1].lower()
        known = last in HEADS and last not in _DATED
        if known or last in _PERSONS or not is_open(s.said, found.start()):
            continue
        if not follows(s.said, found.end()) or not is_left_standing(s.said, found.end()):
            continue
        start, end = found.span("object")
        ticked = s.said[start] == "`"
        subject = _qualified(s, found["whose"], found["subject"])
        value = s.cut(start + ticked, end - ticked)
        yield s.claim("moved_to", subject, value, f"{subject} moved to {value}", *found.span())


def _subject(s: Sentence, found: re.Match[str]) -> str | None:
    """Bring a subject to one form: "the staging server's port" is "port of staging server"."""
    written = found["subject"]
    qualifier, owner, rest = written.rpartition("'s ")
    if owner and found["of"] is None:
        written = f"{rest} of {qualifier}"
    elif " of " not in f"{written} " and found["of"] is None and not _is_qualified(found):
        return None
    return _qualified(s, found["whose"] or "", written)


def _value(s: Sentence, found: re.Match[str]) -> Part | None:
    """Read the value in the form that the head of the subject asks for."""
    form = _FORMS[found["head"].lower()]
    value = form.match(s.said, found.end())
    if value is None:
        return None
    start, end = value.span()
    if form is _FORMS["owner"] and not is_name(value[0]):
        return None
    if value[0].startswith("on "):  # "the deadline is on Friday"
        start += 3
    if value[0].startswith("`"):
        return Part(start + 1, end - 1, end)
    return Part(start, end)


def _is_qualified(found: re.Match[str]) -> bool:
    """Say whether a subject without "of" or "for" names one thing: "the new port" does not."""
    before = found["subject"].lower().split()[:-1]
    if found["whose"] in ("my", "My") and found["head"].lower() in _PERSONAL:
        return True
    return any(word not in _NO_QUALIFIER for word in before)


def _qualified(s: Sentence, whose: str, written: str) -> str:
    name = re.sub(r" (?:the|our|my) ", " ", written).casefold()
    return f"{s.me}'s {name}" if whose.lower() == "my" else name


FAMILIES = (
    Family("called named", called, _CALLED),
    Family("moved", moved, _MOVED),
    Family(HEADS, settings, _IS),
)
