"""One sentence, who it is about, and what every family of rules says about itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from remem.objects.derive import _rules_words as words
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_text import is_left_standing, is_open
from remem.objects.derive.claim import Claim

NOBODY = "user"  # who says "I" in an observation without a speaker

# One value at a time: a later claim replaces an earlier one.  "favourite_…" of one topic and
# "has_…" of kin of whom there is one are single as well.  Work is not: people have two jobs, and
# leaving one is said in words of its own; nor are languages, pets, tastes and what is used.
SINGLE_VALUED = frozenset(
    (
        *("lives_in", "name", "birthday", "birth_year", "born_in", "is_from", "married_to"),
        *("moved_to", "is", "marital_status"),
    )
)

CONFIDENCE = 950  # per mille
CONFIDENCE_OTHER = 900  # of what is said of somebody else

_ONE = sorted(words.ONE_KIN, key=len, reverse=True)
_MANY = sorted(words.MANY_KIN, key=len, reverse=True)
KIN = "|".join((*_MANY, *_ONE))
# The bounds keep long runs of letters from being tried at each of their places.
NAME = (
    r"(?<![\w'-])[A-Z][\w'-]{0,40}\w"
    r"(?: (?:(?:van|von|de|da|del|der|la) )?[A-Z][\w'-]{0,40}\w){0,2}"
)
ME = r"(?<![\w'@./-])(?:[Ii]|[Ww]e)"
MINE = r"(?<![\w'@./-])(?:[Mm]y|[Oo]ur)"
BE = r"(?:'?m| am|'re| are)"
ADVERBS = (
    r"(?: (?:now|currently|still|also|actually|really|just|both|all|mostly|usually|already"
    r"|personally|definitely|presently|absolutely|totally|truly|simply|always|generally|normally"
    r"|recently|finally|officially|super|so|pretty|very|mainly|often|primarily|only|quite|fully"
    r"|sometimes|regularly|occasionally|tend to|do))*"
)
OTHER = (
    rf"(?<![\w'@./-])(?:(?P<whose>[Mm]y|[Oo]ur) (?P<kin>{KIN})(?:,? (?P<kin_name>{NAME}),?)?"
    rf"|(?P<name>{NAME}))"
)


class Part:
    """Where an object stands in a sentence, and where reading goes on."""

    __slots__ = ("after", "end", "start")

    def __init__(self, start: int, end: int, after: int | None = None) -> None:
        """Keep the places; after is the end unless given."""
        self.start = start
        self.end = end
        self.after = end if after is None else after


class Sentence:
    """One sentence of an observation and what is known about its writer.

    Attributes:
        text: of the observation.
        said: the sentence, what is not the writer's blanked out.
        base: its place in the text.
        me: subject of the first person.
        asserted: when it was said, microseconds UTC, or None.
        lower: the writer does without capitals, so names may lack them.
    """

    __slots__ = ("asserted", "base", "lower", "me", "said", "text")

    def __init__(self, text: str, said: str, base: int, me: str, asserted: int | None) -> None:
        """Take a sentence of a text at a place."""
        self.text = text
        self.said = said
        self.base = base
        self.me = me
        self.asserted = asserted
        self.lower = said == said.lower()

    def cut(self, start: int, end: int) -> str:
        """Return the original words between two places of the sentence."""
        return self.text[self.base + start : self.base + end]

    def claim(
        self,
        predicate: str,
        subject: str,
        value: str,
        line: str,
        start: int,
        end: int,
        *,
        kind: str = "fact",
        single: bool | None = None,
        ends: bool = False,
        valid_from: int | None = None,
        valid_to: int | None = None,
        confidence: int = CONFIDENCE,
    ) -> Claim:
        """Make a claim whose span is a part of the sentence."""
        if single is None:
            single = predicate in SINGLE_VALUED
        return Claim(
            kind,
            line,
            subject,
            predicate,
            value,
            self.base + start,
            self.base + end,
            single,
            ends,
            valid_from,
            valid_to,
            confidence,
        )


class Family:
    """Rules that are tried together.

    Attributes:
        keys: words, lower case, of which a text must have one.
        forms: patterns of which one must be found in the text.
        claims: derives the claims of one sentence.
    """

    __slots__ = ("claims", "forms", "keys")

    def __init__(
        self,
        keys: str | frozenset[str],
        claims: Callable[[Sentence], Iterator[Claim]],
        *forms: Form,
    ) -> None:
        """Keep the three; keys may be given as words of one text."""
        self.keys = frozenset(keys.split()) if isinstance(keys, str) else keys
        self.forms = forms
        self.claims = claims


class Subject:
    """Who a statement is about.

    Attributes:
        name: as it stands in triples.
        first: it is the writer.
        many: there may be several of the kind ("my brother"), so nothing is replaced.
    """

    __slots__ = ("first", "many", "name")

    def __init__(self, name: str, first: bool = False, many: bool = False) -> None:
        """Keep the three fields."""
        self.name = name
        self.first = first
        self.many = many


def other(s: Sentence, found: re.Match[str]) -> Subject | None:
    """Read the subject of a match of `OTHER`; None if it names nobody."""
    kin, called = found["kin"], found["kin_name"]
    if called is not None:
        return Subject(called) if is_name(called) else None
    if kin is not None:
        return Subject(f"{s.me}'s {kin}", many=kin in words.MANY_KIN)
    name = str(found["name"])
    if not is_name(name):
        return None
    if name.lower() in words.ONE_KIN:  # "Mom lives in Leeds"
        return Subject(f"{s.me}'s {name.lower()}")
    return Subject(name)


def stands(s: Sentence, found: re.Match[str], end: int) -> bool:
    """Say whether a match begins a plain statement that nothing after it takes back."""
    return is_open(s.said, found.start()) and is_left_standing(s.said, end)


def is_name(name: str) -> bool:
    """Say whether capitalised words can be the name of somebody."""
    parts = name.split()
    return not any(
        part.lower() in words.NOT_NAMES
        or part.lower() in words.DEMONYMS
        or "'" in part[-3:]
        or (part.isupper() and len(part) > 2)
        for part in parts
    )
