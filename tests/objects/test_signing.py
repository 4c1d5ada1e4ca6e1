"""Signed decisions: the transaction refuses those without a signature, whoever makes them."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from remem.index import sweep
from remem.objects import forget, links, purge, refs, signing, tombs, undo
from remem.objects.errors import IntegrityError, Refused, ScopeRefused
from remem.objects.pack_import import import_pack
from remem.objects.pack_write import export
from remem.objects.scope import maintenance_grant
from remem.objects.signing import SignatureNeeded

from .attacked import ACTOR, add, both, chain_anew, edit_entry
from .protected import SIGNER, SIGNING, STORE_ID, STRANGER, Protected, append_row


@pytest.fixture
def world(tmp_path: Path) -> Protected:
    return Protected(tmp_path / "store")


def waits(world: Protected, status: str = "quarantined") -> bytes:
    """A ref that waits for a decision."""
    ref = world.ids[0]
    world.record("quarantine", ref, status)
    return ref


# -- the funnel ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "before", "status"),
    [
        ("approve", "pending", "verified"),
        ("approve", "provisional", "verified"),
        ("release", "quarantined", "provisional"),
        ("reject", "quarantined", "rejected"),
        # other operations that come to the same
        ("promote", "pending", "provisional"),
        ("reopen", "rejected", "verified"),
        ("pin", "provisional", "verified"),
        ("reject", "quarantined", "provisional"),
    ],
)
def test_a_decision_needs_the_key(world: Protected, op: str, before: str, status: str) -> None:
    ref = waits(world, before)
    count = len(world.signed())
    with pytest.raises(SignatureNeeded):
        world.record(op, ref, status)
    with pytest.raises(SignatureNeeded):
        world.record(op, ref, status, signer=STRANGER)
    assert world.status(ref) == before
    assert world.rows()[-2:] == [(op, "unsigned")] * 2
    assert world.record(op, ref, status, signer=SIGNER).status == refs.STATUS_CODE[status]
    assert len(world.signed()) == count + 1
    report = world.check()
    assert report.ok and report.signatures.bad == 0
    assert report.signatures.signed == count + 1


@pytest.mark.parametrize(
    ("op", "before", "status"),
    [
        ("approve", "pending", "verified"),
        ("release", "quarantined", "provisional"),
        ("reject", "quarantined", "rejected"),
    ],
)
def test_nothing_is_asked_without_protection(
    tmp_path: Path, op: str, before: str, status: str
) -> None:
    world = Protected(tmp_path / "store", protect=False)
    ref = waits(world, before)
    world.record(op, ref, status)
    report = world.check()
    assert report.ok and not world.signed()
    assert (report.signatures.signed, report.signatures.unsigned) == (0, 1)


@pytest.mark.parametrize("op", ["quarantine", "pin", "close", "expire", "hold", "erase", "orphan"])
def test_what_is_no_decision_needs_no_key(world: Protected, op: str) -> None:
    status = {"expire": "expired", "orphan": "orphaned", "quarantine": "quarantined"}.get(op)
    if op == "erase":
        world.write(lambda tx: forget.forget(tx, world.part, world.ids[1]))
    else:
        world.record(op, world.ids[1], status or "verified")
    assert len(world.signed()) == 1  # that of protecting
    assert world.check().ok


@pytest.mark.parametrize("reason", ["rederived", "withheld", links.LINK])
def test_what_the_store_takes_back_itself_is_no_decision(world: Protected, reason: str) -> None:
    assert signing.LINK == links.LINK
    ref = world.ids[0]
    world.record("reject", ref, "rejected", reason=reason)
    world.record("release", ref, "provisional", reason=reason)
    assert world.check().ok
    world.record("reject", ref, "rejected", signer=SIGNER, reason="asked")
    with pytest.raises(SignatureNeeded):  # a person's decision does not come back so
        world.record("release", ref, "provisional", reason=reason)


@pytest.mark.parametrize("first", ["pending", "quarantined"])
def test_an_automatic_rejection_is_no_way_out(world: Protected, first: str) -> None:
    ref = waits(world, first)
    world.record("reject", ref, "rejected", reason="rederived")
    for status in ("provisional", "verified", "model_claim"):
        with pytest.raises(SignatureNeeded):
            world.record("release", ref, status, reason="rederived")
    world.record("release", ref, first, reason="rederived")  # back to where it waits
    assert world.check().ok


def test_expiry_is_no_way_out(world: Protected) -> None:
    ref = waits(world)
    world.record("expire", ref, "expired")
    with pytest.raises(SignatureNeeded):
        world.record("promote", ref, "provisional")
    other = world.ids[1]
    world.record("expire", other, "expired")
    world.record("promote", other, "verified")  # what it was before it expired
    third = world.ids[2]
    world.record("quarantine", third, "provisional")
    world.record("expire", third, "expired")
    with pytest.raises(SignatureNeeded):
        world.record("promote", third, "verified")
    world.record("promote", third, "provisional")
    assert world.check().ok


def test_an_undo_that_lets_something_out_needs_the_key(world: Protected) -> None:
    ref = waits(world)
    rejected = world.record("reject", ref, "rejected", signer=SIGNER, reason="asked")
    world.write(lambda tx: undo.undo(tx, world.part, rejected.seq))  # it waits again
    assert world.status(ref) == "quarantined"
    with pytest.raises(SignatureNeeded):
        world.write(lambda tx: undo.undo(tx, world.part, rejected.prev))
    assert world.status(ref) == "quarantined"
    world.write(lambda tx: undo.undo(tx, world.part, rejected.prev), signer=SIGNER)
    assert world.status(ref) == "verified"
    assert world.check().ok


def test_undo_of_ones_own_words_needs_no_key(world: Protected) -> None:
    fresh = add(world.store, text="said by mistake")
    with world.store.read(maintenance_grant()) as reader:
        seq = reader.find(fresh.hex()).state.first
    made = world.write(lambda tx: undo.undo(tx, world.part, seq))
    assert world.status(fresh) == "rejected"
    world.write(lambda tx: undo.undo(tx, world.part, made[0].seq))
    assert world.status(fresh) == "verified"
    assert world.check().ok


def test_a_purge_needs_the_key(world: Protected) -> None:
    ref = world.ids[0]
    world.write(lambda tx: forget.forget(tx, world.part, ref))
    with pytest.raises(SignatureNeeded) as refused:
        sweep.run(world.store, ACTOR)
    assert refused.value.exit_code == 3 and refused.value.hint
    assert world.rows()[-1] == ("purge", "unsigned")
    with pytest.raises(SignatureNeeded):  # nor without the function that asks first
        purge.next_generation(world.store, ACTOR, [(world.part, ref)])
    with world.store.read(maintenance_grant()) as reader:
        assert [r for _, r in purge.waiting(reader)] == [ref]
    assert sweep.run(world.store, ACTOR, dry_run=True).refs == [ref]
    assert sweep.run(world.store, SIGNING).refs == [ref]
    assert sweep.run(world.store, ACTOR).refs == []  # nothing to sign
    report = world.check()
    assert report.ok and report.signatures.signed == 2


def test_lifting_and_restoring_need_the_key(world: Protected) -> None:
    one, two = world.ids[:2]
    for ref in (one, two):
        world.write(lambda tx, ref=ref: forget.forget(tx, world.part, ref))  # type: ignore[misc]
    with pytest.raises(SignatureNeeded):
        world.write(lambda tx: tombs.lift(tx, world.part, one))
    with pytest.raises(SignatureNeeded):
        world.write(lambda tx: forget.restore(tx, world.part, two))
    with world.store.read(maintenance_grant()) as reader:
        tomb = tombs.get(reader, world.part, one)
        assert tomb is not None and tomb.values
    assert world.status(two) == "erased"
    world.write(lambda tx: tombs.lift(tx, world.part, one), signer=SIGNER)
    world.write(lambda tx: forget.restore(tx, world.part, two), signer=SIGNER)
    assert world.status(two) == "verified"
    report = world.check()
    assert report.ok and report.signatures.signed == 3


def test_a_trusted_pack_needs_the_key(world: Protected, tmp_path: Path) -> None:
    other = Protected(tmp_path / "other", protect=False)
    add(other.store, text="said there")
    pack = io.BytesIO()
    export(other.store, maintenance_grant(), pack, all_scopes=True)
    data = pack.getvalue()
    with pytest.raises(SignatureNeeded):
        import_pack(world.store, ACTOR, io.BytesIO(data), trust=True)
    done = import_pack(world.store, ACTOR, io.BytesIO(data))  # not believed: no decision
    assert done.lowered
    assert world.check().ok
    world.store.close()
    third = Protected(tmp_path / "third")
    done = import_pack(third.store, SIGNING, io.BytesIO(data), trust=True)
    assert done.new and not done.lowered
    assert third.check().ok


def test_require_asks_before_the_work(world: Protected, tmp_path: Path) -> None:
    with pytest.raises(SignatureNeeded):
        world.write(lambda tx: signing.require(tx, "approve", world.part, world.ids[0]))
    assert world.rows()[-1] == ("approve", "unsigned")
    world.write(lambda tx: signing.require(tx, "approve", world.part, world.ids[0]), signer=SIGNER)
    plain = Protected(tmp_path / "plain", protect=False)
    plain.write(lambda tx: signing.require(tx, "approve", plain.part, plain.ids[0]))


# -- protecting ---------------------------------------------------------------------------------


def test_only_the_key_ends_the_protection(world: Protected) -> None:
    with pytest.raises(SignatureNeeded):
        world.write(signing.unprotect)
    with pytest.raises(SignatureNeeded):
        world.write(signing.unprotect, signer=STRANGER)
    with pytest.raises(Refused, match="already"):
        world.write(lambda tx: signing.protect(tx, STORE_ID), signer=STRANGER)
    world.write(signing.unprotect, signer=SIGNER)
    world.record("approve", world.ids[0], "verified")
    report = world.check()
    assert report.ok and not report.signatures.protected
    assert (report.signatures.signed, report.signatures.unsigned) == (2, 1)
    world.protect()
    assert world.check().signatures.signed == 3


def test_only_the_owner_protects(tmp_path: Path) -> None:
    world = Protected(tmp_path / "store", protect=False)
    grant = msgspec.structs.replace(ACTOR.grant, owner=False, principal="bot")
    actor = msgspec.structs.replace(ACTOR, grant=grant, signer=SIGNER)
    with pytest.raises(ScopeRefused):
        world.store.write(actor, lambda tx: signing.protect(tx, STORE_ID))


def test_the_library_is_not_imported_before_it_is_needed(world: Protected) -> None:
    code = (
        "import sys\n"
        "from tests.objects.attacked import add\n"
        "from remem.objects.store import Store\n"
        "add(Store(sys.argv[1]), text='one more')\n"
        "print('cryptography' in sys.modules, 'remem.objects.signing' in sys.modules)\n"
        "from remem.objects import keys\n"
        "keys.generate()\n"
        "print('cryptography' in sys.modules)\n"
    )
    world.store.close()
    root = Path(__file__).resolve().parent.parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code, str(world.root)], cwd=root, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == "False True\nTrue\n"


# -- verify -------------------------------------------------------------------------------------


def problems(world: Protected) -> list[tuple[str, str]]:
    report = world.check()
    assert report.ok is not bool(report.problems)
    return [(p.where, p.what) for p in report.problems]


def decided(world: Protected) -> bytes:
    """Key of the signature of an approval; the store verifies with it."""
    entry = world.record("approve", waits(world), "verified", signer=SIGNER)
    assert world.check().ok
    return world.part.prefix + entry.seq.to_bytes(8, "big")


def test_a_signature_that_was_taken_out_is_missed(world: Protected) -> None:
    key = decided(world)
    world.tamper(lambda txn: txn.delete("signs", key))
    ((where, what),) = problems(world)
    assert where == f"log 1/{int.from_bytes(key[4:], 'big')}" and "no signature" in what
    assert world.check().signatures.bad == 1


def test_a_signature_of_something_else_is_bad(world: Protected) -> None:
    key = decided(world)
    second = world.record("approve", world.ids[1], "verified", signer=SIGNER)
    other = world.part.prefix + second.seq.to_bytes(8, "big")
    world.tamper(lambda txn: txn.put("signs", key, txn.get("signs", other) or b""))
    assert [what for _, what in problems(world)] == ["its signature does not verify"]


def test_a_strangers_signature_is_bad(world: Protected) -> None:
    key = decided(world)
    made = signing.Signature(
        signing.keys.key_id(STRANGER.public), STRANGER.sign(b"whatever is signed")
    )
    world.tamper(lambda txn: txn.put("signs", key, signing.encode_signature(made)))
    assert "not in force" in problems(world)[0][1]


def test_an_entry_that_was_rewritten_with_its_chain_is_bad(world: Protected) -> None:
    """Who can write the files links the chain anew, but cannot sign."""
    key = decided(world)
    seq = int.from_bytes(key[4:], "big")

    def rewrite(txn: object) -> None:
        from remem.objects import audit, oid

        edit_entry(txn, world.part, seq, reason="other")  # type: ignore[arg-type]
        digest = oid.digest(txn.get("log", key))  # type: ignore[attr-defined]
        for number, data in list(txn.scan("audit")):  # type: ignore[attr-defined]
            row = audit.decode_row(data)
            if row.entry == seq and row.part == world.part.number:
                changed = audit.encode_row(msgspec.structs.replace(row, digest=digest))
                txn.put("audit", number, changed)  # type: ignore[attr-defined]

    world.tamper(both(rewrite, chain_anew))
    assert [what for _, what in problems(world)] == ["its signature does not verify"]


def test_taking_the_key_out_is_found_and_unprotects_nothing(world: Protected) -> None:
    world.tamper(lambda txn: txn.delete("meta", signing.OWNER_ROW))
    assert problems(world) == [
        ("meta owner", "the key is missing, the store was protected with it")
    ]
    with pytest.raises(IntegrityError):
        world.write(lambda tx: signing.protect(tx, STORE_ID), signer=STRANGER)
    world.record("approve", world.ids[0], "verified")  # nothing refuses it any more
    assert ("log 1/5", "'approve' has no signature, the store was protected then") in problems(
        world
    )


def test_another_key_in_its_place_is_found(world: Protected) -> None:
    other = signing.encode_owner(signing.OwnerKey(STRANGER.public, 1))
    world.tamper(lambda txn: txn.put("meta", signing.OWNER_ROW, other))
    assert problems(world) == [("meta owner", "it names another key than the audit chain")]


def test_an_end_of_the_protection_that_nobody_signed_is_bad(world: Protected) -> None:
    def forge(txn: object) -> None:
        append_row(txn, action="unprotect", outcome="done", resource=SIGNER.public)  # type: ignore[arg-type]
        txn.delete("meta", signing.OWNER_ROW)  # type: ignore[attr-defined]

    world.tamper(forge)
    found = problems(world)
    assert ("audit 6", "'unprotect' has no signature, the store was protected then") in found
    assert ("meta owner", "the key is missing, the store was protected with it") in found


def test_signatures_of_nothing_and_another_id_are_found(world: Protected) -> None:
    decided(world)
    made = signing.encode_signature(signing.Signature(bytes(16), bytes(64)))
    world.tamper(lambda txn: txn.put("signs", world.part.prefix + bytes(7) + b"\1", made))
    assert problems(world) == [("sign 1/1", "it signs nothing that needs it")]
    world.tamper(lambda txn: txn.delete("signs", world.part.prefix + bytes(7) + b"\1"))
    assert problems(world) == []
    world.tamper(lambda txn: txn.put("meta", signing.STORE_ROW, bytes(16)))
    assert {what for _, what in problems(world)} == {"its signature does not verify"}
