"""Evidence for memories: what says the same as a memory is attached to it.

What says exactly the same, in the voice that the memory rests on already and of the time in which
it held, is attached by rule; so when the memory ends, all that said it goes out of sight with it.
What says nearly the same is proposed, and so are memories that say nearly the same as each other:
one draft for each, for a person to decide on.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from remem.hooks.sleep.duplicates import present
from remem.hooks.sleep.look import CLAIMS, SHOWN, voices
from remem.hooks.sleep.night import Moved
from remem.hooks.sleep.sameness import Shelf, contradict, stems
from remem.objects import chains, drafts, evidence, memories, refs, tiers
from remem.objects.errors import BadInput, NotFound, Refused
from remem.objects.model import Deriver, Memory, Observation
from remem.objects.scope import CONSOLIDATION

if TYPE_CHECKING:
    from remem.hooks.sleep.look import Row, View
    from remem.hooks.sleep.night import Night
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

ATTACHED = "attached"  # names of the counts
PROPOSED = "proposed"
MAKER = Deriver(CONSOLIDATION, 1)
MOST_WAITING = 200  # what waits for review in a partition: beyond it nothing more is proposed
MOST_CITES = 16  # evidence in one proposal


# -- exactly ------------------------------------------------------------------------------------


def attach(night: Night, part: Part, view: View) -> None:
    """Attach what says exactly the same as a memory."""
    claims: dict[bytes, list[Row]] = {}
    for row in (*view.claims, *view.ended):
        claims.setdefault(row.key, []).append(row)
    if not claims:
        return
    for row in view.evidence:
        for claim in claims.get(row.key, ()):
            if night.over:
                return
            if _in_time(row, claim) and night.do(
                lambda tx, r=row, c=claim: _attach(tx, part, c, r)  # type: ignore[misc]
            ):
                night.count(ATTACHED)


def _in_time(row: Row, claim: Row) -> bool:
    """Whether something was said of the time in which a memory held."""
    begun = claim.given is None or claim.given <= row.starts
    return begun and (claim.ends is None or row.starts < claim.ends)


def _attach(tx: Tx, part: Part, claim: Row, row: Row) -> bool:
    present(tx, part, row)
    state, memory = memories.head(tx, part, claim.ref)
    if state.status not in SHOWN or (state.valid_to, state.replaced_by) != (claim.ends, claim.by):
        raise Moved
    told = tx.reader.object(part, row.head)
    if row.head in memory.cites or len(memory.cites) >= chains.MAX_CITES:
        raise Moved
    if not isinstance(told, Observation) or row.voice not in voices(tx.reader, part, memory):
        raise Moved
    if _cites_revision_of(tx.reader, part, memory, row.ref):
        raise Moved
    grown = memories.with_cites(memory, [*memory.cites, row.head])
    if memory.triple is not None and row.starts > chains.begins(tx.reader, part, claim.ref, state):
        pairs = [[c.hex(), at] for c, at in (*evidence.repeats(memory), (row.head, row.starts))]
        grown = msgspec.structs.replace(grown, meta={**memory.meta, evidence.REPEATS: pairs})
    memories.replace(
        tx, part, claim.ref, state, grown, reason=memories.EVIDENCE, expected=state.head
    )
    tiers.keep_cited(tx, part, row.head, refs.STATUSES[state.status])
    return True


def _cites_revision_of(reader: Reader, part: Part, memory: Memory, ref: bytes) -> bool:
    return any(reader.ref_of(part, cited) == ref for cited in memory.cites)


# -- nearly -------------------------------------------------------------------------------------


def propose(night: Night, part: Part, view: View) -> None:
    """Propose what to make of memories that say nearly the same, and of evidence for them."""
    with night.store.read(night.actor.grant) as reader:
        texts = _texts(reader, part, view.claims)
        shelf = Shelf((number, stems(text)) for number, text in texts.items())
        pairs = _near_pairs(view.claims, texts, shelf)
        found = _near_evidence(night, reader, part, view, texts, shelf)
    retired = {gone for _, gone in pairs}
    for keep, gone in pairs:
        _offer(
            night,
            part,
            drafts.Proposal(
                action="retire-duplicate",
                target=view.claims[gone].ref,
                seen=view.claims[gone].head,
                into=view.claims[keep].ref,
                reason="near-duplicate",
            ),
        )
    for number, rows in sorted(found.items(), key=lambda one: view.claims[one[0]].first):
        if number not in retired:
            cites = [row.head for row in sorted(rows, key=lambda row: row.first)[:MOST_CITES]]
            claim = view.claims[number]
            _offer(
                night,
                part,
                drafts.Proposal(action="attach", target=claim.ref, seen=claim.head, cites=cites),
            )


def _texts(reader: Reader, part: Part, claims: list[Row]) -> dict[int, str]:
    """Texts of memories by their place."""
    found = {}
    for number, row in enumerate(claims):
        if row.kind in CLAIMS and reader.object_bytes(part, row.head) is not None:
            found[number] = reader.object(part, row.head).text
    return found


def _near_pairs(claims: list[Row], texts: dict[int, str], shelf: Shelf) -> list[tuple[int, int]]:
    """(what would stay, what would go); nothing goes twice, and nothing goes that stays."""
    pairs: list[tuple[int, int]] = []
    gone: set[int] = set()
    stays: set[int] = set()
    order = sorted(texts, key=lambda n: (claims[n].rank, -len(stems(texts[n])), claims[n].first))
    place = {number: at for at, number in enumerate(order)}
    for number in order:
        if number in gone:
            continue
        for other, _ in shelf.like(stems(texts[number])):
            mine, theirs = claims[number], claims[other]
            if place[other] <= place[number] or other in gone or other in stays or theirs.marked:
                continue
            if mine.kind != theirs.kind or mine.key == theirs.key:
                continue
            if not contradict(texts[number], texts[other]):
                pairs.append((number, other))
                gone.add(other)
                stays.add(number)
    return pairs


def _near_evidence(
    night: Night,
    reader: Reader,
    part: Part,
    view: View,
    texts: dict[int, str],
    shelf: Shelf,
) -> dict[int, list[Row]]:
    """Evidence that says nearly what a memory says, by the place of the memory."""
    found: dict[int, list[Row]] = {}
    if not texts:
        return found
    cited = {
        (number, c) for number in texts for c in _cites(reader, part, view.claims[number].head)
    }
    for row in view.evidence:
        if night.over:
            break
        if reader.object_bytes(part, row.head) is None:
            continue
        said = reader.object(part, row.head).text
        for number, _ in shelf.like(stems(said)):
            claim = view.claims[number]
            if (number, row.head) in cited or not _in_time(row, claim) or claim.key == row.key:
                continue
            if not contradict(said, texts[number]):
                found.setdefault(number, []).append(row)
                break  # the nearest one
    return found


def _cites(reader: Reader, part: Part, head: bytes) -> list[bytes]:
    obj = reader.object(part, head)
    return obj.cites if isinstance(obj, Memory) else []


# -- proposing ----------------------------------------------------------------------------------


def _offer(night: Night, part: Part, proposal: drafts.Proposal) -> None:
    """Propose one thing, unless it is known or too much waits already."""
    if night.over or not room(night, part):
        return
    if offer(night, part, proposal):
        night.count(PROPOSED)


def room(night: Night, part: Part) -> bool:
    """Whether a reviewer can be asked for more; notes where not."""
    with night.store.read(night.actor.grant) as reader:
        rows = reader.txn.scan_prefix("waits", part.prefix)
        waiting = sum(1 for _ in islice(rows, MOST_WAITING))
    if waiting < MOST_WAITING:
        return True
    night.note(
        f"{MOST_WAITING} or more wait for review in '{part.collection}': nothing is proposed"
    )
    return False


def offer(night: Night, part: Part, proposal: drafts.Proposal) -> bool:
    """Make a draft of one operation; False when it is known, or something stands in its way."""

    def change(tx: Tx) -> bool:
        scope = msgspec.structs.replace(night.scope, collection=part.collection)
        if proposal.memory is not None:
            scope = proposal.memory.scope
        try:
            made = drafts.propose(tx, scope, [proposal], deriver=MAKER)
        except (Refused, NotFound) as error:
            raise Moved from error  # replaced, closed or forgotten meanwhile
        except BadInput as error:
            night.note(f"'{proposal.action}' could not be proposed: {error}")
            raise Moved from error
        if made.ref is None:
            raise Moved  # nothing was written
        return True

    return bool(night.do(change))
