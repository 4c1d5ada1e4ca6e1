"""Small tables as claims: "berlin: population = 3700000", of a header and its rows.

Text with commas is not yet a table.  Every record must have as many cells as the header, no cell
may begin or end with a blank, and unless the source's name says that it is a table one column must
hold numbers, dates or truth values throughout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from remem.objects.derive.claim import Claim

MAX_ROWS = 200  # a longer table is data and no record
MAX_COLUMNS = 30
MAX_CELL = 200  # code points

_NAME = re.compile(r"[^\W\d](?:[\w.%#/()-]| (?! )){0,39}")
_TYPED = re.compile(
    r"[-+]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?%?|\d{4}-\d\d-\d\d(?:[T ][\d:.]+Z?)?"
    r"|true|false|yes|no",
    re.IGNORECASE,
)


class Cell:
    """A cell of a table: its text without quotes, and its place with them."""

    __slots__ = ("end", "start", "value")

    def __init__(self, value: str, start: int, end: int) -> None:
        """Keep the three."""
        self.value = value
        self.start = start
        self.end = end


def csv_claims(text: str, document: str, is_table: bool) -> Iterator[Claim]:
    """Derive the claims of a text that is a table with a header.

    Args:
        text: of the observation.
        document: what it is a version of, or "".
        is_table: the source's name says so.
    """
    rows = table(text, is_table)
    if not rows:
        return
    header, records = rows[0], rows[1:]
    keys = [record[0].value for record in records]
    by_key = len(set(keys)) == len(keys) and all(keys)
    for number, record in enumerate(records, 1):
        who = record[0].value if by_key else f"row {number}"
        for name, cell in zip(header[by_key:], record[by_key:], strict=True):
            if not cell.value or len(cell.value) > MAX_CELL or "\n" in cell.value:
                continue
            yield Claim(
                "fact",
                f"{who}: {name.value} = {cell.value}",
                f"{document} {who}" if document else who,
                re.sub(r"\W+", "_", name.value.lower()).strip("_"),
                cell.value,
                record[0].start,
                cell.end,
                single=bool(document) and by_key,
            )


def table(text: str, is_table: bool = False) -> list[list[Cell]]:
    """Read the header and rows of a small table; nothing if the text is anything else."""
    head = text[: text.find("\n")]
    for delimiter in ("\t", ";", ","):
        if delimiter in head:
            rows = _records(text, delimiter)
            if len(rows) >= 2 and _is_sound(rows) and (is_table or _is_typed(rows)):
                return rows
            return []
    return []


def _records(text: str, delimiter: str) -> list[list[Cell]]:
    """Split a text into records of equally many cells; nothing if they differ or are too many."""
    cell = re.compile(rf'"((?:[^"]|"")*)"|([^"\n{delimiter}]*)')
    rows: list[list[Cell]] = []
    row: list[Cell] = []
    at, size = 0, len(text.rstrip("\n"))
    while True:
        found = cell.match(text, at, size)
        if found is None:
            return []
        quoted = found[1] is not None
        row.append(Cell(found[1].replace('""', '"') if quoted else found[2], at, found.end()))
        at = found.end()
        if at < size and text[at] == delimiter and len(row) < MAX_COLUMNS:
            at += 1
            continue
        if at < size and text[at] != "\n":
            return []  # text behind a closing quote, a quote inside a cell, too many columns
        rows.append(row)
        if len(row) != len(rows[0]) or len(rows) > MAX_ROWS + 1:
            return []
        if at >= size:
            return rows
        row = []
        at += 1


def _is_sound(rows: list[list[Cell]]) -> bool:
    names = [cell.value for cell in rows[0]]
    return (
        len(names) >= 2
        and len(set(names)) == len(names)
        and all(_NAME.fullmatch(name) and not name.endswith(" ") for name in names)
        and all(cell.value == cell.value.strip() for row in rows for cell in row)
        and all(any(cell.value for cell in row) for row in rows)
    )


def _is_typed(rows: list[list[Cell]]) -> bool:
    return any(
        all(_TYPED.fullmatch(row[column].value) for row in rows[1:])
        for column in range(len(rows[0]))
    )
