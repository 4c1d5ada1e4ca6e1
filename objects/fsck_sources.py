"""Check of the table ``sources``: what came in under which id, both ways.

A row that nothing explains would keep evidence out: what comes in under that id is taken for known.
So each row is computed again from the first object of its ref, as far as its bytes are there.

Source: remem-store(5), DIGESTS and VERIFYING.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import msgspec

from remem.objects import encode, names
from remem.objects.errors import RememError
from remem.objects.model import Observation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.objects.findings import Findings
    from remem.objects.kv import Txn
    from remem.objects.model import Source
    from remem.objects.reader import Part

_PLACES = 1 << 16  # by the first two bytes of the digest in a key


class SourceCheck:
    """Follows the objects that begin refs, then looks at what rows are left over."""

    def __init__(self, txn: Txn, found: Findings, parts: dict[int, Part]) -> None:
        """Begin with no row explained."""
        self.txn = txn
        self.found = found
        self.parts = parts
        self._met = array("I", bytes(4 * _PLACES))  # rows that an object explains, by place

    def first(self, part: Part, ref: bytes, obj: Observation) -> None:
        """Take an observation that begins a ref."""
        if obj.source is not None and obj.source.id:
            self._check_source(part, obj.source, ref)
        if obj.kind == names.COMMAND and obj.asserted is not None:
            key = part.source_key(names.SHELL, names.command_name(obj.asserted, obj.text))
            own = obj.source is not None and part.source_key(obj.source.uri, obj.source.id) == key
            self._met[_place(key)] += not own and self.txn.get("sources", key) == ref

    def foreign(self, part: Part, own_id: bytes, ref: bytes) -> None:
        """Take an object that a pack brought: the id that it would have here is listed.

        Without that row the same evidence, given again, would be taken in a second time.
        """
        twin = part.twin_key(own_id)
        listed = self.txn.get("sources", twin)
        self._met[_place(twin)] += listed == ref
        if listed is None:
            what = f"it is missing, ref {ref.hex()} stands for {own_id.hex()}"
            self.found.problem(f"source {twin[4:].hex()}", what)

    def _check_source(self, part: Part, source: Source, ref: bytes) -> None:
        key = part.source_key(source.uri, source.id)
        listed = self.txn.get("sources", key)
        where = f"source {key[4:].hex()}"
        self._met[_place(key)] += listed == ref
        if listed is None:
            self.found.problem(where, f"it is missing, the object of ref {ref.hex()} names it")
        elif listed != ref and not self._has_source(part.prefix + listed, source):
            self.found.problem(where, f"ref {listed.hex()} is not of that source")

    def _has_source(self, key: bytes, source: Source) -> bool:
        """True when the first object of a ref has a source's id, or is not there to tell."""
        data = self.txn.get("objects", key)
        if data is None:
            return True
        try:
            obj = encode.decode(data)
        except RememError:
            return True  # named already
        own = obj.source if isinstance(obj, Observation) else None
        return own is not None and (own.uri, own.id) == (source.uri, source.id)

    def finish(self) -> None:
        """Name the rows that lead nowhere, or that nothing explains.

        A row of what was purged stays: only rows beside one that no object explains are looked at.
        """
        if sum(self._met) == self.txn.count("sources"):
            return
        rows = array("I", bytes(4 * _PLACES))
        for key, _ in self.txn.pairs("sources"):
            rows[_place(key)] += 1
        for key, ref in self.txn.pairs("sources"):
            if rows[_place(key)] == self._met[_place(key)]:
                continue
            part = self.parts.get(int.from_bytes(key[:4], "big"))
            where = f"source {key[4:].hex()}"
            if self.txn.get("refs", key[:4] + ref) is None:
                self.found.problem(where, f"it names ref {ref.hex()}, which is not there")
                continue
            data = self.txn.get("objects", key[:4] + ref)
            try:
                obj = None if data is None else encode.decode(data)
            except RememError:
                continue  # named already
            if part is None or obj is None:
                continue  # its bytes are gone, or it is named already
            if isinstance(obj, Observation):
                if key in self._explained(part, ref, obj):
                    continue
            elif key == part.twin_key(id_here(obj, part)):
                continue
            self.found.problem(where, f"nothing that ref {ref.hex()} says explains it")

    def _explained(self, part: Part, ref: bytes, obj: Observation) -> Iterator[bytes]:
        """Keys of the rows that may lead to an observation."""
        if obj.source is not None and obj.source.id:
            yield part.source_key(obj.source.uri, obj.source.id)
        own = id_here(obj, part)
        if own != ref:
            yield part.twin_key(own)
        plain = {name: value for name, value in obj.meta.items() if name != "again"}
        said_before = msgspec.structs.replace(obj, meta=plain)
        for earlier in (said_before, msgspec.structs.replace(obj, asserted=None)):
            before = id_here(earlier, part)
            yield part.again_key(before)
            twin = self.txn.get("sources", part.twin_key(before))
            if twin is not None:
                yield part.again_key(twin)
        if obj.kind == names.COMMAND and obj.asserted is not None:
            for nth in range(names.MOST_ALIKE):
                name = names.command_name(obj.asserted, obj.text, nth)
                yield part.source_key(names.SHELL, name)


def _place(key: bytes) -> int:
    return int.from_bytes(key[4:6], "big")


def id_here(obj: encode.Stored, part: Part) -> bytes:
    """The id that an object has when it is made in this partition."""
    plain: encode.Stored = msgspec.structs.replace(obj, salt=encode.ZERO_SALT)
    return encode.seal(plain, part.key)[0]
