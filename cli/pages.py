"""The pages of ``remem review``: one case in rows, everything from the store escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import cases, describe
from remem.cli.counts import age, counted
from remem.cli.plain import one_line, visible
from remem.cli.screen import folded
from remem.objects import instant, oid
from remem.objects.model import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from remem.cli.cases import Case, Evidence
    from remem.cli.screen import Piece, Row
    from remem.index.hits import Hit

INDENT = "   "
EVIDENCE_CHARS = 1200  # of one observation; around the words that ground the claim
OPEN, CLOSE = ">>", "<<"  # around these words where no style marks them
KEYS = {
    cases.OPERATION: "a approve  d deny  e edit  s skip  q quit  ? help",
    cases.CLAIM: "a approve  d reject  s skip  q quit  ? help",
    cases.QUARANTINED: "a release  d reject  s skip  q quit  ? help",
}
HELP = (
    ("a", "approve the operation; release what is held back"),
    ("d", "deny it, with a critique for whoever proposed it; reject what is held back"),
    ("e", "edit the claim: then it is yours, stated on the same evidence"),
    ("s", "skip it: it comes again next time"),
    ("q", "quit; what was decided stays decided"),
    ("space, b", "further down, back up, where the page is longer than the screen"),
    ("?", "this help; any key goes back"),
)


def page(
    case: Case,
    similar: Sequence[Hit],
    *,
    place: tuple[int, int],
    columns: int,
    coloured: bool,
    edited: str | None,
    message: str,
) -> tuple[list[Row], list[Row]]:
    """Head and body of the page of a case, folded to a width.

    Args:
        case: what is decided on.
        similar: memories that say much the same.
        place: number of the case, from 1, and of how many.
        columns: width of the screen.
        coloured: styles will be shown.
        edited: the claim in the reviewer's own words, or None.
        message: what became of the last key.
    """
    left = f"remem review   {place[0]} of {place[1]}"
    right = one_line(cases.why(case))
    gap = " " * max(2, columns - len(left) - len(right))
    head: list[Row] = [[(left, "title"), (gap, ""), (right, "name")]]
    if message:
        head += folded([(one_line(message), "warn")], columns)
    who = f"{oid.short(case.ref)}, by {one_line(cases.by(case))}"
    if case.kind == cases.OPERATION:
        who = "draft " + who
    waited = f"{who}, waits for {age(instant.now() - case.since)}"
    head += folded([(waited, "dim")], columns)
    body: list[Row] = []

    def block(name: str, text: str, style: str = "", mark: str = "") -> None:
        body.append([])
        body.append([(name, "name")])
        body.extend(_text([(text, style)], columns, mark))

    if case.obstacle:
        block("stale", f"{case.obstacle}; it cannot be applied as it is", "warn")
    _words(case, edited, block)
    for number, one in enumerate(case.evidence, 1):
        held = f", {one.held}" if one.held else ""
        name = f"evidence {number} of {len(case.evidence)}: {oid.short(one.id)}{held}"
        who = cases.who(one)
        body.append([])
        body.append([(name, "name"), (f"  {one_line(who)}" if who else "", "dim")])
        body.extend(_text(_excerpt(one, coloured), columns, ""))
    if case.op is not None and case.op.critique:
        block("critique of the attempt before", case.op.critique)
    if similar:
        body.append([])
        body.append([("similar memories", "name")])
        for hit in similar:
            said = f"{oid.short(hit.ref)}  {one_line(hit.obj.text, describe.LINE)}"
            body.extend(_text([(said, "")], columns, ""))
    return head, body


def _words(case: Case, edited: str | None, block: Callable[..., None]) -> None:
    """What is decided on, with what it would change."""
    op = case.op
    text = "(gone)" if case.obj is None else case.obj.text
    if op is None:
        block(cases.kind_of(case) or "it says", text)
    elif op.action == "close":
        block("ends", cases.words_of(case), "old", "- ")
        block("when", "as soon as it is approved" if op.at is None else describe.shown(op.at))
    elif op.action == "retire-duplicate":
        block("goes, as a duplicate", "(gone)" if case.target is None else case.target.text, "old")
        block("stays, with the evidence of both", "(gone)" if case.into is None else case.into.text)
    elif op.proposed is None:
        block("gets more evidence", "(gone)" if case.target is None else case.target.text)
    else:
        if case.target is not None:
            block("now", case.target.text, "old", "- ")
        kind = cases.kind_of(case)
        name = kind if edited is None else f"{kind}, edited: your own words"
        block(name, text if edited is None else edited, "new", "+ ")
    if isinstance(case.obj, Memory) and case.obj.triple is not None and edited is None:
        block("triple", " | ".join(case.obj.triple))


def _text(pieces: list[Piece], columns: int, mark: str) -> list[Row]:
    """A text in rows, escaped; each of its lines is folded by itself."""
    rows: list[list[Piece]] = [[]]
    for text, style in pieces:
        for number, part in enumerate(visible(text).expandtabs(4).split("\n")):
            if number:
                rows.append([])
            if part:
                rows[-1].append((part, style))
    made: list[Row] = []
    lead = INDENT + mark
    for row in rows:
        style = row[0][1] if row and mark else ""
        made += folded([(lead, style), *row], columns, " " * len(lead))
        lead = INDENT + " " * len(mark)
    return made


def _excerpt(one: Evidence, coloured: bool) -> list[Piece]:
    """The words of an observation around those that ground the claim, which are marked."""
    if one.text is None:
        return [("(gone)", "dim")]
    text, spans = one.text, sorted(one.spans)
    start, end = 0, len(text)
    if end > EVIDENCE_CHARS:
        first = spans[0][0] if spans else 0
        start = max(0, min(first - EVIDENCE_CHARS // 3, end - EVIDENCE_CHARS))
        end = start + EVIDENCE_CHARS
    pieces: list[Piece] = [("\u2026 ", "dim")] if start else []
    at = start
    for low, high in spans:
        low, high = max(low, at), min(high, end)
        if low >= high:
            continue
        said = text[low:high] if coloured else f"{OPEN}{text[low:high]}{CLOSE}"
        pieces += [(text[at:low], ""), (said, "mark")]
        at = high
    pieces.append((text[at:end], ""))
    if end < len(text):
        pieces.append((f" \u2026 ({counted(len(text) - end, 'more character')})", "dim"))
    return pieces


def fitted(
    head: list[Row], body: list[Row], keys: str, *, columns: int, lines: int, offset: int
) -> tuple[list[Row], int]:
    """A page cut to the screen, and the offset that it could be scrolled to.

    Args:
        head: rows that stay at the top.
        body: rows that move.
        keys: the line at the bottom.
        columns: width of the screen.
        lines: its height.
        offset: rows of the body that are above the screen.
    """
    foot = folded([(keys, "title")], columns)
    room = max(1, lines - len(head) - len(foot) - 1)
    most = max(0, len(body) - room)
    offset = max(0, min(offset, most))
    shown = body[offset : offset + room]
    more: Row = []
    if most:
        last = min(offset + room, len(body))
        more = [(f"rows {offset + 1} to {last} of {len(body)}: space, b", "dim")]
    filler: list[Row] = [[] for _ in range(room - len(shown))]
    return [*head, *shown, *filler, more, *foot], offset


def help_page(columns: int) -> list[Row]:
    """What the keys do."""
    rows: list[Row] = [[("remem review   keys", "title")], []]
    for key, what in HELP:
        rows += folded([(f"{INDENT}{key:<10}", "name"), (what, "")], columns, " " * 13)
    return rows
