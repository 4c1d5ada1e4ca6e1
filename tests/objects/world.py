"""A store to state facts in and to look at through any lens: for the tests of correcting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from remem.objects import instant, refs, statements, undo
from remem.objects.admit import Admitted, admit
from remem.objects.derive import engine
from remem.objects.encode import Obj
from remem.objects.fsck import verify
from remem.objects.model import Incoming, Scope
from remem.objects.reader import Found, Part, Reader
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from remem.objects.views import Eye, Lens

T = TypeVar("T")

SCOPE = Scope("local", "default", "home", "none", "main")
GRANT = Grant("owner", "local", "default", None, owner=True)
OWNER = Actor(GRANT, "cli", SCOPE)
DAY = 86_400_000_000

Seen = tuple[str, str, str]  # "m" or "o", text, truth


def at(year: int, month: int = 1, day: int = 1) -> int:
    """Midnight UTC of a day, microseconds."""
    return instant.day_number(year, month, day) * DAY


class World:
    """One store in a folder."""

    def __init__(self, folder: Path, actor: Actor = OWNER) -> None:
        self.store = Store.create(str(folder))
        self.actor = actor

    # -- writing ------------------------------------------------------------------------------

    def write(self, change: Callable[[Tx], T]) -> T:
        return self.store.write(self.actor, change)

    def add(self, text: str, said: int | None = None, **fields: object) -> Admitted:
        record = msgspec.convert({"text": text, "asserted": said, **fields}, Incoming)
        return self.write(lambda tx: admit(tx, record))

    def fact(
        self,
        *triple: str,
        start: int | None = None,
        end: int | None = None,
        **fields: object,
    ) -> statements.Stated:
        given = {"text": " ".join(triple).replace("_", " "), **fields}
        fact = statements.Fact(triple=triple, starts=start, ends=end, **given)  # type: ignore[arg-type]
        return self.write(lambda tx: statements.state(tx, tx.actor.scope, fact))

    def do(self, change: Callable[..., T], ref: bytes, *args: object, **named: object) -> T:
        """Run one of the functions of correcting on a ref."""
        found = self.found(ref)
        return self.write(lambda tx: change(tx, found, *args, **named))

    def undo(self, seq: int | None = None) -> list[refs.Entry]:
        with self.store.read(GRANT) as reader:
            part = reader.parts[0]
            chosen = undo.last_operation(reader, part, "owner") if seq is None else seq
        assert chosen is not None
        return self.write(lambda tx: undo.undo(tx, tx.reader.parts[0], chosen))

    def derive(self, **options: object) -> engine.Derived:
        return engine.run(self.store, self.actor, ("ledger", "rules"), **options)  # type: ignore[arg-type]

    # -- reading ------------------------------------------------------------------------------

    def read(self, look: Callable[[Reader, Part], T]) -> T:
        with self.store.read(GRANT) as reader:
            return look(reader, reader.parts[0])

    def found(self, ref: bytes) -> Found:
        with self.store.read(GRANT) as reader:
            return reader.find(ref.hex())

    def state(self, ref: bytes) -> refs.RefState:
        return self.found(ref).state

    def head(self, ref: bytes) -> Obj:
        state = self.state(ref)
        assert state.head is not None
        return self.read(lambda reader, part: reader.object(part, state.head or b""))

    def log(self, ref: bytes) -> list[refs.Entry]:
        """Entries of a ref, oldest first."""
        state = self.state(ref)
        return self.read(lambda reader, part: list(reader.entries(part, state))[::-1])

    def last_seq(self) -> int:
        return self.read(lambda reader, part: reader.last_seq(part))

    def see(self, kind: str = "", **lens: object) -> list[Seen]:
        """All that a lens shows, sorted: every revision of every ref."""
        given = {"now": instant.now(), **lens}
        found: set[Seen] = set()
        with self.store.read(GRANT) as reader:
            eye = Eye(Lens(**given), reader)  # type: ignore[arg-type]
            for part in reader.parts:
                for ref, state in reader.states(part):
                    for entry in reader.entries(part, state):
                        if entry.new is None or entry.new == entry.old:
                            continue
                        seen = eye.see(part, ref, entry.new, entry.seq)
                        assert seen == eye.see(part, ref, entry.new)
                        if seen is not None:
                            text = reader.object(part, entry.new).text
                            found.add((refs.TYPES[state.type][0], text, seen[1]))
        return sorted(one for one in found if not kind or one[0] == kind)

    def texts(self, kind: str = "m", **lens: object) -> list[str]:
        """Texts that a lens shows."""
        return [text for _, text, _ in self.see(kind, **lens)]

    def check(self) -> None:
        """The store verifies."""
        report = verify(self.store)
        assert not report.problems, report.problems[:5]
