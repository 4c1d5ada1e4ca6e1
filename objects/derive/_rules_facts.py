"""Statements in set phrases: names, kin, pets, birthdays, favourites, moves, leaving a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive import _rules_words as words
from remem.objects.derive._rules_objects import origin, organisation, person, preferred
from remem.objects.derive._rules_phrase import (
    ADVERBS,
    CONFIDENCE,
    CONFIDENCE_OTHER,
    KIN,
    ME,
    NAME,
    OTHER,
    Sentence,
    Subject,
    adjunct,
    date_bounds,
    follows,
    is_name,
    other,
    phrase,
    place,
)
from remem.objects.derive._rules_text import is_left_standing, is_open
from remem.objects.derive.claim import Claim

_BE = r"(?:'?m| am|'re| are)"
_PET = "|".join(sorted(words.PETS, key=len, reverse=True))
_MONTH = "|".join(words.MONTHS)
_DAY = (
    rf"(?:(?i:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?(?i:{_MONTH})(?:,? \d{{4}})?"
    rf"|(?i:{_MONTH}) (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    r"|\d{4}-\d\d-\d\d)(?![\w-])"
)
_TITLED = r"(?P<object>[A-Z][\w'-]*\w(?: (?:(?:van|von|de|da|del|der|la) )?[A-Z][\w'-]*\w){0,3})"
_LOWER = r"(?P<lower>[a-z][a-z'-]+(?: [a-z]+)?)(?=\s*(?:$|[.,;!]))"
_MINE = r"(?<![\w'@./-])(?:[Mm]y|[Oo]ur)"
_ADJ = r"(?:(?:new|old|older|younger|little|big|other|sweet|lovely|dear|beautiful|late|eldest|youngest) )?"

_MY_NAME = re.compile(
    rf"(?:(?<![\w'-])[Mm]y (?:(?:full|first|real|given) )?name is|(?<![\w'-])[Mm]y name's"
    rf"|{ME}{_BE} (?:called|named)|{ME} go by|(?<![\w'-])(?:(?:please |just )?(?:[Cc]all me)"
    rf"(?! (?:a|an|the|when|if|back|later)\b))) (?:{_TITLED}|{_LOWER})"
)
