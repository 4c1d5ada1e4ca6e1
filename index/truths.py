"""From ranked documents to an answer that respects what is true.

What no longer holds hands its place to what holds instead; in the view ``history`` it stands right
below it.  An observation that a memory above it was drawn from folds under that memory; so does one
above it that says nothing else.  Current statements that contradict each other are both shown and
name each other, in at most `MAX_CONFLICTS` cases an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.index import ran, whose
from remem.index.analyze import terms
from remem.index.fields import is_parsed
from remem.index.hits import QUOTE, Hit, cites_of, excerpt, matches
from remem.index.timewords import periods
from remem.objects import chains, evidence, memories, refs, summaries
from remem.objects.model import Memory, Observation
from remem.objects.views import CURRENT, HISTORICAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from remem.index.hits import Question
    from remem.index.past import Window
    from remem.objects.reader import Part
    from remem.objects.views import Eye

    Scores = dict[str, float]
    # score, partition, ref, object id, log entry that brought it (0: unknown), parts of the score,
    # confidence
    Ranked = tuple[float, Part, bytes, bytes, int, Scores, float]

ALIKE = 0.35  # share of the words of two statements that both have, to count as alike
ALIKE_DEPTH = 20  # hits that are compared with each other
SHORT = 600  # code points; longer texts are no statements to compare
MAX_CONFLICTS = 2  # pairs of statements that are shown as a conflict, an answer


class Collector:
    """Takes ranked documents, best first, until there are hits enough."""

    def __init__(
        self,
        eye: Eye,
        question: Question,
        wanted: list[tuple[bytes, float]],
        windows: Sequence[Window] | None = None,
    ) -> None:
        """Begin an answer.

        Args:
            eye: the question's lens at the snapshot.
            question: what is asked.
            wanted: terms of the question, with their weights.
            windows: only what was said in one of these periods, held then or speaks of it; None for
                any time.
        """
        self.eye = eye
        self.question = question
        self.terms = wanted
        self.windows = windows
        self._hits: list[tuple[Part, Hit]] = []
        self._seen: set[tuple[int, bytes, bytes]] = set()

    def collect(self, ranked: Iterable[Ranked], least: float | None = None) -> list[Hit]:
        """The hits, at most as many as the question asks for.

        Args:
            ranked: documents, the best first.
            least: score that the best hit needs, or there are none.
        """
        for score, part, ref, object_id, seq, parts, sure in ranked:
            if least is not None and not self._hits and score < least:
                return []
            self.offer(score, part, ref, object_id, seq, parts, sure)
            if len(self._hits) >= self.question.limit:
                break
        self._later_first()
        self._group()
        self._conflicts()
        return [self._fresh(part, hit) for part, hit in self._hits[: self.question.limit]]

    def _fresh(self, part: Part, hit: Hit) -> Hit:
        """A hit that says of a summary whether its sources have changed."""
        if not isinstance(hit.obj, Memory) or not memories.is_summary(hit.obj):
            return hit
        found = summaries.stale(self.eye, part, hit.state, hit.obj)
        return hit if found is None else msgspec.structs.replace(hit, stale=found)

    def facts(self) -> list[Hit]:
        """The memories that were taken in: what holds first, then from the latest backwards."""
        self._hits = [(part, hit) for part, hit in self._hits if isinstance(hit.obj, Memory)]
        self._hits.sort(key=lambda one: _age(one[1]))
        self._conflicts()
        return [self._fresh(part, hit) for part, hit in self._hits]

    # -- one document -------------------------------------------------------------------------

    def offer(
        self,
        score: float,
        part: Part,
        ref: bytes,
        object_id: bytes,
        seq: int,
        parts: Scores,
        sure: float = 0.0,
    ) -> None:
        """Take one document in, or what holds in its place."""
        now = self.question.lens.view == "now"
        key = (part.number, ref, b"" if now else object_id)
        if key in self._seen:
            return
        hit = self._hit(score, part, ref, object_id, seq, parts, sure)
        if hit is None:
            if now:
                self._instead(score, part, self.eye.stand_in(part, ref), sure)
            return
        self._seen.add(key)
        if hit.truth == HISTORICAL:
            self._instead(score, part, self.eye.newest(part, ref, object_id), sure)
        self._add(part, hit)

    def _instead(self, score: float, part: Part, ref: bytes | None, sure: float) -> None:
        """Offer what holds in the place of a document, with the score of that document."""
        sight = None if ref is None else self.eye.of(part, ref)
        if ref is None or sight is None or sight.held is None or sight.held.head is None:
            return
        head = sight.held.head
        key = (part.number, ref, b"" if self.question.lens.view == "now" else head)
        if key in self._seen:
            return
        hit = self._hit(score, part, ref, head, 0, {"successor": score}, sure)
        if hit is not None and hit.truth != HISTORICAL:
            self._seen.add(key)
            self._add(part, hit)

    def _hit(
        self,
        score: float,
        part: Part,
        ref: bytes,
        object_id: bytes,
        seq: int,
        parts: Scores,
        sure: float,
    ) -> Hit | None:
        """The hit for a document, or None when the lens or a filter keeps it back."""
        question = self.question
        seen = self.eye.see(part, ref, object_id, seq)
        if seen is None:
            return None
        state, truth = seen
        if truth == HISTORICAL and state.replaced_by is None:
            by = self._by(part, ref, object_id)
            state = msgspec.structs.replace(state, replaced_by=by)
        obj = self.eye.reader.object(part, object_id)
        if not matches(question, obj, state) or not self._within(state, obj):
            return None
        return Hit(
            object_id,
            ref,
            obj,
            obj.scope,
            score,
            state,
            truth,
            cites_of(self.eye, part, object_id, obj, self.terms),
            parts if question.why else None,
            confidence=sure,
            whose=whose.of(self.eye.reader, part, seen[0], object_id, obj),
        )

    def _by(self, part: Part, ref: bytes, object_id: bytes) -> bytes | None:
        """What took the place of a revision or of evidence whose own ref names no successor."""
        sight = self.eye.of(part, ref)
        held = None if sight is None else sight.held
        if held is not None and held.head != object_id and self.eye.lens.truth(held) == CURRENT:
            return held.head
        by = self.eye.newest(part, ref, object_id)
        return None if by == ref else by

    def _within(self, state: refs.RefState, obj: Memory | Observation) -> bool:
        """True for what held, was said or speaks of a time in the periods that are asked about."""
        if self.windows is None:
            return True
        if isinstance(obj, Memory):
            spans = [(state.starts, state.valid_to)]
        else:
            said = state.starts if obj.asserted is None else obj.asserted
            spans = [(said, said + 1)]
            dated = obj.asserted is not None  # else "last week" counts from nobody knows when
            spans += [
                (p.start, p.end)
                for p in periods(obj.text, now=said)
                if not p.recurring and (dated or p.kind == "absolute")
            ]
        return any(
            window.named_in(obj.text)
            or any(
                begins < window.end and (ends is None or ends > window.start)
                for begins, ends in spans
            )
            for window in self.windows
        )

    # -- folding ------------------------------------------------------------------------------

    def _add(self, part: Part, hit: Hit) -> None:
        if isinstance(hit.obj, Memory):
            self._add_memory(part, hit, hit.obj)
            return
        for place, (at, other) in enumerate(self._hits):
            memory = other.obj
            if not isinstance(memory, Memory) or memories.is_summary(memory):
                continue  # a summary of many does not stand for each of them
            if at.number == part.number and hit.id in memory.cites:
                sure = max(other.confidence, hit.confidence)
                if hit.obj.kind == ran.KIND and is_parsed(memory):  # what was typed says it better
                    best = max(other.score, hit.score)
                    kept = msgspec.structs.replace(hit, score=best, confidence=sure)
                    self._hits[place] = (at, kept)
                    self._drop_parsed(at, hit.id, place + 1)
                    return
                kept = msgspec.structs.replace(self._quoting(other, hit), confidence=sure)
                self._hits[place] = (at, kept)
                return
        self._hits.append((part, hit))

    def _drop_parsed(self, part: Part, observation: bytes, start: int) -> None:
        """Leave out, from a place on, what parsers read from an observation that is there."""
        self._hits[start:] = [
            (at, hit)
            for at, hit in self._hits[start:]
            if at.number != part.number
            or not isinstance(hit.obj, Memory)
            or not (is_parsed(hit.obj) and observation in hit.obj.cites)
        ]

    def _add_memory(self, part: Part, hit: Hit, memory: Memory) -> None:
        """Put a memory behind the others, or in the place of evidence that says nothing else."""
        place: int | None = None
        if memories.is_summary(memory):
            self._hits.append((part, hit))
            return
        if is_parsed(memory) and any(
            at.number == part.number and other.id in memory.cites and other.obj.kind == ran.KIND
            for at, other in self._hits
        ):
            return
        for index in range(len(self._hits) - 1, -1, -1):
            at, other = self._hits[index]
            if at.number != part.number or other.id not in memory.cites:
                continue
            parts = evidence.grounds(memory, other.id, other.obj.text)
            if evidence.says_nothing_else(other.obj.text, parts):
                del self._hits[index]
                place = index
                hit = msgspec.structs.replace(
                    hit,
                    score=max(hit.score, other.score),
                    confidence=max(hit.confidence, other.confidence),
                )
        self._hits.insert(len(self._hits) if place is None else place, (part, hit))

    def _quoting(self, memory: Hit, folded: Hit) -> Hit:
        """A memory whose citation quotes what the folded observation says on the question."""
        if folded.truth == HISTORICAL:
            return memory
        quote = excerpt(folded.obj.text, self.terms, QUOTE)
        cites = [
            msgspec.structs.replace(c, quote=quote) if c.id == folded.id else c
            for c in memory.cites
        ]
        return msgspec.structs.replace(memory, cites=cites)

    # -- order --------------------------------------------------------------------------------

    def _later_first(self) -> None:
        """Of statements alike in all that the question names, put the one said later first.

        Nobody said that one corrects the other, so neither is hidden; but where they contradict
        each other, the later one is the likelier.
        """
        asked = {term for term, _ in self.terms}
        words = [
            set(terms(hit.obj.text)) if len(hit.obj.text) <= SHORT else set()
            for _, hit in self._hits[:ALIKE_DEPTH]
        ]
        order = list(range(len(self._hits)))
        for later, mine in enumerate(words):
            for place in range(order.index(later)):
                above = order[place]
                shared = mine & words[above]
                if not shared or len(shared) < ALIKE * len(mine | words[above]):
                    continue
                if not (words[above] & asked) - mine and self._later(later, above):
                    order.remove(later)
                    order.insert(place, later)
                    break
        scores = [hit.score for _, hit in self._hits]
        self._hits = [
            (self._hits[at][0], msgspec.structs.replace(self._hits[at][1], score=score))
            for at, score in zip(order, scores, strict=True)
        ]

    def _later(self, one: int, other: int) -> bool:
        """Whether a hit was said, or began to hold, after another one of the same truth."""
        a, b = self._hits[one][1], self._hits[other][1]
        after = (a.state.starts, a.state.first) > (b.state.starts, b.state.first)
        return after and a.truth == b.truth and a.state.type == b.state.type

    def _group(self) -> None:
        """Put what no longer holds right below what took its place."""
        if not any(hit.truth == HISTORICAL for _, hit in self._hits):
            return
        families: dict[tuple[int, bytes], list[tuple[Part, Hit]]] = {}
        for part, hit in self._hits:
            root = self.eye.root(part, hit.ref, hit.id)
            families.setdefault((part.number, root), []).append((part, hit))
        ordered = []
        for members in families.values():
            best = max(hit.score for _, hit in members)
            members.sort(key=lambda one: _age(one[1]))
            for part, hit in members:
                score = best if len(members) > 1 else hit.score
                ordered.append((part, msgspec.structs.replace(hit, score=score)))
        self._hits = ordered

    # -- conflicts ----------------------------------------------------------------------------

    def _conflicts(self) -> None:
        """Show what contradicts a hit beside it, and let both name each other."""
        named: set[bytes] = set()
        for part, hit in list(self._hits):
            if len(named) >= 2 * MAX_CONFLICTS:
                return
            memory = hit.obj
            if hit.truth != CURRENT or not isinstance(memory, Memory) or hit.id in named:
                continue
            rival = self._rival(part, hit, memory)
            if rival is not None and rival.id not in named:
                self._pair(part, hit, rival)
                named |= {hit.id, rival.id}

    def _rival(self, part: Part, hit: Hit, memory: Memory) -> Hit | None:
        """A current statement with another value of the same single-valued predicate."""
        if memory.triple is None:
            return None
        reader = self.eye.reader
        subject, predicate, value = (chains.canonical(reader, part, t) for t in memory.triple)
        key = chains.chain_key(reader, part, memory.triple, single=True)
        single = reader.txn.get("chains", key + hit.ref) is not None
        if not single and not chains.is_single(predicate):
            return None
        known = [(h.ref, h.obj) for p, h in self._hits if p.number == part.number]
        chain = chains.holding(chains.members(reader, part, key), self.eye.lens.at)
        known += [(member.ref, member.memory) for member in chain]
        for ref, other in known:
            if not isinstance(other, Memory) or other.triple is None or ref == hit.ref:
                continue
            names = [chains.canonical(reader, part, t) for t in other.triple]
            if names[:2] != [subject, predicate] or names[2] == value:
                continue
            if chains.qualifier(other.triple[2]) != chains.qualifier(memory.triple[2]):
                continue
            sight = self.eye.of(part, ref)
            if sight is None or sight.held is None or sight.held.head is None:
                continue
            rival = self._hit(
                hit.score, part, ref, sight.held.head, 0, {"conflict": hit.score}, hit.confidence
            )
            if rival is not None and rival.truth == CURRENT:
                return rival
        return None

    def _pair(self, part: Part, hit: Hit, rival: Hit) -> None:
        places = {h.id: place for place, (_, h) in enumerate(self._hits)}
        at = places[hit.id]
        self._hits[at] = (part, msgspec.structs.replace(hit, conflict=(rival.id,)))
        there = places.get(rival.id)
        if there is None:
            self._hits.insert(at + 1, (part, msgspec.structs.replace(rival, conflict=(hit.id,))))
        else:
            found = self._hits[there][1]
            self._hits[there] = (part, msgspec.structs.replace(found, conflict=(hit.id,)))


def _age(hit: Hit) -> tuple[bool, int, int]:
    """What orders hits of one line: what holds first, then from the latest to the earliest."""
    return hit.truth == HISTORICAL, -hit.state.starts, -hit.state.first
