"""Other names of things: "Annie" stands for "Ann Lee".

Facts of both names then lie in the same chains; adding or removing an alias moves and relinks those
that it concerns.  Only the owner says what a name stands for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains
from remem.objects.errors import BadInput, NotFound, Refused, ScopeRefused
from remem.objects.links import mark_of
from remem.objects.model import Memory

if TYPE_CHECKING:
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

    Row = tuple[bytes, bytes, Memory, bool]  # key of the chain, ref, head, one value at a time

MAX_NAME_B = 500

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, str]).decode


def all_of(reader: Reader, part: Part) -> list[tuple[str, str]]:
    """(name, the name that it stands for) of a partition, by name.

    Names belong to the whole partition and may be of anything in it, so who sees one agent or one
    session of it is told of none.
    """
    if not reader.grant.owner and (reader.grant.agent, reader.grant.session) != (None, None):
        return []
    rows = reader.txn.scan_prefix("aliases", part.prefix)
    return sorted((_decode(data) for _, data in rows), key=lambda row: chains.fold(row[0]))


def add(tx: Tx, part: Part, name: str, stands: str) -> str:
    """Let a name stand for another one, in place of what it stood for before.

    Returns:
        "new", or "known" when it did already.

    Raises:
        ScopeRefused: only the owner does so.
        BadInput: a name is empty or too long.
        Refused: the other name stands for this one.
    """
    _check_owner(tx, part)
    for one in (name, stands):
        if not chains.fold(one) or len(one.encode("utf-8", "surrogatepass")) > MAX_NAME_B:
            raise BadInput(f"'{one[:60]}' cannot be a name: it is empty or too long")
    if chains.canonical(tx.reader, part, stands) == chains.fold(name):
        raise Refused(f"'{stands}' stands for '{name}' itself")
    key = chains.alias_key(part, name)
    data = tx.txn.get("aliases", key)
    if data is not None and chains.fold(_decode(data)[1]) == chains.fold(stands):
        return "known"
    rows = _rows(tx, part)
    tx.txn.put("aliases", key, _encode((name, stands)))
    _move(tx, part, rows)
    tx.refuse("alias", "done", part.number, None)
    return "new"


def remove(tx: Tx, part: Part, name: str) -> None:
    """Let a name stand for itself again.

    Raises:
        ScopeRefused: only the owner does so.
        NotFound: it is no alias.
    """
    _check_owner(tx, part)
    key = chains.alias_key(part, name)
    if tx.txn.get("aliases", key) is None:
        raise NotFound(f"'{name}' stands for nothing else", hint="'remem alias list' shows all")
    rows = _rows(tx, part)
    tx.txn.delete("aliases", key)
    _move(tx, part, rows)
    tx.refuse("alias", "removed", part.number, None)


def _check_owner(tx: Tx, part: Part) -> None:
    grant = tx.actor.grant
    if not grant.owner:
        raise ScopeRefused(f"'{grant.principal}' may not name things").audited(
            "alias", "not_owner", part.number, None
        )


def _rows(tx: Tx, part: Part) -> list[Row]:
    """Every fact of a chain, with its key as it is now."""
    found = []
    for key, _ in tx.txn.scan_prefix("chains", part.prefix):
        ref = key[20:]
        state = tx.reader.state(part, ref)
        if state is None or state.head is None or tx.reader.erased(part, ref) is not None:
            continue  # what waits for a purge cannot be read and needs no place
        memory = tx.reader.object(part, state.head)
        if not isinstance(memory, Memory) or memory.triple is None:
            continue
        single = chains.chain_key(tx.reader, part, memory.triple, single=True)
        found.append((key[:20], ref, memory, key[:20] == single))
    return found


def _move(tx: Tx, part: Part, rows: list[Row]) -> None:
    """Put facts under the keys that they have by the names as they are now, and relink."""
    changed: dict[bytes, None] = {}
    for key, ref, memory, single in rows:
        assert memory.triple is not None
        new = chains.chain_key(tx.reader, part, memory.triple, single=single)
        if new != key:
            tx.txn.delete("chains", key + ref)
            tx.txn.put("chains", new + ref, mark_of(memory))
            changed[key] = changed[new] = None
    for key in changed:
        chains.relink(tx, part, key)
