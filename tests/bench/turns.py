"""A seeded generator of many distinct chat turns, in the form that ``import jsonl`` takes.

Sentences of a pool are recombined: drawn at random, with speakers' names exchanged, some words
exchanged for others in proportion to their frequency, and now and then a word of an open
vocabulary put in.  So the document frequencies keep a long tail that grows with the collection
(about its 0.6th power, Heaps' law), as they do in talk, instead of a fixed vocabulary of which
every word becomes frequent.  The first n turns of a longer run are those of a shorter one.

Without measuring data the pool itself is made of coined words with Zipf frequencies.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path

import msgspec

from tests.bench.data import Corpus, rfc3339

SEED = 7
SESSION_TURNS = 20
TALK_SESSIONS = 30  # sessions between the same two speakers
NAME_COUNT = 400
FIRST_AT = 1_577_836_800_000_000  # 2020-01-01T00:00:00Z, microseconds
TURN_GAP = 45_000_000  # microseconds between two turns of a session
SESSION_GAP = 7_200_000_000  # microseconds between two sessions

_TAIL = 0.6  # exponent of vocabulary growth: P(rank > r) = r ** -_TAIL
_OPEN_FROM = 200  # rank of the most frequent word of the open vocabulary
_EXCHANGED = 0.5  # share of sentences in which a word is exchanged
_COINED = 0.15  # share of sentences that get a word of the open vocabulary
_SENTENCES = (1, 1, 1, 2, 2, 2, 2, 3, 3, 4)  # sentences a turn, by frequency
_SPLIT = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[a-z]{4,}")
_ONSETS = ("b", "br", "d", "dr", "f", "g", "gl", "k", "l", "m", "n", "p", "r", "s", "st", "t", "v")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_SYLLABLES = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]  # open, so one reading


class Pool(msgspec.Struct, frozen=True):
    """What turns are made of.

    Attributes:
        sentences: each split at blanks.
        words: content words in proportion to their frequency.
        names: speakers' names, the most frequent first.
        questions: queries that fit the turns.
    """

    sentences: list[list[str]]
    words: list[str]
    names: list[str]
    questions: list[str]


class TurnLine(msgspec.Struct, frozen=True):
    """One line for ``import jsonl``."""

    text: str
    at: str
    role: str
    speaker: str
    session: str
    source: dict[str, str]


def coined(number: int) -> str:
    """Spell a non-negative number as a word of two or more syllables, one word a number."""
    base = len(_SYLLABLES)
    parts = [_SYLLABLES[number % base]]
    number //= base
    while True:
        parts.append(_SYLLABLES[number % base])
        number //= base
        if not number:
            return "".join(parts)


def chat_pool(corpora: Sequence[Corpus]) -> Pool:
    """Take apart real conversations."""
    names = list(dict.fromkeys(doc.speaker for corpus in corpora for doc in corpus.docs))
    sentences = [
        words
        for corpus in corpora
        for doc in corpus.docs
        for sentence in _SPLIT.split(doc.text)
        if len(words := sentence.split()) > 2
    ]
    words = [word for sentence in sentences for word in sentence if _WORD.fullmatch(word)]
    questions = [question.text for corpus in corpora for question in corpus.questions]
    return Pool(sentences, words, _with_coined_names(names), questions)


def zipf_pool(seed: int = SEED, *, sentences: int = 6000, vocabulary: int = 8000) -> Pool:
    """Make a pool of coined words whose frequencies fall with their rank."""
    draw = random.Random(seed)
    known = [coined(rank) for rank in range(vocabulary)]
    weights = list(accumulate(1.0 / (rank + 2.7) for rank in range(vocabulary)))
    names = _with_coined_names([])
    made: list[list[str]] = []
    for _ in range(sentences):
        length = draw.randint(5, 16)
        words = draw.choices(known, cum_weights=weights, k=length)
        if draw.random() < 0.2:
            words[draw.randrange(length)] = draw.choice(names[:10])
        words[-1] += "."
        made.append(words)
    flat = [word for words in made for word in words if _WORD.fullmatch(word)]
    asked = [
        f"When did {draw.choice(names[:10])} {' '.join(draw.sample(draw.choice(made)[:-1], 3))}?"
        for _ in range(400)
    ]
    return Pool(made, flat, names, asked)


def pool(corpora: Sequence[Corpus], seed: int = SEED) -> Pool:
    """The pool of these conversations, or the coined one where there are none."""
    return chat_pool(corpora) if corpora else zipf_pool(seed)


def turns(source: Pool, count: int, seed: int = SEED) -> Iterator[TurnLine]:
    """Make turns one by one; no two have the same text.

    Args:
        source: what to recombine.
        count: how many.
        seed: the same seed gives the same turns.
    """
    draw = random.Random(seed)
    seen: set[int] = set()
    heads = set(source.names)
    at = FIRST_AT
    pair = ("", "")
    session = ""
    for number in range(count):
        place, inside = divmod(number, SESSION_TURNS)
        if not inside:
            talk, part = divmod(place, TALK_SESSIONS)
            if not part:
                pair = _two_names(draw, source.names)
            session = f"talk{talk}-session{part + 1}"
            at += SESSION_GAP
        at += TURN_GAP
        speaker, other = pair if number % 2 else pair[::-1]
        text = _text(draw, source, heads, speaker, other)
        while hash(text) in seen:
            text += " " + _text(draw, source, heads, speaker, other)
        seen.add(hash(text))
        yield TurnLine(
            text=text,
            at=rfc3339(at),
            role="user" if number % 2 else "assistant",
            speaker=speaker,
            session=session,
            source={"uri": f"bench:talk{place // TALK_SESSIONS}", "id": f"t{number}"},
        )


def write_turns(path: Path, source: Pool, count: int, seed: int = SEED) -> int:
    """Stream turns to a file of JSON lines.

    Args:
        path: the file to write; replaced where it exists.
        source: what to recombine.
        count: how many turns.
        seed: the same seed gives the same bytes.

    Returns:
        The size of the file in bytes.
    """
    encoder = msgspec.json.Encoder()
    with path.open("wb") as out:
        for turn in turns(source, count, seed):
            out.write(encoder.encode(turn) + b"\n")
        return out.tell()


def _text(draw: random.Random, source: Pool, heads: set[str], speaker: str, other: str) -> str:
    parts: list[str] = []
    for _ in range(draw.choice(_SENTENCES)):
        words = draw.choice(source.sentences).copy()
        for place, word in enumerate(words):
            if word.rstrip(",.!?'s") in heads or word.rstrip(",.!?") in heads:
                end = word[len(word.rstrip(",.!?")) :]
                words[place] = (other if draw.random() < 0.7 else speaker) + end
        if draw.random() < _EXCHANGED:
            place = draw.randrange(len(words))
            if _WORD.fullmatch(words[place]):
                words[place] = draw.choice(source.words)
        if draw.random() < _COINED:
            rank = min(int(_OPEN_FROM * (1.0 - draw.random()) ** (-1.0 / _TAIL)), 1 << 40)
            words.insert(draw.randrange(len(words)), coined(rank))
        parts.append(" ".join(words))
    return " ".join(parts)


def _two_names(draw: random.Random, names: Sequence[str]) -> tuple[str, str]:
    weights = [1.0 / (rank + 3) for rank in range(len(names))]
    first = draw.choices(names, weights)[0]
    second = first
    while second == first:
        second = draw.choices(names, weights)[0]
    return first, second


def _with_coined_names(names: Sequence[str]) -> list[str]:
    more = (coined(137 + 211 * number).capitalize() for number in range(NAME_COUNT))
    return list(dict.fromkeys([*names, *more]))
