"""Bytes of the inverted index: tables, keys, sums, posting lists, codes of length and frequency.

Every key begins with the number of its scope partition, so a scan cannot leave it.  Integers in
keys are big-endian, so that they sort; everything else is little-endian::

    table     key                                           value, behind its sum
    lex_part  partition 4                                   statistics and segments
    lex_post  partition 4, segment 4, term                  posting list
    lex_doc   partition 4, document 4                       row of the document and its terms
    lex_key   partition 4, ref 32, object id 32             document 4
    lex_lane  partition 4, lane 4, seq 8, id 8, document 4  nothing
    lex_mark  name                                          what its owner put there

A value begins with 4 bytes of CRC-32 over its key and what follows the sum: a bit flipped in
either is noticed when the value is read.  A list of n postings is n document numbers of 4 bytes,
ascending, then n codes of 2 bytes: frequency x 256 + length.  A filter (a term that begins with a
zero byte) is never scored and has no codes.  Both are plain arrays, read in place by numpy and
memoryview at whatever address LMDB has them.

Frequencies are counted in quarters, so that a field can weigh 0.25 to 63.75.  Lengths are exact
below 128 words and then rounded down to a fifth of an octave, as one byte.

Source: the idea of one byte for the length is Lucene's (BM25Similarity, SmallFloat).
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from zlib import crc32

from remem.index.errors import IndexDamaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PART, POST, DOC, KEY, LANE, MARK = TABLES = (
    "lex_part",
    "lex_post",
    "lex_doc",
    "lex_key",
    "lex_lane",
    "lex_mark",
)
QUARTERS = 4  # frequency units for one occurrence of weight 1
MAX_QUARTERS = 255
MAX_TERM_B = 400
SUM_B = 4
POSTING_B = 6
FILTER = b"\x00"  # first byte of every filter, and of no term
SAID_BY = b"\x00s:"  # begins the filters of the words of speakers' names
HINT = "run 'remem reindex --lexical'; nothing but time is lost"

_EXACT = 128
_STEPS = 5  # codes for one doubling of the length
if sys.byteorder != "little":  # pragma: no cover
    raise ImportError("the lexical index is read in place: it needs a little-endian machine")


def _least_lengths() -> tuple[int, ...]:
    lengths = list(range(_EXACT))
    while len(lengths) < 256:
        octave, step = divmod(len(lengths) - _EXACT, _STEPS)
        start = _EXACT << octave
        lengths.append(start + start * step // _STEPS)
    return tuple(lengths)


LENGTHS = _least_lengths()  # of each code, the least length that has it


def length_code(length: int) -> int:
    """The code of a length in words: monotone, exact below 128."""
    return length if 0 <= length < _EXACT else max(bisect_right(LENGTHS, length) - 1, 0)


# -- sums -------------------------------------------------------------------------------------


def damaged(what: str) -> IndexDamaged:
    """The error for a damaged lexical index, with its way out."""
    return IndexDamaged(f"the lexical index is damaged: {what}", hint=HINT)


def close_value(key: bytes, body: bytes) -> bytes:
    """A value to be stored: the sum over key and body, then the body."""
    return crc32(body, crc32(key)).to_bytes(SUM_B, "little") + body


def open_value(key: bytes, value: bytes | memoryview, what: str) -> memoryview:
    """The body of a stored value, in place.

    Raises:
        IndexDamaged: the value is not the one that was stored under this key.
    """
    view = memoryview(value)
    body = view[SUM_B:]
    if len(view) < SUM_B or crc32(body, crc32(key)) != int.from_bytes(view[:SUM_B], "little"):
        raise damaged(f"{what} does not match its sum")
    return body


# -- keys -------------------------------------------------------------------------------------


def part_key(part: int) -> bytes:
    """What every key of a partition begins with."""
    return part.to_bytes(4, "big")


def number_key(part: int, number: int) -> bytes:
    """Key of a document, or what the keys of a segment begin with."""
    return (part << 32 | number).to_bytes(8, "big")


_LANE = struct.Struct(">IIQ8sI")


def lane_key(part: int, lane: int, seq: int, oid: bytes, docno: int) -> bytes:
    """Key of a document in its lane; the object id orders what has the same sequence number."""
    return _LANE.pack(part, lane, seq, oid[:8], docno)


def show_term(term: bytes) -> str:
    """A term as an error may show it."""
    return repr(term.decode("utf-8", "replace"))


# -- posting lists ----------------------------------------------------------------------------


class Run:
    """The postings of one term in one segment.

    Attributes:
        docs: document numbers, ascending, as uint32.
        codes: frequency x 256 + length for each, as uint16; empty for a filter.
    """

    __slots__ = ("codes", "docs")

    def __init__(self, body: memoryview, is_filter: bool) -> None:
        """View the body of a posting list as two arrays."""
        count = len(body) // (4 if is_filter else POSTING_B)
        self.docs = body[: 4 * count].cast("I")
        self.codes = body[4 * count :].cast("H")

    def find(self, docno: int) -> int:
        """Place of a document, or -1."""
        docs = self.docs
        at = bisect_left(docs, docno)
        return at if at < len(docs) and docs[at] == docno else -1


def is_filter(term: bytes) -> bool:
    """Whether this is a filter and not a term."""
    return term[:1] == FILTER


def count_postings(term: bytes, value: bytes | memoryview) -> int:
    """Number of postings in a stored list, from its size alone.

    Raises:
        IndexDamaged: no list has this size.
    """
    count, rest = divmod(len(value) - SUM_B, 4 if is_filter(term) else POSTING_B)
    if rest or count < 1:
        raise damaged(f"the list of {show_term(term)} has {len(value)} bytes")
    return count


def open_run(key: bytes, value: bytes | memoryview) -> Run:
    """The postings stored under a key of the table of lists.

    Raises:
        IndexDamaged: they are not those that were stored.
    """
    term = key[8:]
    count_postings(term, value)
    return Run(open_value(key, value, f"the list of {show_term(term)}"), is_filter(term))


def open_list(key: bytes, value: bytes) -> bytes:
    """The body of a posting list, copied, to be joined with others.

    Raises:
        IndexDamaged: it is not the one that was stored.
    """
    body = value[SUM_B:]
    if crc32(body, crc32(key)) != int.from_bytes(value[:SUM_B], "little"):
        raise damaged(f"the list of {show_term(key[8:])} does not match its sum")
    return body


def pack_list(term: bytes, postings: list[int]) -> bytes:
    """The body of a list.

    Args:
        term: whose list it is.
        postings: code << 32 | document of each (of a filter, the document), ascending.
    """
    if len(postings) == 1:
        return postings[0].to_bytes(POSTING_B if term[0] else 4, "little")
    if not term[0]:
        return array("I", postings).tobytes()
    raw = memoryview(array("Q", postings)).cast("B")
    return raw.cast("I")[::2].tobytes() + raw.cast("H")[2::4].tobytes()


def join_lists(term: bytes, older: bytes, younger: bytes) -> bytes:
    """One list of two, every document of the second being greater than those of the first."""
    if not term[0]:
        return older + younger
    cut, end = len(older) // POSTING_B * 4, len(younger) // POSTING_B * 4
    return b"".join((older[:cut], younger[:end], older[cut:], younger[end:]))


def join_many(term: bytes, bodies: list[bytes]) -> bytes:
    """One list of several, every document of each being greater than those of the one before."""
    if len(bodies) == 1:
        return bodies[0]
    if not term[0]:
        return b"".join(bodies)
    cuts = [len(body) // POSTING_B * 4 for body in bodies]
    docs = [body[:cut] for body, cut in zip(bodies, cuts, strict=True)]
    return b"".join(docs + [body[cut:] for body, cut in zip(bodies, cuts, strict=True)])


def without(term: bytes, body: memoryview, docnos: Sequence[int]) -> bytes:
    """The body of a list after some documents have left it.

    Args:
        term: whose list it is.
        body: of the list as stored.
        docnos: who leaves, ascending, all of them in the list.

    Raises:
        IndexDamaged: one of them is not in the list.
    """
    run = Run(body, is_filter(term))
    cut = 4 * len(run.docs)
    kept_docs: list[memoryview] = []
    kept_codes: list[memoryview] = []
    start = 0
    for docno in docnos:
        at = run.find(docno)
        if at < start:
            raise damaged(f"document {docno} is not in the list of {show_term(term)}")
        kept_docs.append(body[4 * start : 4 * at])
        kept_codes.append(body[cut + 2 * start : cut + 2 * at])
        start = at + 1
    kept_docs.append(body[4 * start : cut])
    kept_codes.append(body[cut + 2 * start :])
    return b"".join(kept_docs + kept_codes)
