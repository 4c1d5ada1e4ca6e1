"""Recall: a question in, ranked and cited hits out.

question -> terms, vector, names, periods -> candidates of each granted partition -> order ->
the lens (views, times, withheld statuses) and the filters, before the cut to k -> hits with their
citations.  What is not projected yet is scanned, so that one's own writes are always found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.index import lexical, project, rank, scoring
from remem.index.analyze import query_terms, terms
from remem.index.errors import IndexDamaged
from remem.index.fields import clean
from remem.index.scan import Scan
from remem.index.timewords import periods
from remem.objects import instant, refs
from remem.objects.errors import RememError
from remem.objects.model import Memory, Observation, Scope, Source
from remem.objects.views import Lens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.index.dense import F32, Dense
    from remem.objects.encode import Obj
    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.scope import Grant
    from remem.objects.store import Store

MODES = ("hybrid", "lexical", "vector")
QUOTE = 240  # characters of a quote
# A question with one of these words is about what an assistant or a tool said or did.
_ABOUT_AGENTS = frozenset(
    "you your assistant agent claude codex gemini chatgpt tool tools output command commands ran "
    "run error errors stdout stderr printed file files edited".split()
)


class Question(msgspec.Struct, frozen=True):
    """What is asked and how.

    Attributes:
        text: in any words.
        limit: hits wanted.
        mode: one of MODES.
        lens: view, times and withheld statuses.
        kinds: only these kinds (any of them), or empty for all.
        role: only what this role said, or "".
        since: not before this instant, or None.
        until: before this instant, or None.
        why: keep the parts of each score.
    """

    text: str
    lens: Lens
    limit: int = 10
    mode: str = "hybrid"
    kinds: tuple[str, ...] = ()
    role: str = ""
    since: int | None = None
    until: int | None = None
    why: bool = False


class Cite(msgspec.Struct, frozen=True):
    """An observation behind a hit: its id, source and the words that bear on it."""

    id: bytes
    source: Source | None
    quote: str


class Hit(msgspec.Struct, frozen=True):
    """One answer.  Instants are microseconds UTC."""

    id: bytes
    ref: bytes
    obj: Obj
    scope: Scope
    score: float
    state: refs.RefState
    truth: str
    cites: list[Cite]
    why: dict[str, float] | None


class Answer(msgspec.Struct, frozen=True):
    """Hits, the mode they were found by, and what was amiss."""

    hits: list[Hit]
    mode: str
    degraded: str | None


class Searcher:
    """Asks questions of one store; keeps what was loaded between questions."""

    def __init__(self, store: Store, grant: Grant, dense: Dense | None = None) -> None:
        """Bind a store, a grant and, where vectors may be used, the dense side."""
        self.store = store
        self.grant = grant
        self.dense = dense

    def ask(self, question: Question) -> Answer:
        """Answer one question."""
        degraded: list[str] = []
        mode, vector = self._vector(question, degraded)
        env = None
        try:
            env = project.open_lexical(self.store, write=False)
        except IndexDamaged as error:
            degraded.append(f"lexical: {error}")
        with self.store.read(self.grant) as reader:
            look = _Look(self, reader, question, mode, vector, degraded)
            if env is None:
                hits = look.run(None)
            else:
                try:
                    with env.read(buffers=True) as txn:
                        hits = look.run(txn if project.current_stamp(txn) else None)
                except IndexDamaged as error:
                    degraded.append(f"lexical: {error}")
                    hits = look.run(None)
        return Answer(hits, mode, "; ".join(dict.fromkeys(degraded)) or None)

    def _vector(self, question: Question, degraded: list[str]) -> tuple[str, F32 | None]:
        """The mode that can be used, and the question's vector."""
        if question.mode == "lexical":
            return "lexical", None
        if self.dense is None:
            if question.mode == "vector":
                degraded.append("no embedder: lexical ranking instead")
            return "lexical", None
        try:
            return question.mode, self.dense.encode(question.text)
        except RememError as error:
            degraded.append(str(error))
            return "lexical", None


class _Look:
    """One question on one snapshot."""

    def __init__(
        self,
        searcher: Searcher,
        reader: Reader,
        question: Question,
        mode: str,
        vector: F32 | None,
        degraded: list[str],
    ) -> None:
        self.searcher = searcher
        self.reader = reader
        self.question = question
        self.mode = mode
        self.vector = vector
        self.degraded = degraded
        self.terms = query_terms(question.text)
        self.periods = [
            (p.start, p.end)
            for p in periods(question.text, now=question.lens.now)
            if not p.recurring
        ]
        self.must: list[bytes] = []
        if question.role:
            self.must.append(b"\0r:" + clean(question.role))
        if len(question.kinds) == 1:
            self.must.append(b"\0k:" + clean(question.kinds[0]))

    def run(self, txn: Txn | None) -> list[Hit]:
        """Hits over all granted partitions, best first, cut to the limit."""
        streams = [self._stream(txn, part) for part in self.reader.parts]
        return self._collect(streams)

    def _collect(
        self, streams: list[Iterator[tuple[float, Part, bytes, bytes, dict[str, float]]]]
    ) -> list[Hit]:
        from heapq import merge

        hits: list[Hit] = []
        seen: set[bytes] = set()
        merged = merge(*streams, key=lambda found: -found[0]) if len(streams) != 1 else streams[0]
        for score, part, ref, object_id, parts in merged:
            if ref in seen:
                continue
            hit = self._hit(score, part, ref, object_id, parts)
            if hit is None:
                continue
            if self.question.lens.view == "now":
                seen.add(ref)
            hits.append(hit)
            if len(hits) >= self.question.limit:
                break
        return fold(hits)

    def _stream(
        self, txn: Txn | None, part: Part
    ) -> Iterator[tuple[float, Part, bytes, bytes, dict[str, float]]]:
        """Documents of a partition, best first, to the last that matches."""
        last = self.reader.last_seq(part)
        at = project.cursor(txn, part.number) if txn is not None else 0
        if at > last:
            at, txn = 0, None
        tail: Scan | None = None
        if at < last:
            tail = Scan(self.reader, part, at, self.terms)
        indexed = self._indexed(txn, part, tail) if txn is not None else iter(())
        if tail is None:
            yield from indexed
            return
        from heapq import merge

        stale = tail.touched
        fresh = ((s, part, r, o, {"lexical": s}) for s, r, o in tail.ranked())
        kept = (found for found in indexed if found[2] not in stale)
        yield from merge(kept, fresh, key=lambda found: -found[0])

    def _indexed(
        self, txn: Txn, part: Part, tail: Scan | None
    ) -> Iterator[tuple[float, Part, bytes, bytes, dict[str, float]]]:
        number = part.number
        pool = max(rank.POOL, 4 * self.question.limit)
        rows: dict[int, lexical.DocRow] = {}
        candidates: dict[int, rank.Candidate] = {}

        def candidate(docno: int) -> rank.Candidate:
            found = candidates.get(docno)
            if found is None:
                row = rows[docno] = lexical.doc(txn, number, docno)
                found = candidates[docno] = rank.Candidate(docno, row.lane, row.when)
            return found

        lexical_hits: scoring.Hits | None = None
        if self.mode != "vector" and self.terms:
            lexical_hits = scoring.search(txn, number, self.terms, must=self.must, limit=pool)
            for docno, score in lexical_hits.top:
                candidate(docno).lexical = score
        if self.vector is not None:
            self._near(txn, part, pool, candidate, lexical_hits)
        around: dict[int, list[int]] = {}

        def beside(docno: int) -> list[int]:
            if docno not in around:
                before, behind = lexical.neighbours(txn, number, docno)
                around[docno] = before + behind
            return around[docno]

        marks: dict[int, list[bytes]] = {}

        def own(docno: int) -> list[bytes]:
            if docno not in marks:
                marks[docno] = lexical.filters_of(txn, number, docno)
            return marks[docno]

        def share(docno: int) -> float:
            return min((rank.DISCOUNT.get(mark, 1.0) for mark in own(docno)), default=1.0)

        ordered = rank.order(
            candidates,
            beside=beside,
            speaker=self._speaker(own),
            weight=None if _ABOUT_AGENTS & set(self.question.text.lower().split()) else share,
            periods=self.periods,
            lanes=2,
        )
        if tail is not None and lexical_hits is not None:
            tail.beside(txn, number, max((s for _, s in lexical_hits.top), default=0.0))
        last = 0.0
        for c in ordered:
            row = rows[c.docno]
            last = c.score
            yield c.score, part, row.ref, row.oid, c.parts
        if lexical_hits is not None and len(lexical_hits.top) >= pool:
            best = lexical_hits.top[0][1]
            for docno, score in lexical_hits:
                if docno not in candidates:
                    row = lexical.doc(txn, number, docno)
                    rest = min(last, score / best)
                    yield rest, part, row.ref, row.oid, {"lexical": rest}

    def _near(
        self,
        txn: Txn,
        part: Part,
        pool: int,
        candidate: Callable[[int], rank.Candidate],
        lexical_hits: scoring.Hits | None,
    ) -> None:
        """Add the nearest vectors to the candidates, and vector scores to those that are there."""
        dense = self.searcher.dense
        assert dense is not None and self.vector is not None
        try:
            found = dense.search(self.searcher.store, part, self.vector, pool)
        except RememError as error:
            self.degraded.append(str(error))
            return
        for seq, score in found:
            try:
                entry = self.reader.entry(part, seq)
            except RememError:
                continue
            if entry.new is None:
                continue
            docno = lexical.docno_of(txn, part.number, entry.ref, entry.new)
            if docno is None or (self.must and not self._passes(txn, part, docno)):
                continue
            c = candidate(docno)
            c.vector = score
            if lexical_hits is not None and not c.lexical:
                c.lexical = lexical_hits.score(docno)

    def _passes(self, txn: Txn, part: Part, docno: int) -> bool:
        own = lexical.filters_of(txn, part.number, docno)
        return all(wanted in own for wanted in self.must)

    def _speaker(self, own: Callable[[int], list[bytes]]) -> Callable[[int], bool] | None:
        """Whether a document was said by someone whom the question names."""
        asked = {b"\0s:" + term for term, _ in self.terms}
        return lambda docno: not asked.isdisjoint(own(docno))

    def _hit(
        self, score: float, part: Part, ref: bytes, object_id: bytes, parts: dict[str, float]
    ) -> Hit | None:
        """The hit for a document, or None when the lens or a filter keeps it back."""
        question = self.question
        seen = question.lens.see(self.reader, part, ref, object_id)
        if seen is None:
            return None
        state, truth = seen
        obj = self.reader.object(part, object_id)
        if not matches(question, obj, state):
            return None
        return Hit(
            object_id,
            ref,
            obj,
            obj.scope,
            score,
            state,
            truth,
            cites_of(self.reader, part, object_id, obj, self.terms),
            parts if question.why else None,
        )


def matches(question: Question, obj: Obj, state: refs.RefState) -> bool:
    """Whether an object passes the filters of a question (kind, role, period)."""
    if question.kinds and obj.kind not in question.kinds:
        if not (isinstance(obj, Observation) and "observation" in question.kinds):
            return False
    if question.role and getattr(obj, "role", "") != question.role:
        return False
    if question.since is not None or question.until is not None:
        stated = obj.asserted if isinstance(obj, Observation) else obj.valid_from
        when = state.created if stated is None else stated
        if question.since is not None and when < question.since:
            return False
        if question.until is not None and when >= question.until:
            return False
    return True


def cites_of(
    reader: Reader, part: Part, object_id: bytes, obj: Obj, wanted: list[tuple[bytes, float]]
) -> list[Cite]:
    """The observations behind an object; of an observation, itself."""
    if isinstance(obj, Observation):
        return [Cite(object_id, obj.source, excerpt(obj.text, wanted, QUOTE))]
    cites = []
    for index, cited in enumerate(obj.cites):
        try:
            observation = reader.object(part, cited)
        except RememError:
            continue
        if not isinstance(observation, Observation):
            continue
        quote = excerpt(observation.text, wanted, QUOTE)
        if obj.span is not None and obj.span.cite == index:
            quote = observation.text[obj.span.start : obj.span.end][:QUOTE]
        cites.append(Cite(cited, observation.source, quote))
    return cites


def fold(hits: list[Hit]) -> list[Hit]:
    """Leave out observations that a memory among the hits already cites."""
    covered = {c.id for hit in hits if isinstance(hit.obj, Memory) for c in hit.cites}
    return [h for h in hits if isinstance(h.obj, Memory) or h.id not in covered]


def excerpt(text: str, wanted: list[tuple[bytes, float]], width: int) -> str:
    """The part of a text that bears most on the question, at most width characters."""
    flat = " ".join(text.split())
    if len(flat) <= width:
        return flat
    weights = dict(wanted)
    words = flat.split(" ")
    gains = [sum(weights.get(t, 0.0) for t in terms(w)) for w in words[:4000]]
    best, best_gain, start, size, gain = 0, -1.0, 0, 0, 0.0
    for end, word in enumerate(words[:4000]):
        size += len(word) + 1
        gain += gains[end]
        while size > width and start < end:
            size -= len(words[start]) + 1
            gain -= gains[start]
            start += 1
        if gain > best_gain + 1e-9:
            best, best_gain = start, gain
    out: list[str] = []
    room = width - 2
    for word in words[best:]:
        if len(word) + 1 > room:
            break
        out.append(word)
        room -= len(word) + 1
    body = " ".join(out) or words[best][: width - 2]
    ends = best + len(out) >= len(words)
    return ("" if best == 0 else "\u2026") + body + ("" if ends else "\u2026")


def now_lens() -> Lens:
    """The default lens, at this moment."""
    return Lens(instant.now())
