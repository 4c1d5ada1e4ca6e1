"""The same turns and the same questions through a peer and through remem.

``python -m tests.bench side_by_side --severian VENV --verimem VENV``: a peer's own virtual
environment says where it is; one that is not given, or has no such command, is left out.  Turns are
the chats of the measuring data, filled up with recombined ones to ``--turns``; questions are those
of the chats.  Every tool is driven by its command line, in one process that imported it once, and
by whole processes for what a person waits for.  A hit counts where the text of a turn stands in
what the tool prints; the order in which the texts come is its ranking.

remem is measured by words alone and with its model, so that a peer with a model has one beside it.
verimem would load its model from a hub; without a network it takes it from the folder that
``--peer-env HF_HOME=FOLDER`` names, laid out as that hub's cache.  Every tool computes in one
thread; rates count by the processor too, with children and with what runs in the background.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tests.bench import metrics, peer_driver
from tests.bench.data import ADVERSARIAL, DEFAULT_DATA, Doc, Question, locomo, rfc3339
from tests.bench.report import note, table, title
from tests.bench.turns import SEED, pool, turns

ALONE = {"ENGRAM_ENCODE_SERVICE": "0"}  # verimem: a text costs more through its daemon
DRIVER = str(Path(__file__).resolve().parent / "peer_driver.py")
TOP = 10
WHOLE = 5  # whole processes that are timed
SHIFT = 500  # severian: turns to a run of work, which slows with the length of its queue
THREADS = ("OMP", "OPENBLAS", "MKL")  # one each: more collapse on a busy machine
HEAD = (
    "", "in, turns/s", "per cpu s", "ask p50 ms", "p99 ms", "cpu ms", "recall@10", "MRR", "hit@10",
    "process s", "cpu s", "resident s", "cpu s", "disk MB",
)  # fmt: skip
_BLANKS = re.compile(r"[\s│┃|]+")  # white space, and the frames of tables
SCOPE = [f"--{level}=bench" for level in ("tenant", "profile", "collection", "agent", "session")]


class Line(msgspec.Struct, omit_defaults=True):
    """A command line; ``env`` stands for it alone, ``apart`` keeps it out of what is counted."""

    words: list[str]
    stdin: str = ""
    env: dict[str, str] = {}
    apart: bool = False


class Told(msgspec.Struct):
    """What one command line came to; ``cpu`` is in seconds and counts all its processes."""

    code: int
    seconds: float
    cpu: float
    out: str
    err: str


class Failed(Exception):
    """A tool cannot be measured; the message says why."""


class Tool(ABC):
    """A tool under measurement; the command lines are those of its own manual."""

    name = ""  # of its command
    label = ""  # of its row
    leans = False  # whether it is asked with its helper only

    def __init__(self, venv: Path, work: Path, given: Mapping[str, str] | None = None) -> None:
        """Find it in ``venv``; the variables given stand above those of its set-up.

        Raises:
            Failed: it is not installed there.
        """
        self.python = venv / "bin" / "python"
        self.script = venv / "bin" / self.name
        if not self.script.is_file() or not self.python.exists():
            raise Failed(f"'{venv}' has no command '{self.name}'")
        self.work = work / (self.label or self.name).replace(" ", "-")
        self.home = self.work / "home"
        self.home.mkdir(parents=True)
        self.env = {
            "PATH": f"{venv / 'bin'}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "COLUMNS": "4000",
            "NO_COLOR": "1",
            **{f"{name}_NUM_THREADS": "1" for name in THREADS},
            **self.extra(),
            **(given or {}),
        }

    def extra(self) -> dict[str, str]:
        """Further variables of its environment."""
        return {}

    @abstractmethod
    def load(self, docs: Sequence[Doc]) -> Iterator[Line]:
        """Command lines that take the turns in, until they can be found."""

    @abstractmethod
    def ask(self, text: str) -> list[str]:
        """The words of a question."""

    def resident(self) -> bool:
        """Start the helper that it keeps in memory; False where it has none."""
        return False

    def reached(self) -> dict[str, int]:
        """Stages of taking in and how many turns came so far; those of the last are found."""
        return {}

    def drive(self, lines: Iterator[Line], timeout_s: float) -> list[Told]:
        """Run command lines in one process; what each came to that is not kept apart.

        Raises:
            Failed: one failed, or they took too long.
        """
        path = self.work / "lines"
        apart, cpu = [], self._spent()
        with path.open("wb") as file:
            for line in lines:
                apart.append(line.apart)
                file.write(msgspec.json.encode(line) + b"\n")
        with path.open("rb") as given:
            try:
                done = subprocess.run(
                    [str(self.python), "-I", DRIVER, self.name],
                    env=self.env, cwd=self.work, stdin=given, capture_output=True,
                    timeout=timeout_s,
                )  # fmt: skip
            except subprocess.TimeoutExpired as caught:
                ended = len((caught.stdout or b"").splitlines())
                raise Failed(
                    f"not done after {timeout_s:,.0f} s, {self._spent() - cpu:,.0f} cpu s: "
                    f"{ended:,} of {len(apart):,} command lines; turns: {self.reached()}"
                ) from caught
        told = [msgspec.json.decode(line, type=Told) for line in done.stdout.splitlines()]
        bad = next((one for one in told if one.code not in (0, 1)), None)
        if done.returncode or bad is not None or not told:
            said = (bad.err if bad else done.stderr.decode()).strip().splitlines()
            words = [one for one in said if not one.startswith("hint: ")]
            raise Failed(words[-1] if words else f"exit {done.returncode}")
        return [one for one, out in zip(told, apart, strict=True) if not out]

    def whole(self, words: Sequence[str]) -> tuple[float, float]:
        """Seconds of a whole process, by the clock and by the processor."""
        cpu = self._spent()
        began = time.perf_counter()
        subprocess.run(
            [str(self.script), *words], env=self.env, cwd=self.work, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=600, check=False,
        )  # fmt: skip
        return time.perf_counter() - began, self._spent() - cpu

    def disk(self) -> int:
        """Bytes that its files take on disk."""
        files = [path.lstat() for path in self.home.rglob("*") if path.is_file()]
        return sum(one.st_blocks * 512 for one in files)

    def _spent(self) -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime + peer_driver.spent(str(self.home))

    def _count(self, file: str, query: str) -> int:
        """A number from one of its SQLite files; 0 where there is none."""
        with contextlib.suppress(sqlite3.Error):
            there = sqlite3.connect(f"file:{self.home / file}?mode=ro", uri=True)
            with contextlib.closing(there):
                return int(there.execute(query).fetchone()[0])
        return 0


class Remem(Tool):
    """This program, by words alone."""

    name = "remem"
    label = "remem, words"
    embedder = "none"

    def extra(self) -> dict[str, str]:
        """A store of its own."""
        return {"REMEM_STORE": str(self.home / "store"), "REMEM_EMBEDDER": self.embedder}

    def load(self, docs: Sequence[Doc]) -> Iterator[Line]:
        """One import; it makes vectors for some seconds, so a projection makes the rest."""
        path = self.work / "turns.jsonl"
        with path.open("wb") as file:
            for doc in docs:
                at = None if doc.at is None else rfc3339(doc.at)
                known = {"speaker": doc.speaker, "session": doc.session, "at": at}
                line = {"text": doc.text, "role": "user", "source": {"id": doc.id}}
                line |= {key: value for key, value in known.items() if value}
                file.write(msgspec.json.encode(line) + b"\n")
        yield Line(["import", "jsonl", str(path)])
        yield Line(["project"])

    def ask(self, text: str) -> list[str]:
        """Ten hits, whole."""
        return ["recall", "--full", "--limit", str(TOP), "--", text]

    def reached(self) -> dict[str, int]:
        """Kept, and the same where nothing waits for an index."""
        words = [str(self.script), "status", "--json"]
        state = msgspec.json.decode(subprocess.check_output(words, env=self.env, cwd=self.work))
        kept = sum(state["counts"]["observation"].values())
        waits = state["index"]["lag"] or (state["index"]["vectors"] or {}).get("lag")
        return {"kept": kept, "indexed": 0 if waits else kept}

    def resident(self) -> bool:
        """The warm process."""
        self.whole(["warm"])
        return True


class Hybrid(Remem):
    """This program, by words and by its model, an int8 all-MiniLM-L6-v2."""

    label = "remem, hybrid"
    embedder = "minilm"


class Severian(Tool):
    """severian with its built-in embedding, and numpy where it is installed beside it."""

    name = label = "severian"

    def extra(self) -> dict[str, str]:
        """What its manual recommends, as far as it needs no model."""
        return {"SEVERIAN_OPT_NUMPY": "1"}

    def _files(self) -> list[str]:
        names = {"database": "s.db", "fts": "f.db", "vectors": "v.db"}
        return [f"--{key}={self.home / name}" for key, name in names.items()]

    def load(self, docs: Sequence[Doc]) -> Iterator[Line]:
        """All turns go into the one session that is searched; work is done before it piles up."""
        for number, doc in enumerate(docs, 1):
            yield Line(["ingest", *self._files(), *SCOPE, "--content", _said(doc)])
            if number % SHIFT == 0 or number == len(docs):
                yield Line(["work", *self._files()])

    def ask(self, text: str) -> list[str]:
        """Ten hits."""
        return ["search", *self._files(), *SCOPE, "--limit", str(TOP), "--query", text]

    def reached(self) -> dict[str, int]:
        """Kept, worked on, in the index."""
        kept = "select count(*) from records where record_type = '{}'"
        return {
            "kept": self._count("s.db", kept.format("observation")),
            "worked on": self._count("s.db", kept.format("memory")),
            "indexed": self._count("v.db", "select count(*) from memory_vectors"),
        }


class Verimem(Tool):
    """verimem with all-MiniLM-L6-v2, without its judge and its second ranker: larger models."""

    name = "verimem"
    label = "verimem, MiniLM"
    leans = True

    def extra(self) -> dict[str, str]:
        """No downloads, and the model that remem has too."""
        return {
            "VERIMEM_OFFLINE": "1",
            "HF_HUB_OFFLINE": "1",
            "VERIMEM_EMBEDDING_MODEL": "sentence-transformers/all-MiniLM-L6-v2",
            "VERIMEM_TORCH_THREADS": "1",
            "VERIMEM_RECALL_RERANK": "0",
        }

    def load(self, docs: Sequence[Doc]) -> Iterator[Line]:
        """One topic for each turn: within a topic it retires what resembles what is there."""
        facts = ({"proposition": _said(doc), "topic": f"b/{n}"} for n, doc in enumerate(docs))
        words = ["facts", "add", "--validate", "off", "--jsonl-stdin"]
        yield Line(["warmup", "--no-gate", "--no-daemon"], env=ALONE, apart=True)
        yield Line(words, "".join(json.dumps(fact) + "\n" for fact in facts), ALONE)
        yield Line(["facts", "backfill"], env=ALONE)

    def resident(self) -> bool:
        """Its daemon encodes questions; the warm-up also fits its floor to what was taken in."""
        self.whole(["warmup", "--no-gate"])
        until = time.monotonic() + 180.0
        while not (self.home / ".engram" / "encode_service.json").exists():
            if time.monotonic() > until:
                raise Failed("its encode daemon did not come")
            time.sleep(0.2)
        return True

    def ask(self, text: str) -> list[str]:
        """Ten hits."""
        return ["recall", text, "--k", str(TOP)]

    def reached(self) -> dict[str, int]:
        """Kept, with a vector, and with a vector and not retired."""
        file = ".verimem/semantic/semantic.db"
        vector = "select count(*) from facts where length(embedding) > 0"
        return {
            "kept": self._count(file, "select count(*) from facts"),
            "with a vector": self._count(file, vector),
            "of these not retired": self._count(file, f"{vector} and superseded_by is null"),
        }


TOOLS: tuple[type[Tool], ...] = (Remem, Hybrid, Severian, Verimem)
PEERS = TOOLS[2:]


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 where remem itself could not be measured.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench side_by_side", description="The same work through a peer."
    )
    for peer in PEERS:
        parser.add_argument(f"--{peer.name}", type=Path, metavar="VENV", help="where it is")
    parser.add_argument(
        "--peer-env", action="append", default=[], metavar="NAME=VALUE",
        help="a variable for the peers, above those of their set-up (may be repeated)",
    )  # fmt: skip
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--timeout", type=float, default=3600.0, help="for taking turns in, s")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    args = parser.parse_args(argv)
    given = dict(one.partition("=")[::2] for one in args.peer_env)
    if not (args.data / "locomo").is_dir():
        note(f"not measured: no chats in '{args.data}'")
        return 1
    docs, asked = _set(args.data, args.turns, args.questions)
    title(f"side by side: {len(docs):,} turns, {len(asked)} questions")
    rows, failed = [], 0
    with tempfile.TemporaryDirectory(prefix="remem-beside-") as work:
        for kind in TOOLS:
            own = issubclass(kind, Remem)
            venv = Path(sys.prefix) if own else getattr(args, kind.name)
            if venv is None:
                note(f"{kind.name}: not given (--{kind.name} VENV)")
                continue
            try:
                tool = kind(venv, Path(work), None if own else given)
                rows.append(_measure(tool, docs, asked, args.timeout))
                note(" | ".join(rows[-1]))
            except (Failed, OSError, msgspec.DecodeError, subprocess.SubprocessError) as reason:
                failed += own
                note(f"{kind.label}: not measured: {reason}")
    if rows:
        print(table(HEAD, rows))
    note("process: median of whole ones that ask; resident: with a helper in memory; cpu: of all")
    return int(bool(failed))


def _measure(
    tool: Tool, docs: Sequence[Doc], asked: Sequence[Question], timeout_s: float
) -> list[str]:
    """A row of the table.

    Raises:
        Failed: the tool does not do it.
    """
    try:
        took = tool.drive(tool.load(docs), timeout_s)
        disk = tool.disk()
        stages = tool.reached()
        if stages:
            note(f"{tool.label}: turns: {stages}")
            if not list(stages.values())[-1]:
                raise Failed("it keeps nothing that can be found")
        helped = tool.leans and tool.resident()
        lines = [Line(tool.ask(question.text)) for question in asked]
        told = tool.drive(iter([msgspec.structs.replace(lines[0], apart=True), *lines]), timeout_s)
        wholes = ["-", "-"] if helped else _wholes(tool, asked)
        wholes += _wholes(tool, asked) if helped or tool.resident() else ["-", "-"]
    finally:
        peer_driver.end(str(tool.home))
    ranked = list(zip(_rankings(docs, told), (one.relevant for one in asked), strict=True))
    scores = [
        [metrics.recall_at(found, relevant, TOP) for found, relevant in ranked],
        [metrics.reciprocal_rank(found, relevant) for found, relevant in ranked],
        [metrics.hit_at(found, relevant, TOP) for found, relevant in ranked],
    ]
    times = sorted(one.seconds for one in told)
    return [
        tool.label,
        f"{len(docs) / sum(one.seconds for one in took):,.0f}",
        f"{len(docs) / sum(one.cpu for one in took):,.0f}",
        f"{1000 * times[len(times) // 2]:.1f}",
        f"{1000 * times[len(times) * 99 // 100]:.1f}",
        f"{1000 * sum(one.cpu for one in told) / len(told):.1f}",
        *(f"{sum(values) / len(values):.3f}" for values in scores),
        *wholes,
        f"{disk / 1e6:.1f}",
    ]


def _wholes(tool: Tool, asked: Sequence[Question]) -> list[str]:
    """Cells of whole processes that ask, after one that is not counted: both medians."""
    _first, *rest = (tool.whole(tool.ask(one.text)) for one in (asked[0], *asked[:WHOLE]))
    return [f"{metrics.median(part):.2f}" for part in zip(*rest, strict=True)]


def _rankings(docs: Sequence[Doc], told: Sequence[Told]) -> list[list[str]]:
    """Ids of the turns that each answer shows."""
    by_start: dict[str, list[tuple[str, str]]] = {}
    for doc in docs:
        plain = _plain(doc.text)
        by_start.setdefault(plain[:8], []).append((plain, doc.id))
    return [_found(_plain(_readable(one.out)), by_start)[:TOP] for one in told]


def _set(data: Path, count: int, questions: int) -> tuple[list[Doc], list[Question]]:
    """Turns and questions: real chats, filled up."""
    corpora = locomo(data)
    docs = [
        msgspec.structs.replace(doc, id=f"{corpus.name}/{doc.id}")
        for corpus in corpora
        for doc in corpus.docs
    ][:count]
    there = {doc.id for doc in docs}
    asked = [
        msgspec.structs.replace(q, relevant=tuple(f"{corpus.name}/{id_}" for id_ in q.relevant))
        for corpus in corpora
        for q in corpus.questions
        if q.category not in (0, ADVERSARIAL) and q.relevant
    ]
    asked = [q for q in asked if there.issuperset(q.relevant)]
    more = turns(pool(corpora, SEED), max(0, count - len(docs)))
    docs += [
        Doc(f"more/{number}", turn.text, turn.speaker, turn.session)
        for number, turn in enumerate(more)
    ]
    return docs, asked[:: max(1, len(asked) // questions)][:questions]


def _said(doc: Doc) -> str:
    """A turn as one text, for tools that keep nothing else."""
    head = f"{doc.speaker} ({doc.date})" if doc.date else doc.speaker
    return f"{head}: {doc.text}" if head else doc.text


def _readable(out: str) -> str:
    """What a tool printed; of JSON the texts, without their escapes."""
    try:
        return "\n".join(_texts(json.loads(out)))
    except ValueError:
        return out


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, (dict, list)):
        for one in part.values() if isinstance(part, dict) else part:
            yield from _texts(one)


def _plain(text: str) -> str:
    """A text in one line."""
    return _BLANKS.sub(" ", text).strip()


def _found(out: str, by_start: dict[str, list[tuple[str, str]]]) -> list[str]:
    """Ids of the turns whose texts stand in an output, in their order, the longest at a place."""
    found: list[str] = []
    at = 0
    while at < len(out):
        fits = [
            (len(text), id_)
            for text, id_ in by_start.get(out[at : at + 8], ())
            if out.startswith(text, at)
        ]
        size, id_ = max(fits, default=(1, ""))
        if id_ and id_ not in found:
            found.append(id_)
        at += size
    return found
