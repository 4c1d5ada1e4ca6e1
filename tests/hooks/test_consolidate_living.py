"""Sleeping while others write, dying at any point, and what a protected store keeps waiting."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from remem.hooks import consolidate
from remem.hooks.sleep.attach import MAKER
from remem.objects import drafts, forget, keys, refs, runs, signing
from remem.objects.derive import engine
from remem.objects.errors import Blocked, Forgotten
from remem.objects.scope import maintenance_grant
from remem.objects.tx import Tx
from tests.hooks.sleeper import Sleeper, at
from tests.hooks.test_consolidate import remember
from tests.objects.world import SCOPE

ROOT = Path(__file__).resolve().parent.parent.parent
SECONDS = 20.0 if os.environ.get("REMEM_LONG") else 6.0  # of writing

# A process that writes until it is told to stop; it prints what the store has acknowledged.
WRITER = """
import sys, time
from pathlib import Path
from remem.objects import correct
from remem.objects.errors import RememError
from tests.objects.world import World

world, name, until = World(Path(sys.argv[1])), sys.argv[2], time.monotonic() + float(sys.argv[3])
number = 0
head = world.add(f"the counter of {name} is at zero", session=name)
while time.monotonic() < until:
    time.sleep(0.01)
    number += 1
    text = f"writer {name} saw bird number {number // 2} by the pond"  # each is said twice
    print("new", world.add(text + "." * (number % 2), session=name).ref.hex(), flush=True)
    if number % 5 == 0:
        try:
            world.do(correct.revise, head.ref, f"the counter of {name} is at {number}")
            print("revised", head.ref.hex(), f"the counter of {name} is at {number}", flush=True)
        except RememError as error:
            print("refused", type(error).__name__, flush=True)
"""
SLEEPER = """
import sys
from pathlib import Path
from tests.hooks.sleeper import Sleeper

world = Sleeper(Path(sys.argv[1]))
while True:
    print(world.sleep().status, flush=True)
"""


@pytest.fixture
def world(tmp_path: Path) -> Sleeper:
    return Sleeper(tmp_path / "store")


def start(script: str, *words: str, told: Path | None = None) -> subprocess.Popen[bytes]:
    """Start a process; what it tells goes to a file, since a pipe that nobody reads would fill."""
    with open(told or os.devnull, "wb") as output:
        return subprocess.Popen([sys.executable, "-c", script, *words], cwd=ROOT, stdout=output)


def test_live_edits_are_never_lost(world: Sleeper) -> None:
    world.talk()
    names = ("ann", "bo")
    files = [world.folder.with_name(f"{name}.told") for name in names]
    writers = [
        start(WRITER, str(world.folder), name, str(SECONDS), told=told)
        for name, told in zip(names, files, strict=True)
    ]
    retired = sleeps = 0
    while any(writer.poll() is None for writer in writers):
        slept = world.sleep()
        retired += slept.counts.get("duplicates", 0)
        sleeps += 1
    told = [line.split(" ", 2) for file in files for line in file.read_text().splitlines()]
    assert all(writer.returncode == 0 for writer in writers)
    new = [words[1] for words in told if words[0] == "new"]
    assert len(new) > 20 and sleeps > 2 and retired > 0
    for ref in new:  # every acknowledged write is there, in force or retired as a copy
        state = world.state(bytes.fromhex(ref))
        assert state.head is not None
        assert state.replaced_by is None or world.reasons(bytes.fromhex(ref))[-1] == "duplicate"
    last = {words[1]: words[2] for words in told if words[0] == "revised"}
    assert len(last) == 2
    for ref, text in last.items():
        assert world.head(bytes.fromhex(ref)).text == text
    world.sleep()
    marks = world.marks()
    assert world.sleep().counts == {} and world.marks() == marks
    world.check()


def test_killed_anywhere_the_next_one_finishes(world: Sleeper) -> None:
    """The same store, slept through at once and with many deaths, ends with the same texts."""
    chance = random.Random(5)
    quiet = Sleeper(world.folder.with_name("quiet"))
    for one in (world, quiet):
        for day in range(1, 13):
            one.talk(session=f"s{day}", start=at(2026, 3, day))
            one.add(f"pump {day} is green", at(2026, 5, day))
            one.add(f"Pump {day} is green.", at(2026, 5, day))
        seen = one.add("margin: lamps")
        remember(one, "The hall has forty lamps", seen.id)
        one.add("the hall has forty lamps", session="x")
        gone = one.found(one.add("forget the yak").ref)
        one.write(lambda tx, g=gone: forget.forget(tx, g.part, g.ref))  # type: ignore[misc]
    deaths = 0
    for _ in range(10):
        process = start(SLEEPER, str(world.folder))
        time.sleep(0.35 + chance.random() * 0.35)
        deaths += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert deaths == 10
    world.sleep()
    quiet.sleep()
    assert world.sleep().counts == {}
    assert sorted(world.claims()) == sorted(quiet.claims())
    assert world.see() == quiet.see()
    assert len(world.operations()) == 12
    world.check()


def test_a_dead_process_leaves_no_lock(world: Sleeper, tmp_path: Path) -> None:
    told = tmp_path / "told"
    process = start(
        "import sys, time\nfrom remem.objects.lock import hold\n"
        "with hold(sys.argv[1], 'consolidate'):\n    print('held', flush=True)\n    time.sleep(60)",
        world.store.locks_path,
        told=told,
    )
    while told.read_text() != "held\n":
        assert process.poll() is None
        time.sleep(0.01)
    assert world.sleep().status == consolidate.BUSY
    process.kill()
    process.wait()
    assert world.sleep().status == consolidate.DONE


# -- forgotten, then every way back in ----------------------------------------------------------


def test_what_was_erased_comes_back_by_no_sleep(world: Sleeper) -> None:
    """T2: a draft and an approved memory of it go as well, and no later sleep makes them again."""
    said = world.add("the zebrafish tank is in room nine", session="a")
    memory = remember(world, "The zebrafish tank is in room nine", said.id)
    waits = drafts.Proposal(
        action="new",
        memory=msgspec.structs.replace(
            world.head(memory),
            salt=bytes(16),
            text="Room nine has the zebrafish tank of the lab",  # type: ignore[call-overload]
        ),
    )
    world.write(lambda tx: drafts.propose(tx, SCOPE, [waits], deriver=MAKER))
    turns = world.talk()
    extra = world.add(
        "The zebrafish of room nine are fed twice on sundays by the tall volunteer from Ghent.",
        at(2026, 3, 1) + 90_000_000, session="talk", speaker="Tom", role="user",
    )  # fmt: skip
    world.sleep()
    assert any("zebrafish" in text for text in world.answers("zebrafish tank"))  # control
    for ref in (said.ref, extra.ref):
        found = world.found(ref)
        world.write(lambda tx, f=found: forget.forget(tx, f.part, f.ref))  # type: ignore[misc]
    for _ in range(2):
        world.sleep()
        assert world.answers("zebrafish tank room nine volunteer") == [] or all(
            "zebrafish" not in text for text in world.answers("zebrafish tank")
        )
        assert all("zebrafish" not in text for text in world.claims())
    assert world.status(memory) == "erased"
    again = world.add("the zebrafish tank is in room nine.", session="b")
    assert again.status == "blocked"
    with pytest.raises((Blocked, Forgotten)):
        remember(world, "the zebrafish tank is in room nine", world.add("margin").id)
    world.sleep()
    data = b"".join(path.read_bytes() for path in world.folder.rglob("*") if path.is_file())
    assert b"zebrafish" not in data and b"kestrel" in data
    assert world.sleep().counts == {} and turns
    world.check()


# -- a protected store --------------------------------------------------------------------------

SIGNER = keys.Signer.from_seed(bytes(range(32)))


def protect(world: Sleeper) -> None:
    world.store.write(
        msgspec.structs.replace(world.actor, signer=SIGNER),
        lambda tx: signing.protect(tx, bytes(range(16))),
    )


def test_a_protected_store_keeps_its_bytes_until_somebody_signs(world: Sleeper) -> None:
    world.talk()
    world.add("the pump is green")
    world.add("The pump is green.")
    gone = world.found(world.add("forget the yak").ref)
    world.write(lambda tx: forget.forget(tx, gone.part, gone.ref))
    protect(world)
    slept = world.sleep()
    assert slept.counts == {"duplicates": 1, "summaries": 1}  # the rest goes on
    assert any("signature" in need and "remem purge" in need for need in slept.needs)
    marks = world.marks()
    assert world.sleep().counts == {} and world.marks() == marks  # no row each night either
    assert world.state(gone.ref).head is not None
    world.check()


def withheld_claim(world: Sleeper, status: str) -> tuple[bytes, bytes]:
    """(evidence, derived claim) of which the claim has a status by somebody's decision."""
    said = world.add("I live in Turin.", speaker="Mira").ref
    world.derive()
    (claim,) = world.read(lambda reader, part: reader.cited_by(part, said))

    def decide(tx: Tx) -> None:
        part = tx.reader.parts[0]
        state = tx.reader.state(part, claim)
        assert state is not None
        op = {"quarantined": "quarantine", "verified": "approve", "rejected": "reject"}[status]
        tx.record(part, op, claim, state, status=status, reason="looked-at")

    world.write(decide)
    return said, claim


@pytest.mark.parametrize("status", ["quarantined", "verified", "rejected"])
@pytest.mark.parametrize("protected", [False, True])
def test_a_deriver_returns_a_claim_to_its_former_status(
    world: Sleeper, status: str, protected: bool
) -> None:
    said, claim = withheld_claim(world, status)
    if protected:
        protect(world)
    record(world, said, "quarantine", "quarantined")
    world.derive()
    assert world.status(claim) == "rejected"  # the deriver withdrew it, or somebody before
    record(world, said, "release", "verified")
    done = world.derive()
    assert done.failed == 0
    assert world.status(claim) == status
    assert (status == "verified") == ("Turin" in " ".join(world.texts()))
    world.check()


def record(world: Sleeper, ref: bytes, op: str, status: str) -> None:
    """Record an entry as the owner who signs."""

    def change(tx: Tx) -> None:
        part = tx.reader.parts[0]
        state = tx.reader.state(part, ref)
        assert state is not None
        tx.record(part, op, ref, state, status=status, reason="instruction")

    world.store.write(msgspec.structs.replace(world.actor, signer=SIGNER), change)


def test_a_job_that_fails_is_told_and_stops_nothing(world: Sleeper) -> None:
    world.add("the pump is green")
    world.add("The pump is green.")
    real = dict(engine.DERIVERS)

    def broken(observation: object) -> list[object]:
        raise ValueError("no")

    name = world.means.derivers[0]
    engine.DERIVERS[name] = msgspec.structs.replace(real[name], derive=broken)
    try:
        slept = world.sleep()
    finally:
        engine.DERIVERS.update(real)
    assert slept.counts["duplicates"] == 1
    assert any("jobs failed" in note for note in slept.notes)


def test_each_tenant_has_its_own_run(world: Sleeper) -> None:
    world.add("the pump is green")
    world.add("The pump is green.")
    slept = world.sleep()
    with world.store.read(maintenance_grant()) as reader:
        (ran,) = runs.every(reader)
    assert ran.ref == slept.runs[0]
    state = world.state(ran.ref)
    assert refs.TYPES[state.type] == "run"
