"""What follows when a pack forgets something that is here: tombstones, and what was derived.

The pack says itself what became of the memories that it knows.  What was derived here only is
judged as by a forgetting made here: on the store as it was before the batch, carried out after it.

Source: remem-pack(5), MERGING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, forget, memories, refs, tombs
from remem.objects.forget_plan import ERASED, Erasure, Loss, Plan, plan, revisions
from remem.objects.model import Memory

if TYPE_CHECKING:
    from remem.objects.encode import Stored
    from remem.objects.forget_plan import Item
    from remem.objects.pack_read import Change
    from remem.objects.reader import Part
    from remem.objects.tx import Tx


class Burial:
    """The forgetting of one batch."""

    def __init__(self, tx: Tx) -> None:
        """Begin with nothing to forget."""
        self.tx = tx
        self.held: set[bytes] = set()
        self._plan = Plan()
        self._buried: list[Item] = []

    def prepare(self, items: list[Item]) -> None:
        """Work out what forgetting these refs would take here; held ones are named."""
        self._plan = plan(self.tx.reader, items)
        self.held = {asked for _, asked, _ in self._plan.held}

    def bury(self, part: Part, change: Change, time: int, *, lived: bool) -> bytes | None:
        """Set the tombstone of a ref that the pack forgot; what is here must not come back.

        Args:
            part: its partition.
            change: the change that forgets it, which is in the log already.
            time: record time of the change here.
            lived: it was not forgotten here before.

        Returns:
            Key of the chain that lost a fact, or None.
        """
        tx, ref = self.tx, change.ref
        tx.flush()
        here = self._objects(part, ref)
        tombs.bury(tx, part, ref, self.values(part, ref), change.reason)
        tomb = tombs.get(tx.reader, part, ref)
        assert tomb is not None
        purged = None if here else time
        said = msgspec.structs.replace(tomb, time=time, principal=change.principal, purged=purged)
        tombs.put(tx, part, ref, said)
        key = None
        for obj in here:
            if isinstance(obj, Memory):
                key = key or chains.chain_of(tx, part, ref, obj)
                for cited in obj.cites:
                    tx.txn.delete("cites", part.prefix + cited + ref)
        if lived:
            self._buried.append((part, ref))
        return key

    def values(self, part: Part, ref: bytes) -> list[bytes]:
        """Values of the tombstone of a ref, of what there is of it here."""
        here = self._objects(part, ref)
        return tombs.digests(part, [t for obj in here for t in forget.values_of(obj)])

    def carry(self) -> None:
        """Carry what was forgotten to what was derived here, where the pack did not."""
        tx = self.tx
        tx.flush()
        if not self._buried:
            return
        gone = {(part.number, ref) for part, ref in self._buried}
        follows = [one for one in self._plan.erase if (one.part.number, one.ref) not in gone]
        erase = [fresh for one in follows if (fresh := self._fresh(one)) is not None]
        lose = [loss for loss in self._plan.lose if self._still(loss)]
        forget.apply(tx, Plan(erase=erase, lose=lose), reason=forget.FORGOTTEN)
        tx.flush()
        for part, ref in self._buried:
            self._uncite(part, ref)

    def _fresh(self, one: Erasure) -> Erasure | None:
        """What was planned, on the state that the batch left; None when that is done already."""
        state = self.tx.reader.state(one.part, one.ref)
        if state is None or state.status == ERASED or state.flags & refs.HELD:
            return None
        found = revisions(self.tx.reader, one.part, state)
        return msgspec.structs.replace(one, state=state, revisions=found)

    def _still(self, loss: Loss) -> bool:
        state = self.tx.reader.state(loss.part, loss.ref)
        if state is None or state.status == ERASED or state.head is None:
            return False
        head = self.tx.reader.object(loss.part, state.head)
        return isinstance(head, Memory) and set(loss.cites) < set(head.cites)

    def _uncite(self, part: Part, ref: bytes) -> None:
        """Memories that came with the batch and rest on what it forgot."""
        tx = self.tx
        state = tx.reader.state(part, ref)
        found = [] if state is None else revisions(tx.reader, part, state)
        for memory_ref in sorted({m for o, _ in found for m in tx.reader.cited_by(part, o)}):
            now, memory = memories.head(tx, part, memory_ref)
            left = [c for c in memory.cites if tx.reader.erased(part, c) is None]
            if left and len(left) < len(memory.cites):
                new = forget.without(memory, left)
                memories.replace(tx, part, memory_ref, now, new, reason=forget.FORGOTTEN)
            elif not left and not now.flags & refs.HELD:
                forget.forget(tx, part, memory_ref, reason=forget.FORGOTTEN)
            elif not left and refs.STATUSES[now.status] != "orphaned":
                tx.record(
                    part, "orphan", memory_ref, now, status="orphaned", reason=forget.FORGOTTEN
                )
            tx.flush()

    def _objects(self, part: Part, ref: bytes) -> list[Stored]:
        state = self.tx.reader.state(part, ref)
        return [] if state is None else [o for _, o in revisions(self.tx.reader, part, state)]
