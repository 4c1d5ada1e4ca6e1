"""A second reader of the store, written from remem-store(5) alone; nothing of remem is imported.

``python tests/formats/decoder.py STORE`` lists what a store holds.  What does not hold as the page
says raises Wrong.
"""

from __future__ import annotations

import os
import struct
import sys
import unicodedata
from typing import Any

import lmdb
from blake3 import blake3

TABLES = (
    "meta parts lanes heads objects refs revs log audit sources cites receipts replaces chains "
    "aliases jobs tombs values waits refused proposed lists principals signs"
).split()
OPS = (
    "create revise rollback supersede close reopen quarantine release approve reject orphan expire "
    "promote pin unpin hold unhold flag erase purge"
).split()
STATUSES = (
    "verified provisional model_claim user_belief legacy_unverified pending quarantined orphaned "
    "rejected expired erased"
).split()
SETS = {"hold": 1, "pin": 2, "flag": 4, "close": 8}
CLEARS = {"unhold": 1, "unpin": 2, "purge": 4, "reopen": 8}
FLAGGED = 4
KINDS = ("observation", "memory", "draft", "run")
ELEMENTS = {"observation": 14, "memory": 17, "draft": 8, "run": 8}
WAITING = ("pending", "quarantined")


class Wrong(Exception):
    """Something is not as the page says."""


def need(true: bool, what: str) -> None:
    """Raise unless true."""
    if not true:
        raise Wrong(what)


# -- MessagePack ------------------------------------------------------------------------------


class Unpacker:
    """Reads MessagePack values one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        need(len(piece) == size, "a value is cut short")
        self.at += size
        return piece

    def number(self, form: str) -> Any:
        return struct.unpack(">" + form, self.take(struct.calcsize(form)))[0]

    def value(self) -> Any:
        code = self.number("B")
        if code <= 0x7F:
            return code
        if code >= 0xE0:
            return code - 256
        if code <= 0x8F:
            return self.map(code & 15)
        if code <= 0x9F:
            return self.array(code & 15)
        if code <= 0xBF:
            return self.take(code & 31).decode()
        if code in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[code]
        if 0xC4 <= code <= 0xC6:
            return self.take(self.number("BHI"[code - 0xC4]))
        if code in (0xCA, 0xCB):
            return self.number("fd"[code - 0xCA])
        if 0xCC <= code <= 0xD3:
            return self.number("BHIQbhiq"[code - 0xCC])
        if 0xD9 <= code <= 0xDB:
            return self.take(self.number("BHI"[code - 0xD9])).decode()
        if code in (0xDC, 0xDD):
            return self.array(self.number("HI"[code - 0xDC]))
        if code in (0xDE, 0xDF):
            return self.map(self.number("HI"[code - 0xDE]))
        raise Wrong(f"code {code:#x}")

    def array(self, count: int) -> list[Any]:
        return [self.value() for _ in range(count)]

    def map(self, count: int) -> dict[str, Any]:
        return {self.value(): self.value() for _ in range(count)}


def unpack(data: bytes) -> Any:
    """The one value that data holds."""
    unpacker = Unpacker(data)
    value = unpacker.value()
    need(unpacker.at == len(data), "bytes after a value")
    return value


# -- objects ----------------------------------------------------------------------------------


def read_object(data: bytes, key: bytes) -> tuple[str, list[Any], bool]:
    """(kind, elements, True when it is salted with this key)."""
    header, _, _ = data.partition(b"\0")
    kind, version = header.decode("ascii").split(" ")
    need(version == "1" and kind in ELEMENTS, f"unknown kind {header!r}")
    start = len(header) + 1
    elements = unpack(data[start:])
    need(elements[0] == kind and len(elements) == ELEMENTS[kind], "not the elements of its kind")
    unpacker = Unpacker(data)
    unpacker.at = start + (1 if data[start] & 0xF0 == 0x90 else 3)
    need(unpacker.value() == kind, "no tag")
    need(unpacker.value() == elements[1] and len(elements[1]) == 16, "no salt")
    salt_at = unpacker.at - 16
    zeroed = data[:salt_at] + bytes(16) + data[unpacker.at :]
    return kind, elements, blake3(zeroed, key=key).digest(16) == elements[1]


def digest(key: bytes, *parts: bytes, size: int = 16) -> bytes:
    """A digest as keys of tables hold it."""
    hasher = blake3(key=key)
    for part in parts:
        hasher.update(struct.pack("<Q", len(part)) + part)
    return hasher.digest(size)


def folded(name: str) -> str:
    """A name as it is compared."""
    words = unicodedata.normalize("NFKC", name).casefold().replace("_", " ").split()
    return " ".join(words)


# -- the store --------------------------------------------------------------------------------


class Store:
    """Everything in a store, checked against the page while it is read."""

    def __init__(self, root: str) -> None:
        with open(os.path.join(root, "FORMAT"), "rb") as file:
            need(file.read() == b"remem store 1\n", "another format")
        with open(os.path.join(root, "GENERATION"), encoding="ascii") as file:
            folder = os.path.join(root, "canon", f"g{int(file.read())}")
        self.tables: dict[str, dict[bytes, bytes]] = {}
        with lmdb.open(folder, readonly=True, max_dbs=64) as env:
            handles = {name: env.open_db(name.encode(), create=False) for name in TABLES}
            with env.begin() as txn:
                for name, handle in handles.items():
                    self.tables[name] = dict(txn.cursor(handle))
        self.parts = self._parts()
        self.lanes = self._lanes()
        self.rows = self._rows()
        self.attested: dict[int, bytes] = {}  # principals and digests of what they are
        self.entries = self._entries()
        self.states = self._states()
        self.objects = self._objects()
        self._sources()
        self._cites()
        self._tombs()
        self._lists()
        self._review()
        self._principals()
        self._attested()

    def _parts(self) -> dict[int, list[Any]]:
        parts = {}
        for key, value in self.tables["parts"].items():
            if key[:1] == b"n":
                part = unpack(value)
                number = struct.unpack(">I", key[1:])[0]
                need(part[0] == number and len(part[4]) == 32, "a partition")
                names = b"k" + "\0".join(part[1:4]).encode()
                need(self.tables["parts"][names] == key[1:], "names of a partition")
                parts[number] = part
        need(len(self.tables["parts"]) == 2 * len(parts), "names of no partition")
        return parts

    def _lanes(self) -> dict[tuple[int, int], list[str]]:
        lanes = {}
        for key, value in self.tables["lanes"].items():
            if key[4:5] == b"n":
                names = unpack(value)
                name_key = key[:4] + b"k" + blake3("\0".join(names).encode()).digest()
                need(self.tables["lanes"][name_key] == key[5:], "names of a lane")
                lanes[struct.unpack(">IxI", key)] = names
        need(len(self.tables["lanes"]) == 2 * len(lanes), "names of no lane")
        return lanes

    def _rows(self) -> list[list[Any]]:
        rows, before, time = [], bytes(32), 0
        for number, (key, value) in enumerate(self.tables["audit"].items(), start=1):
            row = unpack(value)
            need(key == struct.pack(">Q", number) and row[0] == number, "number of a row")
            need(row[10] == before, "the chain is broken")
            need(row[1] >= time, "time of a row")
            before, time = blake3(b"remem audit 1\0" + value).digest(), row[1]
            rows.append(row)
        if rows:
            need(unpack(self.tables["meta"][b"audit"]) == [len(rows), before], "head of the chain")
            need(struct.unpack(">q", self.tables["meta"][b"clock"])[0] >= time, "the clock")
        return rows

    def _entries(self) -> dict[int, list[list[Any]]]:
        log: dict[int, list[list[Any]]] = {number: [] for number in self.parts}
        for key, value in self.tables["log"].items():
            part, seq = struct.unpack(">IQ", key)
            entry = unpack(value)
            log[part].append(entry)
            need(entry[0] == seq == len(log[part]), "number of an entry")
        told = {number: 0 for number in log}
        for row in self.rows:
            part, ref, outcome, seq = row[5:9]
            if not seq:
                if row[4] == "principal" and row[9] is not None:
                    self.attested[int(row[7].rpartition("-")[2])] = row[9]
                else:
                    need(row[9] is None, "digest without an entry")
                continue
            told[part] += 1
            need(seq == told[part], "entries out of order")
            entry = log[part][seq - 1]
            value = self.tables["log"][struct.pack(">IQ", part, seq)]
            need(blake3(value).digest() == row[9], "digest of an entry")
            need((ref, row[4], outcome) == (entry[2], OPS[entry[1]], "done"), "row and entry")
            if len(entry) < 17 or entry[16] is None:
                need(row[1:4] == entry[9:12], "row and entry")
            need(row[1] >= entry[9], "time of an entry")
        for part, entries in log.items():
            need(told[part] == len(entries), "entries without rows")
            counted = self.tables["heads"].get(struct.pack(">I", part), bytes(8))
            need(counted == struct.pack(">Q", len(entries)), "counter of a log")
            need(entries == sorted(entries, key=lambda e: e[9]), "times of entries")
        return log

    def _states(self) -> dict[tuple[int, bytes], list[Any]]:
        states: dict[tuple[int, bytes], list[Any]] = {}
        for part, entries in self.entries.items():
            for entry in entries:
                op, ref = OPS[entry[1]], entry[2]
                before = states.get((part, ref))
                if before is None:
                    need(op == "create" and entry[4] == ref, "beginning of a ref")
                    need(entry[3] is None and entry[15] == 0, "beginning of a ref")
                    first, created, flags = entry[0], entry[9], 0
                else:
                    need(op != "create", "a ref begins twice")
                    need(entry[3] == before[0] and entry[15] == before[6], "chain of a ref")
                    first, created, flags = before[5], before[7], before[11]
                    if entry[4] not in (ref, None):
                        owner = self.tables["revs"][struct.pack(">I", part) + entry[4]]
                        need(owner == ref, "row of a revision")
                flags = (flags | SETS.get(op, 0)) & ~CLEARS.get(op, 0)
                head, status, valid_from, valid_to, replaced_by = entry[4:9]
                states[part, ref] = [
                    head, status, valid_from, valid_to, replaced_by, first, entry[0], created,
                    entry[9], entry[13], entry[14], flags,
                ]  # fmt: skip
        cached = {
            (struct.unpack(">I", key[:4])[0], key[4:]): unpack(value)
            for key, value in self.tables["refs"].items()
        }
        need(cached == states, "cached states")
        return states

    def _objects(self) -> dict[tuple[int, bytes], tuple[str, list[Any]]]:
        objects = {}
        for key, data in self.tables["objects"].items():
            part, object_id = struct.unpack(">I", key[:4])[0], key[4:]
            need(blake3(data).digest() == object_id, "id of an object")
            kind, elements, salted = read_object(data, self.parts[part][4])
            ref = self.tables["revs"].get(key, object_id)
            state = self.states[part, ref]
            need(elements[2] == self.parts[part][1:4] + self.lanes[part, state[9]], "scope")
            need(kind == KINDS[state[10]], "type")
            need(salted or self._brought(part, object_id), "salt of an object")
            objects[part, object_id] = (kind, elements)
        for part, entries in self.entries.items():
            for entry in entries:
                state = self.states[part, entry[2]]
                if entry[4] is None:
                    continue
                present = (part, entry[4]) in objects
                if STATUSES[state[1]] != "erased":
                    need(present, "a head is missing")
                else:
                    need(not present or self._waits(part, entry[2]), "erased, yet there")
        return objects

    def _waits(self, part: int, ref: bytes) -> bool:
        tomb = self.tables["tombs"].get(struct.pack(">I", part) + ref)
        if tomb is None:
            return bool(self.states[part, ref][11] & FLAGGED)
        return unpack(tomb)[4] is None

    def _brought(self, part: int, object_id: bytes) -> bool:
        return any(
            entry[4] == object_id != entry[3] and len(entry) > 16 and entry[16] is not None
            for entry in self.entries[part]
        )

    def _sources(self) -> None:
        for (part, _), (kind, elements) in self.objects.items():
            if kind == "observation" and elements[8] is not None and elements[8][1]:
                uri, name, _ = elements[8]
                key = digest(self.parts[part][4], uri.encode(), name.encode())
                need(struct.pack(">I", part) + key in self.tables["sources"], "row of a source")
        for key, ref in self.tables["sources"].items():
            need((struct.unpack(">I", key[:4])[0], ref) in self.states, "source of nothing")

    def _cites(self) -> None:
        for (part, ref), state in self.states.items():
            prefix = struct.pack(">I", part)
            if state[4] is not None:
                need(prefix + state[4] + ref in self.tables["replaces"], "row of a successor")
            kind, elements = self.objects.get((part, state[0]), ("", []))
            for cited in elements[6] if kind == "memory" else []:
                need(prefix + cited + ref in self.tables["cites"], "row of a citation")

    def _tombs(self) -> None:
        for key, value in self.tables["tombs"].items():
            state = self.states[struct.unpack(">I", key[:4])[0], key[4:]]
            need(STATUSES[state[1]] == "erased", "tombstone of a living ref")
            for listed in unpack(value)[3]:
                need(key[:4] + listed in self.tables["values"], "value of a tombstone")
        for key, ref in self.tables["values"].items():
            need(key[4:] in unpack(self.tables["tombs"][key[:4] + ref])[3], "value of nothing")

    def _review(self) -> None:
        """What waits, what was refused, and what drafts rest on, each by a row of its own."""
        wanted = {
            struct.pack(">I", part) + ref
            for (part, ref), state in self.states.items()
            if STATUSES[state[1]] in WAITING
        }
        need(set(self.tables["waits"]) == wanted, "rows of what waits")
        for key, ref in self.tables["refused"].items():
            state = self.states[struct.unpack(">I", key[:4])[0], ref]
            need(STATUSES[state[1]] in ("quarantined", "rejected"), "refused, yet not held back")
        rows = set()
        for (part, ref), state in self.states.items():
            kind, fields = self.objects.get((part, state[0]), ("", []))
            prefix = struct.pack(">I", part)
            for op in fields[6] if kind == "draft" else []:
                need(len(op) == 14, "not the elements of an operation")
                named = [op[2], op[3], op[5], *op[8]]
                proposed = self.objects.get((part, op[2]), ("", []))
                named += proposed[1][6] if proposed[0] == "memory" else []
                rows |= {prefix + one + ref for one in named if one is not None}
        need(rows <= set(self.tables["proposed"]), "rows of a draft")
        for key in self.tables["proposed"]:
            state = self.states[struct.unpack(">I", key[:4])[0], key[36:]]
            need(KINDS[state[10]] == "draft", "a row of no draft")

    def _lists(self) -> None:
        """Rows of lists lead to an object of their kind, or to a ref that was pinned."""
        for key in self.tables["lists"]:
            part, letter, listed = struct.unpack(">I", key[:4])[0], key[4:5], key[5:]
            if letter == b"p":
                need((part, listed) in self.states, "a pin of no ref")
                continue
            kind, fields = self.objects[part, listed]
            wanted = {b"l": "loop", b"t": "task", b"b": "brief"}
            if letter == b"s":
                need(fields[13]["tier"] == "short", "a note that is none")
            else:
                need(fields[3 if kind == "memory" else 12] == wanted[letter], "a list")

    def _principals(self) -> None:
        """Principals by number, and the ways to them from their names and tokens."""
        rows = self.tables["principals"]
        wanted = {}
        for key, data in rows.items():
            if key[:1] == b"n":
                fields = unpack(data)
                need(len(fields) == 8 and fields[0] == struct.unpack(">I", key[1:])[0], "number")
                need(self.attested.get(fields[0]) == blake3(data).digest(), "not as attested")
                wanted[b"k" + fields[1].encode()] = key[1:]
                if fields[5] is not None:
                    wanted[b"t" + fields[5]] = key[1:]
                need((fields[5] is None) == (fields[7] is not None), "a token that ended")
        need({k: v for k, v in rows.items() if k[:1] != b"n"} == wanted, "ways to principals")

    def _attested(self) -> None:
        """What entries and rows attest, and what must be attested since the first row that does."""
        said: dict[tuple[str, int], bytes] = {}
        since: dict[int, int] = {}
        lifted = set()
        counted = dict.fromkeys(self.parts, 0)
        for row in self.rows:
            attests = (row[11] if len(row) > 11 else None) or {}
            if "gate" in attests and not since:
                since = {part: count + 1 for part, count in counted.items()}
            for name, value in attests.items():
                said[name, row[5] if name == "aliases" else 0] = value
            if row[8]:
                counted[row[5]] += 1
            elif row[4] == "lift" and row[7] == "done":
                lifted.add((row[5], row[6]))
        for name in ("gate", "retain"):
            if (name, 0) in said:
                row = self.tables["meta"][name.encode()]
                need(blake3(row).digest() == said[name, 0], f"attested {name}")
        for (name, part), value in said.items():
            if name == "aliases":
                prefix = struct.pack(">I", part)
                rows = [r for r in self.tables["aliases"].items() if r[0][:4] == prefix]
                words = [word for key, data in rows for word in (key[4:], data)]
                need(digest(self.parts[part][4], b"aliases", *words, size=32) == value, "aliases")
        receipts, facts = set(), {}
        for part, entries in self.entries.items():
            prefix = struct.pack(">I", part)
            for entry in entries:
                attests = (entry[17] if len(entry) > 17 else None) or {}
                erased = STATUSES[self.states[part, entry[2]][1]] == "erased"
                if "receipt" in attests and (part, entry[4]) in self.objects:
                    data = self.tables["receipts"][prefix + entry[4]]
                    key = self.parts[part][4]
                    made = digest(key, b"receipt", entry[4], data, size=32)
                    need(made == attests["receipt"], "attested receipt")
                    receipts.add(prefix + entry[4])
                if "single" in attests:
                    facts[part, entry[2]] = attests["single"]
                if "values" in attests and erased and (part, entry[2]) not in lifted:
                    values = unpack(self.tables["tombs"][prefix + entry[2]])[3]
                    need(blake3(b"".join(values)).digest() == attests["values"], "attested values")
                brings = entry[4] not in (None, entry[3])
                if brings and since and entry[0] >= since.get(part, 1):
                    row = prefix + entry[4]
                    need(
                        row in receipts or row not in self.tables["receipts"],
                        "a receipt of no entry",
                    )
        self._chains(facts)

    def _chains(self, facts: dict[tuple[int, bytes], bool]) -> None:
        """Facts that an entry puts into a chain are in the one that their triple names."""
        for (part, ref), single in facts.items():
            kind, fields = self.objects.get((part, self.states[part, ref][0]), ("", []))
            if kind == "memory":
                prefix = struct.pack(">I", part)
                subject, predicate, value = (folded(word) for word in fields[5])
                words = [self._stands(prefix, subject), predicate]
                words += [] if single else [self._stands(prefix, value)]
                key = digest(self.parts[part][4], b"chain", *(w.encode() for w in words))
                need(prefix + key + ref in self.tables["chains"], "row of a fact in its chain")

    def _stands(self, prefix: bytes, name: str) -> str:
        """What a folded name stands for."""
        key = self.parts[struct.unpack(">I", prefix)[0]][4]
        row = self.tables["aliases"].get(prefix + digest(key, b"alias", name.encode()))
        return name if row is None else self._stands(prefix, folded(unpack(row)[1]))

    def text(self, part: int, object_id: bytes) -> str:
        """Text of an object."""
        text = self.objects[part, object_id][1][4]
        assert isinstance(text, str)
        return text


def main(root: str) -> None:
    """List the refs of a store."""
    store = Store(root)
    for (part, ref), state in sorted(store.states.items()):
        words = store.parts[part][1:4] + store.lanes[part, state[9]]
        text = store.text(part, state[0]) if (part, state[0]) in store.objects else "(erased)"
        sys.stdout.write(f"{ref.hex()[:10]} {STATUSES[state[1]]} {'/'.join(words)} {text!r}\n")
    sys.stdout.write(f"{len(store.rows)} rows, {len(store.objects)} objects\n")


if __name__ == "__main__":
    main(sys.argv[1])
