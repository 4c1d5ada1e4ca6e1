"""What the hooks of real repositories note, and what becomes of it in a store."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from remem.hooks import git_hook, git_install, git_spool
from remem.hooks.drain import actor_for
from remem.hooks.identity import collection_of
from remem.hooks.ingest import Sum, ingest
from remem.hooks.sources import read
from remem.objects import refs
from remem.objects.derive import engine
from remem.objects.errors import RememError
from remem.objects.model import Incoming, Memory, Observation, Scope
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store

HOSTILE = (Path(__file__).parent.parent / "data" / "hostile.gitconfig").read_text()


class World:
    """A repository with our hooks, a store, and a clock that git follows."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.repo = root / "repo"
        self.home.mkdir()
        self.repo.mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
        }
        (self.home / ".gitconfig").write_text(
            "[user]\n\tname = Zoë\n\temail = z@example.org\n[init]\n\tdefaultBranch = main\n"
        )
        self.git("init", "-q")
        self.store = Store.create(str(root / "store"))
        self.spool = root / "store" / "spool"
        self.spool.mkdir(mode=0o700, exist_ok=True)
        self.setup = git_install.Setup(str(self.home / "conf"), str(self.spool), self.env)
        git_install.install(self.setup, str(self.repo))
        collection = collection_of(str(self.repo))[0]
        scope = Scope("local", "default", "home", "none", "main")
        grant = Grant("owner", "local", "default", None, owner=True)
        self.actor = Actor(grant, "cli", scope)
        self.collection = collection

    def run(self, *words: str, cwd: Path | None = None, **env: str) -> int:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.repo, env=self.env | env, capture_output=True,
            check=False,
        )  # fmt: skip
        return done.returncode

    def git(self, *words: str, cwd: Path | None = None, **env: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.repo, env=self.env | env, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.strip()

    def commit(self, message: str, name: str = "a", cwd: Path | None = None) -> str:
        with open((cwd or self.repo) / name, "a") as file:
            file.write(f"{message}\n")
        self.git("add", "-A", cwd=cwd)
        self.git("commit", "-q", "-m", message, cwd=cwd)
        return self.git("rev-parse", "HEAD", cwd=cwd)

    def drain(self) -> git_hook.Drained:
        return git_hook.drain(self.store, self.actor, str(self.spool), env=self.env)

    def history(self) -> Sum:
        """Import the history, as "remem import git" does."""
        records = []
        for record in read("git", str(self.repo), env=self.env):
            if isinstance(record, Incoming):
                record.collection = self.collection
            records.append(record)
        return ingest(self.store, self.actor, records)

    def kept(self, kind: str = "commit") -> dict[str, tuple[str, str]]:
        """Observations of a kind by their source's id: first line, and whether it holds."""
        found = {}
        with self.store.read(self.actor.grant) as reader:
            for part in reader.parts:
                for _, state in reader.states(part):
                    assert state.head is not None
                    obj = reader.object(part, state.head)
                    if isinstance(obj, Observation) and obj.kind == kind and obj.source:
                        assert part.collection == self.collection
                        closed = bool(state.flags & refs.CLOSED)
                        holds = "closed" if closed else "replaced" if state.replaced_by else "now"
                        found[obj.source.id] = (obj.text.split("\n")[0], holds)
        return found

    def objects(self) -> dict[str, Observation]:
        found = {}
        with self.store.read(self.actor.grant) as reader:
            for part in reader.parts:
                for _, state in reader.states(part):
                    assert state.head is not None
                    obj = reader.object(part, state.head)
                    if isinstance(obj, Observation) and obj.source:
                        found[obj.source.id] = obj
        return found


def waiting(world: World) -> list[git_spool.Event]:
    """The events that wait, oldest first."""
    paths = git_spool.waiting(str(world.spool))
    return [event for path in paths for event in git_spool.read(path)[0]]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def now(world: World) -> list[str]:
    return sorted(text for text, holds in world.kept().values() if holds == "now")


def test_commits_come_in_once_and_as_their_history_says(world: World) -> None:
    shas = [world.commit(f"change {number}") for number in range(3)]
    done = world.drain()
    assert (done.events, done.new, done.known, done.gone) == (3, 3, 0, 0)
    assert list(os.listdir(world.spool)) == []
    assert set(world.kept()) == set(shas)
    hooked = world.objects()
    assert world.drain().events == 0
    sums = world.history()
    assert (sums.read, sums.new, sums.known) == (3, 0, 3)
    # The same bytes come of the history alone.
    other = World(world.home)
    other.collection = world.collection
    records = [r for r in read("git", str(world.repo), env=world.env) if isinstance(r, Incoming)]
    for record in records:
        record.collection = world.collection
    ingest(other.store, other.actor, records)
    plain = other.objects()
    for sha in shas:
        assert plain[sha].text == hooked[sha].text and plain[sha].meta == hooked[sha].meta
        assert plain[sha].asserted == hooked[sha].asserted
        assert plain[sha].source == hooked[sha].source


def test_history_first_and_hooks_later_adds_nothing_twice(world: World) -> None:
    world.commit("one")
    world.commit("two")
    assert world.history().new == 2
    done = world.drain()
    assert (done.events, done.new, done.known) == (2, 0, 2)


def test_an_amended_commit_replaces_its_old_form(world: World) -> None:
    old = world.commit("misspellt")
    world.drain()
    world.git("commit", "-q", "--amend", "-m", "misspelt")
    world.git("commit", "-q", "--amend", "-m", "spelt")
    done = world.drain()
    assert done.rewritten == 2
    assert world.kept()[old] == ("misspellt", "replaced")
    assert now(world) == ["spelt"]
    assert world.history().new == 0


def test_a_form_that_is_gone_is_passed_over(world: World) -> None:
    old = world.commit("one")
    world.drain()
    world.git("commit", "-q", "--amend", "-m", "two")
    middle = world.git("rev-parse", "HEAD")
    world.git("commit", "-q", "--amend", "-m", "three")
    world.git("reflog", "expire", "--expire=all", "--all")
    world.git("prune", "--expire=now")
    assert world.run("cat-file", "-e", middle) != 0
    done = world.drain()
    assert done.gone >= 1 and done.rejected == 0
    assert world.kept()[old][1] == "replaced" and now(world) == ["three"]


def test_a_rebase_of_twenty_commits(world: World) -> None:
    world.commit("base")
    world.git("checkout", "-q", "-b", "side")
    old = [world.commit(f"side {number}", f"f{number}") for number in range(20)]
    world.git("checkout", "-q", "main")
    world.commit("main")
    world.drain()
    world.git("checkout", "-q", "side")
    world.git("rebase", "-q", "main")
    done = world.drain()
    assert done.rewritten == 20 and done.new == 21  # and the switch
    kept = world.kept()
    assert {kept[sha][1] for sha in old} == {"replaced"}
    assert now(world) == sorted(["base", "main", *(f"side {number}" for number in range(20))])
    assert world.history().new == 0


def test_what_a_rebase_leaves_out_holds_no_longer(world: World) -> None:
    base = world.commit("base")
    shas = [world.commit(f"change {number}", f"f{number}") for number in range(5)]
    world.git("branch", "kept", shas[1])
    world.drain()
    drop = f"sed -i -e '/ {shas[3][:7]}/d' -e '/ {shas[1][:7]}/d'"
    world.git("rebase", "-q", "-i", base, GIT_SEQUENCE_EDITOR=drop)
    done = world.drain()
    assert done.dropped == 1
    kept = world.kept()
    # The branch that is still there leads to the other one.
    assert [kept[sha][1] for sha in shas] == ["now", "now", "replaced", "closed", "replaced"]
    assert "change 3" not in now(world)
    assert world.drain().events == 0


def test_a_rebase_that_was_undone_before_the_drain_drops_nothing(world: World) -> None:
    base = world.commit("base")
    shas = [world.commit(f"change {number}", f"f{number}") for number in range(3)]
    world.git("rebase", "-q", "-i", base, GIT_SEQUENCE_EDITOR=f"sed -i '/ {shas[0][:7]}/d'")
    world.git("reset", "-q", "--hard", shas[2])
    assert world.drain().dropped == 0
    assert world.kept()[shas[0]][1] == "now"


def test_a_rebase_that_is_given_up_leaves_the_old_commits(world: World) -> None:
    world.commit("base")
    world.git("checkout", "-q", "-b", "side")
    old = [world.commit("fine", "b"), world.commit("clash")]
    world.git("checkout", "-q", "main")
    world.commit("other")
    world.git("checkout", "-q", "side")
    world.drain()
    before = world.kept()
    assert world.run("rebase", "main") != 0
    assert world.git("log", "-1", "--format=%s") == "fine"  # one was rebased already
    assert world.drain().events == 0
    world.git("rebase", "--abort")
    assert world.drain().events == 0
    assert world.kept() == before and {before[sha][1] for sha in old} == {"now"}


def test_squashing_and_editing_in_a_rebase(world: World) -> None:
    world.commit("base")
    first, second = world.commit("one"), world.commit("fixup! one", "b")
    third = world.commit("three", "c")
    world.drain()
    script = "sed -i -e '2s/^pick/fixup/' -e '3s/^pick/edit/'"
    world.git("rebase", "-q", "-i", "HEAD~3", GIT_SEQUENCE_EDITOR=script)
    world.git("commit", "-q", "--amend", "-m", "three again")
    world.commit("in between", "d")
    world.git("rebase", "--continue")
    done = world.drain()
    kept = world.kept()
    assert {kept[sha][1] for sha in (first, second, third)} == {"replaced"}
    assert now(world) == ["base", "in between", "one", "three again"]
    assert done.rewritten == 3
    assert world.history().new == 0


def test_a_revert_closes_what_it_reverts_and_its_own_revert_opens_it(world: World) -> None:
    world.commit("base")
    sha = world.commit("a cache", "cache.py")
    world.drain()
    engine.run(world.store, world.actor, ("ledger",))

    def said() -> set[str]:
        with world.store.read(world.actor.grant) as reader:
            found = set()
            for part in reader.parts:
                for _, state in reader.states(part):
                    assert state.head is not None
                    obj = reader.object(part, state.head)
                    if isinstance(obj, Memory) and not state.flags & refs.CLOSED:
                        found.add(obj.text)
            return found

    assert f"{sha[:12]} adds cache.py" in said()
    world.git("revert", "--no-edit", sha)
    done = world.drain()
    assert done.reverted == 1 and world.kept()[sha] == ("a cache", "closed")
    assert f"{sha[:12]} adds cache.py" not in said()
    world.git("revert", "--no-edit", "HEAD")
    assert world.drain().reverted == 2  # one closed, one opened
    assert world.kept()[sha] == ("a cache", "now")
    assert f"{sha[:12]} adds cache.py" in said()
    assert world.drain().reverted == 0


def test_reverts_of_reverts_of_reverts(world: World) -> None:
    first = world.commit("one")
    reverts = []
    for number in range(4):
        world.git("revert", "--no-edit", "HEAD")
        reverts.append(world.git("rev-parse", "HEAD"))
        world.drain()
        kept = world.kept()
        assert kept[first][1] == ("now" if number % 2 else "closed")
        assert [kept[sha][1] for sha in reverts] == [
            "closed" if (number - own) % 2 else "now" for own in range(number + 1)
        ]


def test_a_commit_that_a_rebase_skips_is_not_replaced_by_another(world: World) -> None:
    world.commit("base")
    world.git("checkout", "-q", "-b", "side")
    shas = [world.commit("clash", "a"), world.commit("fits", "b")]
    world.git("checkout", "-q", "main")
    world.commit("main", "a")
    world.git("checkout", "-q", "side")
    world.drain()
    assert world.run("rebase", "main") != 0
    world.git("rebase", "--skip")
    done = world.drain()
    assert (done.rewritten, done.dropped) == (1, 1)
    assert [world.kept()[sha][1] for sha in shas] == ["closed", "replaced"]


def test_a_revert_in_an_imported_history_closes_as_well(world: World) -> None:
    sha = world.commit("a cache", "cache.py")
    world.git("revert", "--no-edit", sha)
    for path in world.spool.iterdir():
        path.unlink()
    assert world.history().new == 2
    assert world.kept()[sha] == ("a cache", "closed")
    assert world.history().new == 0


def test_branch_switches(world: World) -> None:
    world.commit("base")
    world.drain()
    world.git("checkout", "-q", "-b", "fix/ü")
    world.git("switch", "-q", "main")
    world.git("switch", "-q", "main")  # no switch
    (world.repo / "a").write_text("changed")
    world.git("checkout", "-q", "--", "a")  # of a file
    sha = world.git("rev-parse", "HEAD")
    world.git("checkout", "-q", sha)
    done = world.drain()
    assert done.new == 3
    assert sorted(text for text, _ in world.kept("checkout").values()) == sorted(
        [
            "switched from branch main to branch fix/ü",
            "switched from branch fix/ü to branch main",
            f"switched from branch main to branch {sha[:12]}",
        ]
    )
    observation = next(o for o in world.objects().values() if o.meta.get("branch") == "fix/ü")
    assert observation.meta == {"branch": "fix/ü", "from": "main", "commit": sha}
    assert observation.asserted is not None and abs(observation.asserted / 1e6 - time.time()) < 60


def test_merges_bring_what_was_merged(world: World, tmp_path: Path) -> None:
    world.commit("base")
    clone = tmp_path / "clone"
    world.git("clone", "-q", str(world.repo), str(clone))
    theirs = [world.commit(f"theirs {number}", "t", clone) for number in range(2)]
    world.git("pull", "-q", str(clone), "main")
    world.git("checkout", "-q", "-b", "side")
    world.commit("ours", "o")
    world.git("checkout", "-q", "main")
    world.commit("main", "m")
    world.git("merge", "-q", "--no-ff", "-m", "join", "side")
    world.drain()
    kept = world.kept()
    assert set(theirs) <= set(kept)
    assert kept[world.git("rev-parse", "HEAD")] == ("join", "now")
    assert world.history().new == 0
    world.git("checkout", "-q", "-b", "more")
    world.commit("squashed", "s")
    world.git("checkout", "-q", "main")
    world.git("merge", "-q", "--squash", "more")
    done = world.drain()
    assert done.rejected == done.gone == 0 and world.history().new == 0


def test_tags_of_known_commits_come_with_the_next_event(world: World) -> None:
    for path in (world.repo / ".git" / "hooks").glob("post-*"):
        path.rename(f"{path}.off")
    world.commit("before our time")
    world.git("tag", "v0.9")
    for path in (world.repo / ".git" / "hooks").glob("post-*.off"):
        path.rename(str(path).removesuffix(".off"))
    sha = world.commit("one")
    world.git("tag", "-a", "v1.0", "-m", "the first")
    world.drain()
    assert {text for text, _ in world.kept("tag").values()} == {f"tag v1.0 is commit {sha[:12]}"}
    second = world.commit("two")
    world.git("tag", "-f", "-a", "v1.0", "-m", "moved", GIT_COMMITTER_DATE="2040-01-01T00:00:00Z")
    world.commit("three")
    world.drain()
    engine.run(world.store, world.actor, ("ledger",))
    texts = set()
    with world.store.read(world.actor.grant) as reader:
        for part in reader.parts:
            for _, state in reader.states(part):
                assert state.head is not None
                obj = reader.object(part, state.head)
                if isinstance(obj, Memory) and obj.text.startswith("tag v1.0"):
                    texts.add((obj.text, state.valid_to is None))
    assert texts == {
        (f"tag v1.0 is commit {sha[:12]}", False),
        (f"tag v1.0 is commit {second[:12]}", True),
    }
    assert world.history().new == 2  # the commit and the tag from before


def test_patches_that_are_applied(world: World) -> None:
    world.commit("base")
    world.git("checkout", "-q", "-b", "side")
    world.commit("by mail", "b")
    patch = world.git("format-patch", "--stdout", "main") + "\n"
    world.git("checkout", "-q", "main")
    world.drain()
    (world.home / "patch").write_text(patch)
    world.git("am", "-q", str(world.home / "patch"))
    done = world.drain()
    assert done.events == 1 and world.git("rev-parse", "HEAD") in world.kept()


def state_of(repo: Path, world: World) -> tuple[str, ...]:
    index = hashlib.sha256((repo / ".git" / "index").read_bytes()).hexdigest()
    words = (
        ("status", "--porcelain=v2"),
        ("for-each-ref",),
        ("stash", "list"),
        ("rev-parse", "HEAD"),
    )
    return (index, *(world.git("--no-optional-locks", *w) for w in words))


def test_nothing_of_the_repository_is_touched(world: World) -> None:
    world.commit("base")
    world.commit("more", "b")
    world.git("stash", "list")
    (world.repo / "a").write_text("staged")
    world.git("add", "a")
    (world.repo / "b").write_text("unstaged")
    (world.repo / "c").write_text("untracked")
    before = state_of(world.repo, world)
    env = world.env | {
        "GIT_DIR": str(world.home / "elsewhere"),
        "GIT_INDEX_FILE": str(world.home / "index"),
        "GIT_WORK_TREE": str(world.home),
    }
    done = git_hook.drain(world.store, world.actor, str(world.spool), env=env)
    assert done.new == 2
    assert state_of(world.repo, world) == before
    assert not (world.home / "elsewhere").exists() and not (world.home / "index").exists()


def test_the_users_settings_change_nothing(world: World, tmp_path: Path) -> None:
    (world.repo / "größe.txt").write_text("1\n")
    sha = world.commit("grün\n\nim Körper")
    copies = {path.name: path.read_bytes() for path in world.spool.iterdir()}
    world.drain()
    expected = world.objects()[sha]
    other = World(world.home)
    for name, data in copies.items():
        (other.spool / name).write_bytes(data)
    with open(world.repo / ".git" / "config", "a") as config:
        config.write(HOSTILE)
    (world.home / ".gitconfig").write_text(HOSTILE)
    (world.home / "order").write_text("b\n")
    other.env |= {"LC_ALL": "de_DE.UTF-8", "GIT_EXTERNAL_DIFF": "false", "GIT_PAGER": "less"}
    assert other.drain().new == 1
    found = other.objects()[sha]
    assert (found.text, found.meta, found.asserted) == (
        expected.text, expected.meta, expected.asserted,
    )  # fmt: skip
    assert "größe.txt" in found.text and "grün" in found.text
    # And under such settings the hook itself notes the same.
    (world.repo / "b").write_text("2")
    world.run("add", "-A")
    assert world.run("-c", "user.name=Z", "-c", "user.email=z@x", "commit", "-q", "-m", "zwei") == 0
    (event,) = waiting(world)
    assert event.branch == "refs/heads/main" and len(event.head) == 40


@pytest.mark.parametrize("way", ["gone", "a file", "not ours", "off", "no script", "full"])
def test_without_a_store_git_does_what_it_did(world: World, way: str) -> None:
    env: dict[str, str] = {}
    if way == "gone":
        world.spool.rmdir()
    elif way == "a file":
        world.spool.rmdir()
        world.spool.write_text("")
    elif way == "not ours":
        if os.geteuid():
            pytest.skip("only root can give a folder away")
        os.chown(world.spool, 12345, 12345)
    elif way == "off":
        env["REMEM_OFF"] = "1"
    elif way == "no script":
        (world.home / "conf" / "git-hook").unlink()
    else:
        world.spool.rmdir()
        world.spool.symlink_to("/dev/full")
    (world.repo / "a").write_text("x")
    world.git("add", "a")
    done = subprocess.run(
        ["git", "commit", "-q", "-m", "x"], cwd=world.repo, env=world.env | env,
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert world.git("log", "--format=%s") == "x"
    assert waiting(world) == []


def test_a_locked_store_delays_no_commit(world: World) -> None:
    seen: list[float] = []

    def hold(tx: object) -> None:
        for number in range(3):
            start = time.monotonic()
            world.commit(f"while locked {number}")
            seen.append(time.monotonic() - start)

    world.store.write(world.actor, hold)
    assert max(seen) < 5
    assert world.drain().new == 3


def test_a_work_tree_that_is_gone_is_read_from_its_repository(world: World, tmp_path: Path) -> None:
    world.commit("base")
    linked = tmp_path / "linked"
    world.git("worktree", "add", "-q", "-b", "side", str(linked))
    sha = world.commit("in the linked one", "b", linked)
    world.git("worktree", "remove", "--force", str(linked))
    done = world.drain()
    assert done.gone == 0 and world.kept()[sha] == ("in the linked one", "now")


def test_a_repository_that_is_gone_is_counted(world: World, tmp_path: Path) -> None:
    world.commit("base")
    world.repo.rename(tmp_path / "moved")
    done = world.drain()
    assert (done.events, done.gone, done.new) == (1, 1, 0)
    assert os.listdir(world.spool) == []


def test_without_git_the_events_wait(world: World, tmp_path: Path) -> None:
    sha = world.commit("base")
    with pytest.raises(RememError, match="cannot run git"):
        git_hook.drain(world.store, world.actor, str(world.spool), env={"PATH": str(tmp_path)})
    actor = actor_for("local", "default")
    done = git_hook.drain(world.store, actor, str(world.spool), env=world.env)
    assert (done.read, done.new) == (1, 1) and sha in world.kept()
    # Whoever drains, it belongs where the import of the history would put it.
    assert world.objects()[sha].scope == Scope("local", "default", world.collection, "none", "main")


def test_an_event_that_is_being_written_waits(world: World) -> None:
    sha = world.commit("base")
    (path,) = world.spool.iterdir()
    data = path.read_bytes()
    for cut in range(1, len(data), 7):
        path.write_bytes(data[:cut])
        assert world.drain().events == 0 and path.exists()
    path.write_bytes(data[:-5])
    os.utime(path, (1, 1))
    done = world.drain()
    assert (done.events, done.torn) == (0, 1) and not path.exists()
    path.write_bytes(data)
    assert world.drain().new == 1 and sha in world.kept()


def test_taking_in_again_after_a_crash_changes_nothing(world: World) -> None:
    old = world.commit("one")
    world.git("commit", "-q", "--amend", "-m", "two")
    world.git("checkout", "-q", "-b", "side")
    copies = {path: path.read_bytes() for path in world.spool.iterdir()}
    times = {path: path.stat().st_mtime_ns for path in copies}
    first = world.drain()
    before = {kind: world.kept(kind) for kind in ("commit", "checkout")}
    for path, data in copies.items():
        path.write_bytes(data)
        os.utime(path, ns=(times[path], times[path]))
    done = world.drain()
    assert first.rewritten == 1 and (done.new, done.rewritten) == (0, 0)
    assert {kind: world.kept(kind) for kind in ("commit", "checkout")} == before
    assert before["commit"][old][1] == "replaced"


def test_what_is_ignored_is_counted_and_not_kept(world: World) -> None:
    world.commit("secret work")
    done = git_hook.drain(
        world.store, world.actor, str(world.spool), env=world.env,
        ignored=lambda folder: folder == str(world.repo),
    )  # fmt: skip
    assert (done.read, done.skipped, done.new) == (1, 1, 0)
    assert os.listdir(world.spool) == []
    world.commit("open work")
    git_hook.drain(world.store, world.actor, str(world.spool), env=world.env,
                   ignored=lambda folder: False)  # fmt: skip
    assert now(world) == ["open work"]


def test_files_of_the_spool_are_private(world: World) -> None:
    old = os.umask(0)
    try:
        world.commit("base")
    finally:
        os.umask(old)
    (path,) = world.spool.iterdir()
    assert path.stat().st_mode & 0o777 == 0o600


# -- the outlines of changes --------------------------------------------------------------------


def write(world: World, text: str, message: str = "x", *words: str) -> str:
    (world.repo / "app.py").write_text(text)
    world.git("add", "-A")
    world.git("commit", "-q", "-m", message, *words)
    return world.git("rev-parse", "HEAD")


def code(*names: str) -> str:
    return "\n\n".join(f"def {name}(a):\n    return a\n" for name in names)


def outlines(world: World) -> dict[str, str]:
    """Whether the outlines hold, by commit."""
    kept = world.kept("diff")
    return {name.removesuffix(":diff"): holds for name, (_, holds) in kept.items()}


def facts(world: World) -> set[tuple[str, ...]]:
    """What was derived from outlines and holds."""
    engine.run(world.store, world.actor, ("ledger",))
    found = set()
    with world.store.read(world.actor.grant) as reader:
        for part in reader.parts:
            for _, state in reader.states(part):
                ended = state.flags & refs.CLOSED or state.replaced_by is not None
                if refs.TYPES[state.type] == "memory" and not ended and state.head is not None:
                    memory = reader.object(part, state.head)
                    assert isinstance(memory, Memory) and memory.triple is not None
                    cited = [reader.object(part, cite) for cite in memory.cites]
                    if all(one.kind == "diff" for one in cited):
                        found.add(memory.triple[1:])
    return found


def test_changes_come_in_once_and_as_their_history_says(world: World) -> None:
    shas = [write(world, code("one")), write(world, code("one", "two")), world.commit("prose")]
    done = world.drain()
    assert (done.read, done.new, done.known, done.gone) == (5, 5, 0, 0)
    assert outlines(world) == dict.fromkeys(shas[:2], "now")
    sums = world.history()
    assert (sums.read, sums.new, sums.known) == (5, 0, 5)
    hooked = world.objects()
    read_again = {r.source_id: r for r in read("git", str(world.repo), env=world.env)
                  if isinstance(r, Incoming)}  # fmt: skip
    for sha in shas[:2]:
        name = f"{sha}:diff"
        assert hooked[name].text == read_again[name].text
        assert hooked[name].meta == read_again[name].meta == {"commit": sha}
    assert facts(world) == {("adds", "one"), ("adds", "two")}


def test_a_rewritten_commit_takes_its_outline_along(world: World) -> None:
    old = write(world, code("one", "misspellt"))
    world.drain()
    assert facts(world) == {("adds", "one"), ("adds", "misspellt")}
    new = write(world, code("one", "spelt"), "x", "--amend")
    assert world.drain().rewritten == 1
    assert outlines(world) == {old: "replaced", new: "now"}
    assert facts(world) == {("adds", "one"), ("adds", "spelt")}
    # A form that changes nothing with a name takes the place all the same.
    last = write(world, "x = 1\n", "y", "--amend")
    world.drain()
    assert outlines(world) == {old: "replaced", new: "replaced"}
    assert last in world.kept() and facts(world) == set()


def test_a_revert_closes_the_outline_of_what_it_reverts(world: World) -> None:
    first = write(world, code("one"))
    second = write(world, code("one", "two"))
    world.drain()
    assert ("adds", "two") in facts(world)
    world.git("revert", "--no-edit", "HEAD")
    back = world.git("rev-parse", "HEAD")
    assert world.drain().reverted == 1
    assert outlines(world) == {first: "now", second: "closed", back: "now"}
    assert facts(world) == {("adds", "one"), ("removes", "two")}
    world.git("revert", "--no-edit", "HEAD")
    world.drain()
    assert outlines(world)[second] == "now" and outlines(world)[back] == "closed"


def test_outlines_that_come_in_late_end_as_their_commits_have(world: World) -> None:
    """A store that knew the commits before there were outlines."""
    amended = write(world, code("one", "wrong"))
    current = write(world, code("one"), "x", "--amend")
    reverted = write(world, code("one", "two"))
    world.git("revert", "--no-edit", "HEAD")
    back = world.git("rev-parse", "HEAD")
    records = list(read("git", str(world.repo), env=world.env))
    kept = [r for r in records if isinstance(r, Incoming) and r.kind == "commit"]
    for record in kept:
        record.collection = world.collection
    ingest(world.store, world.actor, kept)
    assert outlines(world) == {}
    done = world.drain()
    assert done.rewritten == 1
    assert outlines(world) == {
        amended: "replaced", current: "now", reverted: "closed", back: "now",
    }  # fmt: skip


def test_secrets_in_changes_are_redacted(world: World) -> None:
    secret = "ghp_" + "0123456789abcdefghijABCDEFGHIJ456789"
    sha = write(world, f"def connect(token='{secret}'):\n    return 1\n")
    assert world.drain().new == 2
    text = world.objects()[f"{sha}:diff"].text
    assert "+def connect(token=" in text and secret not in text
    for folder, _, names in os.walk(world.store.root):
        for name in names:
            assert secret.encode() not in Path(folder, name).read_bytes()
