"""Segments of the inverted index: what a partition holds, and how postings reach the disk.

A segment is a range of document numbers with a posting list for each of its terms.  New documents
join the youngest segments rather than become one of their own wherever an older segment is not at
least eight times as large as all that is younger, so there are few segments at any time (one and
the logarithm to base nine of the number of documents; never more than eight) and a document is
moved about once for each of them.  Segments are neighbours when they merge, so joining two lists
means putting one behind the other.  The older segment takes the younger ones' postings in place:
lists of terms that the younger ones lack are not touched.

Source: O'Neil et al. 1996, "The log-structured merge-tree", for the geometric sizes.
"""

from __future__ import annotations

import struct
from bisect import bisect_left

from remem.index.postings import (
    MAX_TERM_B,
    PART,
    POST,
    close_value,
    damaged,
    join_lists,
    number_key,
    open_list,
    open_value,
    pack_list,
    part_key,
    show_term,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.kv import Txn

MAX_SEGMENTS = 8
RATIO = 8  # an older segment is at least this many times as large as all younger ones together

_HEAD = struct.Struct("<IQIIQBxH")
_SEGMENT = struct.Struct("<IIII")

Groups = dict[bytes, list[int]]  # term -> code << 32 | document; filter -> document


class Segment:
    """A range of documents.

    Attributes:
        number: in the keys of its posting lists.
        first: least document number it may hold.
        last: greatest document number it may hold.
        live: number of documents in it.
    """

    __slots__ = ("first", "last", "live", "number")

    def __init__(self, number: int, first: int, last: int, live: int) -> None:
        """A segment with these values."""
        self.number = number
        self.first = first
        self.last = last
        self.live = live


class Part:
    """Statistics and segments of one partition.

    Attributes:
        number: of the partition.
        n: living documents.
        total: sum of their lengths, in words.
        next_doc: number of the next document; numbers are not used twice.
        next_segment: number of the next segment.
        last_seq: greatest sequence number ever added in order.
        ordered: whether document numbers ascend as (sequence number, object id) does.
        segments: oldest first; every document number is in one of their ranges at most.
    """

    __slots__ = (
        "last_seq",
        "n",
        "next_doc",
        "next_segment",
        "number",
        "ordered",
        "segments",
        "total",
    )

    def __init__(self, number: int) -> None:
        """An empty partition."""
        self.number = number
        self.n = 0
        self.total = 0
        self.next_doc = 0
        self.next_segment = 0
        self.last_seq = 0
        self.ordered = True
        self.segments: list[Segment] = []

    def segment_of(self, docno: int) -> Segment | None:
        """The segment whose range holds a document number."""
        at = bisect_left(self.segments, docno, key=lambda segment: segment.last)
        if at < len(self.segments) and self.segments[at].first <= docno:
            return self.segments[at]
        return None


def load_part(txn: Txn, number: int) -> Part:
    """Read what a partition holds; an empty one if it is unknown.

    Raises:
        IndexDamaged: the record is not the one that was written.
    """
    part = Part(number)
    key = part_key(number)
    value = txn.get(PART, key)
    if value is None:
        return part
    body = open_value(key, value, f"the record of partition {number}")
    try:
        part.n, part.total, part.next_doc, part.next_segment, part.last_seq, ordered, count = (
            _HEAD.unpack_from(body)
        )
        rows = [_SEGMENT.unpack_from(body, _HEAD.size + _SEGMENT.size * i) for i in range(count)]
    except struct.error:
        raise damaged(f"the record of partition {number} is cut short") from None
    part.ordered = bool(ordered)
    part.segments = [Segment(*row) for row in rows]
    return part


def save_part(txn: Txn, part: Part) -> None:
    """Write what a partition holds."""
    head = _HEAD.pack(
        part.n, part.total, part.next_doc, part.next_segment, part.last_seq, part.ordered,
        len(part.segments),
    )  # fmt: skip
    rows = [_SEGMENT.pack(s.number, s.first, s.last, s.live) for s in part.segments]
    key = part_key(part.number)
    txn.put(PART, key, close_value(key, head + b"".join(rows)))


def first_to_merge(sizes: list[int], new: int) -> int:
    """Which segments new documents are merged with: all from this place on."""
    total = new
    at = len(sizes)
    while at and (sizes[at - 1] < RATIO * total or at >= MAX_SEGMENTS):
        at -= 1
        total += sizes[at]
    return at


def check_terms(groups: Groups) -> None:
    """Refuse terms that a key or a row cannot hold.

    Raises:
        ValueError: a term is empty or too long.
    """
    longest = max(groups, key=len, default=b"\x00")
    if len(longest) > MAX_TERM_B or b"" in groups:
        raise ValueError(f"a term is empty or too long: {show_term(longest)}")


def write_groups(txn: Txn, part: Part, groups: Groups, first: int, count: int) -> None:
    """Write the postings of new documents, merging segments as their sizes demand.

    Args:
        txn: a write transaction.
        part: changed in place, not saved.
        groups: postings by term, documents ascending, numbers from ``first`` on.
        first: number of the first new document.
        count: number of new documents.
    """
    at = first_to_merge([segment.live for segment in part.segments], count)
    last = first + count - 1
    if at == len(part.segments):
        target = Segment(part.next_segment, first, last, count)
        part.next_segment += 1
        part.segments.append(target)
        prefix = number_key(part.number, target.number)
        append = follows_all(txn, POST, prefix)
        txn.put_many(POST, _new_lists(prefix, groups), append)
        return
    target, *younger = part.segments[at:]
    lists = _collect(txn, part.number, younger)
    prefix = number_key(part.number, target.number)
    txn.put_many(POST, _grown_lists(txn, prefix, lists, groups), False)
    target.last = last
    target.live += count + sum(segment.live for segment in younger)
    del part.segments[at + 1 :]


def follows_all(txn: Txn, table: str, key: bytes) -> bool:
    """Whether a key would be the last of its table: then pages can be filled one by one."""
    for last, _ in txn.scan(table, reverse=True):
        return last < key
    return True


def _new_lists(prefix: bytes, groups: Groups) -> Iterator[tuple[bytes, bytes]]:
    for term in sorted(groups):
        key = prefix + term
        yield key, close_value(key, pack_list(term, groups[term]))


def _collect(txn: Txn, number: int, segments: list[Segment]) -> dict[bytes, bytes]:
    """Take the lists of segments out of the table: their bodies by term."""
    bodies: dict[bytes, bytes] = {}
    for segment in segments:
        prefix = number_key(number, segment.number)
        for key, value in txn.scan_prefix(POST, prefix):
            term = key[8:]
            body = open_list(key, value)
            known = bodies.get(term)
            bodies[term] = body if known is None else join_lists(term, known, body)
        txn.delete_prefix(POST, prefix)
    return bodies


def _grown_lists(
    txn: Txn, prefix: bytes, younger: dict[bytes, bytes], groups: Groups
) -> Iterator[tuple[bytes, bytes]]:
    for term in sorted(groups.keys() | younger.keys() if younger else groups):
        key = prefix + term
        body = younger.get(term, b"")
        old = txn.get(POST, key)
        if old is not None:
            body = join_lists(term, open_list(key, old), body) if body else open_list(key, old)
        if term in groups:
            new = pack_list(term, groups[term])
            body = join_lists(term, body, new) if body else new
        yield key, close_value(key, body)
