"""Tasks: working state under a key, one at a time, with all that it was before.

A task is a memory of the kind ``task`` with the triple (key, ``task_state``, state), in a chain
with one value at a time: setting it replaces what it was, and the history keeps both.  Keys are
compared as names are, so ``Billing`` and ``billing`` are one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, correct, lists, oid, refs, statements
from remem.objects.admit import DEFAULT_LIMIT_B
from remem.objects.errors import BadInput, NotFound
from remem.objects.model import Memory
from remem.objects.reader import Found
from remem.objects.scope import check_name
from remem.objects.views import CURRENT

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from remem.objects.model import Scope
    from remem.objects.reader import Part
    from remem.objects.tx import Tx
    from remem.objects.views import Eye

KIND = "task"
PREDICATE = "task_state"
DONE = "done"  # reason code of the end of a task


class Task(msgspec.Struct, frozen=True):
    """One state of a task as a lens sees it.

    Attributes:
        part: its partition.
        ref: id of the ref.
        state: its state.
        key: as it was given with this state.
        text: the working state.
        truth: "current" or "historical".
    """

    part: Part
    ref: bytes
    state: refs.RefState
    key: str
    text: str
    truth: str


def put(
    tx: Tx, scope: Scope, key: str, text: str, *, limit_b: int = DEFAULT_LIMIT_B
) -> statements.Stated:
    """Set the state of a task; what it was before is kept as history.

    Args:
        tx: the write transaction.
        scope: where it belongs.
        key: name of the task.
        text: its state now.
        limit_b: largest sentence, bytes.

    Raises:
        UsageError: the key cannot be a name.
        BadInput: the text is empty or cannot be taken.
        Blocked: it was forgotten.
    """
    name = check_name("key", " ".join(key.split()))
    if not text.strip():
        raise BadInput("the text is empty", hint="give some text, or '-' to read it from stdin")
    fact = statements.Fact(
        triple=(name, PREDICATE, text), text=f"{name}: {text}", kind=KIND, single=True
    )
    return statements.state(tx, scope, fact, limit_b=limit_b)


def of(eye: Eye, key: str) -> list[Task]:
    """The states of a task that the lens shows, oldest first.

    The view ``now`` shows the one that holds, ``history`` all of them.
    """
    return _shown(eye, [(part, ref) for part in eye.reader.parts for ref in _chain(eye, part, key)])


def every(eye: Eye) -> list[Task]:
    """The states of all tasks that the lens shows, by key and time."""
    items = [
        (part, ref)
        for part in eye.reader.parts
        for ref, _ in lists.members(eye.reader, part, lists.TASK)
    ]
    found = _shown(eye, items)
    found.sort(key=lambda task: (chains.fold(task.key), task.part.number))
    return found


def _chain(eye: Eye, part: Part, key: str) -> list[bytes]:
    """Refs of the states of a task, whatever became of them."""
    place = chains.chain_key(eye.reader, part, (key, PREDICATE, ""), single=True)
    return [row[len(place) :] for row, _ in eye.reader.txn.scan_prefix("chains", place)]


def _shown(eye: Eye, items: Iterable[tuple[Part, bytes]]) -> list[Task]:
    found = []
    for part, ref in items:
        sight = eye.of(part, ref)
        if sight is None or sight.held is None or sight.held.head is None:
            continue
        seen = eye.see(part, ref, sight.held.head)
        memory = eye.reader.object(part, sight.held.head)
        if seen is None or not isinstance(memory, Memory) or memory.kind != KIND:
            continue
        if memory.triple is not None:
            key, _, text = memory.triple
            found.append(Task(part, ref, seen[0], key, text, sight.truth))
    found.sort(key=lambda task: (task.state.starts, task.state.first))
    return found


def finish(tx: Tx, eye: Eye, key: str, *, collections: Collection[str] | None = None) -> Task:
    """End a task; its history is kept.

    Args:
        tx: the write transaction.
        eye: a lens on the present at the transaction's reader.
        key: name of the task.
        collections: only the task of one of these, or None for all of the grant.

    Returns:
        The state in which it ended.

    Raises:
        NotFound: there is none under this key, or it is done already.
    """
    tx.flush()
    current = [
        task
        for task in of(eye, key)
        if task.truth == CURRENT and (collections is None or task.part.collection in collections)
    ]
    if not current:
        raise NotFound(f"no task '{key[:80]}' is open here", hint="'remem task list' shows them")
    for task in current:
        state = tx.reader.state(task.part, task.ref)
        if state is None:
            raise NotFound(f"nothing has the id '{oid.short(task.ref)}'")
        correct.close(tx, Found(task.part, task.ref, state, None), tx.present, reason=DONE)
        tx.flush()
    return current[-1]
