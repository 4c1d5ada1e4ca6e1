"""Reading the truth under a grant: the only way to objects, refs and entries.

Every method walks only partitions that the grant covers, and hides what lies in an agent or session
outside it: an id of another scope answers exactly as an unknown one.  A partition that came from
another reader, and lies outside the grant, is refused by each of them.

What was forgotten cannot be read by any of them, although its bytes wait for a purge.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from remem.objects import audit, encode, oid, refs
from remem.objects.errors import (
    AmbiguousId,
    Forgotten,
    IntegrityError,
    NotFound,
    ScopeRefused,
)
from remem.objects.model import Draft, Run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.kv import Txn
    from remem.objects.scope import Grant


class Part(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A scope partition: number, names, the key of its salts, record time of its making."""

    number: int
    tenant: str
    profile: str
    collection: str
    key: bytes
    created: int

    @cached_property
    def prefix(self) -> bytes:
        """The four bytes with which the keys of this partition begin."""
        return self.number.to_bytes(4, "big")

    def source_key(self, uri: str, id: str) -> bytes:
        """Key in ``sources`` of what came in under a source's own id."""
        return self.prefix + oid.keyed(self.key, uri.encode(), id.encode())

    def twin_key(self, own_id: bytes) -> bytes:
        """Key in ``sources`` of what stands for an object, which a pack brought under its salt."""
        return self.prefix + oid.keyed(self.key, b"", b"twin", own_id)

    def again_key(self, object_id: bytes) -> bytes:
        """Key in ``sources`` of what was said again after an object was replaced."""
        return self.prefix + oid.keyed(self.key, b"", b"again", object_id)


class Found(msgspec.Struct, frozen=True):
    """What an id names: a ref and, when the id was that of one revision, that revision."""

    part: Part
    ref: bytes
    state: refs.RefState
    revision: bytes | None


encode_part = msgspec.msgpack.Encoder().encode
decode_part = msgspec.msgpack.Decoder(Part).decode
decode_lane = msgspec.msgpack.Decoder(tuple[str, str]).decode
_CANDIDATES = 12
_ERASED = refs.STATUS_CODE["erased"]


class Reader:
    """A snapshot seen through a grant.

    Attributes:
        forgets: the store has tombstones, so what is read has to be looked up among them.
    """

    def __init__(self, txn: Txn, grant: Grant) -> None:
        """Bind a transaction to a grant; one that does not read sees nothing.

        Raises:
            ScopeRefused: the principal was revoked since it was bound.
        """
        if grant.number:
            from remem.objects import principals

            principals.check(txn, grant)
        self.txn = txn
        self.grant = grant
        self.forgets = txn.count("tombs") > 0
        self._lanes: dict[tuple[int, int], tuple[str, str]] = {}
        self._seen: dict[tuple[int, int], bool] = {}
        self._narrow = grant.agent is not None or grant.session is not None
        parts = _all_parts(txn) if grant.reads else []
        self.parts = [p for p in parts if grant.sees(p.tenant, p.profile, p.collection)]
        self._by_number = {part.number: part for part in self.parts}

    # -- scopes -------------------------------------------------------------------------------

    def part(self, number: int) -> Part:
        """A granted partition by its number."""
        part = self._by_number.get(number)
        if part is None:
            raise NotFound("no such scope")
        return part

    def add_part(self, part: Part) -> None:
        """Take in a granted partition that the transaction has just made."""
        self.parts.append(part)
        self._by_number[part.number] = part

    def _own(self, part: Part) -> Part:
        """The partition, once it is known to lie within the grant.

        Raises:
            NotFound: it does not.
        """
        own = self._by_number.get(part.number)
        if own is not part and own != part:
            raise NotFound("no such scope")
        return part

    def lane(self, part: Part, number: int) -> tuple[str, str]:
        """(agent, session) of a lane number.

        Raises:
            NotFound: outside the grant.
        """
        if not self.sees_lane(part, number):
            raise NotFound("no such scope")
        return self._names(part, number)

    def _names(self, part: Part, number: int) -> tuple[str, str]:
        key = (self._own(part).number, number)
        if key not in self._lanes:
            data = self.txn.get("lanes", part.prefix + b"n" + number.to_bytes(4, "big"))
            if data is None:
                raise IntegrityError(f"lane {number} of a partition has no names")
            self._lanes[key] = decode_lane(data)
        return self._lanes[key]

    def lanes(self, part: Part) -> list[int]:
        """Numbers of the lanes of a partition that the grant covers."""
        prefix = self._own(part).prefix + b"n"
        numbers = [int.from_bytes(k[5:], "big") for k, _ in self.txn.scan_prefix("lanes", prefix)]
        return [n for n in numbers if self.sees_lane(part, n)]

    def has_lanes(self, part: Part) -> bool:
        """Whether the grant covers any lane of a partition; `lanes` may have to list thousands."""
        prefix = self._own(part).prefix + b"n"
        return any(
            self.sees_lane(part, int.from_bytes(key[5:], "big"))
            for key, _ in self.txn.scan_prefix("lanes", prefix)
        )

    def sees_lane(self, part: Part, number: int) -> bool:
        """True when the grant covers this lane."""
        if not self._narrow or part.number not in self._by_number:
            return part.number in self._by_number
        key = (part.number, number)
        if key not in self._seen:
            self._seen[key] = self.grant.sees_lane(*self._names(part, number))
        return self._seen[key]

    # -- refs and objects ---------------------------------------------------------------------

    def state(self, part: Part, ref: bytes) -> refs.RefState | None:
        """State of a ref now, or None when unknown or outside the grant."""
        data = self.txn.get("refs", self._own(part).prefix + ref)
        if data is None:
            return None
        state = refs.decode_state(data)
        return state if self.sees_lane(part, state.lane) else None

    def states(self, part: Part) -> Iterator[tuple[bytes, refs.RefState]]:
        """Every ref of a partition with its state now, by id."""
        for key, data in self.txn.scan_prefix("refs", self._own(part).prefix):
            state = refs.decode_state(data)
            if self.sees_lane(part, state.lane):
                yield key[4:], state

    def state_at(self, part: Part, ref: bytes, known_at: int) -> refs.RefState | None:
        """State of a ref as believed at a record time, or None when it was not yet known."""
        state = self.state(part, ref)
        if state is None or state.created > known_at:
            return None
        if state.changed <= known_at:
            return state
        entries = [e for e in self.entries(part, state) if e.time <= known_at]
        return refs.fold(reversed(entries))

    def entries(self, part: Part, state: refs.RefState) -> Iterator[refs.Entry]:
        """Entries of a ref, newest first."""
        seq = state.last
        while seq:
            entry = self.entry(part, seq)
            yield entry
            seq = entry.prev

    def entry(self, part: Part, seq: int) -> refs.Entry:
        """One entry of a partition's log.

        Raises:
            NotFound: not in the agents and sessions of the grant, whether it is there or not.
            IntegrityError: missing.
        """
        data = self.txn.get("log", self._own(part).prefix + seq.to_bytes(8, "big"))
        entry = None if data is None else refs.decode_entry(data)
        if entry is not None and self.sees_lane(part, entry.lane):
            return entry
        if self._narrow:
            raise NotFound(f"no entry {seq} of the ref log")
        raise IntegrityError(f"entry {seq} of the ref log is missing")

    def log(
        self, part: Part, *, after: int = 0, until: int | None = None, reverse: bool = False
    ) -> Iterator[refs.Entry]:
        """Entries of a partition with after < seq <= until, in order or newest first."""
        start = self._own(part).prefix + (after + 1).to_bytes(8, "big")
        stop = part.prefix + ((1 << 64) - 1 if until is None else until + 1).to_bytes(8, "big")
        for _, data in self.txn.scan("log", start, stop, reverse=reverse):
            entry = refs.decode_entry(data)
            if self.sees_lane(part, entry.lane):
                yield entry

    def last_seq(self, part: Part) -> int:
        """Number of the last entry of a partition, 0 when it has none."""
        return int.from_bytes(self.txn.get("heads", self._own(part).prefix) or b"\0", "big")

    def erased(self, part: Part, object_id: bytes) -> bytes | None:
        """The ref that an object belongs to, when that was forgotten, else None."""
        if not self.forgets:
            return None
        prefix = self._own(part).prefix
        ref = self.txn.get("revs", prefix + object_id) or object_id
        data = self.txn.get("refs", prefix + ref)
        state = None if data is None else refs.decode_state(data)
        if state is None or state.status != _ERASED or not self.sees_lane(part, state.lane):
            return None
        return ref

    def forgotten(self, part: Part, ref: bytes) -> Forgotten:
        """The answer to whoever asks for what was forgotten: when, and the reason code.

        Raises:
            NotFound: outside the grant.
        """
        from remem.objects import instant, tombs

        if self.state(part, ref) is None:
            raise NotFound(f"no object '{oid.short(ref)}'")
        tomb = tombs.get(self, part, ref)
        if tomb is None:
            return Forgotten(f"'{oid.short(ref)}' was forgotten")
        reason = f" ({tomb.reason})" if tomb.reason else ""
        day = instant.rfc3339(tomb.time)[:10]
        return Forgotten(f"'{oid.short(ref)}' was forgotten on {day}{reason}")

    def object_bytes(self, part: Part, object_id: bytes) -> bytes | None:
        """Stored bytes of an object, or None when unknown, forgotten or outside the grant."""
        data = self.txn.get("objects", self._own(part).prefix + object_id)
        if data is None or (self.forgets and self.erased(part, object_id) is not None):
            return None
        if self._narrow:
            scope = encode.read(data).scope
            return data if self.grant.sees_lane(scope.agent, scope.session) else None
        return data

    def object(self, part: Part, object_id: bytes) -> encode.Obj:
        """An object of a granted partition.

        Raises:
            NotFound: unknown, gone, or outside the grant.
            Forgotten: it was forgotten, whether or not its bytes are still there.
        """
        if self.forgets:
            ref = self.erased(part, object_id)
            if ref is not None and self.state(part, ref) is not None:
                raise self.forgotten(part, ref)
        data = self.txn.get("objects", self._own(part).prefix + object_id)
        if data is not None and encode.is_bookkeeping(data):
            name = encode.type_name(data)
            raise NotFound(
                f"'{oid.short(object_id)}' is a {name}, no evidence and no memory",
                hint="'remem draft show' prints a draft" if name == "draft" else "",
            )
        obj = None if data is None else encode.decode(data)
        if obj is None or not self.grant.sees_lane(obj.scope.agent, obj.scope.session):
            raise NotFound(f"no object '{oid.short(object_id)}'")
        return obj

    def bookkeeping(self, part: Part, object_id: bytes) -> Draft | Run:
        """A draft or a run of a granted partition.

        Raises:
            NotFound: unknown, gone, outside the grant, or another type.
        """
        data = self.object_bytes(part, object_id)
        obj = None if data is None else encode.read(data)
        if not isinstance(obj, Draft | Run):
            raise NotFound(f"no draft '{oid.short(object_id)}'")
        return obj

    def ref_of(self, part: Part, object_id: bytes) -> bytes:
        """The ref whose revision this object is (itself when it began one, or is unknown)."""
        ref = self.txn.get("revs", self._own(part).prefix + object_id)
        if ref is None or (self._narrow and self.state(part, ref) is None):
            return object_id
        return ref

    def cited_by(self, part: Part, observation: bytes) -> list[bytes]:
        """Refs of the memories that cite an observation, without what was forgotten."""
        prefix = self._own(part).prefix + observation
        found = [key[36:] for key, _ in self.txn.scan_prefix("cites", prefix)]
        if self._narrow:
            found = [r for r in found if self.state(part, r) is not None]
        if self.forgets:
            found = [r for r in found if self.erased(part, r) is None]
        return found

    def receipt(self, part: Part, object_id: bytes) -> bytes | None:
        """Encoded admission receipt of an object, or None for the plain one."""
        if (self._narrow or self.forgets) and self.object_bytes(part, object_id) is None:
            return None
        return self.txn.get("receipts", self._own(part).prefix + object_id)

    # -- names --------------------------------------------------------------------------------

    def find(self, text: str) -> Found:
        """What an id or a unique prefix of one (7 hex digits or more) names.

        Raises:
            UsageError: it is no id.
            NotFound: nothing of the granted scopes begins so.
            AmbiguousId: several do; the hint lists them.
        """
        start, stop = oid.prefix_range(text)
        found: dict[bytes, Found] = {}
        for part in self.parts:
            upper = part.prefix + stop if stop else (part.number + 1).to_bytes(4, "big")
            for table in ("refs", "revs"):
                for key, data in self.txn.scan(table, part.prefix + start, upper):
                    ref = key[4:] if table == "refs" else data
                    state = self.state(part, ref)
                    if state is not None and key[4:] not in found:
                        revision = key[4:] if table == "revs" else None
                        found[key[4:]] = Found(part, ref, state, revision)
                    if len(found) > _CANDIDATES:
                        break
        if not found:
            raise NotFound(f"nothing has the id '{text[:80]}'")
        if len(found) > 1:
            names = ", ".join(oid.distinct(sorted(found)[:_CANDIDATES]))
            raise AmbiguousId(f"'{text}' is the beginning of several ids", hint=f"it fits: {names}")
        return next(iter(found.values()))

    # -- audit --------------------------------------------------------------------------------

    @property
    def clock(self) -> int:
        """The last record time, microseconds UTC; 0 before the first."""
        return int.from_bytes(self.txn.get("meta", b"clock") or b"\0", "big", signed=True)

    def audit_head(self) -> audit.Head:
        """Number and hash of the last audit row."""
        data = self.txn.get("meta", b"audit")
        return audit.decode_head(data) if data is not None else audit.Head(0, audit.ROOT)

    def audit_rows(
        self, *, after: int = 0, reverse: bool = False
    ) -> Iterator[tuple[int, bytes, audit.Row]]:
        """(number, bytes, row) of the audit chain with number > after.

        Raises:
            ScopeRefused: only the owner reads the chain.
        """
        if not self.grant.owner:
            raise ScopeRefused(f"'{self.grant.principal}' may not read the audit chain")
        start = (after + 1).to_bytes(8, "big")
        for key, data in self.txn.scan("audit", start, reverse=reverse):
            yield int.from_bytes(key, "big"), data, audit.decode_row(data)


def _all_parts(txn: Txn) -> list[Part]:
    return [decode_part(data) for _, data in txn.scan_prefix("parts", b"n")]
