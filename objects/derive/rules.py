"""The rules: narrow statements of people about themselves and their set-up, precise before complete.

Read are only texts that the owner wrote, and of them only plain statements: nothing that asks,
supposes, plans, jokes, reports or quotes.  What is not in one of the closed forms derives nothing;
it stays recallable as evidence.  The forms are in the modules beside this one; which predicates
have one value at a time is in `SINGLE_VALUED`.

A claim's span is the statement with its date, and its object stands word for word in the span.  The
subject of the first person is the speaker's name, or "user" if no name is known.  `valid_from` and
`valid_to` are set only from dates with a year in the statement itself; a past ("used to") ends when
it was said, and says `ends` where that is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from remem.objects.derive import _rules_config as config
from remem.objects.derive import _rules_events as events
from remem.objects.derive import _rules_facts as facts
from remem.objects.derive._rules_phrase import NOBODY, SINGLE_VALUED, Sentence
from remem.objects.derive._rules_text import MAX_TEXT, is_stated, own_words, sentences, sets_task
from remem.objects.derive._rules_verbs import VERBS, verb_claims
from remem.objects.derive._rules_words import MANY_KIN, ONE_KIN, PETS
from remem.objects.derive.claim import Claim
from remem.objects.model import Observation

__all__ = ["MAX_CLAIMS", "NAME", "SINGLE_VALUED", "VERSION", "derive"]

NAME = "rules"
VERSION = 1
MAX_CLAIMS = 50  # of one observation; the first ones in the order of the text are kept

_Family = Callable[[Sentence], Iterator[Claim]]

_NO_TALK = frozenset(("command", "commit", "diff"))
_OWN_ROLES = ("user", "")
_WORD = re.compile(r"[\w'-]+")


def derive(observation: Observation) -> list[Claim]:
    """Derive the claims of an observation.

    Args:
        observation: any; what the owner did not write derives nothing.

    Returns:
        Claims in the order of the text, at most `MAX_CLAIMS`, none of them twice.
    """
    text = observation.text
    if (
        observation.origin != "owner"
        or observation.role not in _OWN_ROLES
        or _KEYS.isdisjoint(_WORD.findall(text.lower()))
        or observation.kind in _NO_TALK
        or len(text) > MAX_TEXT
    ):
        return []
    work = own_words(text, observation.speaker)
    me = observation.speaker or NOBODY
    found: dict[tuple[str, str, str, bool], Claim] = {}
    for start, end in sentences(work):
        said = work[start:end]
        families = _families(said)
        if not families:
            continue
        sentence = Sentence(text, said, start, me, observation.asserted)
        claims = [claim for family in families for claim in family(sentence)]
        if claims and is_stated(said):
            for claim in sorted(claims, key=_place):
                found.setdefault((claim.subject, claim.predicate, claim.object, claim.ends), claim)
        if len(found) >= MAX_CLAIMS:
            break
    # Looked for last, because few texts get here.
    return list(found.values())[:MAX_CLAIMS] if found and not sets_task(text) else []


def _place(claim: Claim) -> tuple[int, int, str]:
    return claim.start, claim.end, claim.predicate


def _families(said: str) -> list[_Family]:
    """Choose the rules of which a sentence has a key word, in the order of the table."""
    chosen = {number for word in _WORD.findall(said.lower()) for number in _RULES_OF.get(word, ())}
    return [_FAMILIES[number][1] for number in sorted(chosen)]


_KIN_WORDS = frozenset(
    word for kin in (*MANY_KIN, *ONE_KIN) for word in (kin, f"{kin}s", f"{kin}'s")
)
_PET_WORDS = frozenset(word for pet in PETS for word in (pet, f"{pet}s", f"{pet}'s", f"{pet}s'"))
_COUNTED = frozenset("kid kids child children siblings grandkids grandchildren puppies".split())


def _table() -> Iterator[tuple[frozenset[str], _Family]]:
    """Yield each family of rules with the words of which a sentence must have one."""
    for verb in VERBS:
        yield verb.keys, partial(verb_claims, verb=verb)
    for keys, family in (
        ("name name's called named call", facts.names),
        ("birthday bday birth born grew", facts.birthdays),
        ("favourite favorite", facts.favourites),
        ("moved relocated emigrated immigrated", facts.moves),
        ("job laid fired redundant started hired accepted", facts.jobs),
        (facts.STATE_KEYS, facts.states),
        ("goal dream", facts.goals),
        ("started begun began took taken", events.begun),
        ("called named", config.called),
        ("moved", config.moved),
    ):
        yield frozenset(keys.split()), family
    yield _KIN_WORDS, facts.kin
    yield _PET_WORDS, facts.pets
    yield _KIN_WORDS | _PET_WORDS | _COUNTED, facts.has
    yield events.LASTING_KEYS, events.kept_up
    yield events.DID_KEYS | events.WENT_KEYS, events.done
    yield config.HEADS, config.settings


_FAMILIES = tuple(_table())
_RULES_OF: dict[str, list[int]] = {}
for _number, (_keys, _) in enumerate(_FAMILIES):
    for _key in _keys:
        _RULES_OF.setdefault(_key, []).append(_number)
_KEYS = frozenset(_RULES_OF)
