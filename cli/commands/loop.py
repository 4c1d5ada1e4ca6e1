"""remem loop, loops: intents that come back at a time or with a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe, names, reading, times
from remem.cli.context import Context
from remem.cli.counts import counted
from remem.cli.given import text_of
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.hooks import shaping
from remem.objects import loops, refs
from remem.objects.errors import UsageError
from remem.objects.views import WITHHELD, Eye

if TYPE_CHECKING:
    from remem.index.whose import Whose
    from remem.objects.loops import Loop
    from remem.objects.tx import Tx

ACTIONS = ("add", "done")
COLUMNS = ("id", "trigger", "text")


def run(
    context: Context,
    *,
    action: str,
    words: list[str],
    when: str | None,
    topic: str | None,
    note: str | None,
) -> int:
    """Open a loop, or end some."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    if action == "done":
        if when is not None or topic is not None:
            raise UsageError("--when and --topic belong to 'loop add'")
        return _done(context, words, note or "")
    if note is not None:
        raise UsageError("--note belongs to 'loop done'")
    return _add(context, words, when, topic)


def _add(context: Context, words: list[str], when: str | None, topic: str | None) -> int:
    if not words:
        raise UsageError("nothing is intended", hint="remem loop add 'some text' --when tomorrow")
    if (when is None) == (topic is None):
        raise UsageError("a loop has one trigger: give either --when or --topic")
    due, offset = (None, None) if when is None else times.when(context, when)
    limit_b = context.limit_b
    text = text_of(words, limit_b)
    actor = context.actor()
    stated = context.store(create=True).write(
        actor,
        lambda tx: loops.add(
            tx,
            actor.scope,
            text,
            when=due,
            topic=topic or "",
            written=when or "",
            offset=offset,
            limit_b=limit_b,
        ),
    )
    if context.json:
        context.emit(
            {
                "id": stated.id.hex(),
                "ref": stated.ref.hex(),
                "status": stated.status,
                "due": describe.stamp(due),
                "topic": topic,
            }
        )
    else:
        known = " already known" if stated.status == "known" else ""
        context.out(describe.short(stated.id) + known)
    return 0


def _done(context: Context, ids: list[str], note: str) -> int:
    if not ids:
        raise UsageError("done needs the id of a loop", hint="'remem loops' lists them")
    store = context.store()
    limit_b = context.limit_b
    items = names.each(context, ids)

    def change(tx: Tx) -> None:
        for found in items:
            loops.finish(tx, found, note=note, limit_b=limit_b)

    store.write(context.actor(), change)
    if context.json:
        context.emit({"done": [found.ref.hex() for found in items]})
    else:
        context.out(f"done {counted(len(items), 'loop')}")
    return 0


def loops_(
    context: Context,
    *,
    words: list[str],
    due: bool,
    all: bool,
    include: list[str],
    all_collections: bool,
) -> int:
    """List loops."""
    if due and all:
        raise UsageError("give either --due or --all, not both")
    if words and not due:
        raise UsageError("words are taken with --due: what is spoken of")
    from remem.index import whose

    lens = reading.lens_of(context, include=include)
    now = lens.now
    with names.snapshot(context, all_collections=all_collections) as reader:
        eye = Eye(lens, reader)
        if due:
            from remem.index.analyze import terms

            found = loops.due(eye, now, " ".join(words), terms)
        else:
            found = loops.every(eye) if all else loops.opened(eye)
        told = [(one, loops.settled(eye, one), whose.shown(reader, one)) for one in found]
    if context.json:
        context.emit([shaping.loop(loop, note, now, said) for loop, note, said in told])
    elif found:
        rows = [_row(loop, note, now, said) for loop, note, said in told]
        table(context, COLUMNS, rows)
    else:
        context.note("nothing is due" if due else "no loop is open here")
    return 0


def _row(loop: Loop, note: str, now: int, said: Whose) -> tuple[str, str, str]:
    if not loop.open:
        ended = loop.state.valid_to
        trigger = "done" if ended is None else f"done {describe.shown_second(ended)}"
    elif loop.due is None:
        trigger = f"on {one_line(loop.topic, describe.LINE)}"
    else:
        word = "due since" if loop.due <= now else "due"
        trigger = f"{word} {describe.shown(loop.due, loop.memory.offset)}"
    from remem.index import whose

    text = whose.prefix(said) + one_line(loop.memory.text, describe.LINE)
    status = refs.STATUSES[loop.state.status]
    if status in WITHHELD:
        text = f"[{status}] {text}"
    if note:
        text += f" ({one_line(note, describe.LINE)})"
    return describe.short(loop.ref), trigger, text
