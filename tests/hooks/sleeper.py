"""A store that sleeps: for the tests of consolidation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from remem.hooks import consolidate
from remem.hooks.consolidate import Means, Slept
from remem.hooks.drain import Rules, actor_for
from remem.hooks.ignore import Ignore
from remem.hooks.intake import Intake
from remem.index import project
from remem.index.recall import Answer, Question, Searcher
from remem.objects import drafts, instant, refs
from remem.objects.model import Draft, Operation
from remem.objects.scope import maintenance_grant
from remem.objects.views import Lens
from tests.objects.world import GRANT, World, at

DAY = 86_400_000_000
HOUR = DAY // 24
# Turns of one conversation: each says something of its own, at some length.
TALK = (
    ("Mira", "The kestrel project starts in April and has a budget of 41000 euros for this year."),
    ("Tom", "Good to know. Who is going to write the proposal for the harbour authority?"),
    ("Mira", "I write the proposal myself; the harbour authority wants it by the ninth of May."),
    (
        "Tom",
        "Then I prepare the measurements at pier four, since the sensors have to be calibrated.",
    ),
    ("Mira", "The sensors of pier four were damaged by the storm in February, so order new ones."),
    ("Tom", "I order twelve sensors from the workshop in Bergen, they deliver within three weeks."),
    ("Mira", "Please also ask Ada whether the boat is free on the twentieth of April."),
    ("Tom", "Ada says that the boat is free all week, but the crane is in repair until Friday."),
    ("Mira", "Without the crane we cannot lift the mooring, so the trip has to wait for Friday."),
    ("Tom", "Agreed, we sail on Saturday morning at six and are back before the evening tide."),
)


class Sleeper(World):
    """A world that consolidates, asks and looks at drafts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self.means = Means(Intake(actor_for("local", "default"), Rules(Ignore(), "home")))

    def sleep(self, **options: Any) -> Slept:
        return consolidate.run(self.store, self.means, **options)

    def talk(
        self, *, session: str = "talk", start: int = at(2026, 3, 1), turns: int = 10
    ) -> list[bytes]:
        """Say TALK, a minute between two turns; refs."""
        found = []
        for number, (who, text) in enumerate(TALK[:turns]):
            said = self.add(
                text,
                start + number * 60_000_000,
                role="user",
                speaker=who,
                session=session,
                offset=0,
            )
            found.append(said.ref)
        return found

    def operations(self) -> list[tuple[bytes, Operation]]:
        """(draft, operation) of all drafts, oldest first."""
        found = []
        with self.store.read(GRANT) as reader:
            for part in reader.parts:
                for ref, _, draft in drafts.all_of(reader, part):
                    assert isinstance(draft, Draft)
                    found += [(ref, op) for op in draft.operations]
        return found

    def claims(self) -> list[str]:
        """Texts that drafts propose."""
        return [self.head(op.proposed).text for _, op in self.operations() if op.proposed]

    def approve(self, number: int = 0) -> bytes:
        """Approve the only operation of a draft; the ref of its claim, or its target."""
        ref, op = self.operations()[number]
        self.write(lambda tx: drafts.approve(tx, tx.reader.parts[0], ref))
        found = op.proposed or op.target
        assert found is not None
        return found

    def ask(self, text: str, *, limit: int = 10, **options: Any) -> Answer:
        project.project(self.store)
        names = ("view", "as_of", "known_at", "include")
        lens = Lens(instant.now(), **{k: options.pop(k) for k in list(options) if k in names})
        question = Question(text, lens, limit=limit, mode="lexical", **options)
        return Searcher(self.store, GRANT, None).ask(question)

    def answers(self, text: str, **options: Any) -> list[str]:
        return [hit.obj.text for hit in self.ask(text, **options).hits]

    def reasons(self, ref: bytes) -> list[str]:
        return [entry.reason for entry in self.log(ref)]

    def replaced_by(self, ref: bytes) -> bytes | None:
        return self.state(ref).replaced_by

    def status(self, ref: bytes) -> str:
        return refs.STATUSES[self.state(ref).status]

    def marks(self) -> tuple[Any, ...]:
        """What may not change: the audit head, and the last entry of each partition."""
        with self.store.read(maintenance_grant()) as reader:
            head = reader.audit_head()
            counts = {
                table: reader.txn.count(table) for table in ("objects", "refs", "log", "audit")
            }
            return head.seq, head.hash, {p.number: reader.last_seq(p) for p in reader.parts}, counts

    def files(self) -> dict[str, tuple[int, int]]:
        """(size, time of the last change) of every file of the store."""
        return {
            str(path.relative_to(self.folder)): (path.stat().st_size, path.stat().st_mtime_ns)
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and path.name != "lock.mdb"
        }


def counts(slept: Slept) -> dict[str, int]:
    return msgspec.structs.asdict(slept)["counts"]  # type: ignore[no-any-return]


def pause() -> None:
    """Let the clock go on, so that what follows is later."""
    time.sleep(0.002)
