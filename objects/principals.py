"""Principals other than the owner: what each may do and where, and how a process becomes one.

A principal has a name, a scope and capabilities, and the principal that made it.  A process becomes
one by its token when it starts, or because the owner starts it as one; nothing it is told later
changes that.  Of a token the store keeps a digest only.

A principal makes others within its own scope and capabilities alone, and they end with it.  Names
are never given again, so that a name in the log means one principal for ever.

Source: remem-store(5), PRINCIPALS; remem-principal(1).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import tombs
from remem.objects.errors import NotFound, Refused, RememError, ScopeRefused, UsageError
from remem.objects.model import Scope
from remem.objects.patterns import (
    CAPABILITIES,
    PARTS,
    Pattern,
    capabilities,
    parse,
    shown,
)
from remem.objects.scope import (
    DEFAULT_AGENT,
    DEFAULT_COLLECTION,
    DEFAULT_PROFILE,
    DEFAULT_SESSION,
    DEFAULT_TENANT,
    OWNER,
    RESERVED,
    TOKEN_PREFIX,
    UNKNOWN,
    Actor,
    Grant,
    check_name,
    maintenance_grant,
    owner_grant,
)

__all__ = [
    "CAPABILITIES",
    "TOKEN_PREFIX",
    "Pattern",
    "Principal",
    "add",
    "akin",
    "all_of",
    "bind",
    "by_number",
    "capabilities",
    "check",
    "descends",
    "digest",
    "get",
    "parse",
    "refuse",
    "renew",
    "revoke",
    "shown",
]

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.reader import Reader
    from remem.objects.store import Store
    from remem.objects.tables import Txn
    from remem.objects.tx import Tx

TOKEN_BYTES = 32
ACTION = "principal"  # action of the rows in the audit chain
MAX_DEPTH = 16  # principals made by principals

_DIGEST = b"remem token 1\0"
_HINT = "REMEM_TOKEN must hold the token that 'remem principal add' printed"


class Principal(msgspec.Struct, frozen=True, array_like=True):
    """One principal as the store keeps it.

    Attributes:
        number: from 1, never used again.
        name: never used again either.
        parent: number of the principal that made it, 0 for the owner.
        scope: where it may act.
        can: capabilities, in the order of CAPABILITIES.
        token: digest of its token, None once it was revoked.
        created: record time of its making.
        revoked: record time at which it ended, or None.
    """

    number: int
    name: str
    parent: int
    scope: Pattern
    can: list[str]
    token: bytes | None
    created: int
    revoked: int | None = None

    @property
    def grant(self) -> Grant:
        """What it may see and do."""
        where = self.scope
        return Grant(
            self.name,
            where.tenant,
            where.profile,
            None if where.collection is None else (where.collection,),
            agent=where.agent,
            session=where.session,
            writes="write" in self.can,
            reads="read" in self.can,
            proposes="propose" in self.can,
            reviews="review" in self.can,
            number=self.number,
        )


_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Principal).decode


# -- becoming one -------------------------------------------------------------------------------


def bind(
    store: Store,
    name: str | None = None,
    token: str | None = None,
    *,
    by_owner: bool = False,
    scope: Scope | None = None,
    surface: str = "cli",
) -> Grant:
    """The grant of a process, worked out once, when it starts.

    Args:
        store: an open store; a refusal leaves a row of the audit chain unless it is read-only.
        name: the principal that it says it is, or None.
        token: what proves it, or None.
        by_owner: the owner starts the process and answers for the name: no token is needed.
        scope: whose tenant and profile the owner's grant covers (without: the default scope).
        surface: the door, for the row.

    Returns:
        The principal's grant; the owner's, over a tenant and profile, where neither a token nor
        another name was given.

    Raises:
        ScopeRefused: the token is none, or was replaced or revoked, or is another principal's; or
            a name came without a token.  The message holds no token.
    """
    if token is None and name in (None, OWNER):
        return msgspec.structs.replace(owner_grant(scope or _DEFAULT), collections=None)
    with store.read(maintenance_grant()) as reader:
        if token is not None:
            found = _by_token(reader.txn, token)
        else:
            found = get(reader, name or "") if by_owner else None
    if found is not None and found.revoked is None and name in (None, found.name):
        return found.grant
    if token is not None:
        known = found is not None and found.revoked is None
        outcome = "other_principal" if known else "unknown_token"
        said = "the token is not that of the principal" if known else "the token is not valid"
        error = ScopeRefused(f"{said} {shown(name or '')}" if known else said, hint=_HINT)
    elif by_owner:
        outcome = "unknown_principal"
        error = ScopeRefused(f"{shown(name or '')} is no principal of this store", hint=_LIST_HINT)
    else:
        outcome = "no_token"
        error = ScopeRefused(f"to act as {shown(name or '')} takes its token", hint=_HINT)
    refuse(store, Grant(UNKNOWN, "", "", ()), surface, "bind", outcome)
    raise error


_DEFAULT = Scope(
    DEFAULT_TENANT, DEFAULT_PROFILE, DEFAULT_COLLECTION, DEFAULT_AGENT, DEFAULT_SESSION
)
_LIST_HINT = "'remem principal list' shows them"


def refuse(store: Store, grant: Grant, surface: str, action: str, outcome: str) -> None:
    """Leave a row of the audit chain for something that was refused before it began.

    A store that cannot be written has no place for it; the refusal stands all the same.
    """
    if store.readonly:
        return
    actor = Actor(grant, surface, _DEFAULT)
    try:
        store.write(actor, lambda tx: tx.refuse(action, outcome, 0, None))
    except RememError:
        return


def check(txn: Txn, grant: Grant) -> None:
    """Ask, at the start of every transaction, whether the principal of a grant is in force still.

    Raises:
        ScopeRefused: it was revoked.
    """
    found = by_number(txn, grant.number)
    if found is None or found.revoked is not None:
        raise ScopeRefused(f"'{grant.principal}' was revoked", hint=_HINT)


# -- looking ------------------------------------------------------------------------------------


def get(reader: Reader, name: str) -> Principal | None:
    """The principal of a name, revoked or not, or None."""
    return _named_so(reader.txn, name)


def _named_so(txn: Txn, name: str) -> Principal | None:
    try:
        number = txn.get("principals", b"k" + check_name("principal", name).encode())
    except (UsageError, UnicodeEncodeError):
        return None
    return None if number is None else by_number(txn, int.from_bytes(number, "big"))


def by_number(txn: Txn, number: int) -> Principal | None:
    """The principal of a number, or None."""
    data = txn.get("principals", b"n" + number.to_bytes(4, "big"))
    return None if data is None else decode(data)


def all_of(reader: Reader) -> list[Principal]:
    """Principals by number: all of them for the owner, else oneself and who descends from it."""
    found = [decode(data) for _, data in reader.txn.scan_prefix("principals", b"n")]
    if reader.grant.owner:
        return found
    return [p for p in found if _comes_from(reader.txn, p, reader.grant.number)]


def descends(source: Reader | Tx, child: str, ancestor: str) -> bool:
    """True when a principal is another one, or was made by it, directly or through others.

    Of the owner every principal of the store descends; of an unknown name nobody but itself.

    Args:
        source: a snapshot or a transaction, whatever its grant.
        child: name of a principal.
        ancestor: name of a principal.
    """
    if child == ancestor:
        return True
    below = _named_so(source.txn, child)
    if below is None:
        return False
    if ancestor == OWNER:
        return True
    above = _named_so(source.txn, ancestor)
    return above is not None and _comes_from(source.txn, below, above.number)


def akin(source: Reader | Tx, one: str, other: str) -> bool:
    """True for principals of one line: the same one of those that the owner made is above both.

    Who makes a principal holds its token and can act as it, so nobody of a line is a stranger to
    what another of it did.  Of the owner every principal of the store descends.

    Args:
        source: a snapshot or a transaction, whatever its grant.
        one: name of a principal.
        other: name of a principal.
    """
    if one == other:
        return True
    first, second = _named_so(source.txn, one), _named_so(source.txn, other)
    if first is None or second is None:
        return OWNER in (one, other) and (first or second) is not None
    return _founder(source.txn, first) == _founder(source.txn, second)


def _founder(txn: Txn, principal: Principal) -> int:
    """Number of the principal that the owner made and that a principal descends from."""
    above: Principal | None = principal
    while above is not None:
        principal, above = above, by_number(txn, above.parent)
    return principal.number


def _comes_from(txn: Txn, principal: Principal, number: int) -> bool:
    """Whether a principal has a number, or one that it descends from has."""
    at: Principal | None = principal
    while at is not None and number:
        if at.number == number:
            return True
        at = by_number(txn, at.parent)
    return False


def _by_token(txn: Txn, token: str) -> Principal | None:
    number = txn.get("principals", b"t" + digest(token))
    return None if number is None else by_number(txn, int.from_bytes(number, "big"))


def digest(token: str) -> bytes:
    """What the store keeps of a token."""
    return blake3(_DIGEST + token.strip().encode("utf-8", "surrogatepass")).digest()


# -- changing -----------------------------------------------------------------------------------


def add(tx: Tx, name: str, scope: Pattern, can: Iterable[str]) -> tuple[Principal, str]:
    """Make a principal, as a child of the one who acts.

    Returns:
        The principal and its token, which nothing keeps.

    Raises:
        UsageError: the name, a part of the scope or a capability is none.
        Refused: the name is taken, was taken once, is the store's own, or looks like one that is.
        Blocked: the name was forgotten.
        ScopeRefused: it could do more than the one who acts, or act elsewhere.
    """
    from remem.objects.lookalikes import mixes, skeleton

    name = check_name("principal", name)
    wanted = capabilities(can)
    if name != name.strip():
        raise UsageError(f"the principal {name[:80]!r} begins or ends with a blank")
    looks = skeleton(name)
    if looks in map(skeleton, RESERVED) or name.startswith(TOKEN_PREFIX):
        raise Refused(f"{shown(name)} cannot be the name of a principal")
    if mixes(name):
        raise Refused(
            f"{shown(name)} mixes letters of several scripts that look alike",
            hint="write each word in the letters of one script",
        )
    for part, value in zip(PARTS, msgspec.structs.astuple(scope), strict=True):
        if value is not None and check_name(part, value) != value:
            raise UsageError(f"the {part} '{value}' is not in normal form (NFC)")
    grant = tx.actor.grant
    if not grant.owner:
        own = by_number(tx.txn, grant.number)
        within = own is not None and own.scope.covers(scope) and set(wanted) <= set(own.can)
        if not within or _depth(tx.txn, own) >= MAX_DEPTH:
            raise ScopeRefused(
                f"'{grant.principal}' may not make such a principal",
                hint="a principal gives no more than it has itself",
            ).audited(ACTION, "beyond_grant", 0, None)
    key = b"k" + name.encode()
    there = get(tx.reader, name)
    if there is not None and there.revoked is not None:
        raise Refused(f"'{name}' was a principal once", hint="names are never given again")
    if there is not None:
        raise Refused(
            f"'{name}' is a principal already", hint="'remem principal token' makes a new token"
        )
    for part_of in tx.reader.parts:
        tombs.check_names(tx, part_of, (name,), ACTION)
    for _, data in tx.txn.scan_prefix("principals", b"n"):
        if skeleton(decode(data).name) == looks:
            raise Refused(f"{shown(name)} looks like the name of another principal")
    last = next(tx.txn.scan_prefix("principals", b"n", reverse=True), None)
    number = 1 if last is None else int.from_bytes(last[0][1:], "big") + 1
    token = new_token()
    made = Principal(number, name, grant.number, scope, wanted, digest(token), tx.now)
    tx.txn.put("principals", key, number.to_bytes(4, "big"))
    _put(tx, made, None, "add")
    return made, token


def renew(tx: Tx, name: str) -> tuple[Principal, str]:
    """Give a principal a new token; the old one ends.

    Raises:
        NotFound: there is none of that name that descends from the one who acts.
        Refused: it was revoked.
    """
    found = _named(tx, name)
    token = new_token()
    made = msgspec.structs.replace(found, token=digest(token))
    _put(tx, made, found, "token")
    return made, token


def revoke(tx: Tx, name: str) -> list[Principal]:
    """End a principal and all that descend from it; it first.

    Raises:
        NotFound: there is none of that name that descends from the one who acts.
        Refused: it was revoked before.
    """
    found = _named(tx, name)
    ended = []
    for _, data in tx.txn.scan_prefix("principals", b"n"):
        one = decode(data)
        if one.revoked is None and _comes_from(tx.txn, one, found.number):
            ended.append(one)
    done = [msgspec.structs.replace(one, token=None, revoked=tx.now) for one in ended]
    for before, after in zip(ended, done, strict=True):
        _put(tx, after, before, "revoke")
    return done


def _named(tx: Tx, name: str) -> Principal:
    """A principal that the one who acts may change.

    Raises:
        NotFound: unknown, or not one that it made; one answers as the other.
        Refused: it was revoked.
    """
    found = get(tx.reader, name)
    grant = tx.actor.grant
    own = grant.owner or (found is not None and _comes_from(tx.txn, found, grant.number))
    if found is None or not own:
        raise NotFound(f"{shown(name)} is no principal of this store", hint=_LIST_HINT)
    if found.revoked is not None:
        raise Refused(f"'{found.name}' was revoked", hint="make another one, of another name")
    return found


def _put(tx: Tx, made: Principal, before: Principal | None, what: str) -> None:
    """Store a principal, keep the way from its token to it, append the row."""
    number = made.number.to_bytes(4, "big")
    if before is not None and before.token is not None:
        tx.txn.delete("principals", b"t" + before.token)
    if made.token is not None:
        tx.txn.put("principals", b"t" + made.token, number)
    data = _encode(made)
    tx.txn.put("principals", b"n" + number, data)
    tx.attest(ACTION, f"{what}-{made.number}", blake3(data).digest())


def _depth(txn: Txn, principal: Principal | None) -> int:
    depth = 0
    while principal is not None:
        depth += 1
        principal = by_number(txn, principal.parent)
    return depth


def new_token() -> str:
    """A token: 256 random bits behind a prefix by which it is known."""
    from base64 import urlsafe_b64encode

    return TOKEN_PREFIX + urlsafe_b64encode(os.urandom(TOKEN_BYTES)).decode().rstrip("=")
