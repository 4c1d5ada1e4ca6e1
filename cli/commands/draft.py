"""remem draft: drafts and their operations, for scripts; ``remem review`` does it by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli import cases, describe, names
from remem.cli.counts import age
from remem.cli.passphrase import signed
from remem.cli.plain import one_line, visible
from remem.cli.render import table
from remem.hooks import deciding
from remem.hooks.cases import of_draft
from remem.objects import drafts, instant, oid, refs
from remem.objects.errors import NotFound, Refused, Stale, UsageError

if TYPE_CHECKING:
    from remem.cli.cases import Case
    from remem.cli.context import Context
    from remem.objects.drafts import Decision
    from remem.objects.model import Draft
    from remem.objects.reader import Found, Part, Reader
    from remem.objects.tx import Tx

ACTIONS = ("list", "show", "approve", "deny", "resubmit")
COLUMNS = ("id", "age", "by", "operations", "first")


def run(
    context: Context,
    *,
    action: str,
    id: str | None,
    numbers: list[str],
    critique: str | None,
    text: str | None,
    everything: bool,
    all_collections: bool,
) -> int:
    """List, show, or decide."""
    _check_words(action, id, numbers, critique, text, everything)
    if action == "list":
        return _list(context, everything, all_collections)
    assert id is not None
    if action != "show":
        context.store()  # opened for writing before the snapshot
    with names.snapshot(context, all_collections=all_collections) as reader:
        found = deciding.find_draft(reader, context.scope(), id)
        chosen = [_number(word) for word in numbers]
        if action == "show":
            return _show(context, reader, found, chosen)
    if action == "resubmit":
        return _resubmit(context, found, chosen[0], text)
    return _decide(context, found, action, chosen or None, critique or "", text)


def _check_words(
    action: str,
    id: str | None,
    numbers: list[str],
    critique: str | None,
    text: str | None,
    everything: bool,
) -> None:
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    if (action == "list") != (id is None):
        needs = "takes no id" if action == "list" else "needs the id of a draft"
        raise UsageError(f"{action} {needs}", hint="'remem draft list' shows them")
    if critique is not None and action != "deny":
        raise UsageError("--critique goes with deny")
    if text is not None and action not in ("approve", "resubmit"):
        raise UsageError("--text goes with approve and resubmit")
    if everything and action != "list":
        raise UsageError("--all goes with list")
    one = action == "resubmit" or (action == "approve" and text is not None)
    if one and len(numbers) != 1:
        raise UsageError(f"{action} needs the number of one operation here")


def _number(word: str) -> int:
    if not word.isascii() or not word.isdigit() or len(word) > 9:
        raise UsageError(f"'{word[:40]}' is no number of an operation")
    return int(word)


# -- looking ------------------------------------------------------------------------------------


def _list(context: Context, everything: bool, all_collections: bool) -> int:
    with names.snapshot(context, all_collections=all_collections) as reader:
        found = deciding.list_drafts(reader, decided=everything)
        if context.json:
            context.emit([of_draft(reader, *one) for one in found])
        elif found:
            now = instant.now()
            table(context, COLUMNS, [_row(reader, *one, now) for one in found])
        else:
            context.note("no draft waits here")
    return 0


def _row(
    reader: Reader, part: Part, ref: bytes, state: refs.RefState, draft: Draft, now: int
) -> tuple[str, ...]:
    waiting = sum(not op.verdict for op in draft.operations)
    first = next((op for op in draft.operations if not op.verdict), draft.operations[0])
    case = cases.of_operation(reader, part, ref, first)
    return (
        describe.short(ref),
        age(now - state.created),
        one_line(cases.by(case)),
        f"{waiting} of {len(draft.operations)} wait",
        one_line(f"{cases.why(case)}: {cases.words_of(case)}", describe.LINE),
    )


def _show(context: Context, reader: Reader, found: Found, chosen: list[int]) -> int:
    part, ref = found.part, found.ref
    state, draft = drafts.get(reader, part, ref)
    for number in chosen:
        if all(op.number != number for op in draft.operations):
            raise NotFound(f"the draft has no operation {number}")
    if chosen:
        kept = [op for op in draft.operations if op.number in chosen]
        draft = msgspec.structs.replace(draft, operations=kept)
    if context.json:
        context.emit(of_draft(reader, part, ref, state, draft))
        return 0
    made = f"{one_line(draft.deriver.name)} {draft.deriver.version}"
    context.out(f"draft {describe.short(ref)} ({refs.STATUSES[state.status]}), made by {made}")
    if draft.note:
        context.out(f"  {one_line(draft.note)}")
    for op in draft.operations:
        context.out("")
        for line in lines(cases.of_operation(reader, part, ref, op)):
            context.out(line)
    return 0


def lines(case: Case) -> list[str]:
    """An operation in lines for people, escaped."""
    op = case.op
    assert op is not None
    verdict = op.verdict or "waits"
    again = f", attempt {op.attempt}" if op.attempt > 1 else ""
    made = [f"{op.number}  {op.action}, {verdict}{again}, by {one_line(op.by)}"]
    if case.obstacle:
        made.append(f"   stale:    {one_line(case.obstacle)}")

    def block(name: str, text: str | None) -> None:
        rows = "(gone)" if text is None else visible(text)
        for number, row in enumerate(rows.split("\n")):
            head = f"{name}:" if number == 0 else ""
            made.append(f"   {head:<10}{row}".rstrip())

    if op.proposed is not None:
        block("claim", None if case.obj is None else case.obj.text)
    if op.target is not None:
        old = "old" if op.proposed is not None else "changes"
        block(old, None if case.target is None else case.target.text)
    if op.into is not None:
        block("stays", None if case.into is None else case.into.text)
    if op.action == "close":
        block("ends", "when it is approved" if op.at is None else describe.shown(op.at))
    for one in case.evidence:
        held = f" ({one.held})" if one.held else ""
        block("evidence", f"{oid.short(one.id)}{held} {describe.quote(one.text or '(gone)')}")
    if op.critique:
        block("critique", op.critique)
    return made


# -- deciding -----------------------------------------------------------------------------------


def _decide(
    context: Context,
    found: Found,
    action: str,
    chosen: list[int] | None,
    critique: str,
    text: str | None,
) -> int:
    store = context.store()
    actor = signed(context, store, f"{action} of draft {oid.short(found.ref)}")

    def change(tx: Tx) -> list[Decision]:
        if action == "deny":
            return drafts.deny(tx, found.part, found.ref, chosen, critique)
        return drafts.approve(tx, found.part, found.ref, chosen, edited=text)

    done = store.write(actor, change)
    stale = [one for one in done if one.verdict == drafts.STALE]
    if context.json:
        context.emit(
            [{"number": d.number, "verdict": d.verdict, "why": d.why or None} for d in done]
        )
    else:
        for one in done:
            tail = f": {one_line(one.why)}" if one.why else ""
            context.out(f"{one.number} {one.verdict}{tail}")
    if stale and not context.json:
        context.note("what is stale was not applied; it can be proposed again on what holds now")
    return Stale.exit_code if stale else 0


def _resubmit(context: Context, found: Found, number: int, text: str | None) -> int:
    """Propose an operation again, its claim in other words where it has one."""
    limit = context.settings.number("review.attempts")

    try:
        attempt = context.store().write(
            context.actor(), lambda tx: deciding.resubmit(tx, found, number, text, limit=limit)
        )
    except Refused as error:
        if text is None and "same claim" in str(error):
            raise Refused(str(error), hint="give the other words with --text") from error
        raise
    if context.json:
        context.emit({"id": found.ref.hex(), "number": number, "attempt": attempt})
    else:
        context.out(f"{number} waits again, attempt {attempt} of {limit}")
    return 0
