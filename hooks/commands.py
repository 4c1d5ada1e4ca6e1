"""One command, told twice: by the hook of a shell and by a history that is imported.

The hook names a command by its session and its place in it, a history by its second and its words
(`remem.hooks.sources._history`).  What the hook tells gets the second name as well, so that a
history tells nothing new of it; and what a history told already is not taken from the hook again.
Both are looked for in every collection that the writer may write to: the hook knows where a command
ran, most histories do not.

Where the two clocks disagree about the second, or a history has no times, both are kept.

Source: remem-store(5), sources.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from remem.hooks.sources._history import KIND, URI, command_id
from remem.objects import refs
from remem.objects.model import Observation

if TYPE_CHECKING:
    from remem.objects.model import Incoming
    from remem.objects.reader import Part
    from remem.objects.tx import Tx

MOST = 64  # equal commands of one second that are told apart
_GONE = frozenset(refs.STATUS_CODE[s] for s in ("erased", "rejected", "expired"))


def is_told(tx: Tx, record: Incoming) -> bool:
    """Whether a command of a history is there already, in whichever collection.

    Args:
        tx: the write transaction.
        record: what a reader of histories made; anything else is not looked at.
    """
    if record.kind != KIND or record.source_uri != URI or not record.source_id:
        return False
    return any(_ref(tx, part, record.source_id) is not None for part in tx.reader.parts)


def give_name(tx: Tx, record: Incoming, name: str, ref: bytes) -> None:
    """Give a command that a hook told of, and that is now kept, the name that `look` found."""
    if not name:
        return
    place = tx.place(record.collection, record.agent, record.session)
    part = tx.part(place)
    key = _key(part, name)
    if tx.txn.get("sources", key) is None:
        tx.txn.put("sources", key, ref)


def look(tx: Tx, record: Incoming) -> tuple[str, bool]:
    """Look for the command that a hook tells of among what histories told.

    Returns:
        (the first name that no other command has, "" for none; whether a history told of it).
    """
    if record.asserted is None:
        return "", False
    for nth in range(MOST):
        name = command_id(record.asserted, record.text, nth)
        taken = False
        for part in tx.reader.parts:
            ref = _ref(tx, part, name)
            if ref is None:
                continue
            taken = True
            obj = tx.reader.object(part, ref)
            source = obj.source if isinstance(obj, Observation) else None
            if source is not None and source.uri == URI:
                return name, True
        if not taken:
            return name, False
    return "", False


def _ref(tx: Tx, part: Part, name: str) -> bytes | None:
    """The ref of a name, if it can be seen."""
    ref = tx.txn.get("sources", _key(part, name))
    state = None if ref is None else tx.reader.state(part, ref)
    return ref if state is not None and state.status not in _GONE else None


@lru_cache(4)  # it is looked up, and then given
def _key(part: Part, name: str) -> bytes:
    return part.source_key(URI, name)
