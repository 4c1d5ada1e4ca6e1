"""Statements with a verb of a closed table: "I live in", "Anna no longer works at", "I used to".

Each verb has its tenses from one table, so that what holds, what has ended and what is past are
told apart in the same way for all of them.  A plain past ("I worked at") is read only with dates
that say when it ended, a perfect ("I've lived in") only when it says that it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from remem.objects.derive import _rules_objects as objects
from remem.objects.derive._rules_dates import adjunct, lead_date
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_phrase import place
from remem.objects.derive._rules_sentence import (
    ADVERBS,
    BE,
    CONFIDENCE,
    CONFIDENCE_OTHER,
    ME,
    OTHER,
    SINGLE_VALUED,
    Family,
    Part,
    Sentence,
    Subject,
    other,
)
from remem.objects.derive._rules_text import is_left_standing, is_open
from remem.objects.derive._rules_words import LANGUAGES, OCCUPATIONS, PLAYED
from remem.objects.derive.claim import Claim

Reader = Callable[[Sentence, int], list[Part]]

_AT = Form(r" at (?!least\b|all\b)")
_FORMS_AT = {
    "works_at": {"base": "work at", "third": "works at", "past": "worked at"},
    "studies_at": {"base": "study at", "third": "studies at", "past": "studied at"},
}
_ENDED = Form(r",? (?:any ?more|any longer|these days|now)\b")
_GOES_ON = Form(r",? (?:since|for|all my life|my whole life|my entire life)\b")


class Verb:
    """One row of the table.

    Attributes:
        predicate: of the claims.
        kind: of the claims.
        read: finds the objects.
        keys: words of which a sentence must have one.
        at: predicate of an organisation that may follow after "at", or "".
        by_name: of somebody with one name only it is not believed ("Lunch is from Subway").
    """

    __slots__ = ("at", "by_name", "forms", "keys", "kind", "mine", "predicate", "read", "theirs")

    def __init__(
        self,
        predicate: str,
        read: Reader,
        *,
        base: str = "",
        third: str = "",
        past: str = "",
        being: str = "",
        kind: str = "fact",
        keys: frozenset[str] = frozenset(),
        by_name: bool = True,
        at: str = "",
    ) -> None:
        """Compile the row; the forms are alternatives joined by bars.

        In a claim's text stands the first of them, after "is" the shortest.
        """
        self.predicate = predicate
        self.read = read
        self.kind = kind
        self.by_name = by_name
        self.at = at
        shown = min(being.split("|"), key=len)
        self.forms = {
            "base": base.split("|", 1)[0] or f"be {shown}",
            "third": third.split("|", 1)[0] or f"is {shown}",
            "past": past.split("|", 1)[0] or f"was {shown}",
        }
        every = "|".join(filter(None, (base, third, past, being)))
        self.keys = keys or frozenset(form.split(" ", 1)[0] for form in every.split("|"))
        self.mine = _mine(base, past, being)
        self.theirs = _theirs(base, third, past, being)

    def claims(self, s: Sentence) -> Iterator[Claim]:
        """Derive the claims that the verb makes in a sentence."""
        for found in self.mine.finditer(s.said):
            if is_open(s.said, found.start()):
                yield from _claims(s, self, found, Subject(s.me, first=True))
        for found in self.theirs.finditer(s.said):
            who = other(s, found)
            if who is None:
                continue
            if not (self.by_name or found["kin"] or " " in who.name or "originally" in found[0]):
                continue
            if is_open(s.said, found.start()):
                yield from _claims(s, self, found, who)


def _claims(s: Sentence, verb: Verb, found: re.Match[str], who: Subject) -> Iterator[Claim]:
    parts = verb.read(s, found.end())
    if not parts:
        return
    read = [(verb.predicate, verb.forms, part) for part in parts]
    where = _AT.match(s.said, parts[-1].after) if verb.at else None
    if where is not None:
        at = "studies_at" if s.said.endswith("student", 0, parts[-1].end) else verb.at
        for part in objects.organisation(s, where.end()):
            read.append((at, _FORMS_AT[at], part))
    said = _timed(s, found, read[-1][2].after)
    begin = found.start()
    if said is not None and said.form == "third" and not said.ends and said.valid_from is None:
        said.valid_from, begin = lead_date(s, begin)
    if said is None or not is_left_standing(s.said, said.after):
        return
    for predicate, forms, part in read:
        value = s.cut(part.start, part.end)
        if "\n" in value:
            continue
        yield s.claim(
            predicate,
            who.name,
            value,
            _line(f"{who.name} {said.prefix}{forms[said.form]}", value),
            begin,
            said.after,
            kind=verb.kind,
            single=said.single and predicate in SINGLE_VALUED and not who.many,
            ends=said.ends,
            valid_from=said.valid_from,
            valid_to=said.valid_to,
            confidence=CONFIDENCE if who.first else CONFIDENCE_OTHER,
        )


def _line(start: str, value: str) -> str:
    vowel = start.endswith(" a") and value[:1].lower() in "aeio"
    return f"{start}n {value}" if vowel else f"{start} {value}"


class _Timed:
    """What the tense and the dates of a statement say.

    Attributes:
        form: of the verb, a key of `Verb.forms`.
        prefix: what stands before it.
        after: where the statement ends.
        valid_from: first instant, or None.
        valid_to: first instant after the last, or None.
        ends: it says that it no longer holds.
        single: it may replace what held before.
    """

    __slots__ = ("after", "ends", "form", "prefix", "single", "valid_from", "valid_to")

    def __init__(
        self,
        after: int,
        form: str,
        prefix: str = "",
        valid_from: int | None = None,
        valid_to: int | None = None,
        *,
        ends: bool = False,
        single: bool = True,
    ) -> None:
        """Keep the fields."""
        self.after = after
        self.form = form
        self.prefix = prefix
        self.valid_from = valid_from
        self.valid_to = valid_to
        self.ends = ends
        self.single = single


def _timed(s: Sentence, found: re.Match[str], at: int) -> _Timed | None:
    """Read the dates after the objects; None when the statement does not say what holds."""
    begin, end, after, how = adjunct(s, at)
    tense = found.lastgroup
    if how in ("in", "on", "back in"):  # some time during the state, not its beginning
        begin, end, after, how = None, None, at, ""
    if tense == "denied":
        stop = _ENDED.match(s.said, after)
        return _Timed(stop.end(), "third", "no longer ", None, begin, ends=True) if stop else None
    if tense == "ended":
        return _Timed(after, "third", "no longer ", None, begin, ends=True)
    if tense == "used":
        end = s.asserted if end is None else end
        return _Timed(after, "base", "used to ", begin, end, ends=end is None, single=False)
    if tense == "past":
        return _Timed(after, "past", "", begin, end, single=False) if end is not None else None
    if tense == "perfect" and how != "since" and " always" not in found["perfect"]:
        if not _GOES_ON.match(s.said, after):
            return None
    if begin is not None and s.asserted is not None and begin > s.asserted:
        return None  # a plan
    return _Timed(after, "third", "", begin, end)


def _either(*forms: str) -> str:
    return "(?:" + "|".join(form for form in forms if form) + ")"


def _mine(base: str, past: str, being: str) -> Form:
    """Compile the forms of the first person."""
    a = ADVERBS
    now = _either(
        base and rf"{a} (?:{base})",
        being and rf"{BE}{a} (?:{being})",
        being and rf"(?:'ve| have){a} been{a} (?:{being})",
    )
    ended = _either(base and rf" no longer (?:{base})", being and rf"{BE} no longer (?:{being})")
    denied = _either(
        base and rf" (?:don't|do not|dont)(?: really)? (?:{base})",
        being and rf"{BE} not (?:{being})",
    )
    used = rf"{a} used to{a} " + _either(base, being and f"be (?:{being})")
    perfect = rf"(?:'ve| have){a} (?:{past})" if past else r"(?!)"
    plain = rf"{a} (?:{past})" if past else r"(?!)"
    return Form(
        rf"{ME}(?:(?P<ended>{ended})|(?P<used>{used})"
        rf"|(?P<denied>{denied})|(?P<now>{now})|(?P<perfect>{perfect})|(?P<past>{plain})) "
    )


def _theirs(base: str, third: str, past: str, being: str) -> Form:
    """Compile the forms of the third person."""
    a = ADVERBS
    now = _either(third and rf"{a} (?:{third})", being and rf"(?:'s| is){a} (?:{being})")
    ended = _either(
        third and rf" no longer (?:{third})", being and rf"(?:'s| is) no longer (?:{being})"
    )
    denied = _either(
        base and rf" (?:doesn't|does not)(?: really)? (?:{base})",
        being and rf"(?:'s not| isn't| is not) (?:{being})",
    )
    used = r" used to " + _either(base, being and f"be (?:{being})")
    perfect = rf"(?:'s| has){a} (?:{past})" if past else r"(?!)"
    plain = rf" (?:{past})" if past else r"(?!)"
    return Form(
        rf"{OTHER}(?:(?P<ended>{ended})|(?P<used>{used})|(?P<denied>{denied})|(?P<now>{now})"
        rf"|(?P<perfect>{perfect})|(?P<past>{plain})) "
    )


def _place(s: Sentence, at: int) -> list[Part]:
    found = place(s, at)
    return [found] if found else []


def _town(s: Sentence, at: int) -> list[Part]:
    found = objects.hometown(s, at)
    return [found] if found else []


_FANS = (
    r"(?:an? )(?:(?:big|huge|massive|great|total|lifelong|avid|major) )?fan of|into"
    r"|passionate about|obsessed with|keen on|fond of|hooked on|crazy about"
)

_LIKE_KEYS = (
    "like likes liked love loves loved enjoy enjoys enjoyed adore adores adored fan into passionate"
    " obsessed keen fond hooked crazy"
)

VERBS = (
    Verb(
        "lives_in",
        _place,
        base="live in|reside in",
        third="lives in|resides in",
        past="lived in|resided in",
        being="living in|based in|based out of|settled in",
    ),
    Verb(
        "works_at",
        objects.organisation,
        base="work at|work for",
        third="works at|works for",
        past="worked at|worked for",
        being="working at|working for|employed at|employed by",
    ),
    Verb(
        "works_as",
        objects.role,
        base="work as",
        third="works as",
        past="worked as",
        being="working as|employed as",
        at="works_at",
    ),
    Verb("is_a", objects.occupation, being="a|an", keys=OCCUPATIONS, at="works_at"),
    Verb(
        "studies_at",
        objects.organisation,
        base="study at|go to school at|go to college at|go to uni at",
        third="studies at",
        past="studied at",
        being="studying at|enrolled at|enrolled in",
    ),
    Verb(
        "studies",
        objects.studied,
        base="study|major in",
        third="studies|majors in",
        past="studied|majored in",
        being="studying|majoring in",
        at="studies_at",
    ),
    Verb(
        "speaks",
        objects.languages,
        base="speak|can speak",
        third="speaks|can speak",
        past="spoke",
        being="fluent in|a native speaker of",
        keys=LANGUAGES,
    ),
    Verb("learning", objects.learnt, being="learning how to play|learning to play|learning"),
    Verb("takes", objects.course, being="taking"),
    Verb(
        "member_of",
        objects.group,
        being="a member of|an active member of|a proud member of|part of|a part of",
        keys=frozenset(("member", "part")),
    ),
    Verb("trains_for", objects.course, being="training for"),
    Verb(
        "mentors",
        objects.owned,
        base="mentor|coach|teach|tutor",
        third="mentors|coaches|teaches|tutors",
        past="mentored|coached|taught|tutored",
        being="mentoring|coaching|teaching|tutoring",
    ),
    Verb(
        "is_from",
        _town,
        base="come from|hail from",
        third="comes from|hails from",
        being="from|originally from",
        by_name=False,
    ),
    Verb("married_to", objects.person, being="married to"),
    Verb(
        "allergic_to",
        objects.several,
        being="allergic to|severely allergic to|deathly allergic to",
        keys=frozenset(("allergic",)),
    ),
    Verb(
        "prefers",
        objects.preferred,
        base="prefer",
        third="prefers",
        past="preferred",
        kind="preference",
    ),
    Verb(
        "likes",
        objects.taste,
        base="like|love|enjoy|adore",
        third="likes|loves|enjoys|adores",
        past="liked|loved|enjoyed|adored",
        being=_FANS,
        kind="preference",
        keys=frozenset(_LIKE_KEYS.split()),
    ),
    Verb(
        "dislikes",
        objects.taste,
        base="dislike|hate|can't stand|cannot stand|despise|detest",
        third="dislikes|hates|can't stand|despises|detests",
        past="disliked|hated|despised",
        kind="preference",
    ),
    Verb("plays", objects.instruments, base="play", third="plays", past="played", keys=PLAYED),
    Verb("uses", objects.tool, base="use", third="uses", past="used", being="using"),
    Verb("owns", objects.owned, base="own", third="owns", past="owned"),
    Verb("drives", objects.owned, base="drive", third="drives", past="drove"),
    Verb("collects", objects.plural, base="collect", third="collects", past="collected"),
    Verb(
        "volunteers_at",
        objects.organisation,
        base="volunteer at|volunteer with|volunteer for",
        third="volunteers at|volunteers with|volunteers for",
        past="volunteered at|volunteered with|volunteered for",
        being="volunteering at|volunteering with|volunteering for",
    ),
)

FAMILIES = tuple(Family(row.keys, row.claims, row.mine, row.theirs) for row in VERBS)
