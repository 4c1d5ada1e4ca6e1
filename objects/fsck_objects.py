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

from remem.objects import chains, encode, fsck_queue, lists, oid, receipts, refs
from remem.objects.errors import RememError
from remem.objects.findings import STEP
from remem.objects.fsck_log import ERASED, decode_tomb
from remem.objects.fsck_sources import SourceCheck, id_here
from remem.objects.model import Memory, Observation, Scope
from remem.objects.reader import decode_lane, decode_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.findings import Findings
    from remem.objects.fsck_attests import AttestCheck
    from remem.objects.fsck_log import Folds
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

    def __init__(
        self,
        txn: Txn,
        found: Findings,
        parts: dict[int, Part],
        folds: Folds,
        attests: AttestCheck,
    ) -> None:
        """Bind the check to a snapshot, to the folds of the refs and to what is attested."""
        self.txn = txn
        self.found = found
        self.parts = parts
        self.folds = folds
        self.attests = attests
        self.sources = SourceCheck(txn, found, parts)
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
                obj = encode.read(data)
            except RememError as error:
                found.bad_object(object_id, str(error))
            else:
                if part is None:
                    found.bad_object(object_id, "its partition is not there")
                elif not encode.salted_by(data, part.key):
                    self._check_foreign(part, object_id, obj, ref)
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
        obj: encode.Stored,
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
            if refs.TYPES[state.type] != type(obj).__name__.lower():
                found.bad_object(object_id, "its type is not that of its ref")
        elif part is not None and (obj.scope.tenant, obj.scope.profile, obj.scope.collection) != (
            part.tenant,
            part.profile,
            part.collection,
        ):
            found.bad_object(object_id, "its scope is not that of its partition")
        if cached is not None and state.status != ERASED:
            pinned = object_id == ref and bool(state.flags & refs.PINNED)
            self._check_lists(prefix, object_id, obj, pinned)
        if type(obj) is Memory:
            lives = cached is not None and state.status != ERASED
            is_head = lives and state.head == object_id
            self._check_cites(prefix, object_id, obj, ref, is_head)
            if is_head and part is not None and obj.triple is not None:
                self.attests.check_chain(part, ref, state, obj)
        elif type(obj) is Observation and part is not None and object_id == ref:
            self.sources.first(part, ref, obj)

    def _check_foreign(self, part: Part, object_id: bytes, obj: encode.Stored, ref: bytes) -> None:
        """An object salted with another key came with a pack."""
        if not self.folds.heads(part.prefix, ref).get(object_id, False):
            self.found.bad_object(object_id, "its salt was not made with the partition's key")
        elif object_id == ref:
            self.sources.foreign(part, id_here(obj, part), ref)

    def _scope(self, prefix: bytes, lane: int) -> Scope | None:
        """The scope that a lane of a partition stands for."""
        key = (prefix, lane)
        if key in self._scopes:
            return self._scopes[key]
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
        if len(self._scopes) < _LANES_KEPT:  # objects lie in no order of lanes: any are as good
            self._scopes[key] = scope
        return scope

    # -- citations and sources ----------------------------------------------------------------

    def _check_cites(
        self, prefix: bytes, object_id: bytes, memory: Memory, ref: bytes, is_head: bool
    ) -> None:
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
            if is_head and self.txn.get("cites", prefix + cited + ref) is None:
                where = f"cites {cited.hex()} {ref.hex()}"
                self.found.problem(where, f"it is missing, object {object_id.hex()} cites so")

    def _was_erased(self, prefix: bytes, object_id: bytes) -> bool:
        ref = self.txn.get("revs", prefix + object_id) or object_id
        cached = self.txn.get("refs", prefix + ref)
        return cached is not None and _erased(cached)

    def check_pointers(self) -> None:
        """Rows of revs, cites, sources and receipts point at what is there."""
        if self.folds.revisions != self.txn.count("revs"):
            self._check_revisions()
        for key, _ in self.txn.scan("cites"):
            if not self._cited(key[:4], key[4:36], key[36:]):
                where = f"cites {key[4:36].hex()} {key[36:].hex()}"
                self.found.problem(where, "no object of that ref cites so")
        self.sources.finish()
        for key, data in self.txn.scan("receipts"):
            where = f"receipt {key[4:].hex()}"
            if self.txn.get("refs", key) is None and self.txn.get("revs", key) is None:
                self.found.problem(where, "it is of an object of no ref")
            try:
                receipts.stated(data)
            except RememError as error:
                self.found.problem(where, str(error))
        self.attests.check_receipts()

    def check_lookups(self) -> None:
        """Rows of replaces, chains, aliases and jobs lead to what is there."""
        for key, _ in self.txn.scan("replaces"):
            successor, ref = key[4:36], key[36:]
            state = self._state(key[:4] + ref)
            if state is None or state.replaced_by != successor:
                where = f"replaces {successor.hex()} {ref.hex()}"
                self.found.problem(where, "the ref was not replaced so")
        self.attests.check_chains()
        for key, data in self.txn.scan("aliases"):
            part = self.parts.get(int.from_bytes(key[:4], "big"))
            try:
                name, _ = decode_lane(data)
            except msgspec.MsgspecError as error:
                self.found.problem(f"alias {key[4:].hex()}", f"it does not decode: {error}")
            else:
                if part is None or chains.alias_key(part, name) != key:
                    self.found.problem(f"alias {key[4:].hex()}", "it is not of the name in it")
        fsck_queue.check_jobs(self.txn, self.found)
        fsck_queue.check_cursors(self.txn, self.found)
        for key, _ in self.txn.scan("lists"):
            if not self._listed(key):
                self.found.problem(_list_place(key), "nothing of that kind has this id")

    def check_tombstones(self) -> None:
        """Tombstones are of erased refs; they and the values that must not come back match."""
        for key, data in self.txn.scan("tombs"):
            state = self._state(key)
            try:
                tomb = decode_tomb(data)
            except msgspec.MsgspecError as error:
                self.found.bad_tomb(key[4:], f"it does not decode: {error}")
                continue
            if state is None or state.status != ERASED:
                self.found.bad_tomb(key[4:], "its ref is not erased")
            for value in tomb.values:
                if self.txn.get("values", key[:4] + value) is None:
                    self.found.bad_tomb(key[4:], f"its value {value.hex()} is not listed")
            self.attests.check_tomb(key, tomb, state)
            if tomb.purged is not None:
                self._check_purged(key)
        for key, ref in self.txn.scan("values"):
            listed = self.txn.get("tombs", key[:4] + ref)
            try:
                known = listed is not None and key[4:] in decode_tomb(listed).values
            except msgspec.MsgspecError:
                known = True  # named above
            if not known:
                what = f"no tombstone of ref {ref.hex()} has it"
                self.found.problem(f"value {key[4:].hex()}", what)

    def _check_purged(self, key: bytes) -> None:
        """Nothing leads to what was purged: no job, no citation, no receipt."""
        if next(self.txn.scan_prefix("jobs", key), None) is not None:
            self.found.bad_tomb(key[4:], "it was purged, yet it has a job")
        for object_id in (key[4:], *self.folds.heads(key[:4], key[4:])):
            if next(self.txn.scan_prefix("cites", key[:4] + object_id), None) is not None:
                self.found.bad_tomb(key[4:], "it was purged, yet it is cited")
            if self.txn.get("receipts", key[:4] + object_id) is not None:
                self.found.bad_tomb(key[4:], "it was purged, yet it has a receipt")

    def _listed(self, key: bytes) -> bool:
        """Whether a row of lists leads to a ref, or to an object of its kind."""
        if key[4:5] == lists.PIN:
            return self._state(key[:4] + key[5:]) is not None
        data = self.txn.get("objects", key[:4] + key[5:])
        try:
            return data is not None and lists.letter_of(encode.read(data)) == key[4:5]
        except RememError:
            return True  # named already

    def _check_lists(
        self, prefix: bytes, object_id: bytes, obj: encode.Stored, pinned: bool
    ) -> None:
        """What is looked up by its kind, or is pinned, is in its list."""
        for letter in filter(None, (lists.letter_of(obj), lists.PIN if pinned else b"")):
            key = prefix + letter + object_id
            if self.txn.get("lists", key) is None:
                self.found.problem(_list_place(key), "it is missing, the object is of that kind")

    def _state(self, key: bytes) -> refs.RefState | None:
        cached = self.txn.get("refs", key)
        try:
            return None if cached is None else refs.decode_state(cached)
        except msgspec.MsgspecError:
            return None

    def _check_revisions(self) -> None:
        """Name the rows of revs that no ref had as a head."""
        for key, ref in self.txn.scan("revs"):
            if self.txn.get("refs", key[:4] + ref) is None:
                what = f"it names ref {ref.hex()}, which is not there"
            elif self.found.is_bad_ref(ref) or key[4:] in self.folds.heads(key[:4], ref):
                continue
            else:
                what = f"it was never a head of ref {ref.hex()}"
            self.found.problem(f"rev {key[4:].hex()}", what)

    def _cited(self, prefix: bytes, observation: bytes, ref: bytes) -> bool:
        cached = self.txn.get("refs", prefix + ref)
        if cached is None:
            return False
        if self._object_cites(prefix, ref, observation) or _erased(cached):
            return True
        if self.found.is_bad_ref(ref):
            return True
        heads = self.folds.heads(prefix, ref)
        return any(self._object_cites(prefix, head, observation) for head in heads)

    def _object_cites(self, prefix: bytes, object_id: bytes, observation: bytes) -> bool:
        data = self.txn.get("objects", prefix + object_id)
        if data is None:
            return False
        try:
            obj = encode.decode(data)
        except RememError:
            return False
        return isinstance(obj, Memory) and observation in obj.cites


def _list_place(key: bytes) -> str:
    return f"list {key[4:5].decode('ascii', 'replace')} {key[5:].hex()}"


def _erased(cached: bytes) -> bool:
    try:
        return refs.decode_state(cached).status == ERASED
    except msgspec.MsgspecError:
        return True  # named by the check of the folds
