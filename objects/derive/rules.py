"""The rules: narrow statements of people about themselves and their set-up, precise first.

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

from remem.objects.derive import _rules_config as config
from remem.objects.derive import _rules_events as events
from remem.objects.derive import _rules_facts as facts
from remem.objects.derive import _rules_states as states
from remem.objects.derive import _rules_verbs as verbs
from remem.objects.derive._rules_form import Form
from remem.objects.derive._rules_sentence import NOBODY, SINGLE_VALUED, Family, Sentence
from remem.objects.derive._rules_text import (
    MAX_TEXT,
    is_stated,
    own_words,
    plain,
    sentences,
    sets_task,
)
from remem.objects.derive.claim import Claim
from remem.objects.model import Observation

__all__ = ["MAX_CLAIMS", "NAME", "SINGLE_VALUED", "VERSION", "derive"]

NAME = "rules"
VERSION = 1
MAX_CLAIMS = 50  # of one observation; the first ones in the order of the text are kept

_NO_TALK = frozenset(("command", "commit", "diff"))
_OWN_ROLES = ("user", "")
_WORD = Form(r"[\w'-]+")


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
        or observation.kind in _NO_TALK
        or len(text) > MAX_TEXT
    ):
        return []
    read = plain(text)
    families = _families(read)
    if not families:
        return []
    work = own_words(read, observation.speaker)
    me = observation.speaker or NOBODY
    found: dict[tuple[str, str, str, bool], Claim] = {}
    for start, end in sentences(work):
        sentence = Sentence(text, work[start:end], start, me, observation.asserted)
        claims = [claim for family in families for claim in family.claims(sentence)]
        if claims and is_stated(sentence.said):
            for claim in sorted(claims, key=_place):
                found.setdefault((claim.subject, claim.predicate, claim.object, claim.ends), claim)
        if len(found) >= MAX_CLAIMS:
            break
    # Looked for last, because few texts get here.
    return list(found.values())[:MAX_CLAIMS] if found and not sets_task(read) else []


def _place(claim: Claim) -> tuple[int, int, str]:
    return claim.start, claim.end, claim.predicate


def _families(text: str) -> list[Family]:
    """Choose the rules that may say something of a text, in the order of the table."""
    numbers: set[int] = set()
    for word in _WORD.findall(text.lower()):
        if word in _RULES_OF:
            numbers.update(_RULES_OF[word])
    return [
        family
        for family in map(FAMILIES.__getitem__, sorted(numbers))
        if any(form.search(text) for form in family.forms)
    ]


FAMILIES = (*verbs.FAMILIES, *facts.FAMILIES, *states.FAMILIES, *events.FAMILIES, *config.FAMILIES)
_RULES_OF: dict[str, list[int]] = {}
for _number, _family in enumerate(FAMILIES):
    for _key in _family.keys:
        _RULES_OF.setdefault(_key, []).append(_number)
