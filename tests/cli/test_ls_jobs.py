"""Jobs as scripts see them: one line for each that was taken up and is not done."""

from __future__ import annotations

from remem.objects.derive import queue
from remem.objects.model import Scope
from remem.objects.scope import Actor, owner_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from tests.cli.conftest import Runner


def test_what_was_taken_up_and_never_done_has_a_line(run: Runner) -> None:
    run("init", code=0)
    assert run("ls-jobs", code=0).out == ""
    assert run("ls-jobs", "--json", code=0).json == []
    ref = run("add", "The port is 8443.", "--json", code=0).json["ref"]
    scope = Scope("local", "default", "home", "none", "main")
    store = Store(str(run.store))

    def take_up(tx: Tx) -> None:
        part = tx.part(scope)
        assert queue.lease(tx, part, bytes.fromhex(ref), "rules")
        queue.failed(tx, part, bytes.fromhex(ref), "ledger", ValueError("of its own"))

    store.write(Actor(owner_grant(scope), "cli", scope), take_up)
    store.close()
    lines = [line.split(" ") for line in run("ls-jobs", code=0).raw.decode().splitlines()]
    assert sorted((line[0], line[1], line[2], line[3], line[5]) for line in lines) == [
        ("failed", "ledger", ref, "1", "ValueError"),
        ("leased", "rules", ref, "1", "-"),
    ]
    assert len(run("ls-jobs", "-z", code=0).raw.decode().rstrip("\0").split("\0")) == 2
    assert [job["state"] for job in run("ls-jobs", "--json", code=0).json] == ["failed", "leased"]
