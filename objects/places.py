"""The scopes of a write transaction: partitions and lanes, made when they are new.

Source: remem-store(5), PARTITIONS AND LANES.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from remem.objects import oid
from remem.objects.errors import ScopeRefused, UsageError
from remem.objects.kv import MAX_KEY_B
from remem.objects.reader import Part, Reader, encode_part

if TYPE_CHECKING:
    from remem.objects.kv import Txn
    from remem.objects.model import Scope
    from remem.objects.scope import Actor

_KEY_B = 32


class Places:
    """What a write transaction knows of scopes.

    Attributes:
        reader: reads inside the transaction, its own changes included.
        now: record time of every change made here, microseconds UTC.
    """

    def __init__(self, txn: Txn, actor: Actor, reader: Reader, now: int) -> None:
        """Begin with no place known."""
        self.txn = txn
        self.actor = actor
        self.reader = reader
        self.now = now
        self._lanes: dict[tuple[int, str, str], int] = {}
        self._parts: dict[tuple[str, str, str], Part] = {}
        self._places: dict[tuple[str | None, str | None, str | None], Scope] = {}

    def place(self, collection: str | None, agent: str | None, session: str | None) -> Scope:
        """The scope of a record that may name its own collection, agent and session.

        Raises:
            ScopeRefused: the actor's grant does not cover it.
        """
        key = (collection, agent, session)
        scope = self._places.get(key)
        if scope is None:
            try:
                scope = self._places[key] = self.actor.place(collection, agent, session)
            except ScopeRefused as error:
                raise error.audited("create", "scope_refused", 0, None) from None
        return scope

    def part(self, scope: Scope) -> Part:
        """The partition of a scope, made when it is new.

        Raises:
            ScopeRefused: the actor's grant does not cover it, or covers no writing.
            UsageError: its names are too long together.
        """
        names = (scope.tenant, scope.profile, scope.collection)
        part = self._parts.get(names)
        if part is None:
            grant = self.actor.grant
            if not grant.sees(*names) or not grant.changes:
                raise ScopeRefused(f"'{grant.principal}' may not write to this scope").audited(
                    "create", "scope_refused", 0, None
                )
            key = b"k" + "\0".join(names).encode()
            if len(key) > MAX_KEY_B:
                raise UsageError(
                    f"tenant, profile and collection have {len(key) - 3} bytes together, "
                    f"the limit is {MAX_KEY_B - 3}"
                )
            number = self.txn.get("parts", key)
            if number is None:
                part = self._new_part(names, key)
            else:
                part = self.reader.part(int.from_bytes(number, "big"))
            self._parts[names] = part
        return part

    def _new_part(self, names: tuple[str, str, str], key: bytes) -> Part:
        last = next(self.txn.scan_prefix("parts", b"n", reverse=True), None)
        number = 1 if last is None else int.from_bytes(last[0][1:], "big") + 1
        part = Part(number, *names, os.urandom(_KEY_B), self.now)
        self.txn.put("parts", b"n" + part.prefix, encode_part(part))
        self.txn.put("parts", key, part.prefix)
        self.reader.add_part(part)
        return part

    def lane(self, part: Part, scope: Scope) -> int:
        """Number of (agent, session) within a partition, made when it is new."""
        key = (part.number, scope.agent, scope.session)
        number = self._lanes.get(key)
        if number is None:
            names = (scope.agent, scope.session)
            name_key = part.prefix + b"k" + oid.digest("\0".join(names).encode())
            data = self.txn.get("lanes", name_key)
            if data is None:
                prefix = part.prefix + b"n"
                last = next(self.txn.scan_prefix("lanes", prefix, reverse=True), None)
                number = 1 if last is None else int.from_bytes(last[0][5:], "big") + 1
                packed = number.to_bytes(4, "big")
                self.txn.put("lanes", prefix + packed, msgspec.msgpack.encode(names))
                self.txn.put("lanes", name_key, packed)
            else:
                number = int.from_bytes(data, "big")
            self._lanes[key] = number
        return number
