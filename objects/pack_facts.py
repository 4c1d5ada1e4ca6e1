"""What a pack says beside the ref log: which facts form a chain, and other names of things.

Chains and aliases lie in rows of their own, under keyed digests that mean nothing elsewhere.  A
pack says of a fact whether its chain takes one value at a time, and spells aliases out; the rows
are made anew where it is taken in.

Source: remem-pack(5), MERGING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, refs
from remem.objects.attests import ALIASES, of_aliases
from remem.objects.links import THERE, mark_of
from remem.objects.model import Memory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.encode import Obj
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

_ERASED = refs.STATUS_CODE["erased"]
MODES = ("single", "multi")
_decode_alias = msgspec.msgpack.Decoder(tuple[str, str]).decode
_encode_alias = msgspec.msgpack.Encoder().encode


def mode_of(reader: Reader, part: Part, ref: bytes, obj: Obj) -> str:
    """How the chain of a fact takes values ("single", "multi"), "" when it is in none."""
    if isinstance(obj, Memory) and obj.triple is not None:
        for mode, key in zip(MODES, chains.keys_of(reader, part, obj.triple), strict=True):
            if reader.txn.get("chains", key + ref) is not None:
                return mode
    return ""


def is_fact(obj: Obj | None) -> bool:
    """Whether an object has a place in a chain."""
    return isinstance(obj, Memory) and obj.triple is not None


def join(tx: Tx, part: Part, ref: bytes, obj: Obj, mode: str) -> bytes | None:
    """Add a fact to its chain without linking it; the key of the chain, None for no fact."""
    if not mode or not isinstance(obj, Memory) or obj.triple is None:
        return None
    key = chains.chain_key(tx.reader, part, obj.triple, single=mode == "single")
    tx.txn.put("chains", key + ref, mark_of(obj))
    return key


def key_of(tx: Tx, part: Part, ref: bytes) -> bytes | None:
    """Key of the chain that holds a ref, or None."""
    state = tx.reader.state(part, ref)
    if state is None or state.head is None or not tx.reader.object_bytes(part, state.head):
        return None
    obj = tx.reader.object(part, state.head)
    return chains.chain_of(tx, part, ref, obj) if isinstance(obj, Memory) else None


def is_mixed(tx: Tx, part: Part, key: bytes, brought: Iterable[set[bytes]]) -> bool:
    """Whether a chain holds a fact that the pack did not bring, or that was changed here.

    A chain that came whole, and of which nothing is set apart here, is linked by its own changes,
    any other one anew.
    """
    tx.flush()
    for row, _ in tx.txn.scan_prefix("chains", key):
        ref = row[len(key) :]
        state = tx.reader.state(part, ref)
        if state is None:
            continue
        if not any(ref in facts for facts in brought):
            return True
        for entry in tx.reader.entries(part, state):
            if entry.origin is None or _is_set_apart(entry.origin.status, entry.status):
                return True
    return False


def _is_set_apart(stated: int, status: int) -> bool:
    """Whether what links its chain as a pack states it is withheld here, and links nothing."""
    return stated in THERE and status not in THERE and status != _ERASED


def own_end(tx: Tx, part: Part, ref: bytes) -> int | None:
    """When a fact was closed apart from its chain, microseconds UTC, or None."""
    tx.flush()
    member = chains.member_of(tx.reader, part, ref)
    if member is None:
        return None
    end = chains.ending(tx.reader, part, member)
    return end.at if end.closed else None


def aliases(reader: Reader, part: Part) -> list[tuple[str, str]]:
    """(name, the name that it stands for) of a partition, by name."""
    if reader.grant.agent is not None or reader.grant.session is not None:
        return []  # they belong to the whole partition
    return sorted(_decode_alias(d) for _, d in reader.txn.scan_prefix("aliases", part.prefix))


def has_alias(tx: Tx, part: Part, name: str) -> bool:
    """Whether a name stands for something here already."""
    return tx.txn.get("aliases", chains.alias_key(part, name)) is not None


def put_alias(tx: Tx, part: Part, name: str, stands: str) -> str:
    """Add an alias; "new", "known", or "other" when the name stands for something else here."""
    key = chains.alias_key(part, name)
    data = tx.txn.get("aliases", key)
    if data is not None:
        return "known" if _decode_alias(data) == (name, stands) else "other"
    tx.txn.put("aliases", key, _encode_alias((name, stands)))
    tx.done("alias", part.number, attests={ALIASES: of_aliases(tx.txn, part)})
    return "new"
