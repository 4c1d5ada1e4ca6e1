"""What amending and rebasing leaves of the facts in outlines; the author's dates are given."""

from __future__ import annotations

import pytest

from remem.hooks.ingest import ingest
from remem.hooks.sources import read
from remem.objects import refs
from remem.objects.derive import engine
from remem.objects.model import Incoming, Memory
from tests.hooks.test_git_hook_events import (
    World,
    code,
    facts,
    outlines,
    world,  # noqa: F401
    write,
)

# Amending keeps the day on which something was written; what it replaces ends now.
WRITTEN = "--date=2024-05-06T07:08:09+00:00"
EARLIER = "--date=2024-05-05T07:08:09+00:00"
LATER = "--date=2024-05-07T07:08:09+00:00"


def cited(world: World, value: str) -> list[str]:  # noqa: F811
    """The commits whose outlines the facts about a name cite that hold."""
    found = []
    with world.store.read(world.actor.grant) as reader:
        for part in reader.parts:
            for _, state in reader.states(part):
                assert state.head is not None
                obj = reader.object(part, state.head)
                if not isinstance(obj, Memory) or obj.triple is None or state.valid_to is not None:
                    continue
                if obj.triple[2] == value:
                    found += [str(reader.object(part, cite).meta["commit"]) for cite in obj.cites]
    return found


@pytest.mark.parametrize("again", [(), (EARLIER,), (LATER,)])
def test_what_an_amended_commit_says_again_holds(world: World, again: tuple[str, ...]) -> None:  # noqa: F811
    old = write(world, code("one", "misspellt"), "x", WRITTEN)
    world.drain()
    assert facts(world) == {("adds", "one"), ("adds", "misspellt")}
    new = write(world, code("one", "spelt"), "x", "--amend", *again)
    assert world.drain().rewritten == 1
    assert outlines(world) == {old: "replaced", new: "now"}
    assert facts(world) == {("adds", "one"), ("adds", "spelt")}
    assert cited(world, "one") == cited(world, "spelt") == [new]
    engine.rebuild(world.store, world.actor, ("ledger",))
    done = engine.run(world.store, world.actor, ("ledger",))
    assert (done.new, done.withdrawn) == (0, 0)


def test_commits_that_are_amended_twice_between_two_looks(world: World) -> None:  # noqa: F811
    write(world, code("one", "misspellt"), "x", WRITTEN)
    world.drain()
    facts(world)
    write(world, code("one"), "x", "--amend")
    last = write(world, code("one", "spelt"), "x", "--amend")
    assert world.drain().rewritten == 2
    assert facts(world) == {("adds", "one"), ("adds", "spelt")}
    assert cited(world, "one") == [last]


def test_what_rebased_commits_say_again_holds(world: World) -> None:  # noqa: F811
    world.commit("base")
    world.git("checkout", "-q", "-b", "side")
    write(world, code("one"), "x", WRITTEN)
    write(world, code("one", "two"), "y", WRITTEN)
    world.drain()
    before = facts(world)
    assert before == {("adds", "one"), ("adds", "two")}
    world.git("checkout", "-q", "main")
    world.commit("other", "b")
    world.git("checkout", "-q", "side")
    world.git("rebase", "-q", "main")
    new = world.git("rev-list", "--reverse", "main..side").split()
    assert world.drain().rewritten == 2
    assert facts(world) == before
    assert [cited(world, name) for name in ("one", "two")] == [[sha] for sha in new]


def reasons(world: World) -> dict[str, str]:  # noqa: F811
    """The reasons with which observations were closed, by their sources' ids."""
    found = {}
    with world.store.read(world.actor.grant) as reader:
        for part in reader.parts:
            for _, state in reader.states(part):
                assert state.head is not None
                source = getattr(reader.object(part, state.head), "source", None)
                last = reader.entry(part, state.last)
                if source is not None and refs.OPS[last.op] == "close":
                    found[source.id] = last.reason
    return found


@pytest.mark.parametrize("why", ["dropped", "reverted"])
def test_an_outline_that_comes_late_ends_for_the_reason_of_its_commit(
    world: World,  # noqa: F811
    why: str,
) -> None:
    base = world.commit("base")
    sha = write(world, code("one"), "y")
    world.commit("later", "b")
    early = {path: path.read_bytes() for path in world.spool.iterdir()}
    for path in early:
        path.unlink()
    records = [r for r in read("git", str(world.repo), env=world.env) if isinstance(r, Incoming)]
    for record in records:
        record.collection = world.collection
    ingest(world.store, world.actor, [r for r in records if r.kind == "commit"])
    if why == "dropped":
        world.git("rebase", "-q", "-i", base, GIT_SEQUENCE_EDITOR="sed -i 1s/^pick/drop/")
    else:
        world.git("revert", "--no-edit", sha)
    done = world.drain()
    assert getattr(done, why) == 1
    assert sha not in outlines(world)
    for path, data in early.items():
        path.write_bytes(data)
    world.drain()
    found = reasons(world)
    assert found[sha] == found[f"{sha}:diff"] == why
