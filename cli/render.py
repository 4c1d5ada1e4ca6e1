"""Tables for people: drawn by rich on a terminal, plain aligned columns everywhere else.

The only importer of rich, and only once a table goes to a terminal: it costs as much as the rest
of a short command.
"""

from __future__ import annotations

import sys
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from remem.cli.context import Context

GAP = "  "
MIN_LAST = 10  # columns that the last column keeps in a narrow terminal


def table(
    context: Context,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    styles: dict[str, str] | None = None,
    fold: bool = False,
) -> None:
    """Print rows.

    Args:
        context: where to.
        columns: headings; only a terminal shows them.
        rows: cells, one line each, control characters escaped already.
        right: numbers of the columns that are set to the right.
        styles: style of a cell by its text ("fail": "bold red"); only a terminal shows them.
        fold: in a narrow terminal the last column goes on in the next line; else it is cut.
    """
    if not context.terminal:
        for line in plain_lines(rows, right):
            context.out(line)
        return
    _draw(columns, rows, right, styles or {}, fold)


def plain_lines(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Rows as lines with aligned columns; nothing is cut and nothing is wrapped."""
    count = max((len(row) for row in rows), default=0)
    widths = [max((width(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
    lines = []
    for row in rows:
        cells = [
            " " * (widths[i] - width(cell)) + cell
            if i in right
            else cell + " " * (widths[i] - width(cell))
            for i, cell in enumerate(row)
        ]
        lines.append(GAP.join(cells).rstrip())
    return lines


def width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def _draw(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[int],
    styles: dict[str, str],
    fold: bool,
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    sys.stdout.flush()
    console = Console(file=sys.stdout, highlight=False, markup=False)
    last = len(columns) - 1
    widest = [max(map(width, [name, *(row[n] for row in rows)])) for n, name in enumerate(columns)]
    # Only the last column is cut: rich itself would take from all of them.
    room = console.width - sum(len(GAP) + wide for wide in widest[:last])
    widest[last] = min(widest[last], max(MIN_LAST, room))
    console.width = max(console.width, sum(widest) + len(GAP) * last)
    drawn = Table(box=None, pad_edge=False, header_style="bold", padding=(0, len(GAP), 0, 0))
    for number, name in enumerate(columns):
        side: Literal["left", "right"] = "right" if number in right else "left"
        drawn.add_column(
            name, justify=side, no_wrap=not fold, overflow="fold", width=widest[number]
        )
    for row in rows:
        cells = [Text(cell, style=styles.get(cell, "")) for cell in row]
        if not fold:
            cells[last].truncate(widest[last], overflow="ellipsis")
        drawn.add_row(*cells)
    console.print(drawn)
    sys.stdout.flush()
