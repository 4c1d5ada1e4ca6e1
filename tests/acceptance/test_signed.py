"""An agent with a shell, acting as the owner, can approve nothing in a protected store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Runner
from tests.cli.typed import PASSPHRASE, protect, typed

PROGRAM = """
import sys
from remem.objects.errors import Refused
from remem.objects.scope import Actor, owner_grant
from remem.objects.model import Scope
from remem.objects.store import Store

scope = Scope("local", "default", "home", "none", "main")
store = Store(sys.argv[1])
actor = Actor(owner_grant(scope), "api", scope)
ref = bytes.fromhex(sys.argv[2])

def decide(op, status):
    def change(tx):
        part = tx.reader.parts[0]
        tx.record(part, op, ref, tx.reader.state(part, ref), status=status)
    store.write(actor, change)

decide("quarantine", "quarantined")
for op, status in (("release", "verified"), ("approve", "verified"), ("promote", "provisional")):
    try:
        decide(op, status)
        print("done", op)
    except Refused as error:
        print(type(error).__name__, error.exit_code)
"""


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path / "home")


def program(run: Runner, ref: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(run.store), ref],
        env=run.environment(),
        cwd=run.cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_python_interface_meets_the_same_refusal(run: Runner) -> None:
    ref = run.add("the deploy key is in the vault", "--origin", "tool")
    assert program(run, ref).splitlines() == ["done release", "done approve", "done promote"]
    protect(run)
    assert program(run, ref).splitlines() == ["SignatureNeeded 3"] * 3
    found = run("verify", "--json", code=0).json["signatures"]
    assert (found["signed"], found["unsigned"], found["bad"]) == (1, 2, 0)


def test_an_agent_with_a_shell_cannot_guess_its_way(run: Runner) -> None:
    """A pseudo-terminal of its own helps it to the question, not to the answer."""
    kept = run.add("keep this")
    protect(run)
    run("forget", kept, "--yes", code=0)
    typed(run, "purge", "--yes", answers=["", "hunter2hunter2", PASSPHRASE.upper()], code=3)
    run("purge", "--yes", code=3)
    run("owner", "unprotect", stdin=f"{PASSPHRASE}\n", code=3)
    run("tombstones", "lift", kept, code=3)
    (run.store / "owner.key").unlink()
    run("purge", "--yes", code=3)
    assert run("tombstones", "--json", code=0).json[0]["purged_at"] is None
    rows = [(r["action"], r["outcome"]) for r in run("audit", "--json", code=0).json]
    assert rows.count(("unlock", "passphrase")) == 1
    assert rows.count(("unlock", "no_terminal")) >= 2
    assert run("verify", code=0)


def test_an_undo_that_lets_out_asks(run: Runner) -> None:
    ref = run.add("the deploy key is in the vault", "--origin", "tool")
    protect(run)
    program(run, ref)  # it sets the ref apart, and may not take that back
    run("undo", code=3)
    assert "release" in typed(run, "undo").out
    assert run("verify", "--json", code=0).json["signatures"]["signed"] == 2
