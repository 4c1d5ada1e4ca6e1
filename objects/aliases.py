"""Other names of things: "Annie" stands for "Ann Lee".

Facts of both names then lie in the same chains; adding or removing an alias moves and relinks those
that it concerns.  Only the owner says what a name stands for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, encode, tombs
from remem.objects.attests import ALIASES, of_aliases
from remem.objects.errors import BadInput, NotFound, Refused, ScopeRefused
from remem.objects.links import mark_of
from remem.objects.model import Memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from remem.objects.attests import Attests
    from remem.objects.reader import Part, Reader
    from remem.objects.tx import Tx

    Row = tuple[bytes, bytes, Memory, bool]  # key of the chain, ref, head, one value at a time

MAX_NAME_B = 500
_WORDS = re.compile(r"[^\w]+")

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
        BadInput: a name is empty or too long, or holds a secret.
        Refused: the other name stands for this one.
    """
    from remem.objects import redact

    _check_owner(tx, part)
    for one in (name, stands):
        if redact.scan(one).changed:  # names are kept and shown in clear
            raise BadInput("a secret or a private region cannot be a name")
        if not chains.fold(one) or len(one.encode("utf-8", "surrogatepass")) > MAX_NAME_B:
            raise BadInput(f"'{one[:60]}' cannot be a name: it is empty or too long")
    tombs.check_names(tx, part, (name, stands), "alias")
    if chains.canonical(tx.reader, part, stands) == chains.fold(name):
        raise Refused(f"'{stands}' stands for '{name}' itself")
    key = chains.alias_key(part, name)
    data = tx.txn.get("aliases", key)
    if data is not None and chains.fold(_decode(data)[1]) == chains.fold(stands):
        return "known"
    rows = _rows(tx, part)
    tx.txn.put("aliases", key, _encode((name, stands)))
    _move(tx, part, rows)
    tx.done("alias", part.number, attests={ALIASES: of_aliases(tx.txn, part)})
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
    named: Attests = {ALIASES: of_aliases(tx.txn, part)}
    tx.done("alias", part.number, outcome="removed", attests=named)


def forget(tx: Tx, part: Part, texts: Iterable[str], gone: Collection[bytes]) -> list[bytes]:
    """Take away the aliases that would tell what was forgotten; their keys.

    Those that name something which these texts say and nothing else does.

    Args:
        tx: the write transaction.
        part: its partition.
        texts: what was forgotten.
        gone: object ids of it; other objects are searched for the names.
    """
    named = [(key, _decode(data)) for key, data in tx.txn.scan_prefix("aliases", part.prefix)]
    if not named:
        return []
    told = [f" {chains.fold(_WORDS.sub(' ', text))} " for text in texts]
    said = {
        name
        for _, row in named
        for name in row
        if any(f" {chains.fold(_WORDS.sub(' ', name))} " in text for text in told)
    }
    lonely = said - _still_said(tx, part, said, gone)
    goes = [key for key, row in named if lonely.intersection(row)]
    if not goes:
        return []
    rows = _rows(tx, part)
    for key in goes:
        tx.txn.delete("aliases", key)
    _move(tx, part, rows)
    left: Attests = {ALIASES: of_aliases(tx.txn, part)}
    tx.done("alias", part.number, outcome="removed", attests=left)
    return goes


def _still_said(tx: Tx, part: Part, names: set[str], gone: Collection[bytes]) -> set[str]:
    """Those of the names that an object says which was not forgotten, in any letter case."""
    wanted = {name: chains.fold(name) for name in names}
    found: set[str] = set()
    for key, data in tx.txn.scan_prefix("objects", part.prefix) if names else ():
        if key[4:] in gone:
            continue
        text = chains.fold(data.decode("utf-8", "ignore"))
        here = {name for name, value in wanted.items() if name not in found and value in text}
        if here and tx.reader.erased(part, tx.reader.ref_of(part, key[4:])) is None:
            found |= here
            if len(found) == len(names):
                break
    return found


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
        if state is None or state.head is None:
            continue
        # What was forgotten has a place as long as its bytes are there: it may be restored.
        data = tx.txn.get("objects", part.prefix + state.head)
        memory = None if data is None else encode.decode(data)
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
