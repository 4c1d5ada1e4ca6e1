"""The inverted index of a whole store, built in one go.

What :func:`remem.index.lexical.add` does batch by batch moves the postings once for each size of
segment and puts the keys of the documents, which have no order, into a tree that grows.  Here
postings are gathered until there are many and written as a run, sorted by term; at the end the runs
are joined term by term into one segment, and the keys are read off the refs, which lie in their
order.  So every table but that of lanes is written from its beginning to its end.

What comes out answers as what the projector makes: the documents have the same numbers.

Source: Heinz and Zobel 2003, "Efficient single-pass index construction for text databases".
"""

from __future__ import annotations

import gc
import os
import shutil
from array import array
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING

from remem.index import lexical, project
from remem.index.fields import document
from remem.index.postings import (
    DOC,
    KEY,
    LANE,
    POST,
    close_value,
    join_many,
    number_key,
    pack_list,
)
from remem.index.segments import Part as Held
from remem.index.segments import Segment, check_terms, follows_all, save_part
from remem.objects import kv, lists, refs
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.index.segments import Groups
    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.store import Store

    Progress = Callable[[str, int, int], None]
    Pair = tuple[bytes, bytes]

_RUN_POSTINGS = 2_000_000  # gathered before a run is written
_SLICE_B = 16 << 20  # of posting lists that are joined together
_PAIRS = 20_000  # of the table of keys a transaction
_MOST_CHANGED = 1 << 18  # refs with more than one entry that are kept in memory
_RUNS = "runs"


def build(store: Store, path: str, progress: Progress | None = None) -> int:
    """Write the inverted index of every partition into a folder that has none.

    Args:
        store: an open store.
        path: folder of the environment; the caller seals it.
        progress: called with (what, done, of) now and then.

    Returns:
        The number of documents.
    """
    collecting = gc.isenabled()
    gc.disable()  # it would walk every document of a batch, several times, to find nothing
    env = kv.open_env(path, lexical.TABLES, create=True, sync=False)
    try:
        with store.read(maintenance_grant()) as reader:
            parts = sorted(reader.parts, key=lambda part: part.number)
            added = sum(_Builder(env, reader, part, path, progress).run() for part in parts)
        env.write(lambda txn: lexical.set_mark(txn, b"stamp", project.stamp()))
        return added
    finally:
        kv.forget_env(path)
        if collecting:
            gc.enable()


class _Builder:
    """Builds one partition."""

    def __init__(
        self, env: kv.Env, reader: Reader, part: Part, path: str, progress: Progress | None
    ) -> None:
        self.env = env
        self.reader = reader
        self.part = part
        self.last = reader.last_seq(part)
        self.held = Held(part.number)
        self._progress = progress
        self._numbers = array("I", bytes(4 * (self.last + 1)))  # entry -> its document, plus one
        self._groups: Groups = defaultdict(list)
        self._gathered = 0
        self._folder = os.path.join(path, _RUNS)
        self._runs: list[str] = []
        self._run_env: kv.Env | None = None
        self._sizes: dict[bytes, int] = {}  # first two bytes of a term -> bytes of its lists
        briefs = part.prefix + lists.BRIEF
        self._briefs = {key[len(briefs) :] for key, _ in reader.txn.scan_prefix("lists", briefs)}
        self._changed = self._with_changes()

    def run(self) -> int:
        """Write everything; the number of documents."""
        try:
            for at in range(0, self.last, project.BATCH):
                upto = min(self.last, at + project.BATCH)
                self._add(self._documents(at, upto))
                if self._progress is not None:
                    self._progress("projecting", upto, self.last)
            self._write_lists()
        finally:
            if self._run_env is not None:
                kv.forget_env(self._folder)
                shutil.rmtree(self._folder, ignore_errors=True)
        self._write_keys()
        self.env.write(self._finish)
        return self.held.n

    # -- documents ----------------------------------------------------------------------------

    def _with_changes(self) -> set[bytes] | None:
        """Refs that have more than one entry, or None when those are too many to be kept."""
        found: set[bytes] = set()
        for entry in self.reader.log(self.part):
            if entry.prev:
                found.add(entry.ref)
                if len(found) > _MOST_CHANGED:
                    return None
        return found

    def _documents(self, after: int, upto: int) -> list[lexical.DocIn]:
        """Documents of the refs that begin with these entries."""
        found: list[lexical.DocIn] = []
        part, get = self.part, self.reader.txn.get
        for entry in self.reader.log(part, after=after, until=upto):
            ref = entry.ref
            state = self._state(entry)
            if state is None or state.first != entry.seq or ref in self._briefs:
                continue
            if not project.may_be_found(state):
                continue
            for object_id, (seq, lane) in project.revisions_in(self.reader, part, state):
                data = get("objects", part.prefix + object_id)
                if data is not None:
                    found.append(document(ref, object_id, seq, lane, data))
        found.sort(key=lambda doc: (doc.seq, doc.oid, doc.ref))
        return found

    def _state(self, entry: refs.Entry) -> refs.RefState | None:
        """State of a ref now; it need not be looked up where nothing followed its first entry."""
        if self._changed is not None and entry.ref not in self._changed and not entry.prev:
            return refs.step(None, entry)
        return self.reader.state(self.part, entry.ref)

    def _add(self, docs: list[lexical.DocIn]) -> None:
        if not docs:
            return
        held, first = self.held, self.held.next_doc
        rows, lanes = lexical.prepare(held.number, first, docs, self._groups)
        lanes.sort()

        def put(txn: Txn) -> None:
            txn.put_many(DOC, rows, True)
            txn.put_many(LANE, lanes, follows_all(txn, LANE, lanes[0][0]))

        self.env.write(put)
        for docno, doc in enumerate(docs, first + 1):
            self._numbers[doc.seq] = docno
        held.ordered = held.ordered and (not first or docs[0].seq > held.last_seq)
        held.last_seq = max(held.last_seq, docs[-1].seq)
        held.next_doc += len(docs)
        held.n += len(docs)
        held.total += sum(doc.length for doc in docs)
        self._gathered += sum(len(doc.terms) + len(doc.filters) for doc in docs)
        if self._gathered >= _RUN_POSTINGS:
            self._write_run()

    # -- postings -----------------------------------------------------------------------------

    def _write_run(self) -> None:
        """Put what was gathered aside, as one run."""
        check_terms(self._groups)
        if self._run_env is None:
            names = tuple(f"{number:06}" for number in range(self.last // project.BATCH + 1))
            self._run_env = kv.open_env(self._folder, names, create=True, sync=False)
        name = f"{len(self._runs):06}"
        self._run_env.write(lambda txn: txn.put_many(name, self._packed(), True))
        self._runs.append(name)
        self._groups = defaultdict(list)
        self._gathered = 0

    def _packed(self) -> Iterator[Pair]:
        groups, sizes = self._groups, self._sizes
        for term in sorted(groups):
            body = pack_list(term, groups[term])
            sizes[term[:2]] = sizes.get(term[:2], 0) + len(body)
            yield term, body

    def _write_lists(self) -> None:
        """Write the one segment: what was gathered, or the runs joined."""
        if not self._runs:
            check_terms(self._groups)
            bodies = {term: [pack_list(term, self._groups[term])] for term in self._groups}
            self._put_lists(bodies)
            return
        if self._groups:
            self._write_run()
        assert self._run_env is not None
        with self._run_env.read() as txn:
            for start, stop in self._slices():
                joined: dict[bytes, list[bytes]] = defaultdict(list)
                for name in self._runs:
                    for term, body in txn.pairs(name, start, stop):
                        joined[term].append(body)
                self._put_lists(joined)

    def _put_lists(self, bodies: dict[bytes, list[bytes]]) -> None:
        prefix = number_key(self.held.number, 0)

        def pairs() -> Iterator[Pair]:
            for term in sorted(bodies):
                key = prefix + term
                yield key, close_value(key, join_many(term, bodies[term]))

        self.env.write(lambda txn: txn.put_many(POST, pairs(), True))

    def _slices(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Ranges of terms whose lists have about _SLICE_B bytes, ascending."""
        start, size = b"", 0
        for head in sorted(self._sizes):
            if size and size + self._sizes[head] > _SLICE_B:
                yield start, head
                start, size = head, 0
            size += self._sizes[head]
        yield start, None

    # -- keys and the end ---------------------------------------------------------------------

    def _write_keys(self) -> None:
        pairs = self._keys()
        while some := list(islice(pairs, _PAIRS)):
            self.env.write(lambda txn, some=some: txn.put_many(KEY, some, True))  # type: ignore[misc]

    def _keys(self) -> Iterator[Pair]:
        """Keys of the documents, ascending."""
        part, numbers = self.part, self._numbers
        for ref, state in self.reader.states(part):
            if not project.may_be_found(state) or ref in self._briefs:
                continue
            for object_id, (seq, _) in sorted(project.revisions_in(self.reader, part, state)):
                docno = numbers[seq]
                if docno:
                    key = part.prefix + ref + object_id
                    yield key, close_value(key, (docno - 1).to_bytes(4, "little"))

    def _finish(self, txn: Txn) -> None:
        held = self.held
        if held.n:
            held.segments = [Segment(0, 0, held.next_doc - 1, held.n)]
            held.next_segment = 1
            save_part(txn, held)
        if self.last:
            mark = project.cursor_key(held.number)
            lexical.set_mark(txn, mark, self.last.to_bytes(8, "big"))
