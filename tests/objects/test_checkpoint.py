"""Checkpoints: the form of the note, and every way of putting a store back or rewriting it."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import audit, checkpoint, signing
from remem.objects.checkpoint import Checkpoint, Key, Malformed
from remem.objects.errors import IntegrityError, Refused, UsageError
from remem.objects.findings import Report
from remem.objects.fsck import verify
from remem.objects.kv import Txn
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store

from .attacked import add, both, chain_anew, last_row, number
from .protected import SIGNER, STORE_ID, STRANGER, Protected, append_row

ORIGIN = "remem/audit-chain/000102030405060708090a0b0c0d0e0f"
KEY = Key(ORIGIN, SIGNER.public)
GIVEN = Checkpoint(ORIGIN, 7, bytes(range(32)), 1_700_000_000_000_000, 3)
NOTE = checkpoint.sign(GIVEN, SIGNER)


# -- the form -----------------------------------------------------------------------------------


def read_by_the_specification(note: bytes, public: bytes, name: str) -> list[str]:
    """Lines of the text, once its signature verifies: written from c2sp.org/signed-note alone."""
    at = note.rindex(b"\n\n")
    text, rest = note[: at + 1], note[at + 2 :]
    assert rest.endswith(b"\n")
    (line,) = rest[:-1].split(b"\n")
    dash, signer, encoded = line.split(b" ")
    assert dash == "\u2014".encode() and signer == name.encode()
    data = base64.b64decode(encoded, validate=True)
    wanted = hashlib.sha256(name.encode() + b"\x0a" + b"\x01" + public).digest()[:4]
    assert data[:4] == wanted and len(data) == 68
    Ed25519PublicKey.from_public_bytes(public).verify(data[4:], text)
    return text.decode().split("\n")[:-1]


def test_a_note_is_one_by_the_specification() -> None:
    lines = read_by_the_specification(NOTE.encode(), SIGNER.public, ORIGIN)
    assert lines[:3] == [ORIGIN, "7", base64.b64encode(bytes(range(32))).decode()]
    assert lines[3:] == [checkpoint.KIND, "clock 1700000000000000", "generation 3"]
    assert all(lines) and "+" not in ORIGIN and " " not in ORIGIN
    with pytest.raises(InvalidSignature):
        read_by_the_specification(NOTE.replace("\n7\n", "\n8\n").encode(), SIGNER.public, ORIGIN)


def test_notes_of_other_makers_are_read_alike() -> None:
    """The examples of the two specifications: their form is right, their keys are not ours."""
    poem = (
        "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\n"
        "ed \u00e8 subito sera.\n\n"
        "\u2014 quasimodo.example/salvatore NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC"
        "+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n"
    )
    note = checkpoint.parse(poem)
    assert note.text.endswith("sera.\n") and note.text.count("\n") == 4
    ((name, key_id, signature),) = note.signatures
    assert (name, key_id.hex()) == ("quasimodo.example/salvatore", "367ba04b")
    assert len(signature) == 64
    log = (
        "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
        "\u2014 example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeO"
        "oRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    )
    with pytest.raises(Malformed, match="something else"):
        checkpoint.read_text(checkpoint.parse(log).text)
    with pytest.raises(Malformed, match="no known key"):
        checkpoint.verified_text(checkpoint.parse(log), [KEY])


def test_a_note_reads_back() -> None:
    assert checkpoint.read_text(checkpoint.verified_text(checkpoint.parse(NOTE), [KEY])) == GIVEN
    more = NOTE.rstrip("\n") + "\n\u2014 witness.example AAAAAAAAAA==\n"  # an unknown co-signer
    assert checkpoint.verified_text(checkpoint.parse(more), [KEY]) == checkpoint.text_of(GIVEN)


@given(st.integers(0, len(NOTE) - 1), st.characters(codec="utf-8"))
def test_any_changed_letter_of_a_note_is_found(at: int, letter: str) -> None:
    changed = NOTE[:at] + letter + NOTE[at + 1 :]
    if changed == NOTE:
        return
    with pytest.raises(Malformed):
        checkpoint.verified_text(checkpoint.parse(changed), [KEY])


def test_a_verifier_key_reads_back_and_is_checked() -> None:
    word = checkpoint.verifier(KEY)
    assert checkpoint.parse_verifier(f" {word}\n") == KEY
    name, digits, encoded = word.split("+", 2)
    for bad in ("", name, f"{name}+00000000+{encoded}", f"other+{digits}+{encoded}", word[:-4]):
        with pytest.raises(UsageError):
            checkpoint.parse_verifier(bad)


@given(st.integers(1, 4), st.integers(0, 3), st.booleans())
def test_a_file_of_notes_splits_into_them(count: int, gap: int, torn: bool) -> None:
    notes = [checkpoint.sign(msgspec.structs.replace(GIVEN, rows=n), SIGNER) for n in range(count)]
    text = ("\n" * gap).join(notes)
    found = checkpoint.split(text + ("\n" + NOTE[:40] if torn else ""))
    assert found[:count] == notes
    if torn:
        with pytest.raises(Malformed):
            checkpoint.verified_text(checkpoint.parse(found[-1]), [KEY])


def test_a_file_is_only_added_to(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    checkpoint.append(str(path), NOTE)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    checkpoint.append(str(path), NOTE)
    assert checkpoint.split(checkpoint.read_file(str(path))) == [NOTE, NOTE]
    whole = path.read_text()
    path.write_text(f"{whole}\n{NOTE[:-20]}")  # cut off by a crash
    checkpoint.append(str(path), NOTE)
    found = checkpoint.split(checkpoint.read_file(str(path)))
    assert found[:2] == [NOTE, NOTE] and found[-1] == NOTE and len(found) == 4
    assert path.read_text().startswith(whole)


# -- forgeries ----------------------------------------------------------------------------------


class Kept:
    """A protected store, checkpoints of it, and a copy of it as it was at the first."""

    def __init__(self, folder: Path) -> None:
        self.world = Protected(folder / "store")
        self.older = folder / "older"
        self.notes = [self.note()]
        self.world.store.close()
        shutil.copytree(self.world.root, self.older)
        self.world.record("pin", self.world.ids[0], "verified")
        self.world.record("approve", self.world.ids[1], "verified", signer=SIGNER)
        self.notes.append(self.note())

    def note(self) -> str:
        store = self.world.store
        with store.read(maintenance_grant()) as reader:
            return checkpoint.sign(checkpoint.present(reader.txn, store.generation), SIGNER)

    def check(self, *, pinned: list[Key] | None = None, fast: bool = False) -> Report:
        self.world.store.close()
        store = Store(str(self.world.root))
        notes = [(str(n), note) for n, note in enumerate(self.notes, start=1)]
        return verify(
            store,
            fast=fast,
            also=lambda txn, generation, found: checkpoint.compare(
                txn, generation, found, notes, pinned or []
            ),
        )

    def verdicts(self, **options: object) -> list[bool]:
        report = self.check(**options)  # type: ignore[arg-type]
        assert report.ok is not bool(report.problems)
        return [one.ok for one in report.checkpoints]


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    made = Kept(tmp_path)
    report = made.check(pinned=[KEY])
    assert report.ok and [one.ok for one in report.checkpoints] == [True, True]
    return made


def test_a_store_that_went_on_holds(kept: Kept) -> None:
    add(kept.world.store, text="later")
    kept.notes.append(kept.note())
    assert kept.verdicts() == kept.verdicts(fast=True) == [True, True, True]


def cut_tail(txn: Txn) -> None:
    """Take the last entry and its row away, with head, counter and state as they were before."""
    from remem.objects import refs

    last = last_row(txn)
    row = audit.decode_row(txn.get("audit", number(last)) or b"")
    txn.delete("audit", number(last))
    prefix = row.part.to_bytes(4, "big")
    assert row.resource is not None
    state = refs.decode_state(txn.get("refs", prefix + row.resource) or b"")
    entries = []
    seq = state.last
    while seq:
        entry = signing.read(txn, prefix, seq)
        assert entry is not None
        entries.append(entry)
        seq = entry.prev
    before = refs.fold(reversed(entries[1:]))
    assert before is not None
    txn.put("refs", prefix + row.resource, refs.encode_state(before))
    txn.delete("log", prefix + number(row.entry))
    txn.delete("signs", prefix + number(row.entry))
    txn.put("heads", prefix, number(row.entry - 1))
    previous = txn.get("audit", number(last - 1)) or b""
    txn.put("meta", b"audit", audit.encode_head(audit.Head(last - 1, audit.row_hash(previous))))
    clock = audit.decode_row(previous).time
    txn.put("meta", b"clock", clock.to_bytes(8, "big", signed=True))


def test_a_cut_tail_is_found(kept: Kept) -> None:
    kept.world.tamper(cut_tail)
    assert kept.world.check().ok  # the control: the store holds in itself
    assert kept.verdicts() == [True, False]
    assert "ends with row 6, it had 7" in kept.check().problems[0].what


def test_a_cut_tail_that_grew_again_is_found(kept: Kept) -> None:
    kept.world.tamper(cut_tail)
    add(kept.world.store, text="in its place")
    assert kept.world.check().ok
    assert kept.verdicts() == [True, False]


def rename(txn: Txn) -> None:
    """Say in an early row, that names no entry, that somebody else did it."""
    row = audit.decode_row(txn.get("audit", number(5)) or b"")
    changed = audit.encode_row(msgspec.structs.replace(row, principal="nobody"))
    txn.put("audit", number(5), changed)


def test_a_rewritten_chain_with_recomputed_hashes_is_found(kept: Kept) -> None:
    kept.world.tamper(rename)
    assert not kept.check(fast=True).ok  # without recomputing it is found anyway
    kept.world.tamper(chain_anew)
    assert kept.world.check().audit.first_bad is None  # the chain holds in itself
    assert kept.verdicts() == kept.verdicts(fast=True) == [False, False]


def drop_refusal(txn: Txn) -> None:
    """Take a row out of the middle; `chain_anew` counts and links those behind it again."""
    txn.delete("audit", number(6))


def test_relinked_rows_are_found(tmp_path: Path) -> None:
    kept = Kept.__new__(Kept)
    kept.world = Protected(tmp_path / "store")
    kept.world.write(lambda tx: tx.refuse("approve", "unsigned", 0, None))
    kept.world.record("pin", kept.world.ids[0], "verified")
    kept.notes = [kept.note()]
    add(kept.world.store, text="later")
    assert kept.verdicts() == [True]
    kept.world.tamper(both(drop_refusal, chain_anew))
    assert kept.world.check().ok  # nobody misses the refusal that was taken out
    assert kept.verdicts() == [False]
    assert "row 7 has another hash" in kept.check().problems[0].what


def test_rows_that_swapped_places_are_found(kept: Kept) -> None:
    def swap(txn: Txn) -> None:
        one, two = txn.get("audit", number(1)) or b"", txn.get("audit", number(2)) or b""
        txn.put("audit", number(1), two)
        txn.put("audit", number(2), one)

    kept.world.tamper(both(swap, chain_anew))
    assert kept.verdicts(fast=True) == [False, False]


@pytest.mark.parametrize("used", [False, True], ids=["as it was", "and used"])
def test_an_older_copy_of_the_whole_store_is_found(kept: Kept, used: bool) -> None:
    kept.world.store.close()
    shutil.rmtree(kept.world.root)
    shutil.copytree(kept.older, kept.world.root)
    if used:
        for text in ("one", "two", "three"):
            add(kept.world.store, text=text)
    assert kept.world.check().ok
    assert kept.verdicts() == [True, False]


def test_another_store_is_found(kept: Kept, tmp_path: Path) -> None:
    def rename_store(txn: Txn) -> None:
        txn.put("meta", signing.STORE_ROW, bytes(16))

    other = Protected(tmp_path / "other", protect=False)
    other.write(lambda tx: signing.protect(tx, bytes(16)), signer=SIGNER)
    assert other.check().ok
    kept.world.store.close()
    kept.world = other
    # Its own key has another name there, as the store has.
    assert kept.verdicts() == [False, False]
    report = kept.check(pinned=[KEY])
    assert {one.what[0] for one in report.checkpoints} == {
        "it is of another store, or this one has lost its id"
    }
    assert kept.world.check().ok


def test_a_store_rewritten_with_a_key_of_its_own_is_found_by_the_pinned_one(
    kept: Kept, tmp_path: Path
) -> None:
    forged = Protected(tmp_path / "forged", protect=False)
    forged.write(lambda tx: signing.protect(tx, STORE_ID), signer=STRANGER)
    kept.world.store.close()
    kept.world = forged
    with forged.store.read(maintenance_grant()) as reader:
        now = checkpoint.present(reader.txn, forged.store.generation)
    kept.notes = [checkpoint.sign(now, STRANGER)]
    assert kept.verdicts() == [True]  # the store brought its own key
    report = kept.check(pinned=[KEY])
    assert [p.where for p in report.problems] == ["meta owner", "checkpoint 1"]
    assert "no known key" in report.checkpoints[0].what[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda note: note.replace("\n5\n", "\n4\n"), "does not verify"),
        (lambda note: checkpoint.sign(GIVEN, STRANGER), "no known key"),
        (lambda note: note[:-10], "cut off"),
        (lambda note: "nothing of the kind\n", "no signature"),
        (lambda note: note.replace("\u2014 ", "- "), "no signature"),
    ],
)
def test_a_bad_checkpoint_is_named_and_the_others_are_checked(
    kept: Kept, change: Callable[[str], str], says: str
) -> None:
    kept.notes[0] = change(kept.notes[0])
    assert kept.verdicts() == [False, True]
    assert says in kept.check().checkpoints[0].what[0]


def test_a_store_that_does_not_hold_signs_nothing_more(kept: Kept) -> None:
    notes = [("1", kept.notes[0]), ("2", kept.notes[1])]
    store = kept.world.store
    with store.read(maintenance_grant()) as reader:
        checkpoint.refuse_inconsistent(reader.txn, store.generation, notes)
    kept.world.tamper(cut_tail)
    with store.read(maintenance_grant()) as reader, pytest.raises(IntegrityError):
        checkpoint.refuse_inconsistent(reader.txn, store.generation, notes)


def test_a_new_key_leaves_the_old_checkpoints_good(kept: Kept) -> None:
    kept.world.write(signing.unprotect, signer=SIGNER)
    kept.world.write(lambda tx: signing.protect(tx, STORE_ID), signer=STRANGER)
    assert kept.verdicts() == [True, True]


def test_a_store_that_was_never_protected_has_none(tmp_path: Path) -> None:
    world = Protected(tmp_path / "store", protect=False)
    with world.store.read(maintenance_grant()) as reader, pytest.raises(Refused) as refused:
        checkpoint.present(reader.txn, 1)
    assert "protect" in refused.value.hint


def test_a_row_that_nobody_meant_is_part_of_what_is_vouched_for(kept: Kept) -> None:
    kept.world.tamper(lambda txn: append_row(txn, action="unlock", outcome="no_terminal"))
    assert kept.verdicts() == [True, True]  # later rows are not the checkpoint's concern
    kept.notes.append(kept.note())
    assert kept.verdicts() == [True, True, True]
