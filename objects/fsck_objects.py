"""Checks of the objects and of every table that points at them.

Objects and refs are read side by side in key order: nearly every object begins a ref and so has
its key.  What an object says of itself (id, salt, scope, citations, source) is computed again
from its bytes.

Source: remem-store(5), OBJECTS and TABLES.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import encode, oid, refs
from remem.objects.errors import RememError
from remem.objects.findings import STEP
from remem.objects.fsck_log import ERASED
from remem.objects.model import Memory, Observation, Scope
from remem.objects.reader import decode_lane, decode_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.findings import Findings
    from remem.objects.kv import Txn
    from remem.objects.reader import Part

_LANES_KEPT = 1 << 14  # scopes kept decoded
_KEY_B = 32


def check_parts(txn: Txn, found: Findings) -> dict[int, Part]:
    """The partitions that decode, by number; names and numbers point at each other."""
    parts: dict[int, Part] = {}
    named = 0
    for key, data in txn.scan("parts"):
        if key[:1] == b"k":
            named += 1
            continue
        number = int.from_bytes(key[1:], "big")
        where = f"part {number}"
        try:
            part = decode_part(data)
        except msgspec.MsgspecError as error:
            found.problem(where, f"it does not decode: {error}")
            continue
        if part.number != number or len(part.key) != _KEY_B or key[:1] != b"n":
            found.problem(where, "its number or the length of its key is wrong")
            continue
        names = "\0".join((part.tenant, part.profile, part.collection)).encode()
        if txn.get("parts", b"k" + names) != key[1:]:
            found.problem(where, "its names do not lead to it")
        parts[number] = part
    if named != txn.count("parts") - named:
        found.problem("table parts", f"{named} names for {txn.count('parts') - named} partitions")
    return parts


def check_lanes(txn: Txn, found: Findings) -> None:
    """Names and numbers of the lanes point at each other."""
    named = numbered = 0
    for key, data in txn.scan("lanes"):
        if key[4:5] == b"k":
            named += 1
            continue
        numbered += 1
        where = f"lane {int.from_bytes(key[:4], 'big')}/{int.from_bytes(key[5:], 'big')}"
        try:
            names = decode_lane(data)
        except msgspec.MsgspecError as error:
            found.problem(where, f"it does not decode: {error}")
            continue
        if txn.get("lanes", key[:4] + b"k" + oid.digest("\0".join(names).encode())) != key[5:]:
            found.problem(where, "its names do not lead to it")
    if named != numbered:
        found.problem("table lanes", f"{named} names for {numbered} lanes")


class ObjectCheck:
    """Check of the objects against their ids, keys, scopes, refs, citations and sources."""

    def __init__(self, txn: Txn, found: Findings, parts: dict[int, Part]) -> None:
        """Bind the check to a snapshot."""
        self.txn = txn
        self.found = found
        self.parts = parts
        self._scopes: dict[tuple[bytes, int], Scope | None] = {}
        self._refs: Iterator[tuple[bytes, bytes]] = txn.scan("refs")
        self._ref: tuple[bytes, bytes] | None = next(self._refs, None)

    def run(self) -> None:
        """Read every object once, beside the refs."""
        txn, found = self.txn, self.found
        total = txn.count("objects")
        done = 0
        prefix: bytes | None = None
        part: Part | None = None
        for key, data in txn.scan("objects"):
            object_id = key[4:]
            if key[:4] != prefix:
                prefix = key[:4]
                part = self.parts.get(int.from_bytes(prefix, "big"))
            ref, cached = self._ref_of(key)
            if blake3(data).digest() != object_id:
                found.bad_object(object_id, "its bytes do not have this id")
            try:
                obj = encode.decode(data)
            except RememError as error:
                found.bad_object(object_id, str(error))
            else:
                if part is None:
                    found.bad_object(object_id, "its partition is not there")
                elif not encode.salted_by(data, part.key):
                    found.bad_object(object_id, "its salt was not made with the partition's key")
                self._check(prefix, object_id, obj, ref, cached, part)
            done += 1
            if not done % STEP:
                found.tell("objects", done, total)
        while self._ref is not None:
            self._without_object(*self._ref)
            self._ref = next(self._refs, None)
        found.report.objects.checked = done
        found.tell("objects", total, total)

    def _ref_of(self, key: bytes) -> tuple[bytes, bytes | None]:
        """The ref of the object with this key, and its cached state."""
        ahead = self._ref
        while ahead is not None and ahead[0] < key:
            self._without_object(*ahead)
            ahead = self._ref = next(self._refs, None)
        if ahead is not None and ahead[0] == key:
            self._ref = next(self._refs, None)
            return key[4:], ahead[1]
        ref = self.txn.get("revs", key)
        if ref is None:
            self.found.bad_object(key[4:], "it belongs to no ref")
            return key[4:], None
        return ref, self.txn.get("refs", key[:4] + ref)

    def _without_object(self, key: bytes, cached: bytes) -> None:
        if not _erased(cached):
            self.found.bad_object(key[4:], "it is missing, a ref begins with it")

    def _check(
        self,
        prefix: bytes,
        object_id: bytes,
        obj: encode.Obj,
        ref: bytes,
        cached: bytes | None,
        part: Part | None,
    ) -> None:
        found = self.found
        if cached is not None:
            try:
                state = refs.decode_state(cached)
            except msgspec.MsgspecError:
                return  # named by the check of the folds
            if obj.scope != self._scope(prefix, state.lane):
                found.bad_object(object_id, "its scope is not that of its ref")
            if state.type != (refs.MEMORY if type(obj) is Memory else refs.OBSERVATION):
                found.bad_object(object_id, "its type is not that of its ref")
        elif part is not None and (obj.scope.tenant, obj.scope.profile, obj.scope.collection) != (
            part.tenant,
            part.profile,
            part.collection,
        ):
            found.bad_object(object_id, "its scope is not that of its partition")
        if type(obj) is Memory:
            self._check_cites(prefix, object_id, obj, ref)
        elif type(obj) is Observation and obj.source is not None and obj.source.id:
            if part is not None:
                self._check_source(part, object_id, obj.source.uri, obj.source.id, ref)

    def _scope(self, prefix: bytes, lane: int) -> Scope | None:
        """The scope that a lane of a partition stands for."""
        key = (prefix, lane)
        if key in self._scopes:
            return self._scopes[key]
        if len(self._scopes) >= _LANES_KEPT:
            self._scopes.clear()
        part = self.parts.get(int.from_bytes(prefix, "big"))
        scope = None
        if part is not None and 0 < lane < 1 << 32:
            data = self.txn.get("lanes", prefix + b"n" + lane.to_bytes(4, "big"))
            try:
                if data is not None:
                    names = decode_lane(data)
                    scope = Scope(part.tenant, part.profile, part.collection, *names)
            except msgspec.MsgspecError:
                scope = None  # named by the check of the lanes
        self._scopes[key] = scope
        return scope

    # -- citations and sources ----------------------------------------------------------------

    def _check_cites(self, prefix: bytes, object_id: bytes, memory: Memory, ref: bytes) -> None:
        if not memory.cites:
            self.found.bad_object(object_id, "it is a memory that cites nothing")
        for cited in memory.cites:
            data = self.txn.get("objects", prefix + cited)
            if data is None:
                if not self._was_erased(prefix, cited):
                    what = f"it cites {cited.hex()}, which is not in its partition"
                    self.found.bad_object(object_id, what)
                continue
            if encode.type_name(data) != "observation":
                self.found.bad_object(object_id, f"it cites {cited.hex()}, which is no observation")
            if self.txn.get("cites", prefix + cited + ref) is None:
                where = f"cites {cited.hex()} {ref.hex()}"
                self.found.problem(where, f"it is missing, object {object_id.hex()} cites so")

    def _was_erased(self, prefix: bytes, object_id: bytes) -> bool:
        ref = self.txn.get("revs", prefix + object_id) or object_id
        cached = self.txn.get("refs", prefix + ref)
        return cached is not None and _erased(cached)

    def _check_source(self, part: Part, object_id: bytes, uri: str, name: str, ref: bytes) -> None:
        key = part.prefix + oid.keyed(part.key, uri.encode(), name.encode())
        listed = self.txn.get("sources", key)
        if listed != ref:
            what = f"it does not lead to ref {ref.hex()}, whose object names that source"
            self.found.problem(f"source {key[4:].hex()}", what)

    def check_pointers(self) -> None:
        """Rows of cites, sources and receipts point at what is there."""
        for key, _ in self.txn.scan("cites"):
            if not self._cited(key[:4], key[4:36], key[36:]):
                where = f"cites {key[4:36].hex()} {key[36:].hex()}"
                self.found.problem(where, "no object of that ref cites so")
        for key, ref in self.txn.scan("sources"):
            if self.txn.get("refs", key[:4] + ref) is None:
                what = f"it names ref {ref.hex()}, which is not there"
                self.found.problem(f"source {key[4:].hex()}", what)
        for key, _ in self.txn.scan("receipts"):
            if self.txn.get("refs", key) is None and self.txn.get("revs", key) is None:
                self.found.problem(f"receipt {key[4:].hex()}", "it is of an object of no ref")

    def _cited(self, prefix: bytes, observation: bytes, ref: bytes) -> bool:
        cached = self.txn.get("refs", prefix + ref)
        if cached is None:
            return False
        if self._object_cites(prefix, ref, observation) or _erased(cached):
            return True
        try:
            number = refs.decode_state(cached).last
            while number:
                data = self.txn.get("log", prefix + number.to_bytes(8, "big"))
                entry = refs.decode_entry(data or b"")
                if entry.new not in (None, ref, entry.old):
                    if self._object_cites(prefix, entry.new, observation):
                        return True
                number = entry.prev if entry.prev < number else 0
        except (msgspec.MsgspecError, OverflowError):
            return True  # the ref is named by the check of the folds
        return False

    def _object_cites(self, prefix: bytes, object_id: bytes | None, observation: bytes) -> bool:
        data = self.txn.get("objects", prefix + (object_id or b""))
        if data is None:
            return False
        try:
            obj = encode.decode(data)
        except RememError:
            return False
        return isinstance(obj, Memory) and observation in obj.cites


def _erased(cached: bytes) -> bool:
    try:
        return refs.decode_state(cached).status == ERASED
    except msgspec.MsgspecError:
        return True  # named by the check of the folds
