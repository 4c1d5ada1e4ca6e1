"""The inverted index: documents in, documents out, and what is known about them.

A document is one object of one ref.  Everything is kept by scope partition and nothing of one
partition influences another: numbers, statistics and document frequencies are its own.  The index
is a projection.  It may be deleted at any moment; whatever the order in which documents came and
went, it answers as one built afresh from those that are left.

Each function works in the caller's transaction, on an environment that has the tables ``TABLES``,
so that a projector can keep its cursor (:func:`set_mark`) in step with what it projected.

Searching is in :mod:`remem.index.scoring`, checking in :mod:`remem.index.lexcheck`.
"""

from __future__ import annotations

import gc
import struct
from collections import defaultdict
from heapq import merge
from itertools import groupby
from operator import itemgetter

import msgspec

from remem.index.postings import (
    DOC,
    FILTER,
    KEY,
    LANE,
    MARK,
    MAX_QUARTERS,
    PART,
    POST,
    QUARTERS,
    SUM_B,
    TABLES,
    close_value,
    count_postings,
    damaged,
    lane_key,
    length_code,
    number_key,
    open_value,
    part_key,
    show_term,
    without,
)
from remem.index.segments import (
    Groups,
    check_terms,
    follows_all,
    load_part,
    save_part,
    write_groups,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from remem.objects.kv import Txn

__all__ = [
    "QUARTERS",
    "TABLES",
    "DocIn",
    "DocRow",
    "add",
    "clear",
    "df",
    "doc",
    "doc_and_filters",
    "docno_of",
    "docs_of_ref",
    "filters_of",
    "mark",
    "neighbours",
    "parts",
    "prepare",
    "remove",
    "set_mark",
    "stats",
    "tally",
    "terms_of",
    "vocabulary",
    "vocabulary_size",
]

ROW = struct.Struct("<QqIIII32s32s")
_NO_TIME = -(1 << 63)
_QUARTER = 1 << 40  # in a posting: see Groups


class DocIn(msgspec.Struct, gc=False):
    """A document to be added.

    Attributes:
        ref: id of the ref, 32 bytes.
        oid: id of the object, 32 bytes.
        seq: its first sequence number in the ref log; orders documents, with the object id.
        lane: number of its agent and session; neighbours are of one lane.
        when: instant in microseconds, or None.
        length: in words, as BM25 counts it.
        terms: term -> frequency in quarters (see :func:`tally`), 1 to 255; more counts as 255.
        filters: terms that begin with a zero byte and have no other: never scored, not counted.
    """

    ref: bytes
    oid: bytes
    seq: int
    lane: int
    when: int | None
    length: int
    terms: dict[bytes, int]
    filters: list[bytes]


class DocRow(msgspec.Struct, frozen=True, gc=False):
    """What the index knows of a document; the attributes are those of :class:`DocIn`."""

    ref: bytes
    oid: bytes
    lane: int
    seq: int
    when: int | None
    length: int


def tally(
    terms: Iterable[bytes], quarters: int = QUARTERS, into: dict[bytes, int] | None = None
) -> dict[bytes, int]:
    """Count terms as :class:`DocIn` wants them.

    Args:
        terms: in any order, repeats included.
        quarters: what one occurrence counts; 4 is a weight of 1.
        into: counts of other fields, to be added to.

    Returns:
        Quarters by term (``into`` itself where it was given).
    """
    counts = {} if into is None else into
    known = counts.get
    for term in terms:
        counts[term] = known(term, 0) + quarters
    return counts


# -- changing ---------------------------------------------------------------------------------


def add(txn: Txn, part: int, docs: Sequence[DocIn]) -> None:
    """Add documents; one that is there already is replaced.

    The more documents come in one call, the less each costs: thousands are good.

    Args:
        txn: a write transaction.
        part: number of the scope partition.
        docs: in any order; of two with the same ref and object the later one counts.

    Raises:
        ValueError: a term is empty, too long or has a zero byte, or a number does not fit.
        IndexDamaged: what had to be read is not what was written.
    """
    # The collector would walk every document of the batch, several times, to find nothing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        _add(txn, part, docs)
    finally:
        if collecting:
            gc.enable()


def _add(txn: Txn, part: int, docs: Sequence[DocIn]) -> None:
    wanted = {doc.ref + doc.oid: doc for doc in docs}
    prefix = part_key(part)
    known = [(key[:32], key[32:]) for key in wanted if txn.get(KEY, prefix + key) is not None]
    if known:
        remove(txn, part, known)
    ordered = sorted(wanted.values(), key=lambda doc: (doc.seq, doc.oid, doc.ref))
    if not ordered:
        return
    held = load_part(txn, part)
    first = held.next_doc
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    rows, lanes = prepare(part, first, ordered, groups)
    keys = [
        (key := prefix + doc.ref + doc.oid, close_value(key, docno.to_bytes(4, "little")))
        for docno, doc in enumerate(ordered, first)
    ]
    check_terms(groups)
    appended = follows_all(txn, DOC, number_key(part, first))
    txn.put_many(DOC, rows, appended)
    txn.put_many(KEY, sorted(keys), False)
    lanes.sort()
    txn.put_many(LANE, lanes, follows_all(txn, LANE, lanes[0][0]))
    write_groups(txn, held, groups, first, len(ordered))
    held.ordered = held.ordered and (not held.next_doc or ordered[0].seq > held.last_seq)
    held.last_seq = max(held.last_seq, ordered[-1].seq)
    held.next_doc += len(ordered)
    held.n += len(ordered)
    held.total += sum(doc.length for doc in ordered)
    save_part(txn, held)


_Pairs = list[tuple[bytes, bytes]]


def prepare(part: int, first: int, docs: list[DocIn], groups: Groups) -> tuple[_Pairs, _Pairs]:
    """Pairs for the tables of rows and lanes; postings go to the groups, a dict of lists.

    Args:
        part: number of the scope partition.
        first: number of the first document.
        docs: in the order of their numbers.
        groups: what was gathered before; it makes a list for each new term by itself.

    Raises:
        ValueError: a term has a zero byte, or a number does not fit.
    """
    rows: _Pairs = []
    lanes: _Pairs = []
    pack = ROW.pack
    for docno, doc in enumerate(docs, first):
        terms = doc.terms
        try:
            counts = bytes(terms.values())
        except ValueError:
            counts = bytes([min(count, MAX_QUARTERS) for count in terms.values()])
        if 0 in counts or len(doc.ref) != 32 or len(doc.oid) != 32:
            raise ValueError("a frequency of zero, or an id that has not 32 bytes")
        names = b"\x00".join(terms)
        if names.count(b"\x00") != max(len(counts) - 1, 0):
            raise ValueError("a term has a zero byte")
        filters = sorted(set(doc.filters))
        try:
            when = _NO_TIME if doc.when is None else doc.when
            row = pack(
                doc.seq, when, doc.lane, doc.length, len(counts), len(names), doc.ref, doc.oid
            )
            key = number_key(part, docno)
        except (struct.error, OverflowError) as error:
            raise ValueError(f"a number of a document does not fit: {error}") from None
        rows.append((key, close_value(key, b"".join((row, counts, names, *filters)))))
        key = lane_key(part, doc.lane, doc.seq, doc.oid, docno)
        lanes.append((key, close_value(key, b"")))
        base = docno | length_code(doc.length) << 32
        once = base + QUARTERS * _QUARTER  # most terms of a document: one number for all of them
        for term, count in zip(terms, counts, strict=True):
            groups[term].append(once if count == QUARTERS else base + count * _QUARTER)
        for term in filters:
            if term.rfind(FILTER) or len(term) == 1:
                raise ValueError(f"not a filter: {show_term(term)}")
            groups[term].append(docno)
    return rows, lanes


def remove(txn: Txn, part: int, docs: Iterable[tuple[bytes, bytes]]) -> int:
    """Remove documents with their postings; a term that occurs nowhere else leaves too.

    Args:
        txn: a write transaction.
        part: number of the scope partition.
        docs: (ref, object id) of each; what is not in the index is passed over.

    Returns:
        How many were removed.

    Raises:
        IndexDamaged: what had to be read is not what was written.
    """
    held = load_part(txn, part)
    numbers = {docno_of(txn, part, ref, oid) for ref, oid in docs}
    lists: defaultdict[bytes, list[int]] = defaultdict(list)
    gone = sorted(number for number in numbers if number is not None)
    for docno in gone:
        body = _body(txn, part, docno)
        row = _row(body)
        segment = held.segment_of(docno)
        if segment is None:
            raise damaged(f"document {docno} is in no segment")
        prefix = number_key(part, segment.number)
        for term in (*_terms(body), *_filters(body)):
            lists[prefix + term].append(docno)
        txn.delete(DOC, number_key(part, docno))
        txn.delete(KEY, part_key(part) + row.ref + row.oid)
        txn.delete(LANE, lane_key(part, row.lane, row.seq, row.oid, docno))
        segment.live -= 1
        held.n -= 1
        held.total -= row.length
    for key in sorted(lists):
        what = f"the list of {show_term(key[8:])}"
        value = txn.get(POST, key)
        if value is None:
            raise damaged(f"{what} is missing")
        left = without(key[8:], open_value(key, value, what), lists[key])
        if left:
            txn.put(POST, key, close_value(key, left))
        else:
            txn.delete(POST, key)
    if gone:
        held.segments = [segment for segment in held.segments if segment.live > 0]
        save_part(txn, held)
    return len(gone)


def clear(txn: Txn, part: int) -> None:
    """Forget a partition altogether, whatever its state; numbers start at zero again."""
    for table in (POST, DOC, KEY, LANE, PART):
        txn.delete_prefix(table, part_key(part))


def set_mark(txn: Txn, name: bytes, value: bytes | None) -> None:
    """Keep a few bytes beside the index (how far it has come), or drop them with None."""
    if value is None:
        txn.delete(MARK, name)
    else:
        txn.put(MARK, name, close_value(name, value))


# -- reading ----------------------------------------------------------------------------------


def mark(txn: Txn, name: bytes) -> bytes | None:
    """What :func:`set_mark` kept.

    Raises:
        IndexDamaged: it is not what was kept.
    """
    value = txn.get(MARK, name)
    return None if value is None else bytes(open_value(name, value, "a mark"))


def parts(txn: Txn) -> list[int]:
    """Numbers of the partitions that are or were in use, ascending."""
    return [int.from_bytes(key[:4], "big") for key, _ in txn.scan(PART)]


def stats(txn: Txn, part: int) -> tuple[int, int]:
    """Number of documents of a partition and the sum of their lengths."""
    held = load_part(txn, part)
    return held.n, held.total


def docno_of(txn: Txn, part: int, ref: bytes, oid: bytes) -> int | None:
    """The number of a document, or None."""
    key = part_key(part) + ref + oid
    value = txn.get(KEY, key)
    return None if value is None else _docno(key, value)


def docs_of_ref(txn: Txn, part: int, ref: bytes) -> list[int]:
    """Numbers of the documents of a ref, ascending."""
    prefix = part_key(part) + ref
    return sorted(_docno(key, value) for key, value in txn.scan_prefix(KEY, prefix))


def doc(txn: Txn, part: int, docno: int) -> DocRow:
    """The row of a document.

    Raises:
        IndexDamaged: there is none of this number, or it is not what was written.
    """
    return _row(_body(txn, part, docno))


def doc_and_filters(txn: Txn, part: int, docno: int) -> tuple[DocRow, list[bytes]]:
    """The row of a document and its filters, ascending.

    Raises:
        IndexDamaged: there is none of this number, or it is not what was written.
    """
    body = _body(txn, part, docno)
    return _row(body), _filters(body)


def terms_of(txn: Txn, part: int, docno: int) -> dict[bytes, int]:
    """The terms of a document and their frequencies in quarters."""
    body = _body(txn, part, docno)
    return dict(zip(_terms(body), _counts(body), strict=True))


def filters_of(txn: Txn, part: int, docno: int) -> list[bytes]:
    """The filters of a document, ascending."""
    return _filters(_body(txn, part, docno))


def neighbours(
    txn: Txn, part: int, docno: int, span: int = 1, row: DocRow | None = None
) -> tuple[list[int], list[int]]:
    """Documents before and behind one in its lane, in order of sequence number and object id.

    Args:
        txn: a snapshot.
        part: number of the scope partition.
        docno: the document.
        span: how many on each side.
        row: its row, where that is known.

    Returns:
        Up to ``span`` numbers on each side, the nearest first.
    """
    row = doc(txn, part, docno) if row is None else row
    here = lane_key(part, row.lane, row.seq, row.oid, docno)
    lane = here[:8]
    before: list[int] = []
    behind: list[int] = []
    for found, towards in ((before, True), (behind, False)):
        start, stop = (lane, here) if towards else (here + b"\x00", None)
        for key, value in txn.scan(LANE, start, stop, reverse=towards):
            if len(found) == span or key[:8] != lane:
                break
            open_value(key, value, "an entry of a lane")
            found.append(int.from_bytes(key[-4:], "big"))
    return before, behind


def df(txn: Txn, part: int, term: bytes) -> int:
    """In how many documents of a partition a term (or a filter) occurs."""
    found = 0
    for segment in load_part(txn, part).segments:
        value = txn.get(POST, number_key(part, segment.number) + term)
        if value is not None:
            found += count_postings(term, value)
    return found


def vocabulary(txn: Txn, part: int, prefix: bytes = b"") -> Iterator[tuple[bytes, int]]:
    """Terms that begin with a prefix, ascending, and their document frequencies.

    Filters are left out unless the prefix is one of theirs.
    """
    runs = [_segment_terms(txn, part, s.number, prefix) for s in load_part(txn, part).segments]
    for term, found in groupby(merge(*runs), key=itemgetter(0)):
        yield term, sum(count for _, count in found)


def vocabulary_size(txn: Txn, part: int) -> int:
    """Number of different terms of a partition; reads its whole dictionary."""
    return sum(1 for _ in vocabulary(txn, part))


# -- inside -----------------------------------------------------------------------------------


def _segment_terms(txn: Txn, part: int, segment: int, prefix: bytes) -> Iterator[tuple[bytes, int]]:
    for key, value in txn.scan_prefix(POST, number_key(part, segment) + prefix):
        term = key[8:]
        if prefix or not term.startswith(FILTER):
            yield term, count_postings(term, value)


def _docno(key: bytes, value: bytes) -> int:
    return int.from_bytes(open_value(key, value, "the key of a document"), "little")


def _body(txn: Txn, part: int, docno: int) -> memoryview:
    key = number_key(part, docno)
    value = txn.get(DOC, key)
    if value is None:
        raise damaged(f"partition {part} has no document {docno}")
    if len(value) < SUM_B + ROW.size:
        raise damaged(f"the row of document {docno} is cut short")
    return open_value(key, value, f"the row of document {docno}")


def _row(body: memoryview) -> DocRow:
    seq, when, lane, length, _, _, ref, oid = ROW.unpack_from(body)
    return DocRow(ref, oid, lane, seq, None if when == _NO_TIME else when, length)


def _sizes(body: memoryview) -> tuple[int, int]:
    _, _, _, _, terms, names_b, _, _ = ROW.unpack_from(body)
    return ROW.size + terms, ROW.size + terms + names_b


def _counts(body: memoryview) -> bytes:
    return bytes(body[ROW.size : _sizes(body)[0]])


def _terms(body: memoryview) -> list[bytes]:
    start, end = _sizes(body)
    return bytes(body[start:end]).split(b"\x00") if end > start else []


def _filters(body: memoryview) -> list[bytes]:
    names = bytes(body[_sizes(body)[1] :])
    return [FILTER + name for name in names.split(b"\x00")[1:]]
