"""Loaders of the measuring data: chats, git histories, corrections.

The data is not part of the project; it is looked for in a folder beside the checkout, or where
``--data`` says.  A corpus is a set of documents and the questions asked of it; relevance is binary.
"""

from __future__ import annotations

import calendar
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import msgspec

ROOT = Path(__file__).resolve().parent.parent.parent
DEFAULT_DATA = ROOT.parent / "shared" / "data"

ADVERSARIAL = 5  # its evidence is the trap, so it is reported apart
CATEGORY_NAMES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    ADVERSARIAL: "adversarial",
}

_EVIDENCE = re.compile(r"D\d+:\d+")
_REFERENCE = re.compile(
    r"https?://\S+/(?:issues|pull|pulls|commit|compare|discussions)/\S+"
    r"|(?:\b[\w.-]+/[\w.-]+)?#\d+\b"
    r"|\bgh-\d+\b",
    re.IGNORECASE,
)
_BLANKS = re.compile(r"[ \t]{2,}")


class Doc(msgspec.Struct, frozen=True):
    """One document: a turn of a chat or a commit.

    Attributes:
        id: unique in its corpus.
        text: what was said, without speaker, date and caption.
        speaker: who said it, or empty.
        session: name of the session, or empty.
        at: UTC microseconds, or None where unknown.
        date: the same instant in the source's own words, or empty.
        caption: description of the picture shown with the turn, or empty.
    """

    id: str
    text: str
    speaker: str = ""
    session: str = ""
    at: int | None = None
    date: str = ""
    caption: str = ""


class Question(msgspec.Struct, frozen=True):
    """One query and the ids that answer it; ``category`` is 0 where the set has none."""

    id: str
    text: str
    relevant: tuple[str, ...]
    category: int = 0


class Corpus(msgspec.Struct, frozen=True):
    """Documents searched together, and the questions asked of them."""

    name: str
    docs: list[Doc]
    questions: list[Question]


class Correction(msgspec.Struct, frozen=True):
    """Facts, what later contradicts some of them, and questions in the old facts' words."""

    facts: list[str]
    questions: list[str]
    answers: list[str]
    supporting: list[list[int]]
    contradicting: list[str]
    contradicting_answers: list[str]


class _Commit(msgspec.Struct):
    id: str
    ts: str
    subject: str
    body: str


class _GitQuery(msgspec.Struct):
    id: str
    text: str
    relevant: list[str]


class _CorrectionLine(msgspec.Struct):
    question: list[str]
    answer: list[str]
    facts: list[str]
    supporting_fact_indices: list[list[int]]
    contradicting_facts: list[str]
    contradicting_answers: list[str]


class _Turn(msgspec.Struct):
    speaker: str
    dia_id: str
    text: str
    blip_caption: str = ""


class _Asked(msgspec.Struct):
    question: str
    evidence: list[str]
    category: int


class _Sample(TypedDict):
    sample_id: str
    conversation: dict[str, object]
    qa: list[_Asked]


def rfc3339(micros: int) -> str:
    """Write UTC microseconds the way the import takes them."""
    seconds, rest = divmod(micros, 1_000_000)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return f"{stamp}.{rest:06d}Z" if rest else f"{stamp}Z"


def chat_micros(date: str) -> int:
    """Read a session's date, such as "1:56 pm on 8 May, 2023", as UTC microseconds.

    Raises:
        ValueError: the text has another form.
    """
    read = time.strptime(date, "%I:%M %p on %d %B, %Y")
    return calendar.timegm(read) * 1_000_000


def locomo(data: Path) -> list[Corpus]:
    """Read the conversations, one corpus each.

    A turn's id is its ``dia_id``, its time that of its session.  Questions whose evidence names no
    existing turn are left out: nothing could be right.
    """
    path = data / "locomo" / "locomo-dev.json"
    samples = msgspec.json.decode(path.read_bytes(), type=list[_Sample])
    return [_conversation(sample) for sample in samples]


def gitlogs(data: Path) -> list[Corpus]:
    """Read the git histories, one corpus each.

    The text is subject and body without references to issues, which would give the answer away.
    """
    folders = sorted(path.parent for path in (data / "gitlogs").glob("*/events.jsonl"))
    return [_history(folder) for folder in folders]


def corrections(data: Path) -> list[Correction]:
    """Read the sets of facts and of what contradicts them, without the quotes around some."""
    path = data / "corrections" / "letta_bench_first100.jsonl"
    return [
        Correction(
            facts=line.facts,
            questions=line.question,
            answers=line.answer,
            supporting=line.supporting_fact_indices,
            contradicting=[text.strip().strip('"') for text in line.contradicting_facts],
            contradicting_answers=line.contradicting_answers,
        )
        for line in msgspec.json.Decoder(_CorrectionLine).decode_lines(path.read_bytes())
    ]


def renewed(sets: list[Correction]) -> Corpus:
    """All facts, then all that contradicts some of them; the new statement is what is right.

    Nothing says which one corrects which: the questions are in the words of the old facts.
    """
    docs = [
        Doc(id=f"fact {number}-{place}", text=text)
        for number, one in enumerate(sets)
        for place, text in enumerate(one.facts)
    ]
    questions = []
    for number, one in enumerate(sets):
        for place, (text, new) in enumerate(zip(one.questions, one.contradicting, strict=False)):
            name = f"new {number}-{place}"
            docs.append(Doc(id=name, text=new))
            questions.append(Question(name, text, (name,)))
    return Corpus("corrections", docs, questions)


def without_references(text: str) -> str:
    """Remove ``#123``, ``owner/name#123``, ``GH-123`` and addresses of issues and commits."""
    return _BLANKS.sub(" ", _REFERENCE.sub("", text)).strip()


def _conversation(sample: _Sample) -> Corpus:
    talk = sample["conversation"]
    docs = list(_turns(talk))
    known = {doc.id for doc in docs}
    questions = []
    for number, asked in enumerate(sample["qa"]):
        named = dict.fromkeys(ref for part in asked.evidence for ref in _EVIDENCE.findall(part))
        relevant = tuple(ref for ref in named if ref in known)
        if relevant:
            name = f"{sample['sample_id']}-{number}"
            questions.append(Question(name, asked.question, relevant, asked.category))
    return Corpus(sample["sample_id"], docs, questions)


def _turns(talk: dict[str, object]) -> Iterator[Doc]:
    number = 1
    while f"session_{number}_date_time" in talk:
        key = f"session_{number}"
        date = talk[f"{key}_date_time"]
        assert isinstance(date, str)
        for turn in msgspec.convert(talk.get(key, []), list[_Turn]):
            yield Doc(
                id=turn.dia_id,
                text=turn.text,
                speaker=turn.speaker,
                session=key,
                at=chat_micros(date),
                date=date,
                caption=turn.blip_caption,
            )
        number += 1


def _history(folder: Path) -> Corpus:
    commits = msgspec.json.Decoder(_Commit).decode_lines((folder / "events.jsonl").read_bytes())
    docs = [
        Doc(
            id=commit.id,
            text=without_references(f"{commit.subject}\n\n{commit.body}".strip()),
            at=_commit_micros(commit.ts),
        )
        for commit in commits
    ]
    docs = [doc for doc in docs if doc.text]
    known = {doc.id for doc in docs}
    asked = msgspec.json.Decoder(_GitQuery).decode_lines((folder / "queries.jsonl").read_bytes())
    questions = [
        Question(query.id, query.text, relevant)
        for query in asked
        if (relevant := tuple(sha for sha in query.relevant if sha in known))
    ]
    return Corpus(folder.name, docs, questions)


def _commit_micros(stamp: str) -> int:
    from datetime import datetime

    return int(datetime.fromisoformat(stamp).timestamp()) * 1_000_000
