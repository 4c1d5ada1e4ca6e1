"""The log as a journal: of each entry when it happened, how it ended and where, if that is known.

A command has an exit status and a folder, which is shown where it is another one than in the row
above.  When something was said or run is shown where it is not when it was recorded.  A column that
would be empty is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.cli.settings import home
from remem.index.ran import KIND, exit_of, folder_of
from remem.objects import instant, refs
from remem.objects.errors import RememError
from remem.objects.model import Memory, Observation
from remem.objects.views import WITHHELD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remem.cli.context import Context
    from remem.objects.reader import Part, Reader

COLUMNS = ("seq", "recorded", "op", "ref", "status", "happened", "exit", "folder", "text")
SPARSE = (5, 6, 7)  # columns that are left out where they are empty
STYLES = {"create": "green", "quarantined": "yellow", "rejected": "red", "erased": "red"}
APART_US = 60 * instant.MICROS  # recorded so much later than it happened, both times are shown
TOLD = frozenset((KIND, "commit", "tag", "checkout", "diff"))  # evidence that parsers read


def show(
    context: Context, reader: Reader, rows: list[tuple[Part, refs.Entry]], *, events: bool
) -> None:
    """Print entries for people.

    Args:
        context: where to.
        reader: a snapshot.
        rows: entries, the latest first.
        events: say when, how and where things happened; False for the life of one ref.
    """
    cells: list[list[str]] = []
    last = ""
    for part, entry in rows:
        happened, code, folder = _event(reader, part, entry) if events else ("", "", "")
        text = describe.text_line(reader, part, entry.ref, entry.new)
        reason = f" [{one_line(entry.reason)}]" if entry.reason else ""
        cells.append(
            [
                str(entry.seq),
                describe.shown_second(entry.time),
                refs.OPS[entry.op],
                describe.short(entry.ref),
                refs.STATUSES[entry.status],
                happened,
                code,
                _short(folder, context.environ) if folder != last else "",
                text + reason,
            ]
        )
        last = folder or last
    kept = [
        place
        for place in range(len(COLUMNS))
        if place not in SPARSE or any(row[place] for row in cells)
    ]
    if cells:
        table(
            context,
            [COLUMNS[place] for place in kept],
            [[row[place] for place in kept] for row in cells],
            right=frozenset(n for n, place in enumerate(kept) if place in (0, 6)),
            styles=STYLES,
        )


def repeats(reader: Reader, part: Part, entry: refs.Entry) -> bool:
    """Whether an entry is about what a parser read from a command or a commit.

    It says nothing that the row of the command or the commit does not.
    """
    if refs.TYPES[entry.type] != "memory" or entry.new is None:
        return False
    try:
        memory = reader.object(part, entry.new)
        if not isinstance(memory, Memory) or memory.deriver.name != "ledger":
            return False
        cited = [reader.object(part, cite) for cite in memory.cites]
    except RememError:  # it was forgotten: that is worth a row
        return False
    return all(one.kind in TOLD for one in cited)


def _event(reader: Reader, part: Part, entry: refs.Entry) -> tuple[str, str, str]:
    """When evidence happened, how it ended and where; empty where that says nothing."""
    state = reader.state(part, entry.ref)
    if state is None or refs.STATUSES[state.status] in WITHHELD:
        return "", "", ""
    obj = describe.fetch(reader, part, entry.new)
    if not isinstance(obj, Observation):
        return "", "", ""
    at, code = obj.asserted, exit_of(obj) if obj.kind == KIND else None
    apart = at is not None and abs(entry.time - at) >= APART_US
    happened = describe.shown_second(at) if apart and at is not None else ""
    folder = one_line(folder_of(obj)) if obj.kind == KIND else ""
    return happened, "" if code is None else str(code), folder


def _short(folder: str, environ: Mapping[str, str]) -> str:
    own = home(environ).rstrip("/")
    if own and (folder == own or folder.startswith(own + "/")):
        return "~" + folder[len(own) :]
    return folder
