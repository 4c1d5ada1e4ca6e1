"""Drafts and forgetting: what rests on something that goes is taken from them, bytes included."""

from __future__ import annotations

from pathlib import Path

import pytest

from remem.index.sweep import run as sweep
from remem.objects import drafts, forget
from remem.objects.drafts import Proposal

from .test_drafts import (
    again,
    approve,
    claim,
    deny,
    draft_of,
    pending,
    proposed,
    status,
    waits,
)
from .world import World, at


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def forget_ref(world: World, ref: bytes) -> None:
    world.write(lambda tx: forget.forget(tx, tx.reader.parts[0], ref))


def living(world: World) -> list[bytes]:
    """Refs of the drafts that were not forgotten."""
    return world.read(lambda reader, part: [ref for ref, *_ in drafts.all_of(reader, part)])


def test_forgetting_evidence_takes_operation_and_critique(world: World, tmp_path: Path) -> None:
    secret = world.add("the vault code is zanzibar-4417")
    plain = world.add("lunch is at noon")
    ref = proposed(
        world,
        Proposal(action="new", memory=claim("the code of the vault: zanzibar-4417", secret.id)),
        Proposal(action="new", memory=claim("people eat at noon", plain.id)),
    )
    deny(world, ref, 1, critique="keep zanzibar out of claims")
    forget_ref(world, secret.ref)
    world.check()
    (left,) = living(world)
    assert left != ref
    assert [op.number for op in draft_of(world, left).operations] == [2]
    assert waits(world) == [("operation", 2)]
    report = sweep(world.store, world.actor)
    assert report.proof is not None and not report.proof.findings and report.proof.needles > 0
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"zanzibar" not in path.read_bytes().lower(), path
    approve(world, left, 2)
    assert world.texts() == ["people eat at noon"]
    world.check()


def test_the_scan_would_find_a_critique_that_stayed(world: World, tmp_path: Path) -> None:
    seen = world.add("the vault code is kept elsewhere")
    ref = proposed(world, Proposal(action="new", memory=claim("a vault has a code", seen.id)))
    deny(world, ref, critique="zanzibar is no code")
    other = world.add("zanzibar was said here too")
    forget_ref(world, other.ref)
    sweep(world.store, world.actor)
    held = [p for p in tmp_path.rglob("*") if p.is_file() and b"zanzibar" in p.read_bytes()]
    assert held  # the draft rests on other evidence: its critique stays


def test_a_lost_citation_takes_the_critique_only(world: World) -> None:
    one, two = world.add("the host is alpha"), world.add("the host is alpha, really")
    ref = proposed(world, Proposal(action="new", memory=claim("host alpha", one.id, two.id)))
    deny(world, ref, critique="really?")
    again(world, ref, 1, claim("alpha is the host", one.id, two.id))
    forget_ref(world, two.ref)
    (left,) = living(world)
    (op,) = draft_of(world, left).operations
    assert (op.critique, op.attempt, op.verdict) == ("", 2, "")
    approve(world, left)
    assert world.texts() == ["alpha is the host"]
    world.check()


def test_forgetting_the_target_takes_the_operation(world: World) -> None:
    fact = world.fact("deploy host", "is", "alpha-9", start=at(2024))
    proposed(world, Proposal(action="close", target=fact.ref, at=at(2025)))
    forget_ref(world, fact.ref)
    assert living(world) == [] and waits(world) == []
    world.check()


def test_forgetting_a_draft_takes_what_it_proposes(world: World) -> None:
    seen = world.add("the deploy host is alpha-9")
    ref = proposed(world, Proposal(action="new", memory=claim("deploys go to alpha-9", seen.id)))
    claimed = pending(world, ref)
    forget_ref(world, ref)
    assert status(world, claimed) == "erased" and living(world) == []
    sweep(world.store, world.actor)
    world.check()


def test_a_forgetting_taken_back_brings_the_draft_back(world: World) -> None:
    one, two = world.add("deploys go to alpha-9"), world.add("lunch is at noon")
    ref = proposed(
        world,
        Proposal(action="new", memory=claim("the deploy host is alpha-9", one.id)),
        Proposal(action="new", memory=claim("people eat at noon", two.id)),
    )
    forget_ref(world, one.ref)
    assert waits(world) == [("operation", 2)]
    world.write(lambda tx: forget.restore(tx, tx.reader.parts[0], one.ref))
    assert living(world) == [ref]
    assert waits(world) == [("operation", 1), ("operation", 2)]
    world.check()
    approve(world, ref)
    assert world.texts() == ["people eat at noon", "the deploy host is alpha-9"]
    world.check()
