"""Tasks: plain questions and requests, which count where they do not belong.

"Explain how solar panels work" is no order to anybody in a book about solar panels; in a bank's
mail it is.  What counts is a whole sentence that needs nothing around it to be understood, that
has no words in common with the text in which it stands, and whose like is not the custom there: a
letter, a talk and a manual have customs of their own.

Source: remem(7), ADMISSION.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from remem.objects import instruction_words as words
from remem.objects.instruction_carrier import LETTER, TALK, TECHNICAL, Around

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SENTENCE = 400  # code points looked at from the beginning of one
_RELATED = 0.34  # share of a sentence's words that the text around has, from which it belongs;
_RELATED_LONG = 0.2  # in a long text of technical form, this share
_MAX_LOWER = 4000  # code points of a text in which a sentence may begin without a capital
_MAX_CLOSE = 16  # of them that may begin in so many code points
_STRANGE = 0.2  # in a letter any order with fewer shared words does not belong
_LONG = 8000  # code points of a text of technical form from which on it takes more
_CUSTOM = 4  # sentences of a kind that are no custom yet in a text of technical form,
_CUSTOM_EACH = 1500  # nor is one in so many code points

SPLIT = re.compile(
    r"(?<=[.!?])[\"')\]*_]*(?=\s|[A-Z])|\n+|\s[|\u2022>*\u2013\u2014-]\s|\s{3,}|[|\u2022]"
    r"|:\s+(?=[A-Z\"'])"
)
_QUOTED = re.compile(
    r"\"[^\"\n]{1,300}\"|\u201c[^\u201d\n]{1,300}\u201d|(?<!\w)'[^'\n]{2,120}'(?!\w)"
)
_STOPS = {ord(c): "," for c in ".!?;:|"}  # a full stop inside of a quotation ends no sentence
_JUNK = " \t\n\"'`*_#>()[]{}-\u2022\u2013\u2014.:,"
_DIGITS = "0123456789"
_CAPITAL = re.compile(r"[A-Z][a-z']+(?=\s)")
# What ends a line's beginning, so that a sentence may begin behind it.
_END = re.compile(r"[.!?:][\"')\]*_`]*\s*\Z|[\"\u201d|>*\u2022]\s*\Z|\s[\u2013\u2014-]\s+\Z")
_MARKED = re.compile(r"\s{2,}|\s*(?:[#/*+@$%;<>|~-]|\"{3}|'{3}|r?\"|\d+[.)])")
_COMMENT = re.compile(r"\s*[\"#/*;%+>|-]+\s+")
_WORDS = re.compile(r"\w\s+\w+\s+\Z")  # the middle of a sentence


def foreign(text: str, kind: str) -> set[str]:
    """Names of the rules that fire on a text.

    Args:
        text: all of it.
        kind: what kind of text it is, as `remem.objects.instruction_carrier` has it.
    """
    around = Around(text)
    related = _RELATED_LONG if kind == TECHNICAL and len(text) > _LONG else _RELATED
    most = _most(kind, len(text))
    found: set[str] = set()
    counts: dict[str, int] = {}
    seen: set[str] = set()
    for at, piece in _candidates(text, kind):
        if piece in seen:
            continue
        seen.add(piece)
        name, bare = _name(piece)
        if not name and kind == LETTER and words.unrelated().match(bare):
            if around.kinship(piece, at) < _STRANGE:
                found.add("task")
            continue
        if name:
            counts[name] = counts.get(name, 0) + 1
            if (
                name in found
                or counts[name] > most
                or (kind in (TALK, TECHNICAL) and not _stands_alone(bare))
            ):
                continue
            if around.kinship(piece, at) < related:
                found.add(name)
    return {name for name in found if counts.get(name, 0) <= most}


def _most(kind: str, length: int) -> int:
    """How many sentences of one kind a text has at most in which they are not the custom."""
    if kind == TECHNICAL:
        return max(_CUSTOM, length // _CUSTOM_EACH)
    if kind == TALK:
        return 3 if length < _CUSTOM_EACH else max(2, length // _CUSTOM_EACH)
    return length


# -- sentences ----------------------------------------------------------------------------------


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Sentences with their places, without bullets and quotation marks.

    One that was put in the middle of another begins nowhere but at its first word, so what begins
    with the capital verb of a request is one, too.
    """
    text = _QUOTED.sub(lambda m: m[0].translate(_STOPS), text)
    at = 0
    for mark in SPLIT.finditer(text):
        yield from _piece(text[at : mark.start()], at)
        at = mark.end()
    yield from _piece(text[at:], at)
    for begin in _begins(text):
        if begin == 0 or text[begin - 1] in " \t":
            yield from _piece(_sentence(text, begin), begin)


def _begins(text: str) -> Iterator[int]:
    """Where words with a capital stand with which questions and requests begin."""
    first = words.first_words()
    since = close = 0
    for match in _CAPITAL.finditer(text):
        at = match.start()
        if match[0] not in first and not text.startswith(words.LEADS, at):
            continue
        if at and (text[at - 1].isalnum() or text[at - 1] in "_'-"):
            continue
        if at - since > MAX_SENTENCE:
            since, close = at, 0
        close += 1
        if close <= _MAX_CLOSE:
            yield at


def _sentence(text: str, begin: int) -> str:
    """The sentence that begins at a place, a quotation in it taken as a whole."""
    rest = text[begin : begin + MAX_SENTENCE]
    masked = _QUOTED.sub(lambda m: m[0].translate(_STOPS), rest) if _quotes(rest) else rest
    end = SPLIT.search(masked)
    return rest if end is None else rest[: end.start()]


def _quotes(text: str) -> bool:
    return '"' in text or "'" in text or "\u201c" in text


def _piece(text: str, at: int) -> Iterator[tuple[int, str]]:
    piece = text[:MAX_SENTENCE].lstrip(_JUNK + _DIGITS).rstrip(" \t\n\"'`*_)]")
    if len(piece) > 6:
        yield at, piece


# -- what may count -----------------------------------------------------------------------------


def _candidates(text: str, kind: str) -> Iterator[tuple[int, str]]:
    """Sentences that begin as tasks do, where one that was put into such a text would stand."""
    if kind == LETTER and len(text) <= _MAX_LOWER:
        yield from sentences(text)
        return
    long = len(text) > _LONG
    for begin in _begins(text):
        line = text.rfind("\n", max(0, begin - MAX_SENTENCE), begin) + 1
        before = text[max(line, begin - MAX_SENTENCE) : begin]
        if len(before) > 1 and kind == TECHNICAL and not _is_open(before, strict=long):
            continue
        if kind != LETTER and _COMMENT.fullmatch(before):
            continue
        piece = _sentence(text, begin)
        if kind == TECHNICAL and not _is_whole(piece):
            continue
        yield from _piece(piece, begin)


def _is_open(before: str, *, strict: bool) -> bool:
    """Whether what stands before a sentence in its line has ended.

    Args:
        before: the line up to the sentence.
        strict: nothing may begin in a comment, a list or a line that is set in.
    """
    if strict:
        return _END.search(before) is not None and not _MARKED.match(before)
    return before[-1] in " \t" and (
        _END.search(before) is not None or _WORDS.search(before) is not None
    )


def _is_whole(piece: str) -> bool:
    """Whether a sentence has an end of its own."""
    return piece.rstrip("\"')]*_`").endswith((".", "?", "!", ":"))


# -- what counts --------------------------------------------------------------------------------


@cache
def _needs() -> re.Pattern[str]:
    """Words by which a sentence leans on what was said before, or on who says it."""
    return re.compile(
        r"\b(?:you|your|yours|you're|you've|you'd|yourself|it|it's|its|that|that's|this|these"
        r"|those|they|they're|them|their|he|she|him|her|his|there|here|then|we|us|our|let's"
        r"|anything|something|else|one|ones|now|lately|today|tonight|tomorrow|yesterday|too"
        r"|again)\b"
    )


@cache
def _asked_of_all() -> re.Pattern[str]:
    """Beginnings whose "you" and "this" lean on nothing."""
    return re.compile(
        r"how (?:do|can|would|does) (?:you|one|i|we) |(?:can|could|would|will) you "
        r"|(?:is|are|do|does) (?:this|the following|these) \w+ (?:\w+ ){0,2}(?:or|true|positive)\b"
    )


def _stands_alone(bare: str) -> bool:
    """Whether a sentence can be understood with nothing around it."""
    start = _asked_of_all().match(bare)
    rest = _QUOTED.sub("x", bare[start.end() :] if start else bare)
    return _needs().search(rest) is None


def _name(piece: str) -> tuple[str, str]:
    """Which rule a sentence may break, "" for none, and what it asks for."""
    if ";" in piece:
        return "", ""
    bare = words.bare(piece)
    if words.judged().match(bare) or (words.asks().match(bare) and piece.endswith("?")):
        return "question", bare
    if words.asked().match(bare):
        return "request", bare
    return "task" if words.task().match(bare) else "", bare
