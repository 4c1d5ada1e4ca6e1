"""Attacks on the chain and the ref log: each one has to be found, under the right name."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from remem.objects import audit, kv, refs
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from tests.objects.attacked import (
    ACTOR,
    Facts,
    both,
    build,
    chain_anew,
    check,
    digest_of,
    edit_entry,
    edit_row,
    edit_state,
    last_row,
    number,
    places,
    tamper,
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Facts]:
    root = tmp_path_factory.mktemp("attacked") / "store"
    return root, build(root)


@pytest.fixture
def attacked(built: tuple[Path, Facts], tmp_path: Path) -> tuple[Path, Facts]:
    """A copy of the store, to be changed."""
    shutil.copytree(built[0], tmp_path / "store")
    return tmp_path / "store", built[1]


# -- the positive control ---------------------------------------------------------------------


def test_a_clean_store_verifies(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    report = check(root)
    assert report.problems == []
    assert report.ok
    assert report.warnings == []
    assert report.audit.rows == 13
    assert report.audit.first_bad is None
    assert report.objects.checked == 9
    assert (report.refs.checked, report.refs.entries) == (9, 12)
    assert (report.tombstones.count, report.tombstones.waiting) == (1, 0)
    with Store(str(root), readonly=True).read(maintenance_grant()) as reader:
        assert report.audit.head == reader.audit_head().hash.hex()


def test_an_empty_store_verifies(tmp_path: Path) -> None:
    Store.create(str(tmp_path / "store")).close()
    report = check(tmp_path / "store")
    assert report.ok
    assert report.audit.rows == report.objects.checked == 0
    assert report.audit.head == bytes(32).hex()


def test_a_chain_made_anew_from_unchanged_rows_verifies(attacked: tuple[Path, Facts]) -> None:
    tamper(attacked[0], chain_anew)  # the control of the attacks that use it
    assert check(attacked[0]).ok


def test_the_report_has_the_shape_of_the_command(attacked: tuple[Path, Facts]) -> None:
    shape = msgspec.to_builtins(check(attacked[0]))
    assert {"ok", "audit", "objects", "refs", "tombstones", "index", "problems"} <= set(shape)
    assert {"rows", "head"} <= set(shape["audit"])
    assert {"checked", "bad"} <= set(shape["objects"])
    tamper(attacked[0], lambda txn: edit_row(txn, 3, principal="mallory"))
    assert set(msgspec.to_builtins(check(attacked[0]))["problems"][0]) == {"where", "what"}


# -- attacks on the chain ---------------------------------------------------------------------


def swap_rows(txn: kv.Txn, one: int, two: int) -> None:
    data, other = txn.get("audit", number(one)) or b"", txn.get("audit", number(two)) or b""
    txn.put("audit", number(one), other)
    txn.put("audit", number(two), data)


CHAIN_ATTACKS: dict[str, tuple[Callable[[kv.Txn], object], int]] = {
    "last row deleted": (lambda txn: txn.delete("audit", number(last_row(txn))), 13),
    "last three rows deleted": (
        lambda txn: [txn.delete("audit", number(last_row(txn) - i)) for i in range(3)],
        11,
    ),
    "first row deleted": (lambda txn: txn.delete("audit", number(1)), 1),
    "middle row deleted": (lambda txn: txn.delete("audit", number(5)), 5),
    "row edited": (lambda txn: edit_row(txn, 5, principal="mallory"), 5),
    "last row edited": (lambda txn: edit_row(txn, 13, outcome="done"), 13),
    "rows swapped": (lambda txn: swap_rows(txn, 5, 6), 4),
    "row that does not decode": (lambda txn: txn.put("audit", number(5), b"\xc1"), 5),
    "row added": (
        lambda txn: txn.put("audit", number(14), txn.get("audit", number(13)) or b""),
        13,
    ),
    "head counter lowered": (
        lambda txn: txn.put("meta", b"audit", audit.encode_head(audit.Head(12, bytes(32)))),
        13,
    ),
}


@pytest.mark.parametrize("attack", CHAIN_ATTACKS)
def test_the_first_bad_position_of_the_chain_is_named(
    attacked: tuple[Path, Facts], attack: str
) -> None:
    root, _ = attacked
    change, position = CHAIN_ATTACKS[attack]
    tamper(root, change)
    for fast in (False, True):
        report = check(root, fast=fast)
        assert not report.ok
        assert report.audit.first_bad == position
        assert f"audit {position}" in places(report)


def test_a_head_with_another_count_is_named_as_such(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked

    def change(txn: kv.Txn) -> None:
        head = audit.decode_head(txn.get("meta", b"audit") or b"")
        txn.put("meta", b"audit", audit.encode_head(audit.Head(head.seq + 1, head.hash)))

    tamper(root, change)
    assert places(check(root)) == {"meta audit"}
    tamper(root, lambda txn: txn.delete("meta", b"audit"))
    assert places(check(root)) == {"meta audit"}


def test_a_cut_tail_with_a_matching_head_leaves_an_entry_alone(
    attacked: tuple[Path, Facts],
) -> None:
    root, facts = attacked

    def change(txn: kv.Txn) -> None:
        txn.delete("audit", number(13))
        txn.delete("audit", number(12))
        chain_anew(txn)

    tamper(root, change)
    assert check(root, fast=True).ok  # the chain alone cannot know
    assert places(check(root)) == {f"log {facts.part.number}/11"}


def test_a_row_cut_out_with_a_chain_made_anew_leaves_an_entry_alone(
    attacked: tuple[Path, Facts],
) -> None:
    root, facts = attacked
    tamper(root, both(lambda txn: txn.delete("audit", number(4)), chain_anew))
    assert check(root, fast=True).ok
    assert places(check(root)) == {f"log {facts.part.number}/4"}


def test_a_row_that_names_another_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, both(lambda txn: edit_row(txn, 4, entry=1 << 60), chain_anew))
    assert places(check(root)) == {"audit 4"}
    tamper(root, both(lambda txn: edit_row(txn, 4, entry=2), chain_anew))
    assert places(check(root)) == {"audit 4"}
    tamper(root, both(lambda txn: edit_row(txn, 4, entry=4, part=9), chain_anew))
    assert places(check(root)) == {"audit 4", f"log {facts.part.number}/4"}


@pytest.mark.parametrize(
    "fields",
    [
        {"principal": "mallory"},
        {"surface": "mcp"},
        {"action": "pin"},
        {"resource": bytes(32)},
        {"outcome": "refused"},
    ],
    ids=str,
)
def test_a_row_must_tell_what_its_entry_tells(
    attacked: tuple[Path, Facts], fields: dict[str, object]
) -> None:
    root, _ = attacked
    tamper(root, both(lambda txn: edit_row(txn, 4, **fields), chain_anew))
    assert check(root, fast=True).ok
    assert places(check(root)) == {"audit 4"}


def test_record_time_going_backwards_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked

    def change(txn: kv.Txn) -> None:
        early = audit.decode_row(txn.get("audit", number(2)) or b"").time - 10**6
        edit_entry(txn, facts.part, 4, time=early)
        edit_state(txn, facts.part.prefix + facts.observations[3], created=early, changed=early)
        digest = digest_of(txn.get("log", facts.part.prefix + number(4)))
        edit_row(txn, 4, time=early, digest=digest)
        chain_anew(txn)

    tamper(root, change)
    report = check(root)
    assert places(report) == {"audit 4", f"log {facts.part.number}/4"}
    assert all("record time" in problem.what for problem in report.problems)
    assert report.audit.first_bad == 4


def test_a_clock_that_is_not_that_of_the_last_row_is_found(attacked: tuple[Path, Facts]) -> None:
    root, _ = attacked
    clock = b"clock"
    tamper(root, lambda txn: txn.put("meta", clock, (1 << 62).to_bytes(8, "big", signed=True)))
    assert places(check(root)) == {"meta clock"}
    tamper(root, lambda txn: txn.put("meta", clock, (10**6).to_bytes(8, "big", signed=True)))
    assert places(check(root)) == {"meta clock"}
    tamper(root, lambda txn: txn.delete("meta", clock))
    assert places(check(root, fast=True)) == {"meta clock"}


# -- attacks on the ref log -------------------------------------------------------------------


def test_an_edited_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: edit_entry(txn, facts.part, 3, reason="forged"))
    assert places(check(root)) == {f"log {facts.part.number}/3"}
    tamper(root, lambda txn: edit_entry(txn, facts.part, 3, status=1))
    assert places(check(root)) == {
        f"log {facts.part.number}/3",
        f"ref {facts.observations[2].hex()}",
    }


def test_a_deleted_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.delete("log", facts.part.prefix + number(3)))
    report = check(root)
    assert places(report) == {f"log {facts.part.number}/3", f"ref {facts.observations[2].hex()}"}
    assert report.refs.bad == [facts.observations[2].hex()]


def test_a_deleted_last_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.delete("log", facts.part.prefix + number(11)))
    ref = f"ref {facts.erased.hex()}"
    where = f"{facts.part.number}"
    assert places(check(root)) == {f"log {where}/11", f"heads {where}", ref}
    tamper(root, lambda txn: txn.put("heads", facts.part.prefix, number(10)))
    assert places(check(root)) == {f"log {where}/11", ref}


def test_an_entry_in_the_middle_of_a_chain_deleted_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.delete("log", facts.part.prefix + number(9)))
    assert places(check(root)) >= {
        f"log {facts.part.number}/9",
        f"ref {facts.revised.hex()}",
    }


def test_an_added_entry_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    prefix = facts.part.prefix

    def append(txn: kv.Txn) -> None:
        txn.put("log", prefix + number(12), txn.get("log", prefix + number(1)) or b"")

    tamper(root, append)
    where = facts.part.number
    assert places(check(root)) == {f"log {where}/12", f"heads {where}"}
    foreign = bytes.fromhex("000000ff") + number(1)
    tamper(
        root,
        both(
            lambda txn: txn.delete("log", prefix + number(12)),
            lambda txn: txn.put("log", foreign, b""),
        ),
    )
    assert places(check(root)) == {"log 255/1"}


def test_two_beginnings_of_one_ref_are_found(attacked: tuple[Path, Facts]) -> None:
    """A log that a second 'create' split: each entry and row is well, the older is on no chain."""
    root, facts = attacked
    part, ref = facts.part, facts.observations[0]

    def change(txn: kv.Txn) -> None:
        txn.delete("refs", part.prefix + ref)
        tx = Tx(txn, ACTOR, 0)
        tx.create(part, ref, kind=refs.OBSERVATION, lane=1, status="verified")
        tx.finish()

    tamper(root, change)
    assert places(check(root)) == {f"log {part.number}/1"}


def test_an_edited_cache_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    single = facts.part.prefix + facts.observations[2]
    tamper(root, lambda txn: edit_state(txn, single, status=1))
    assert places(check(root)) == {f"ref {facts.observations[2].hex()}"}
    tamper(root, lambda txn: edit_state(txn, facts.part.prefix + facts.revised, flags=0))
    report = check(root)
    assert sorted(report.refs.bad) == sorted((facts.observations[2].hex(), facts.revised.hex()))


@pytest.mark.parametrize("last", [0, 1, 2, 8, 9, 99, 1 << 62])
def test_a_cache_that_ends_elsewhere_is_found(attacked: tuple[Path, Facts], last: int) -> None:
    root, facts = attacked
    tamper(root, lambda txn: edit_state(txn, facts.part.prefix + facts.revised, last=last))
    assert f"ref {facts.revised.hex()}" in places(check(root))


def test_a_cache_that_is_gone_or_too_many_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    key = facts.part.prefix + facts.observations[2]
    kept: list[bytes] = []
    tamper(
        root,
        both(
            lambda txn: kept.append(txn.get("refs", key) or b""),
            lambda txn: txn.delete("refs", key),
        ),
    )
    assert f"ref {key[4:].hex()}" in places(check(root))
    tamper(root, lambda txn: txn.put("refs", key, kept[0]))
    assert check(root).ok
    ghost = facts.part.prefix + bytes(range(32))
    tamper(root, lambda txn: txn.put("refs", ghost, kept[0]))
    assert f"ref {ghost[4:].hex()}" in places(check(root))


def test_an_edited_counter_is_found(attacked: tuple[Path, Facts]) -> None:
    root, facts = attacked
    tamper(root, lambda txn: txn.put("heads", facts.part.prefix, number(99)))
    assert places(check(root)) == {f"heads {facts.part.number}"}
    tamper(root, lambda txn: txn.delete("heads", facts.part.prefix))
    assert places(check(root)) == {f"heads {facts.part.number}"}
    tamper(root, lambda txn: txn.put("heads", facts.part.prefix, number(11)))
    assert check(root).ok
    tamper(root, lambda txn: txn.put("heads", b"\0\0\0\x09", number(1)))
    assert places(check(root)) == {"heads 9"}
