"""What the recall bench asks of a system under measurement, and remem behind that face.

remem is measured from outside: its installed command takes the documents with ``import jsonl``
and answers with ``recall --batch``, so that the figures are those of the program people run.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from tests.bench.data import ROOT, Doc, rfc3339
from tests.bench.process import CommandFailed, child_env, console_script, run

IMPORT_TIMEOUT_S = 1800.0  # a model on one thread embeds some 50 short texts a second


class System(Protocol):
    """Something that takes documents and ranks their ids for a query."""

    name: str

    def ingest(self, docs: Sequence[Doc]) -> None:
        """Forget what was there and take a whole corpus."""

    def search(self, query: str, k: int) -> list[str]:
        """Rank at most k ids, best first."""

    def search_all(self, queries: Sequence[str], k: int) -> list[list[str]]:
        """Rank for each query, in the order of the queries."""


class Source(msgspec.Struct, frozen=True):
    """Where a hit came from, as given when it came in."""

    uri: str | None = None
    id: str | None = None


class Cite(msgspec.Struct, frozen=True):
    """An observation behind a hit."""

    source: Source | None = None


class Hit(msgspec.Struct, frozen=True):
    """The parts of a hit that matter here."""

    type: str
    source: Source | None = None
    cites: list[Cite] = []


class Answer(msgspec.Struct, frozen=True):
    """One line of ``recall --batch``."""

    id: str
    mode: str
    hits: list[Hit]
    degraded: str | None = None
    confidence: float = 0.0


class Remem:
    """The installed ``remem`` command on a store of its own."""

    def __init__(
        self,
        work: Path,
        mode: str,
        settings: Mapping[str, str] | None = None,
        *,
        cache: Path | None = None,
    ) -> None:
        """Choose mode and place.

        Args:
            work: a folder for the store and the files that go in and out.
            mode: lexical, hybrid or vector.
            settings: variables of the environment to add.
            cache: folder that keeps stores with their vectors from one run to the next; None
                makes each anew.  What is kept is dropped when the code that made it changes.
        """
        self._cache = cache
        self.name = f"remem {mode}"
        self.degraded: str | None = None
        self._mode = mode
        self._work = work / f"remem-{mode}"
        self._settings = dict(settings or {})

    def ingest(self, docs: Sequence[Doc]) -> None:
        """Import the documents into a fresh store and converge its indexes.

        Raises:
            CommandFailed: a command failed, or not every document was taken.
        """
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(parents=True)
        lines = self._work / "docs.jsonl"
        lines.write_bytes(b"".join(import_lines(docs)))
        kept = None
        if self._cache is not None and self._mode != "lexical":
            kept = self._cache / f"store-{_digest(lines.read_bytes())}"
            if kept.is_dir():
                shutil.copytree(kept, self._work / "store")
                return
        self._import(lines)
        if kept is not None:
            shutil.copytree(self._work / "store", kept)

    def _import(self, lines: Path) -> None:
        self._remem("import", "jsonl", str(lines), "--json", timeout_s=IMPORT_TIMEOUT_S)
        self._remem("project", "--json", timeout_s=IMPORT_TIMEOUT_S)

    def search(self, query: str, k: int) -> list[str]:
        """Rank for one query; see `search_all`."""
        return self.search_all([query], k)[0]

    def search_all(self, queries: Sequence[str], k: int) -> list[list[str]]:
        """Rank for each query in one process.

        A memory stands for the observations it cites, in their order.

        Raises:
            CommandFailed: the command failed, skipped a query, or answered in another mode.
        """
        return [source_ids(answer.hits)[:k] for answer in self.answers(queries, k)]

    def answers(self, queries: Sequence[str], k: int) -> list[Answer]:
        """Answer each query in one process.

        Raises:
            CommandFailed: the command failed, skipped a query, or answered in another mode.
        """
        asked = self._work / "queries.jsonl"
        asked.write_bytes(
            b"".join(
                msgspec.json.encode(
                    {"id": str(number), "query": query, "mode": self._mode, "limit": k}
                )
                + b"\n"
                for number, query in enumerate(queries)
            )
        )
        out = self._remem("recall", "--batch", str(asked), "--json", timeout_s=IMPORT_TIMEOUT_S)
        answers = {one.id: one for one in msgspec.json.Decoder(Answer).decode_lines(out.encode())}
        if len(answers) != len(queries):
            raise CommandFailed(f"{len(queries)} queries, but {len(answers)} answers")
        other = {one.mode for one in answers.values()} - {self._mode}
        if other:
            raise CommandFailed(f"asked in mode {self._mode}, answered in {', '.join(other)}")
        self.degraded = next((one.degraded for one in answers.values() if one.degraded), None)
        return [answers[str(number)] for number in range(len(queries))]

    def _remem(self, *words: str, timeout_s: float) -> str:
        script = console_script()
        env = child_env(self._work, {"REMEM_STORE": str(self._work / "store"), **self._settings})
        return run([script, *words], env, cwd=self._work, timeout_s=timeout_s).stdout


def _digest(docs: bytes) -> str:
    """Name of a kept store: what went in, and the code that it went through."""
    found = hashlib.sha256(docs)
    for package in ("cli", "hooks", "index", "objects"):
        for path in sorted((ROOT / package).rglob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()[:24]


def import_lines(docs: Iterable[Doc]) -> Iterable[bytes]:
    """Write documents as lines for ``import jsonl``; the caption goes into the text."""
    for doc in docs:
        line: dict[str, object] = {
            "text": f"{doc.text} [{doc.caption}]" if doc.caption else doc.text,
            "source": {"uri": f"bench:{doc.session or 'docs'}", "id": doc.id},
        }
        if doc.at is not None:
            line["at"] = rfc3339(doc.at)
        if doc.speaker:
            line["speaker"] = doc.speaker
        if doc.session:
            line["session"] = doc.session
        yield msgspec.json.encode(line) + b"\n"


def source_ids(hits: Sequence[Hit]) -> list[str]:
    """Map hits back to the ids the documents came with.

    Args:
        hits: of one answer, best first.

    Returns:
        Each id once, at its best place.
    """
    found: dict[str, None] = {}
    for hit in hits:
        if hit.source is not None and hit.source.id is not None:
            found.setdefault(hit.source.id)
            continue
        for cite in hit.cites:
            if cite.source is not None and cite.source.id is not None:
                found.setdefault(cite.source.id)
    return list(found)
