"""Finding refs by their words, for what must be exact: forgetting and holding by a query.

A ref is found when one of its revisions holds every word of the query, whatever its status and
whether or not it still holds.  Nothing is ranked and nothing depends on an index.  Case, Unicode
form and the kind of white space do not matter; words are compared whole, and in scripts without
spaces as parts of the text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from remem.objects import encode, refs
from remem.objects.errors import UsageError
from remem.objects.forget_plan import ERASED, revisions
from remem.objects.model import Memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.encode import Obj
    from remem.objects.forget_plan import Item
    from remem.objects.reader import Part, Reader

_SPACELESS = re.compile("[\u0e00-\u0eff\u2e80-\u9fff\uac00-\ud7af]")


def everything(reader: Reader) -> list[Item]:
    """Every ref of the grant that was not forgotten."""
    return [(part, ref) for part, ref, _ in _living(reader)]


def matching(reader: Reader, query: str) -> list[Item]:
    """The refs that hold every word of a query.

    Raises:
        UsageError: the query has no word.
    """
    patterns = [_pattern(word) for word in fold(query).split()]
    if not patterns:
        raise UsageError("the query has no word")
    return [
        (part, ref)
        for part, ref, state in _living(reader)
        if any(_holds(obj, patterns) for obj in _objects(reader, part, ref, state))
    ]


def fold(text: str) -> str:
    """A text as it is compared."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFKC", folded)


def _living(reader: Reader) -> Iterator[tuple[Part, bytes, refs.RefState]]:
    for part in reader.parts:
        for ref, state in reader.states(part):
            if state.status != ERASED and state.type <= refs.MEMORY:
                yield part, ref, state


def _objects(reader: Reader, part: Part, ref: bytes, state: refs.RefState) -> Iterator[Obj]:
    if state.first == state.last:
        data = reader.txn.get("objects", part.prefix + ref)
        if data is not None:
            yield encode.decode(data)
        return
    for _, obj in revisions(reader, part, state):
        if isinstance(obj, encode.Obj):
            yield obj


def _holds(obj: Obj, patterns: list[re.Pattern[str]]) -> bool:
    text = obj.text
    if isinstance(obj, Memory) and obj.triple is not None:
        text = "\n".join((text, *obj.triple))
    folded = fold(text)
    return all(pattern.search(folded) for pattern in patterns)


def _pattern(word: str) -> re.Pattern[str]:
    """A word as a whole, where words are set apart at all."""
    exact = re.escape(word)
    if _SPACELESS.search(word):
        return re.compile(exact)
    before = r"(?<![^\W_])" if word[0].isalnum() else ""
    behind = r"(?![^\W_])" if word[-1].isalnum() else ""
    return re.compile(before + exact + behind)
