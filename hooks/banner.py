"""What stands at the beginning of a session: pins, what is due, what changed, what waits.

It is a context like any other (`remem.index.context`): a block that says that it is data, inside a
budget, through the same lens.  Pins are never left out: where they alone are larger than the
budget, the banner says so in their place.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from remem.index import context, pinned, whose
from remem.index.context import Entry, safe
from remem.index.errors import OverBudget
from remem.objects import drafts, instant, oid, refs
from remem.objects.links import LINK
from remem.objects.model import Memory
from remem.objects.views import Eye

if TYPE_CHECKING:
    from collections.abc import Iterable

    from remem.objects.model import Scope
    from remem.objects.reader import Part, Reader
    from remem.objects.scope import Grant
    from remem.objects.store import Store
    from remem.objects.views import Lens

CHANGED = "Changed since the last session"
WAITS = "Waiting"
MOST_CHANGES = 12
LOOKED_AT = 5000  # entries of the log that are looked at
LINE = 200  # characters of one change
_WITH_TEXT = frozenset(("loop", "task", "pin"))  # kinds that have a place of their own


def build(
    store: Store,
    grant: Grant,
    lens: Lens,
    scope: Scope,
    *,
    since: int | None = None,
    budget: int = 4000,
) -> str:
    """The banner, or nothing where there is nothing to say.

    Args:
        store: an open store.
        grant: what may be seen.
        lens: a view of the present.
        scope: of the session that begins.
        since: changes after this are told of, microseconds UTC; None for the end of the last
            session of an agent here.
        budget: at most so many characters.
    """
    standing = pinned.standing(store, grant, lens, "")
    with store.read(grant) as reader:
        start = last_session(reader, scope) if since is None else since
        changed = [] if start is None else _changes(reader, lens, start)
        waits = _waiting(reader)
    try:
        made = context.build([], standing=standing, budget=budget)
        taken = list(made.entries)
    except OverBudget as error:
        taken = [Entry(pinned.PINNED, (-2, 0, ""), f"{error}; 'remem pins' shows them", [])]
    text = context.render(taken, "markdown") if taken else ""
    for entry in [*waits, *changed]:
        trial = context.render([*taken, entry], "markdown")
        if len(trial) <= budget:
            taken.append(entry)
            text = trial
    return text


def last_session(reader: Reader, scope: Scope) -> int | None:
    """Record time of the last entry that another session of an agent left here, or None."""
    found: int | None = None
    for part in reader.parts:
        for entry in islice(reader.log(part, reverse=True), LOOKED_AT):
            agent, session = reader.lane(part, entry.lane)
            if session != scope.session and entry.surface in ("mcp", "hook") and agent != "shell":
                found = entry.time if found is None else max(found, entry.time)
                break
    return found


def _changes(reader: Reader, lens: Lens, since: int) -> list[Entry]:
    """Memories that began, or took another's place, since then; the newest first."""
    eye = Eye(lens, reader)
    seen: set[bytes] = set()
    found: list[tuple[int, Entry]] = []
    for part in reader.parts:
        for ref, at in _touched(reader, part, since):
            if ref in seen or len(found) >= MOST_CHANGES:
                continue
            seen.add(ref)
            line = _line(eye, part, ref)
            if line:
                ids = [oid.short(ref)]
                found.append((at, Entry(CHANGED, (1, -at, ids[0]), f"{line} [{ids[0]}]", ids)))
    return [entry for _, entry in sorted(found, key=lambda one: -one[0])]


def _touched(reader: Reader, part: Part, since: int) -> Iterable[tuple[bytes, int]]:
    """Refs of memories in the entries since then, the newest first."""
    for entry in islice(reader.log(part, reverse=True), LOOKED_AT):
        if entry.time <= since:
            return
        if entry.type == refs.MEMORY and entry.reason != LINK:
            yield entry.ref, entry.time


def _line(eye: Eye, part: Part, ref: bytes) -> str:
    """What a memory says now, or nothing where it does not hold or may not be shown."""
    sight = eye.of(part, ref)
    if sight is None or sight.held is None:
        return ""
    head = sight.held.head
    if head is None or eye.see(part, ref, head) is None:
        return ""
    memory = eye.reader.object(part, head)
    if not isinstance(memory, Memory) or memory.kind in _WITH_TEXT:
        return ""
    words = safe(memory.text)
    words = words if len(words) <= LINE else words[: LINE - 1] + "\u2026"
    return whose.prefix(whose.of(eye.reader, part, sight.held, head, memory)) + words


def _waiting(reader: Reader) -> list[Entry]:
    """How much waits for a decision, and since when."""
    items = drafts.waiting(reader)
    if not items:
        return []
    count, day = len(items), instant.display(items[0].since)[:10]
    verb = "item waits" if count == 1 else "items wait"
    line = f"{count:,} {verb} for review by the owner since {day}"
    return [Entry(WAITS, (0, 0, ""), line, [])]
