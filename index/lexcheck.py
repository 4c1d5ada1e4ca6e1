"""A full check of the inverted index: every list, every row, and whether the two agree.

It reads a partition once, from end to end, and never stops at the first fault.  Whether each
document has exactly the postings that its row names is seen from a sum over its postings: one sum
is made from the lists, the other from the row.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from hashlib import blake2b

from remem.index.errors import IndexDamaged
from remem.index.lexical import doc, docno_of, filters_of, terms_of
from remem.index.postings import (
    DOC,
    KEY,
    LANE,
    POST,
    Run,
    is_filter,
    lane_key,
    length_code,
    open_run,
    open_value,
    part_key,
    show_term,
)
from remem.index.segments import Part, load_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from remem.objects.kv import Txn

_MASK = (1 << 64) - 1


def check(txn: Txn, part: int) -> list[str]:
    """Everything that is wrong with a partition, one sentence each; empty if it is sound.

    Takes 8 bytes of memory for each document number, and the longest list.
    """
    try:
        held = load_part(txn, part)
    except IndexDamaged as error:
        return [str(error)]
    found: list[str] = []
    _check_segments(held, found)
    sums = array("Q", bytes(8 * held.next_doc))
    _check_lists(txn, held, sums, found)
    _check_rows(txn, held, sums, found)
    for table, what in ((KEY, "keys"), (LANE, "entries of lanes")):
        count = 0
        for key, value in txn.scan_prefix(table, part_key(part)):
            count += 1
            try:
                open_value(key, value, f"one of the {what}")
            except IndexDamaged as error:
                found.append(str(error))
        if count != held.n:
            found.append(f"partition {part} has {held.n} documents, but {count} {what}")
    return found


def _check_segments(held: Part, found: list[str]) -> None:
    least = 0
    for segment in held.segments:
        if not least <= segment.first <= segment.last < held.next_doc:
            found.append(f"segment {segment.number} has the range of another or none")
        if segment.number >= held.next_segment:
            found.append(f"segment {segment.number} has a number that was never given")
        least = segment.last + 1


def _check_lists(txn: Txn, held: Part, sums: array[int], found: list[str]) -> None:
    """Check each list by itself and add its postings to the sums of their documents."""
    segments = {segment.number: segment for segment in held.segments}
    for key, value in txn.scan_prefix(POST, part_key(held.number)):
        term = key[8:]
        what = f"the list of {show_term(term)}"
        segment = segments.get(int.from_bytes(key[4:8], "big"))
        if segment is None:
            found.append(f"{what} belongs to no segment")
            continue
        try:
            run = open_run(key, value)
        except IndexDamaged as error:
            found.append(str(error))
            continue
        docs = run.docs.tolist()
        if docs != sorted(set(docs)):
            found.append(f"{what} is not in order")
        if docs[0] < segment.first or docs[-1] > segment.last:
            found.append(f"{what} leaves the range of segment {segment.number}")
        elif docs[-1] < len(sums):
            _add_run(sums, term, run)


def _add_run(sums: array[int], term: bytes, run: Run) -> None:
    factor = _factor(term)
    if is_filter(term):
        for docno in run.docs:
            sums[docno] = sums[docno] + factor & _MASK
    else:
        for docno, code in zip(run.docs, run.codes, strict=True):
            sums[docno] = sums[docno] + factor * code & _MASK


@lru_cache(maxsize=1 << 14)
def _factor(term: bytes) -> int:
    return int.from_bytes(blake2b(term, digest_size=8).digest(), "big") | 1


def _check_rows(txn: Txn, held: Part, sums: array[int], found: list[str]) -> None:
    """Check each row against keys, lanes, statistics and the sums of the lists."""
    part = held.number
    n = total = 0
    living: dict[int, int] = {}
    before: tuple[int, bytes, bytes] | None = None
    for key, _ in txn.scan_prefix(DOC, part_key(part)):
        docno = int.from_bytes(key[4:], "big")
        n += 1
        try:
            row = doc(txn, part, docno)
            known = docno_of(txn, part, row.ref, row.oid)
            terms = terms_of(txn, part, docno)
            filters = filters_of(txn, part, docno)
        except IndexDamaged as error:
            found.append(str(error))
            continue
        total += row.length
        if known != docno:
            found.append(f"document {docno} is not found under its key")
        if txn.get(LANE, lane_key(part, row.lane, row.seq, row.oid, docno)) is None:
            found.append(f"document {docno} is not in its lane")
        here = (row.seq, row.oid, row.ref)
        if held.ordered and (row.seq > held.last_seq or (before and here < before)):
            found.append(f"document {docno} is out of the order that is claimed")
        before = here
        segment = held.segment_of(docno)
        if segment is None or docno >= len(sums):
            found.append(f"document {docno} is in no segment")
            continue
        living[segment.number] = living.get(segment.number, 0) + 1
        length = length_code(row.length)
        expected = sum(_factor(term) * (count << 8 | length) for term, count in terms.items())
        expected += sum(map(_factor, filters))
        if sums[docno] != expected & _MASK:
            found.append(f"the lists do not have document {docno} as its row says")
        sums[docno] = 0
    if (n, total) != (held.n, held.total):
        found.append(f"partition {part} has {n} documents of {total} words in all, not as recorded")
    for segment in held.segments:
        if living.get(segment.number, 0) != segment.live:
            found.append(f"segment {segment.number} has not as many documents as recorded")
    for docno, left in enumerate(sums):
        if left:
            found.append(f"lists have document {docno}, which has no row")
