"""What a forgetting takes: worked out on any snapshot, changing nothing.

With evidence goes what was derived from nothing else.  A memory that rests on other evidence too
loses a citation and stays, unless its words give away what only the forgotten evidence says: then
it goes as well, and is derived anew from what is left.  A fact that a person stated and the
sentence that stated it are one: with the fact goes the sentence.

Earlier revisions count: a memory one of whose revisions was drawn from what goes is judged by that
one too, since its bytes would stay.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, memories, oid, refs
from remem.objects.derive.outline import ID_END
from remem.objects.encode import Obj
from remem.objects.errors import NotFound
from remem.objects.model import Draft, Memory, Observation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.encode import Stored
    from remem.objects.reader import Part, Reader

    Key = tuple[int, bytes]  # number of a partition, ref
    Item = tuple[Part, bytes]

STATEMENT = "statement"  # kind of the evidence that stating a fact makes
COMMIT = "commit"  # kind of the evidence that a commit is
MIN_WORD = 5  # letters of a word that may give something away; with a digit any number
ERASED = refs.STATUS_CODE["erased"]
PENDING = refs.STATUS_CODE["pending"]
_WORD = re.compile(r"[^\W_]+")
_SPACELESS = re.compile("[\u0e00-\u0eff\u2e80-\u9fff\uac00-\ud7af]")


class Erasure(msgspec.Struct):
    """One ref that goes.

    Attributes:
        revisions: (id, object) of each revision whose bytes are there.
        texts: what must not come back, or None for all that it says.
        again: observations from which its deriver makes it anew.
    """

    part: Part
    ref: bytes
    state: refs.RefState
    revisions: list[tuple[bytes, Stored]]
    texts: list[str] | None = None
    again: list[bytes] = []


class Loss(msgspec.Struct):
    """One memory that stays without some of its evidence."""

    part: Part
    ref: bytes
    cites: list[bytes]


class Plan(msgspec.Struct):
    """What a forgetting takes.

    Attributes:
        erase: refs that go.
        lose: memories that lose a citation.
        held: (partition, ref asked for, ref whose hold keeps it).
        known: refs that were forgotten before.
    """

    erase: list[Erasure] = []
    lose: list[Loss] = []
    held: list[tuple[Part, bytes, bytes]] = []
    known: list[Item] = []


def plan(reader: Reader, items: Iterable[Item]) -> Plan:
    """Work out what forgetting these refs takes.

    Raises:
        NotFound: one of them is not there.
    """
    done = Plan()
    seeds: dict[Key, Erasure] = {}
    asked_for = list(items)
    for part, ref in (*asked_for, *_proposed(reader, asked_for), *_outlines(reader, asked_for)):
        if (part.number, ref) in seeds:
            continue
        state = reader.state(part, ref)
        if state is None:
            raise NotFound(f"nothing has the id '{oid.short(ref)}'")
        if state.status == ERASED:
            done.known.append((part, ref))
        elif state.flags & refs.HELD:
            done.held.append((part, ref, ref))
        else:
            seeds[part.number, ref] = Erasure(part, ref, state, revisions(reader, part, state))
    look = _Look(reader)
    told = look.statements(seeds)
    while True:
        with_them = {
            (part.number, one.ref): one
            for (part, memory), found in told.items()
            if (part.number, memory) in seeds
            for one in found
        }
        taken, lost, blocked = look.consequences({**seeds, **with_them})
        for (part, memory), found in told.items():
            for one in found:
                holder = one.ref if one.state.flags & refs.HELD else None
                holder = blocked.get((part.number, one.ref), holder)
                if holder is not None:
                    blocked[part.number, memory] = holder
        kept = [asked for asked in seeds if asked in blocked]
        if not kept:
            done.erase = [*seeds.values(), *with_them.values(), *taken]
            done.lose = lost
            return done
        for asked in kept:
            seed = seeds.pop(asked)
            done.held.append((seed.part, seed.ref, blocked[asked]))


def _outlines(reader: Reader, items: Iterable[Item]) -> list[Item]:
    """What the commits among these changed: it came with them, and goes with them."""
    found = []
    for part, ref in items:
        state = reader.state(part, ref)
        if state is None or state.type != refs.OBSERVATION or state.status == ERASED:
            continue
        obj = None if state.head is None else reader.object(part, state.head)
        if not isinstance(obj, Observation) or obj.kind != COMMIT or obj.source is None:
            continue
        key = part.source_key(obj.source.uri, obj.source.id + ID_END)
        outline = reader.txn.get("sources", key)
        told = None if outline is None else reader.state(part, outline)
        if outline is not None and told is not None and told.status != ERASED:
            found.append((part, outline))
    return found


def _proposed(reader: Reader, items: Iterable[Item]) -> list[Item]:
    """What the drafts among these propose and nobody has decided on: it goes with them."""
    found = []
    for part, ref in items:
        state = reader.state(part, ref)
        if state is None or state.type != refs.DRAFT or state.status == ERASED:
            continue
        draft = reader.bookkeeping(part, state.head) if state.head is not None else None
        for op in draft.operations if isinstance(draft, Draft) else ():
            claim = None if op.proposed is None else reader.state(part, op.proposed)
            if claim is not None and claim.status == PENDING and op.proposed is not None:
                found.append((part, op.proposed))
    return found


class _Look:
    """Refs, revisions and citations as one plan sees them."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._states: dict[Key, Erasure | None] = {}
        self._earlier: dict[int, dict[bytes, set[bytes]]] = {}

    def of(self, part: Part, ref: bytes) -> Erasure | None:
        """A ref with its revisions, or None when it is gone already."""
        key = (part.number, ref)
        if key not in self._states:
            state = self.reader.state(part, ref)
            there = state is not None and state.status != ERASED
            self._states[key] = (
                Erasure(part, ref, state, revisions(self.reader, part, state))
                if state is not None and there
                else None
            )
        return self._states[key]

    def statements(self, seeds: dict[Key, Erasure]) -> dict[tuple[Part, bytes], list[Erasure]]:
        """For each stated memory among these the sentences that nothing else is drawn from."""
        told: dict[tuple[Part, bytes], list[Erasure]] = {}
        for (number, ref), seed in seeds.items():
            for cited in _stated_on(seed):
                found = self.of(seed.part, self.reader.ref_of(seed.part, cited))
                if found is None or (number, found.ref) in seeds:
                    continue
                if any(getattr(obj, "kind", "") != STATEMENT for _, obj in found.revisions):
                    continue
                others = {
                    (number, memory)
                    for object_id, _ in found.revisions
                    for memory in self.reader.cited_by(seed.part, object_id)
                }
                if others <= seeds.keys():
                    told.setdefault((seed.part, ref), []).append(found)
        return told

    def consequences(
        self, went: dict[Key, Erasure]
    ) -> tuple[list[Erasure], list[Loss], dict[Key, bytes]]:
        """Memories that go too, those that lose a citation, and seeds that a hold keeps."""
        gone: dict[int, dict[bytes, tuple[bytes, Stored]]] = {}
        for (number, ref), one in went.items():
            if one.state.type == refs.OBSERVATION:
                own = gone.setdefault(number, {})
                own.update({object_id: (ref, obj) for object_id, obj in one.revisions})
        taken: list[Erasure] = []
        lost: list[Loss] = []
        blocked: dict[Key, bytes] = {}
        for number, objects in gone.items():
            part = self.reader.part(number)
            for memory in self._citing(part, objects):
                if (number, memory) in went:
                    continue
                found = self.of(part, memory)
                if found is None or found.state.type != refs.MEMORY:
                    continue
                verdict = self._judge(found, objects)
                if isinstance(verdict, Loss):
                    lost.append(verdict)
                elif verdict is not None and found.state.flags & refs.HELD:
                    for _, obj in found.revisions:
                        for cited in obj.cites if isinstance(obj, Memory) else ():
                            if cited in objects:
                                blocked[number, objects[cited][0]] = memory
                elif verdict is not None:
                    taken.append(verdict)
        return taken, lost, blocked

    def _citing(self, part: Part, objects: dict[bytes, tuple[bytes, Stored]]) -> list[bytes]:
        """Refs of the memories of which some revision cites one of these observations."""
        found: dict[bytes, None] = {}
        earlier = self._earlier_citations(part)
        for object_id in objects:
            found.update(dict.fromkeys(self.reader.cited_by(part, object_id)))
            found.update(dict.fromkeys(sorted(earlier.get(object_id, ()))))
        return list(found)

    def _earlier_citations(self, part: Part) -> dict[bytes, set[bytes]]:
        """Observation -> refs of memories whose earlier revisions cite it."""
        if part.number not in self._earlier:
            found: dict[bytes, set[bytes]] = {}
            rows = self.reader.txn.scan_prefix("revs", part.prefix)
            for ref in {bytes(ref) for _, ref in rows}:
                state = self.reader.state(part, ref)
                if state is None or state.type != refs.MEMORY or state.status == ERASED:
                    continue
                memory = self.of(part, ref)
                for object_id, obj in memory.revisions if memory is not None else ():
                    if isinstance(obj, Memory) and object_id != state.head:
                        for cited in obj.cites:
                            found.setdefault(cited, set()).add(ref)
            self._earlier[part.number] = found
        return self._earlier[part.number]

    def _judge(
        self, found: Erasure, gone: dict[bytes, tuple[bytes, Stored]]
    ) -> Erasure | Loss | None:
        """What becomes of a memory when these observations go."""
        part, state = found.part, found.state
        head = next((obj for object_id, obj in found.revisions if object_id == state.head), None)
        if not isinstance(head, Memory):
            return None
        left = [
            cited
            for cited in head.cites
            if cited not in gone and self.reader.erased(part, cited) is None
        ]
        if not left:
            return found
        cited_of = _cited_of(found, gone)
        said = {w for obj in cited_of if isinstance(obj, Obj) for w in words(obj.text)}
        kept = {w for part_of in head.triple or () for w in words(part_of)}
        for cited in left:
            data = self.reader.object_bytes(part, cited)
            if data is not None:
                kept |= words(encode.decode(data).text)
        betrayed = said - kept
        texts = {obj.text for _, obj in found.revisions if isinstance(obj, Memory)}
        leaks = sorted(text for text in texts if words(text) & betrayed)
        if leaks:
            again = left if head.deriver.name != memories.STATED else []
            return msgspec.structs.replace(found, texts=leaks, again=again)
        return None if len(left) == len(head.cites) else Loss(part, found.ref, left)


def words(text: str) -> set[str]:
    """The words of a text that may give it away: long ones, and those with a digit."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    found: set[str] = set()
    for word in _WORD.findall(folded):
        if _SPACELESS.search(word):
            found.update(word[i : i + 2] for i in range(len(word) - 1))
        elif len(word) >= MIN_WORD or any(c.isdigit() for c in word):
            found.add(word)
    return found


def _stated_on(seed: Erasure) -> list[bytes]:
    """What the revisions of a stated memory cite."""
    found: dict[bytes, None] = {}
    for _, obj in seed.revisions:
        if isinstance(obj, Memory) and obj.deriver.name == memories.STATED:
            found.update(dict.fromkeys(obj.cites))
    return list(found)


def _cited_of(found: Erasure, gone: dict[bytes, tuple[bytes, Stored]]) -> list[Stored]:
    """Those of the observations that go which some revision of a memory cites."""
    return [
        gone[cited][1]
        for _, obj in found.revisions
        if isinstance(obj, Memory)
        for cited in obj.cites
        if cited in gone
    ]


def revisions(reader: Reader, part: Part, state: refs.RefState) -> list[tuple[bytes, Stored]]:
    """(id, object) of every revision of a ref whose bytes are there, forgotten or not."""
    found: dict[bytes, Stored] = {}
    seen: set[bytes] = set()
    for entry in reader.entries(part, state):
        for object_id in (entry.new, entry.old):
            if object_id is not None and object_id not in seen:
                seen.add(object_id)
                data = reader.txn.get("objects", part.prefix + object_id)
                if data is not None:
                    found[object_id] = encode.read(data)
    return list(found.items())
