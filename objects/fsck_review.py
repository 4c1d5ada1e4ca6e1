"""Checks of what waits: drafts, and the tables ``waits``, ``refused`` and ``proposed``.

Each of the three follows from the refs and the objects, and is compared with them both ways.

Source: remem-store(5), TABLES and VERIFYING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import draft_rows, encode, refs, withheld
from remem.objects.errors import RememError
from remem.objects.fsck_log import ERASED
from remem.objects.model import DRAFT_ACTIONS, VERDICTS, Draft, Memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.findings import Findings
    from remem.objects.kv import Txn
    from remem.objects.reader import Part

_HELD = frozenset((withheld.QUARANTINED, withheld.REJECTED))


def check_review(txn: Txn, found: Findings, parts: dict[int, Part]) -> None:
    """Compare drafts and the tables of what waits with the refs."""
    waits = 0
    held: list[tuple[Part, bytes, refs.RefState]] = []
    for key, data in txn.scan("refs"):
        state = _decoded(data)
        if state is None or int.from_bytes(key[:4], "big") not in parts:
            continue  # named already
        if state.status in withheld.WAITING:
            waits += 1
            _check_since(txn, found, key, state)
        if state.status in _HELD and state.type <= refs.MEMORY:
            held.append((parts[int.from_bytes(key[:4], "big")], key[4:], state))
        if state.type == refs.DRAFT and state.status != ERASED and state.head is not None:
            _check_draft(txn, found, key[:4], key[4:], state.head)
    if waits != txn.count("waits"):
        for key, _ in txn.scan("waits"):
            state = _decoded(txn.get("refs", key))
            if state is None or state.status not in withheld.WAITING:
                found.problem(f"waits {key[4:].hex()}", "no ref of that id waits")
    _check_refused(txn, found, parts, held)
    named: dict[bytes, set[bytes] | None] = {}  # draft -> what it rests on, None where unknown
    for key, _ in txn.scan("proposed"):
        where = f"proposed {key[4:36].hex()} {key[36:].hex()}"
        draft = key[:4] + key[36:]
        state = _decoded(txn.get("refs", draft))
        if state is None or state.type != refs.DRAFT or state.status == ERASED:
            found.problem(where, "no draft of that id is there")
            continue
        if draft not in named:
            named[draft] = _rested_on(txn, key[:4], state)
        ids = named[draft]
        if ids is not None and key[4:36] not in ids:
            found.problem(where, "the draft does not rest on that")


def _rested_on(txn: Txn, prefix: bytes, state: refs.RefState) -> set[bytes] | None:
    """Ids that a draft rests on or did so before, None where some of it is gone."""
    ids: set[bytes] = set()
    for draft in _heads(txn, prefix, state):
        if not isinstance(draft, Draft):
            return None
        ids |= draft_rows.named(draft)
        for op in draft.operations:
            claim = None if op.proposed is None else _decoded(txn.get("refs", prefix + op.proposed))
            for memory in () if claim is None else _heads(txn, prefix, claim):
                if not isinstance(memory, Memory):
                    return None
                ids.update(memory.cites)
    return ids


def _heads(txn: Txn, prefix: bytes, state: refs.RefState) -> Iterator[encode.Stored | None]:
    """Every object that was a head of a ref; None for one that cannot be read."""
    for entry in _entries(txn, prefix, state.last):
        if entry.new is None or entry.new == entry.old:
            continue
        data = txn.get("objects", prefix + entry.new)
        try:
            yield None if data is None else encode.read(data)
        except RememError:
            yield None  # named already


def _check_since(txn: Txn, found: Findings, key: bytes, state: refs.RefState) -> None:
    """Check that the row of what waits is there, and tells since when."""
    where = f"waits {key[4:].hex()}"
    data = txn.get("waits", key)
    if data is None:
        found.problem(where, "it is missing, the ref waits")
        return
    since = None
    for entry in _entries(txn, key[:4], state.last):
        if entry.status not in withheld.WAITING:
            break
        since = entry.time
    if since is not None and data != since.to_bytes(8, "big", signed=True):
        found.problem(where, "its time is not that of the entry since which the ref waits")


def _check_refused(
    txn: Txn,
    found: Findings,
    parts: dict[int, Part],
    held: list[tuple[Part, bytes, refs.RefState]],
) -> None:
    """Compare the values that are held back with the refs that were, for what they say."""
    wanted: dict[bytes, set[bytes]] = {}  # value -> refs that hold it back
    let_out: set[bytes] = set()
    for part, ref, state in held:
        holds, gone = _values_of(txn, part, state)
        let_out |= gone
        for value in holds:
            wanted.setdefault(value, set()).add(ref)
    for value, ref in txn.scan("refused"):
        if ref not in wanted.pop(value, ()):
            now = _decoded(txn.get("refs", value[:4] + ref))
            is_held = now is not None and now.status in _HELD
            why = "does not say that" if is_held else "is neither quarantined nor rejected"
            found.problem(f"refused {value[4:].hex()}", f"ref {ref.hex()} {why}")
    if wanted:
        let_out |= _let_out(txn, parts)
    for value in sorted(wanted.keys() - let_out):
        ref = min(wanted[value])
        found.problem(f"refused {value[4:].hex()}", f"it is missing, ref {ref.hex()} says that")


def _values_of(txn: Txn, part: Part, state: refs.RefState) -> tuple[set[bytes], set[bytes]]:
    """(values that a ref holds back, values that it let out), as `withheld.follow` keeps them."""
    holds: set[bytes] = set()
    gone: set[bytes] = set()
    before: int | None = None
    for entry in reversed(list(_entries(txn, part.prefix, state.last))):
        if entry.status == withheld.QUARANTINED or withheld.is_verdict(entry):
            holds.update(withheld.values(txn, part, entry.new))
        elif entry.status != withheld.REJECTED and before in withheld.FOLLOWED:
            gone |= holds
            holds = set()
        before = entry.status
    return holds, gone


def _let_out(txn: Txn, parts: dict[int, Part]) -> set[bytes]:
    """Values that a ref held back once and does not any more: another ref may say them still."""
    found: set[bytes] = set()
    for key, data in txn.scan("refs"):
        past, part = _decoded(data), parts.get(int.from_bytes(key[:4], "big"))
        if past is not None and part is not None and past.type <= refs.MEMORY:
            found |= _values_of(txn, part, past)[1]
    return found


def _entries(txn: Txn, prefix: bytes, seq: int) -> Iterator[refs.Entry]:
    """Entries of a ref, newest first, as far as they can be read and lead back."""
    while seq:
        data = txn.get("log", prefix + seq.to_bytes(8, "big"))
        try:
            entry = None if data is None else refs.decode_entry(data)
        except msgspec.MsgspecError:
            entry = None
        if entry is None:
            return  # named already
        yield entry
        seq = entry.prev if entry.prev < seq else 0


def _check_draft(txn: Txn, found: Findings, prefix: bytes, ref: bytes, head: bytes) -> None:
    """Check the operations of a draft, and that what they name leads to it."""
    data = txn.get("objects", prefix + head)
    try:
        draft = None if data is None else encode.read(data)
    except RememError:
        return  # named already
    if not isinstance(draft, Draft):
        return
    numbers = [op.number for op in draft.operations]
    if numbers != sorted(set(numbers)) or not numbers:
        found.bad_object(head, "its operations are not numbered in order")
    for op in draft.operations:
        if op.action not in DRAFT_ACTIONS or op.verdict not in VERDICTS:
            found.bad_object(head, f"its operation {op.number} is of no known kind or verdict")
        for named in (op.proposed, op.target, op.into):
            if named is not None and txn.get("refs", prefix + named) is None:
                what = f"its operation {op.number} names {named.hex()}, which is no ref"
                found.bad_object(head, what)
        for cited in op.cites:
            if not _was_there(txn, prefix, cited):
                what = f"its operation {op.number} cites {cited.hex()}, which is not there"
                found.bad_object(head, what)
    for one in draft_rows.rests_on(txn, prefix, *draft.operations):
        if txn.get("proposed", prefix + one + ref) is None:
            where = f"proposed {one.hex()} {ref.hex()}"
            found.problem(where, "it is missing, the draft names that id")


def _was_there(txn: Txn, prefix: bytes, object_id: bytes) -> bool:
    if txn.get("objects", prefix + object_id) is not None:
        return True
    ref = txn.get("revs", prefix + object_id) or object_id
    return txn.get("refs", prefix + ref) is not None


def _decoded(data: bytes | None) -> refs.RefState | None:
    try:
        return None if data is None else refs.decode_state(data)
    except msgspec.MsgspecError:
        return None
