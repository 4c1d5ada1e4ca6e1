"""Checkpoints: signed notes of the head of the audit chain, to be kept away from the store.

A store that was put back to an earlier state, or rewritten as a whole with all its hashes, holds in
itself.  Held against a checkpoint that was kept elsewhere it does not.

The text is a checkpoint of the C2SP specification: origin, number of rows, hash, extension lines.
The hash is the head of a hash chain and not the root of a Merkle tree, so tools for transparency
logs can check the signature and read the numbers, but ask for no proofs.

Source: remem-store(5), CHECKPOINTS; c2sp.org/signed-note, c2sp.org/tlog-checkpoint.
"""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import os
import re
from typing import TYPE_CHECKING

import msgspec

from remem.objects import audit, keys, kv, signing
from remem.objects.errors import IntegrityError, NotFound, Refused, RememError, UsageError
from remem.objects.findings import CheckpointReport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.findings import Findings
    from remem.objects.kv import Txn

ORIGIN = "remem/audit-chain/"
KIND = "remem checkpoint 1: the hash is the head of a hash chain, not the root of a Merkle tree"
MAX_FILE_B = 16 << 20
MAX_SIGNATURES = 64
_DASH = "\u2014 "
_ED25519 = b"\x01"
_HASH_B = 32
_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}")


class Checkpoint(msgspec.Struct, frozen=True):
    """What a checkpoint vouches for.

    Attributes:
        origin: ``remem/audit-chain/`` and the id of the store.
        rows: rows of the audit chain.
        head: hash of the last one.
        clock: record time of the store, microseconds UTC.
        generation: number of the generation.
    """

    origin: str
    rows: int
    head: bytes
    clock: int
    generation: int


class Key(msgspec.Struct, frozen=True):
    """A key that signs checkpoints, under the name of the store that it belongs to."""

    name: str
    public: bytes

    @property
    def id(self) -> bytes:
        """The 4 bytes by which a note names it."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:4]


class Note(msgspec.Struct, frozen=True):
    """A signed text: lines, and signatures as (name, id of the key, signature)."""

    text: str
    signatures: list[tuple[str, bytes, bytes]]


class Malformed(ValueError):
    """What was read is no checkpoint."""


# -- making -------------------------------------------------------------------------------------


def origin_of(store: bytes) -> str:
    """Origin of the checkpoints of a store, and name of the key that signs them."""
    return ORIGIN + store.hex()


def present(txn: Txn, generation: int) -> Checkpoint:
    """What there is to vouch for now.

    Raises:
        Refused: the store was never protected, so that it has no id.
    """
    store = signing.store_id(txn)
    data = txn.get("meta", b"audit")
    if store is None or data is None:
        raise Refused(
            "a checkpoint is signed with the owner's key, and this store has none",
            hint="'remem owner protect' makes one",
        )
    head = audit.decode_head(data)
    clock = int.from_bytes(txn.get("meta", b"clock") or b"", "big", signed=True)
    return Checkpoint(origin_of(store), head.seq, head.hash, clock, generation)


def text_of(checkpoint: Checkpoint) -> str:
    """The lines that are signed."""
    lines = (
        checkpoint.origin,
        str(checkpoint.rows),
        base64.b64encode(checkpoint.head).decode(),
        KIND,
        f"clock {checkpoint.clock}",
        f"generation {checkpoint.generation}",
    )
    return "".join(f"{line}\n" for line in lines)


def sign(checkpoint: Checkpoint, signer: keys.Signer) -> str:
    """The signed note of a checkpoint."""
    text = text_of(checkpoint)
    key = Key(checkpoint.origin, signer.public)
    signature = base64.b64encode(key.id + signer.sign(text.encode())).decode()
    return f"{text}\n{_DASH}{key.name} {signature}\n"


def append(path: str, note: str) -> None:
    """Add a note to the end of a file, which is made 0600 where it is missing.

    A blank line stands between two notes.  A crash leaves the note or a part of it, and nothing of
    what was there before changes.

    Raises:
        StoreError: the file cannot be written.
    """
    import fcntl

    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            size = os.fstat(handle).st_size
            tail = os.pread(handle, 1, size - 1) if size else b""
            gap = "" if not size else "\n" if tail == b"\n" else "\n\n"
            data = (gap + note).encode()
            if os.write(handle, data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise kv.translate(error, path) from error


# -- reading ------------------------------------------------------------------------------------


def verifier(key: Key) -> str:
    """A key as people keep it: name, id and public key in one word."""
    return f"{key.name}+{key.id.hex()}+{base64.b64encode(_ED25519 + key.public).decode()}"


def parse_verifier(text: str) -> Key:
    """The key of such a word.

    Raises:
        UsageError: it is none, or its parts do not belong together.
    """
    name, _, rest = text.strip().partition("+")
    digits, _, encoded = rest.partition("+")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    key = Key(name, data[1:])
    good = data[:1] == _ED25519 and len(key.public) == keys.PUBLIC_B
    if not name or not good or key.id.hex() != digits:
        raise UsageError(
            f"'{text[:80]}' is no verifier key", hint="'remem owner status' prints the store's own"
        )
    return key


def read_file(path: str) -> str:
    """The text of a file of checkpoints.

    Raises:
        NotFound: there is none.
        StoreError: it cannot be read.
        UsageError: it is larger than 16 MiB, or no UTF-8.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_B + 1)
    except FileNotFoundError as error:
        raise NotFound(f"there is no file '{path}'") from error
    except OSError as error:
        raise kv.translate(error, path) from error
    if len(data) > MAX_FILE_B:
        raise UsageError(f"'{path}' is larger than {MAX_FILE_B >> 20} MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' is no text in UTF-8") from error


def split(text: str) -> list[str]:
    """The notes of a file: lines, a blank line, signatures; blank lines may stand between notes.

    What is no note is given as it is, for `parse` to say so.
    """
    notes: list[str] = []
    block: list[str] = []
    unsigned = False  # the last of the notes waits for its signatures

    def end_block() -> None:
        nonlocal unsigned
        if not block:
            return
        if unsigned and block[0].startswith(_DASH):
            notes[-1] += "\n" + "".join(block)
            unsigned = False
        else:
            notes.append("".join(block))
            unsigned = not block[0].startswith(_DASH)
        block.clear()

    *lines, rest = text.split("\n")
    for line in (*(f"{line}\n" for line in lines), rest):  # the rest is empty, or was cut off
        if line in ("", "\n"):
            end_block()
        else:
            if block and block[0].startswith(_DASH) and not line.startswith(_DASH):
                end_block()
            block.append(line)
    end_block()
    return notes


def parse(note: str) -> Note:
    """The text and the signatures of a note.

    Raises:
        Malformed: it is none.
    """
    if any(ord(c) < 32 and c != "\n" for c in note) or not note.endswith("\n"):
        raise Malformed("it holds control characters, or was cut off")
    text, found, rest = note.rpartition("\n\n")
    if not found:
        raise Malformed("no signature follows its text")
    signatures = []
    for line in rest.split("\n")[:-1]:
        name, _, encoded = line.removeprefix(_DASH).partition(" ")
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            data = b""
        if not line.startswith(_DASH) or not name or len(data) < 5:
            raise Malformed("a line after its text is no signature")
        signatures.append((name, data[:4], data[4:]))
    if not 0 < len(signatures) <= MAX_SIGNATURES:
        raise Malformed(f"it has no signature, or more than {MAX_SIGNATURES}")
    return Note(text + "\n", signatures)


def read_text(text: str) -> Checkpoint:
    """What the text of a note vouches for; extension lines that are not known are passed over.

    Raises:
        Malformed: it is no checkpoint of an audit chain.
    """
    lines = text.split("\n")[:-1]
    if len(lines) < 3 or not all(lines) or not _NUMBER.fullmatch(lines[1]):
        raise Malformed("it is no checkpoint")
    try:
        head = base64.b64decode(lines[2], validate=True)
    except (binascii.Error, ValueError):
        head = b""
    if len(head) != _HASH_B:
        raise Malformed("its hash is none")
    if not lines[0].startswith(ORIGIN) or KIND not in lines[3:]:
        raise Malformed("it is a checkpoint of something else than an audit chain")
    numbers = {"clock": 0, "generation": 0}
    for line in lines[3:]:
        word, _, value = line.partition(" ")
        if word in numbers and _NUMBER.fullmatch(value):
            numbers[word] = int(value)
    return Checkpoint(lines[0], int(lines[1]), head, numbers["clock"], numbers["generation"])


def verified_text(note: Note, known: Iterable[Key]) -> str:
    """The text of a note, once a known key has signed it.

    Raises:
        Malformed: no known key has, or the signature of one does not verify.
    """
    good = False
    for name, key_id, signature in note.signatures:
        for key in known:
            if (key.name, key.id) == (name, key_id):
                if not keys.verify(key.public, signature, note.text.encode()):
                    raise Malformed("its signature does not verify")
                good = True
    if not good:
        raise Malformed("no known key has signed it")
    return note.text


# -- comparing ----------------------------------------------------------------------------------


def own_keys(txn: Txn) -> list[Key]:
    """Every key that the store says it was protected with; a rewritten store says its own."""
    store = signing.store_id(txn)
    if store is None:
        return []
    found: dict[bytes, None] = {}
    own = signing.owner_key(txn)
    if own is not None:
        found[own.public] = None
    for _, data in txn.scan("audit"):
        row = audit.decode_row(data)
        if row.action == signing.PROTECT and row.outcome == "done" and row.resource is not None:
            found[row.resource] = None
    return [Key(origin_of(store), public) for public in found]


def check(
    txn: Txn, generation: int, notes: Iterable[tuple[str, str]], known: list[Key]
) -> list[CheckpointReport]:
    """Hold a store against checkpoints.

    Whoever calls it has to walk the chain as well: that a row has the hash that a checkpoint names
    vouches for the rows before it only as far as the chain holds.

    Args:
        txn: a snapshot of the store.
        generation: number of its generation.
        notes: (where it is from, note).
        known: the keys that may have signed them.
    """
    found = []
    for where, note in notes:
        one = CheckpointReport(where)
        try:
            checkpoint = read_text(verified_text(parse(note), known))
        except Malformed as error:
            one.what.append(str(error))
        else:
            one.origin, one.rows, one.clock = (
                checkpoint.origin,
                checkpoint.rows,
                checkpoint.clock,
            )
            one.what += _compare(txn, generation, checkpoint)
        one.ok = not one.what
        found.append(one)
    return found


def _compare(txn: Txn, generation: int, checkpoint: Checkpoint) -> list[str]:
    store = signing.store_id(txn)
    if store is None or checkpoint.origin != origin_of(store):
        return ["it is of another store, or this one has lost its id"]
    last = next(txn.scan("audit", reverse=True), None)
    rows = 0 if last is None else int.from_bytes(last[0], "big")
    if rows < checkpoint.rows:
        return [
            f"the chain ends with row {rows}, it had {checkpoint.rows}: "
            "its tail was cut off, or an older copy of the store was put back"
        ]
    found = []
    data = txn.get("audit", checkpoint.rows.to_bytes(8, "big")) if checkpoint.rows else None
    head = audit.ROOT if data is None else audit.row_hash(data)
    if head != checkpoint.head:
        found.append(
            f"row {checkpoint.rows} has another hash: rows up to it were changed, taken out or "
            "linked anew, or an older copy of the store was put back and used"
        )
    clock = int.from_bytes(txn.get("meta", b"clock") or b"", "big", signed=True)
    if clock < checkpoint.clock:
        found.append("the clock of the store was ahead of where it is now")
    if generation < checkpoint.generation:
        found.append(f"the store is in generation {generation}, it was in {checkpoint.generation}")
    return found


def compare(
    txn: Txn,
    generation: int,
    found: Findings,
    notes: Iterable[tuple[str, str]],
    pinned: list[Key],
) -> None:
    """Hold a store against checkpoints for ``remem verify``.

    Args:
        txn: a snapshot of the store.
        generation: number of its generation.
        found: takes what is wrong.
        notes: (where it is from, note).
        pinned: keys that were kept elsewhere; with none, those that the store itself names count.
    """
    if pinned:
        own = signing.owner_key(txn)
        if own is not None and own.public not in {key.public for key in pinned}:
            found.problem("meta owner", "it is another key than the one that was given")
    try:
        known = pinned or own_keys(txn)
        found.report.checkpoints = check(txn, generation, notes, known)
    except RememError as error:
        found.problem("checkpoint", f"the checkpoints are not checked: {error}")
        return
    for one in found.report.checkpoints:
        for what in one.what:
            found.problem(f"checkpoint {one.where}", what)


def refuse_inconsistent(txn: Txn, generation: int, notes: Iterable[tuple[str, str]]) -> None:
    """Raise when a store does not hold what it vouched for before; then it signs nothing more.

    Raises:
        IntegrityError: one of the earlier checkpoints does not hold.
    """
    for one in check(txn, generation, notes, own_keys(txn)):
        if not one.ok:
            raise IntegrityError(
                f"the earlier checkpoint '{one.where}' does not hold: {one.what[0]}",
                hint="look at it with 'remem verify --checkpoint'; nothing was signed",
            )
