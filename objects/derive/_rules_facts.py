"""Statements in set phrases: names, kin, pets, birthdays, favourites, moves, leaving a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive import _rules_words as words
from remem.objects.derive._rules_dates import adjunct, date_bounds, lead_date
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_objects import favoured, hometown, origin, several
from remem.objects.derive._rules_phrase import follows, phrase, place
from remem.objects.derive._rules_sentence import (
    ADVERBS,
    BE,
    CONFIDENCE,
    CONFIDENCE_OTHER,
    KIN,
    ME,
    MINE,
    NAME,
    OTHER,
    Family,
    Part,
    Sentence,
    Subject,
    is_name,
    other,
    stands,
)
from remem.objects.derive._rules_text import is_left_standing, is_open
from remem.objects.derive.claim import Claim

_PET = "|".join(sorted(words.PETS, key=len, reverse=True))
_MONTH = "|".join(words.MONTHS)
_DAY = (
    rf"(?P<day>(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?i:{_MONTH})(?:,? \d{{4}})?"
    rf"|(?i:{_MONTH}) \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    r"|\d{4}-\d\d-\d\d)(?![\w-]))"
)
_SOME = (
    r"(?: (?:an?|another|one|two|three|four|\d))?"
    r"(?: (?:new|old|older|younger|little|big|other|lovely|cute|beautiful|black|white|rescue))*"
)
_AND_NAME = rf"(?P<called>{NAME})(?:(?:,? and |, )(?P<more>{NAME}))?(?: and (?P<most>{NAME}))?"

_MY_NAME = Form(
    rf"(?:(?<![\w'-])[Mm]y (?:(?:full|first|real|given) )?name(?: is|'s)|{ME}{BE} (?:called|named)"
    rf"|(?<![\w'-])(?:[Pp]lease )?[Cc]all me) (?P<called>{NAME})"
)
_LOWER_NAME = Form(r"(?<![\w'-])my name(?: is|'s) (?P<called>[a-z][a-z'-]+)(?=\s*(?:$|[.,;!]))")
_NO_LOWER_NAME = frozenset(
    "not unknown wrong missing long short unusual hard rare common on in".split()
)
_KIN_NAME = Form(
    rf"{MINE} (?P<kin>{KIN})(?:'s name is| is (?:called|named)|'s name's| is) (?P<called>{NAME})"
)
_HAVE_KIN = Form(
    rf"{ME}(?: have| do have|'ve got|'ve)(?P<some>{_SOME}) (?P<kin>{KIN})s?,? "
    rf"(?:called|named|whose name is|whose names are) {_AND_NAME}"
)
_IS_KIN = Form(
    rf"(?P<called>{NAME})(?: is|'s|,) my (?P<kin>{KIN})(?=\s*(?:$|[.,;!])| and\b| who\b)"
)
# Before "my sister Anna"; after "gave" or "taught" the name would be what was given.
_APPOSED = Form(
    r"(?:(?:^|[,;(\u2013\u2014]|\b(?:with|and|for|of|to|from|by|about|is|are|was|met|see|saw|seen"
    r"|than|like"
    r"|but|that|when|because|visit|visited|visiting|miss|called|meet|both|where))[ \"]?)$",
    re.IGNORECASE,
)
_KIN_APPOSED = Form(rf"{MINE} (?P<kin>{KIN}),? (?P<called>{NAME})")
_PET_APPOSED = Form(rf"{MINE} (?:\w+ )?(?P<pet>{_PET}),? (?P<called>{NAME})")
_APPOSED_PET = Form(
    rf"(?P<called>{NAME})(?: is|'s|,) my (?:\w+ )?(?P<pet>{_PET})(?=\s*(?:$|[.,;!])| and\b)"
)
_PET_NAME = Form(
    rf"{MINE} (?:\w+ )?(?P<pet>{_PET})s?(?:'s name is| is (?:called|named)|'s name's| are called"
    rf"|s' names are) {_AND_NAME}"
)
_HAVE_PET = Form(
    rf"{ME}{ADVERBS}(?: have| do have|'ve got|'ve| own| got| adopted| bought)(?P<some>{_SOME}) "
    rf"(?P<pet>{_PET}|{'|'.join(pet + 's' for pet in words.PETS)}),? "
    rf"(?:called|named|whose name is|whose names are) {_AND_NAME}"
)
_GONE = Form(
    r"\b(?:died|passed away|passed on|dead|late|used to|growing up|as a (?:kid|child)|childhood"
    r"|grave|rip|put (?:him|her|it) down|no longer with us|lost|when i was|had|ex|former)\b",
    re.IGNORECASE,
)
_HAVE = Form(
    rf"{ME}{ADVERBS}(?: have| do have|'ve got|'ve|'ve also got)(?: also| now| got)? "
    r"(?P<object>(?:(?:an?|two|three|four|five|six|seven|\d{1,2})"
    r"(?: (?:little|young|older|younger|beautiful|lovely|rescue|adult|grown|small|wonderful"
    r"|amazing))?"
    r" (?:kids?|children|sons?|daughters?|brothers?|sisters?|siblings|grandkids|grandchildren"
    r"|nephews?"
    rf"|nieces?|cats?|dogs?|{_PET}|puppies|ponies|budgies|parrots|horses|rabbits)))"
    r"(?=\s*(?:$|[.,;!(\u2013\u2014-])| (?:and|who|that|but|with|at|in|now|too|together|aged"
    r"|already)\b)"
)
_BIRTHDAY = Form(
    rf"(?:{MINE}(?: (?P<kin>{KIN})'s)?|(?P<name>{NAME})'s) (?:birthday|bday|birth date"
    rf"|date of birth)"
    rf" (?:is|falls)(?: on)?(?: the)? {_DAY}"
)
_BORN = Form(
    rf"(?:(?P<me>{ME}) was|{OTHER} was) born(?: and (?:raised|bred|brought up))?"
    rf"(?P<how> in(?: the)?| on(?: the)?) "
)
_BORN_MORE = Form(r",? (?:on(?: the)?|in) ")
_BORN_DAY = Form(_DAY)
_YEAR = Form(r"(?P<year>(?:18|19|20)\d\d)(?![\w-])")
_GREW_UP = Form(rf"(?:(?P<me>{ME})|{OTHER}) grew up in ")
_FAVOURITE = Form(
    rf"(?:{MINE}|(?P<name>{NAME})'s) (?:(?:all-time|all time|absolute|current|new) )?"
    r"favou?rite (?P<topic>[a-z][\w-]*(?: [a-z][\w-]*){0,2}?)(?: of all time| ever| right now)? "
    r"(?P<be>is|are)(?: (?:still|definitely|now|actually|currently|always|hands down"
    r"|of course))*:? "
)
_IS_FAVOURITE = Form(
    r"(?P<value>[A-Z\"'][^,.;:!?\n()]{1,50}?)(?: is|'s| are)(?: (?:still|definitely|by far"
    r"|now))* my (?:(?:all-time|all time|absolute|current|new) )?favou?rite "
    r"(?P<topic>[a-z][\w-]*(?: [a-z]+)??)"
    r"(?=\s*(?:$|[.,;!])| (?:of all time|ever|because|and|but|since|too)\b)"
)
_COUNTED = "kid kids child children siblings grandkids grandchildren puppies"
_NO_TOPIC = frozenset(
    "part thing one bit of memory moment time place spot way ones things parts memories"
    " moments".split()
)
_MOVED = Form(
    rf"(?:(?P<me>{ME})(?:'ve| have)?|{OTHER}(?:'s| has)?){ADVERBS} (?:moved|relocated|emigrated"
    r"|immigrated)(?: (?:back|over|out|down|up|away|here|home))*(?= )"
)
_FROM = Form(r" from ")
_TO = Form(r"(?: back| over| out| down| up)? to ")
_MOVED_ON = Form(r",? (?:and )?(?:then|later|afterwards|eventually|before|but)\b")


def names(s: Sentence) -> Iterator[Claim]:
    """Derive what the writer is called."""
    for found in (_LOWER_NAME if s.lower else _MY_NAME).finditer(s.said):
        if not is_name(found["called"]) or found["called"] in _NO_LOWER_NAME:
            continue
        if stands(s, found, found.end()) and follows(s.said, found.end()):
            value = s.cut(*found.span("called"))
            yield s.claim("name", s.me, value, f"{s.me} is called {value}", *found.span())


def kin(s: Sentence) -> Iterator[Claim]:
    """Derive the names of the writer's relations."""
    for pattern in (_KIN_NAME, _HAVE_KIN, _IS_KIN):
        for found in pattern.finditer(s.said):
            if stands(s, found, found.end()) and follows(s.said, found.end()):
                yield from _called(s, found, found["kin"])
    for found in _KIN_APPOSED.finditer(s.said):
        if _is_apposed(s, found):
            yield from _called(s, found, found["kin"])


def pets(s: Sentence) -> Iterator[Claim]:
    """Derive the names of the writer's pets."""
    for pattern in (_PET_NAME, _HAVE_PET, _APPOSED_PET):
        for found in pattern.finditer(s.said):
            if stands(s, found, found.end()) and not _GONE.search(s.said):
                yield from _called(s, found, "")
    for found in _PET_APPOSED.finditer(s.said):
        if _is_apposed(s, found):
            yield from _called(s, found, "")


def has(s: Sentence) -> Iterator[Claim]:
    """Derive how many children, siblings and pets the writer has."""
    for found in _HAVE.finditer(s.said):
        if stands(s, found, found.end()):
            value = s.cut(*found.span("object"))
            yield s.claim("has", s.me, value, f"{s.me} has {value}", *found.span())


def birthdays(s: Sentence) -> Iterator[Claim]:
    """Derive birthdays and where somebody was born."""
    for found in _BIRTHDAY.finditer(s.said):
        who = _owner(s, found)
        if who is not None and stands(s, found, found.end()):
            yield _born(s, who, "birthday", found.start(), *found.span("day"))
    for found in _BORN.finditer(s.said):
        who = _one(s, found)
        if who is not None and stands(s, found, found.end()):
            yield from _born_claims(s, who, found)
    for found in _GREW_UP.finditer(s.said):
        who, part = _one(s, found), place(s, found.end())
        if who is not None and part is not None and stands(s, found, part.after):
            yield _born(s, who, "grew_up_in", found.start(), part.start, part.end)


def favourites(s: Sentence) -> Iterator[Claim]:
    """Derive favourites: one of each topic at a time."""
    for found in _FAVOURITE.finditer(s.said):
        who = _owner(s, found)
        if who is None or found["topic"].split()[-1] in _NO_TOPIC:
            continue
        read = several if found["be"] == "are" else favoured
        parts = read(s, found.end())
        for part in parts if parts and stands(s, found, parts[-1].after) else ():
            yield _favourite(s, who, found, part, parts[-1].after)
    for found in _IS_FAVOURITE.finditer(s.said):
        start, end = found.span("value")
        whole = phrase(s, start + 4 if s.said.startswith("The ", start) else start, 5)
        if whole is None or whole.after != end or found["topic"].split()[-1] in _NO_TOPIC:
            continue
        if s.said[start:end].lower() not in words.NOT_NAMES and stands(s, found, found.end()):
            yield _favourite(s, Subject(s.me, first=True), found, whole, found.end())


def moves(s: Sentence) -> Iterator[Claim]:
    """Derive where somebody lives from a move that has happened."""
    for found in _MOVED.finditer(s.said):
        who = _one(s, found)
        if who is None or not is_open(s.said, found.start()):
            continue
        here = found.end()
        left = None
        if lead := _FROM.match(s.said, here):
            left = hometown(s, lead.end())
            here = left.after if left else lead.end()
        lead = _TO.match(s.said, here)
        new = hometown(s, lead.end()) if lead else None
        if lead is not None and new is None:
            continue
        part = new or left
        if part is None:
            continue
        valid_from, _, after, how = adjunct(s, part.after)
        if how == "until" or how == "from" or not is_left_standing(s.said, after):
            continue
        if _MOVED_ON.match(s.said, after):
            continue
        value = s.cut(part.start, part.end)
        begin = found.start()
        if valid_from is None:
            valid_from, begin = lead_date(s, begin)
        yield s.claim(
            "lives_in",
            who.name,
            value,
            f"{who.name} lives in {value}" if new else f"{who.name} no longer lives in {value}",
            begin,
            after,
            single=not who.many,
            ends=new is None,
            valid_from=valid_from if new else None,
            valid_to=None if new else valid_from,
            confidence=CONFIDENCE if who.first else CONFIDENCE_OTHER,
        )


def _one(s: Sentence, found: re.Match[str]) -> Subject | None:
    return Subject(s.me, first=True) if found["me"] else other(s, found)


def _owner(s: Sentence, found: re.Match[str]) -> Subject | None:
    """Read whose birthday or favourite it is."""
    groups = found.groupdict()
    if groups["name"]:
        return Subject(groups["name"]) if is_name(groups["name"]) else None
    if kin := groups.get("kin"):
        return Subject(f"{s.me}'s {kin}", many=kin in words.MANY_KIN)
    return Subject(s.me, first=True)


def _is_apposed(s: Sentence, found: re.Match[str]) -> bool:
    before = s.said[: found.start()].rstrip()
    if not is_name(found["called"].removesuffix("'s")) or _GONE.search(s.said):
        return False
    if found[0][: found.start("called") - found.start()].endswith(", "):
        return False
    return _APPOSED.search(before) is not None


def _called(s: Sentence, found: re.Match[str], relation: str) -> Iterator[Claim]:
    """Yield a claim for each name of a match."""
    groups = found.groupdict()
    for group in ("called", "more", "most"):
        name = groups.get(group)
        if not name:
            continue
        start, end = found.span(group)
        if name.endswith("'s"):
            end -= 2
        if not is_name(s.said[start:end]):
            return
        value = s.cut(start, end)
        if not relation:
            pet = str(groups["pet"])
            line = f"{s.me} has a {pet} called {value}"
            yield s.claim("has_pet", s.me, value, line, found.start(), max(end, found.end()))
            continue
        kind = relation.rsplit(" ", 1)[-1].replace("é", "e")
        married = kind in ("wife", "husband", "spouse")
        predicate = "married_to" if married else f"has_{kind}"
        line = (
            f"{s.me} is married to {value}"
            if married
            else f"{s.me} has a {relation} called {value}"
        )
        single = kind in words.ONE_KIN
        yield s.claim(
            predicate,
            s.me,
            value,
            line,
            found.start(),
            max(end, found.end()),
            kind="relation",
            single=single,
        )


def _born_claims(s: Sentence, who: Subject, found: re.Match[str]) -> Iterator[Claim]:
    here = found.end()
    for _ in range(2):
        if day := _BORN_DAY.match(s.said, here):
            yield _born(s, who, "birthday", found.start(), *day.span("day"))
            here = day.end()
        elif (year := _YEAR.match(s.said, here)) and date_bounds(year[0]):
            yield _born(s, who, "birth_year", found.start(), *year.span())
            here = year.end()
        elif parts := origin(s, here):
            yield _born(s, who, "born_in", found.start(), parts[0].start, parts[0].end)
            here = parts[0].after
        else:
            return
        more = _BORN_MORE.match(s.said, here)
        if more is None:
            return
        here = more.end()


_BORN_LINES = {
    "birthday": "{}'s birthday is {}",
    "birth_year": "{} was born in {}",
    "born_in": "{} was born in {}",
    "grew_up_in": "{} grew up in {}",
}


def _born(s: Sentence, who: Subject, predicate: str, begin: int, start: int, end: int) -> Claim:
    value = s.cut(start, end)
    return s.claim(
        predicate,
        who.name,
        value,
        _BORN_LINES[predicate].format(who.name, value),
        begin,
        end,
        single=None if not who.many else False,
        confidence=CONFIDENCE if who.first else CONFIDENCE_OTHER,
    )


def _favourite(s: Sentence, who: Subject, found: re.Match[str], part: Part, after: int) -> Claim:
    value = s.cut(part.start, part.end)
    topic = found["topic"].lower().replace("color", "colour")
    return s.claim(
        "favourite_" + "_".join(topic.replace("-", " ").split()),
        who.name,
        value,
        f"{who.name}'s favourite {topic} is {value}",
        found.start(),
        after,
        kind="preference",
        single=found.groupdict().get("be") != "are",
        confidence=CONFIDENCE if who.first else CONFIDENCE_OTHER,
    )


_KIN_WORDS = " ".join(f"{word} {word}s {word}'s" for word in (*words.MANY_KIN, *words.ONE_KIN))
_PET_WORDS = " ".join(f"{word} {word}s {word}'s {word}s'" for word in words.PETS)

FAMILIES = (
    Family("name name's called named call", names, _MY_NAME, _LOWER_NAME),
    Family(_KIN_WORDS, kin, _KIN_NAME, _HAVE_KIN, _IS_KIN, _KIN_APPOSED),
    Family(_PET_WORDS, pets, _PET_NAME, _HAVE_PET, _APPOSED_PET, _PET_APPOSED),
    Family(f"{_KIN_WORDS} {_PET_WORDS} {_COUNTED}", has, _HAVE),
    Family("birthday bday birth born grew", birthdays, _BIRTHDAY, _BORN, _GREW_UP),
    Family("favourite favorite", favourites, _FAVOURITE, _IS_FAVOURITE),
    Family("moved relocated emigrated immigrated", moves, _MOVED),
)
