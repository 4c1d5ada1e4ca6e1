"""remem task: the working state of a task under a key, with its history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import describe, names, reading
from remem.cli.context import Context
from remem.cli.given import text_of
from remem.cli.plain import one_line, visible
from remem.cli.render import table
from remem.hooks import shaping
from remem.objects import instant, tasks
from remem.objects.errors import NotFound, UsageError
from remem.objects.views import Eye, Lens

if TYPE_CHECKING:
    from remem.index.whose import Whose
    from remem.objects.tasks import Task

    Told = list[tuple[Task, Whose]]

ACTIONS = ("set", "show", "list", "done")
COLUMNS = ("id", "key", "since", "state")


def run(
    context: Context,
    *,
    action: str,
    key: str | None,
    text: list[str],
    view: str | None,
    as_of: str | None,
    known_at: str | None,
    all_collections: bool,
) -> int:
    """Set, show, list or end."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    if (key is None) != (action == "list"):
        raise UsageError(
            "list takes no key" if action == "list" else f"{action} needs the key of a task"
        )
    if text and action != "set":
        raise UsageError(f"{action} takes no text")
    lens = view or as_of or known_at or all_collections
    if lens and action in ("set", "done"):
        raise UsageError(
            "--view, --as-of, --known-at and --all-collections belong to show and list"
        )
    if action == "set":
        return _set(context, key or "", text)
    if action == "done":
        return _done(context, key or "")
    from remem.index import whose

    with names.snapshot(context, all_collections=all_collections) as reader:
        eye = Eye(reading.lens_of(context, view=view, as_of=as_of, known_at=known_at), reader)
        every = tasks.every(eye) if key is None else tasks.of(eye, key)
        found = [(task, whose.shown(reader, task)) for task in every]
    if key is None:
        return _list(context, found)
    return _show(context, key, found, several=view in ("history", "changes"))


def _set(context: Context, key: str, text: list[str]) -> int:
    if not text:
        raise UsageError("set needs the state of the task", hint="remem task set KEY 'some text'")
    limit_b = context.limit_b
    words = text_of(text, limit_b)
    actor = context.actor()
    stated = context.store(create=True).write(
        actor, lambda tx: tasks.put(tx, actor.scope, key, words, limit_b=limit_b)
    )
    if context.json:
        context.emit(
            {"id": stated.id.hex(), "ref": stated.ref.hex(), "status": stated.status, "key": key}
        )
    else:
        known = " already known" if stated.status == "known" else ""
        context.out(describe.short(stated.id) + known)
    return 0


def _done(context: Context, key: str) -> int:
    store = context.store()
    grant = context.grant()
    places = None if grant.collections is None else set(grant.collections)
    task = store.write(
        context.actor(),
        lambda tx: tasks.finish(tx, Eye(Lens(tx.present), tx.reader), key, collections=places),
    )
    if context.json:
        context.emit({"ref": task.ref.hex(), "key": task.key, "text": task.text})
    else:
        context.out(f"done {describe.short(task.ref)}")
    return 0


def _show(context: Context, key: str, found: Told, *, several: bool) -> int:
    if context.json:
        context.emit({"key": key, "states": [shaping.task(task, said) for task, said in found]})
        return 0 if found else NotFound.exit_code
    if not found:
        raise NotFound(f"no task '{key[:80]}' is open here", hint="'remem task list' shows them")
    if not several:
        for task, said in found:
            if said.sources:
                context.note(f"the word of {said.mark}")
            context.out(visible(task.text))
        return 0
    from remem.index import whose

    rows = []
    for task, said in found:
        ended = task.state.valid_to
        until = "now" if ended is None or ended > instant.now() else describe.shown_second(ended)
        since = describe.shown_second(task.state.starts)
        state = whose.prefix(said) + one_line(task.text, describe.LINE)
        rows.append((describe.short(task.ref), since, until, state))
    table(context, ("id", "from", "until", "state"), rows)
    return 0


def _list(context: Context, found: Told) -> int:
    if context.json:
        context.emit([shaping.task(task, said) for task, said in found])
    elif found:
        from remem.index import whose

        rows = [
            (
                describe.short(task.ref),
                one_line(task.key),
                describe.shown_second(task.state.starts),
                ("" if task.truth == "current" else f"[{task.truth}] ")
                + whose.prefix(said)
                + one_line(task.text, describe.LINE),
            )
            for task, said in found
        ]
        table(context, COLUMNS, rows)
    else:
        context.note("no task is open here")
    return 0
