"""Listing what passes the filters of a question that has no words: the latest first.

The lists of the inverted index say which documents have the filters; what is not projected yet is
read.  When something happened is when it was said or run, else when it was recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.index import lexical, project
from remem.index.accumulate import Postings
from remem.index.hits import matches
from remem.index.segments import load_part
from remem.objects import encode
from remem.objects.model import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.index.recall import Look
    from remem.index.truths import Ranked
    from remem.objects.kv import Txn
    from remem.objects.reader import Part

    # when, log entry, partition, ref, object
    Listed = tuple[int, int, Part, bytes, bytes]

ALL = [[b"\0t:observation", b"\0t:memory"]]  # filters that every document has one of


def newest(look: Look, txn: Txn | None) -> Iterator[Ranked]:
    """What passes the filters, in all granted partitions, the latest first.

    Args:
        look: the question and its snapshot.
        txn: the inverted index, or None to read everything.
    """
    found: list[Listed] = []
    for part in look.reader.parts:
        last = look.reader.last_seq(part)
        at = project.cursor(txn, part.number) if txn is not None else 0
        stale: set[bytes] = set()
        if at > last or txn is None:
            at = 0
        if at < last:
            stale = {entry.ref for entry in look.reader.log(part, after=at)}
            found += _read(look, part, stale)
        if txn is not None and at:
            found += _indexed(look, txn, part, stale)
    found.sort(key=lambda one: (one[0], one[1]), reverse=True)
    for _, seq, part, ref, object_id in found:
        yield 1.0, part, ref, object_id, seq, {"listed": 1.0}, 1.0


def _indexed(look: Look, txn: Txn, part: Part, stale: set[bytes]) -> Iterator[Listed]:
    """Documents of the index that have one filter of each group, and lie in the period."""
    question = look.question
    held = load_part(txn, part.number)
    documents: set[int] | None = None
    for group in [[one] for one in look.must] + look.either or ALL:
        own: set[int] = set()
        for term in group:
            own |= Postings(txn, held, term).documents()
        documents = own if documents is None else documents & own
    for docno in documents or ():
        row = lexical.doc(txn, part.number, docno)
        if row.ref in stale:
            continue
        when = row.when
        if when is None:
            entry = look.reader.entry(part, row.seq)
            when = entry.time if entry.valid_from is None else entry.valid_from
        elif question.since is not None and when < question.since:
            continue
        elif question.until is not None and when >= question.until:
            continue
        yield when, row.seq, part, row.ref, row.oid


def _read(look: Look, part: Part, refs: set[bytes]) -> Iterator[Listed]:
    """Revisions of some refs that pass the filters."""
    reader = look.reader
    for ref in refs:
        for object_id, (seq, _) in project.documents_of(reader, part, ref):
            data = reader.object_bytes(part, object_id)
            state = reader.state(part, ref)
            if data is None or state is None:
                continue
            obj = encode.decode(data)
            if matches(look.question, obj, state):
                when = obj.asserted if isinstance(obj, Observation) else obj.valid_from
                yield state.starts if when is None else when, seq, part, ref, object_id
