"""The same turns and the same questions through a peer and through remem.

``python -m tests.bench side_by_side --severian VENV --verimem VENV``: a peer's own virtual
environment says where it is; one that is not given, or has no such command, is left out.  Turns are
the chats of the measuring data, filled up with recombined ones to ``--turns``; questions are those
of the chats.  Every tool is driven by its command line, in one process that imported it once, and
by whole processes for what a person waits for.  A hit counts where the text of a turn stands in
what the tool prints; the order in which the texts come is its ranking.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tests.bench import metrics
from tests.bench.data import ADVERSARIAL, DEFAULT_DATA, Doc, Question, locomo, rfc3339
from tests.bench.report import note, table, title
from tests.bench.turns import SEED, pool, turns

DRIVER = str(Path(__file__).resolve().parent / "peer_driver.py")
TOP = 10
WHOLE = 5  # whole processes that are timed
_BLANKS = re.compile(r"[\s│┃|]+")  # white space, and the frames of tables

SCOPE = {"tenant": "bench", "profile": "bench", "collection": "bench", "agent": "none"}


class Told(msgspec.Struct):
    """What one command line came to."""

    code: int
    seconds: float
    out: str
    err: str


class Failed(Exception):
    """A tool cannot be measured; the message says why."""


class Tool(ABC):
    """A tool under measurement; the command lines are those of its own manual.

    Attributes:
        name: of its command.
    """

    name = ""

    def __init__(self, venv: Path, work: Path) -> None:
        """Find it.

        Raises:
            Failed: it is not installed there.
        """
        self.python = venv / "bin" / "python"
        self.script = venv / "bin" / self.name
        if not self.script.is_file() or not self.python.exists():
            raise Failed(f"'{venv}' has no command '{self.name}'")
        self.work = work / self.name
        self.work.mkdir()
        self.env = {
            "PATH": f"{venv / 'bin'}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.work),
            "LANG": "C.UTF-8",
            "COLUMNS": "4000",
            "NO_COLOR": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            **self.extra(),
        }

    def extra(self) -> dict[str, str]:
        """Further variables of its environment."""
        return {}

    @abstractmethod
    def load(self, docs: Sequence[Doc]) -> Iterator[dict[str, object]]:
        """Command lines that take the turns in, until they can be found."""

    @abstractmethod
    def ask(self, text: str) -> list[str]:
        """The words of a question."""

    def drive(self, lines: Iterator[dict[str, object]], timeout_s: float) -> list[Told]:
        """Run command lines in one process.

        Raises:
            Failed: one failed, or they took too long.
        """
        path = self.work / "lines"
        with path.open("wb") as file:
            for line in lines:
                file.write(json.dumps(line).encode() + b"\n")
        with path.open("rb") as given:
            try:
                done = subprocess.run(
                    [str(self.python), "-I", DRIVER, self.name],
                    env=self.env, cwd=self.work, stdin=given, capture_output=True,
                    timeout=timeout_s,
                )  # fmt: skip
            except subprocess.TimeoutExpired as caught:
                raise Failed(f"not done after {timeout_s:.0f} s") from caught
        told = [msgspec.json.decode(line, type=Told) for line in done.stdout.splitlines()]
        bad = next((one for one in told if one.code not in (0, 1)), None)
        if done.returncode or bad is not None or not told:
            said = (bad.err if bad else done.stderr.decode()).strip().splitlines()
            raise Failed(said[-1] if said else f"exit {done.returncode}")
        return told

    def whole(self, words: Sequence[str]) -> float:
        """Seconds of a whole process."""
        began = time.perf_counter()
        subprocess.run(
            [str(self.script), *words], env=self.env, cwd=self.work, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=600, check=False,
        )  # fmt: skip
        return time.perf_counter() - began


class Remem(Tool):
    """This program."""

    name = "remem"

    def extra(self) -> dict[str, str]:
        """A store of its own; words alone, so that no tool needs a model."""
        return {"REMEM_STORE": str(self.work / "store"), "REMEM_EMBEDDER": "none"}

    def load(self, docs: Sequence[Doc]) -> Iterator[dict[str, object]]:
        """One import, which projects at its end."""
        path = self.work / "turns.jsonl"
        with path.open("wb") as file:
            for doc in docs:
                line: dict[str, object] = {"text": doc.text, "role": "user"}
                line |= {"speaker": doc.speaker} if doc.speaker else {}
                line |= {"session": doc.session} if doc.session else {}
                line |= {"at": rfc3339(doc.at)} if doc.at is not None else {}
                file.write(msgspec.json.encode(line | {"source": {"id": doc.id}}) + b"\n")
        yield {"words": ["import", "jsonl", str(path)]}

    def ask(self, text: str) -> list[str]:
        """Ten hits, whole."""
        return ["recall", "--full", "--limit", str(TOP), "--", text]


class Severian(Tool):
    """severian with its built-in embedding: ingest one by one, then work."""

    name = "severian"

    def _files(self) -> list[str]:
        names = {"database": "s.db", "fts": "f.db", "vectors": "v.db"}
        return [word for k, v in names.items() for word in (f"--{k}", str(self.work / v))]

    def _scope(self, session: str) -> list[str]:
        parts = {**SCOPE, "session": session}
        return [*self._files(), *(word for k, v in parts.items() for word in (f"--{k}", v))]

    def load(self, docs: Sequence[Doc]) -> Iterator[dict[str, object]]:
        """It searches within one session, so all turns go into one."""
        for doc in docs:
            words = ["ingest", *self._scope("main"), "--content", _said(doc)]
            yield {"words": words}
        yield {"words": ["work", *self._files()]}

    def ask(self, text: str) -> list[str]:
        """Ten hits."""
        return ["search", *self._scope("main"), "--limit", str(TOP), "--query", text]


class Verimem(Tool):
    """verimem without network, its gate switched off for speed: all turns in one call."""

    name = "verimem"

    def extra(self) -> dict[str, str]:
        """No downloads."""
        return {"VERIMEM_OFFLINE": "1"}

    def load(self, docs: Sequence[Doc]) -> Iterator[dict[str, object]]:
        """One topic for each turn: within a topic it retires what resembles what is there."""
        lines = [
            json.dumps({"proposition": _said(doc), "topic": f"bench/{number}"})
            for number, doc in enumerate(docs)
        ]
        words = ["facts", "add", "--validate", "off", "--jsonl-stdin"]
        yield {"words": words, "stdin": "\n".join(lines) + "\n"}

    def ask(self, text: str) -> list[str]:
        """Ten hits."""
        return ["recall", text, "--k", str(TOP)]


PEERS: tuple[type[Tool], ...] = (Severian, Verimem)


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
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--timeout", type=float, default=3600.0, help="for taking the turns in, s")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    args = parser.parse_args(argv)
    if not (args.data / "locomo").is_dir():
        note(f"not measured: no chats in '{args.data}'")
        return 1
    docs, asked = _set(args.data, args.turns, args.questions)
    title(f"side by side: {len(docs):,} turns, {len(asked)} questions")
    rows, failed = [], 0
    with tempfile.TemporaryDirectory(prefix="remem-beside-") as work:
        for kind in (Remem, *PEERS):
            own = kind is Remem
            venv = Path(sys.prefix) if own else getattr(args, kind.name)
            if venv is None:
                note(f"{kind.name}: not given (--{kind.name} VENV)")
                continue
            try:
                rows.append(_measure(kind(venv, Path(work)), docs, asked, args.timeout))
            except (Failed, OSError, msgspec.DecodeError) as reason:
                failed += own
                note(f"{kind.name}: not measured: {reason}")
    head = ["", "in, turns/s", "ask p50 ms", "p99 ms", "recall@10", "hit@10", "process s"]
    if rows:
        print(table(head, rows))
    note("process: median of whole processes that ask one question; remem ranks by words alone")
    return int(bool(failed))


def _measure(
    tool: Tool, docs: Sequence[Doc], asked: Sequence[Question], timeout_s: float
) -> list[str]:
    """A row of the table.

    Raises:
        Failed: the tool does not do it.
    """
    took = sum(one.seconds for one in tool.drive(tool.load(docs), timeout_s))
    lines: list[dict[str, object]] = [{"words": tool.ask(question.text)} for question in asked]
    told = tool.drive(iter([lines[0], *lines]), timeout_s)[1:]
    by_start: dict[str, list[tuple[str, str]]] = {}
    for doc in docs:
        plain = _plain(doc.text)
        by_start.setdefault(plain[:8], []).append((plain, doc.id))
    recalls, hits = [], []
    for question, one in zip(asked, told, strict=True):
        found = _found(_plain(_readable(one.out)), by_start)[:TOP]
        good = len(set(question.relevant) & set(found))
        recalls.append(good / len(question.relevant))
        hits.append(float(good > 0))
    times = sorted(one.seconds for one in told)
    whole = [tool.whole(tool.ask(question.text)) for question in asked[:WHOLE]]
    return [
        tool.name,
        f"{len(docs) / took:,.0f}",
        f"{1000 * times[len(times) // 2]:.1f}",
        f"{1000 * times[len(times) * 99 // 100]:.1f}",
        f"{sum(recalls) / len(recalls):.3f}",
        f"{sum(hits) / len(hits):.3f}",
        f"{metrics.median(whole):.2f}",
    ]


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
        value = json.loads(out)
    except ValueError:
        return out
    texts: list[str] = []

    def walk(part: object) -> None:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            for one in part.values():
                walk(one)
        elif isinstance(part, list):
            for one in part:
                walk(one)

    walk(value)
    return "\n".join(texts)


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
        if fits:
            size, id_ = max(fits)
            if id_ not in found:
                found.append(id_)
            at += max(1, size)
        else:
            at += 1
    return found
