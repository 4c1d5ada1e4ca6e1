"""The test stand of the speed measurements: a folder, generated turns, stores made from them."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tests.bench.data import locomo
from tests.bench.process import LEXICAL_ONLY, CommandFailed, child_env, console_script, run
from tests.bench.report import Verdicts
from tests.bench.turns import SEED, Pool, pool, write_turns

BARE = Path(__file__).resolve().parent / "bare.py"


class Loop(msgspec.Struct, frozen=True):
    """What a bare loop prints, and how long its whole process took."""

    seconds: float
    count: int
    bytes: int
    process: float = 0.0


class Stand:
    """Makes turns and stores once, and runs the installed command on them."""

    def __init__(self, work: Path, data: Path, *, big: int, small: int, rounds: int) -> None:
        """Choose place and sizes.

        Args:
            work: an existing folder; the caller removes it.
            data: folder of the measuring data; may be absent.
            big: turns of the large collection.
            small: turns of the small one.
            rounds: interleaved runs of each cold-start command.
        """
        self.work = work
        self.data = data
        self.big = big
        self.small = small
        self.rounds = rounds
        self.verdicts = Verdicts()
        self.home = work / "home"
        self.home.mkdir()
        self.real_data = (data / "locomo").is_dir()
        self.pool: Pool = pool(locomo(data) if self.real_data else [], SEED)

    def jsonl(self, turns: int) -> Path:
        """The file of that many generated turns; made at the first call."""
        path = self.work / f"turns-{turns}.jsonl"
        if not path.exists():
            write_turns(path, self.pool, turns)
        return path

    def env(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a measured process."""
        return child_env(self.home, extra)

    def words(self, store: Path, *words: str) -> list[str]:
        """The words of a ``remem`` command on a store."""
        return [console_script(), "--store", str(store), *words]

    def remem(
        self, store: Path, *words: str, extra: Mapping[str, str] | None = None
    ) -> tuple[float, str]:
        """Run a ``remem`` command on a store.

        Returns:
            Wall clock of the whole process in seconds, and its stdout.

        Raises:
            CommandFailed: its exit code is not 0.
        """
        began = time.perf_counter()
        done = run(self.words(store, *words), self.env(extra), cwd=self.home)
        return time.perf_counter() - began, done.stdout

    def load(self, store: Path, turns: int) -> float:
        """Import generated turns into a fresh store, without indexes.

        Returns:
            Wall clock of the whole process in seconds.

        Raises:
            CommandFailed: the command failed, or did not take each turn as new.
        """
        shutil.rmtree(store, ignore_errors=True)
        source = self.jsonl(turns)
        wall, out = self.remem(
            store, "import", "jsonl", str(source), "--no-index", "--json", extra=LEXICAL_ONLY
        )
        new = msgspec.json.decode(out, type=dict[str, object]).get("new")
        if new != turns:
            raise CommandFailed(f"{turns} turns were given, {new} were taken as new")
        return wall

    def canonical(self, turns: int) -> Path:
        """A store of that many turns that has no index; made at the first call."""
        store = self.work / f"canonical-{turns}"
        if not store.exists():
            self.load(store, turns)
        return store

    def indexed(self, turns: int) -> Path:
        """A store of that many turns whose lexical index is complete; made at the first call."""
        store = self.work / f"indexed-{turns}"
        if not store.exists():
            shutil.copytree(self.canonical(turns), store)
            self.remem(store, "project", "--json", extra=LEXICAL_ONLY)
        return store

    def copy(self, store: Path, name: str) -> Path:
        """A copy of a store that a measurement may change."""
        target = self.work / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(store, target)
        return target

    def bare(self, *words: str) -> Loop:
        """Run a bare loop in a process of its own.

        Args:
            words: the loop and its input; a fresh folder is added where the loop writes one.
        """
        folder = self.work / "bare"
        shutil.rmtree(folder, ignore_errors=True)
        target = [] if words[0] == "scan" else [str(folder)]
        began = time.perf_counter()
        done = run([sys.executable, "-I", str(BARE), *words, *target], self.env(), cwd=self.home)
        process = time.perf_counter() - began
        shutil.rmtree(folder, ignore_errors=True)
        return msgspec.structs.replace(msgspec.json.decode(done.stdout, type=Loop), process=process)


def data_file(store: Path) -> Path:
    """The file of the canonical environment of a store: the largest, where a store has more.

    Raises:
        CommandFailed: there is none.
    """
    found = [path for path in (store / "canon").rglob("*.mdb") if "lock" not in path.name]
    if not found:
        raise CommandFailed(f"no LMDB file below '{store / 'canon'}'")
    return max(found, key=lambda path: path.stat().st_size)


def spread(values: Sequence[float]) -> str:
    """Smallest to greatest, for a measurement of few rounds."""
    return f"{min(values):.3f} to {max(values):.3f}"
