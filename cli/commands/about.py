"""remem about: all facts on somebody or something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import reading
from remem.cli.hits import hit_lines, hit_value
from remem.cli.plain import one_line
from remem.cli.shapes import stamp
from remem.index import entities, project
from remem.index.errors import IndexDamaged
from remem.index.hits import Question
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.index.entities import Listing
    from remem.objects.store import Store


def run(
    context: Context,
    *,
    name: list[str],
    view: str | None,
    as_of: str | None,
    known_at: str | None,
    include: list[str],
    all_collections: bool,
) -> int:
    """Print the facts of a name, current ones first, then those of what it is linked to."""
    wanted = " ".join(name)
    if not wanted.strip():
        raise UsageError("the name is empty")
    store = context.store()
    lens = reading.lens_of(
        context, view=view or "history", as_of=as_of, known_at=known_at, include=include
    )
    reading.open_engine(context, store, mode="lexical", all_collections=all_collections)
    reading.known_scope(context, store, all_collections=all_collections)
    question = Question(wanted, lens, mode="lexical")
    found = _listings(context, store, question, all_collections)
    facts = [hit for one in found for hit in one.facts]
    linked = [(other, hits) for one in found for other, hits in one.linked.items()]
    if context.json:
        context.emit(
            {
                "name": wanted,
                "names": list(dict.fromkeys(n for one in found for n in one.names)),
                "view": lens.view,
                "as_of": stamp(lens.as_of),
                "known_at": stamp(lens.known_at),
                "facts": [hit_value(hit) for hit in facts],
                "linked": [
                    {"name": other, "facts": [hit_value(hit) for hit in hits]}
                    for other, hits in linked
                ],
            }
        )
    else:
        for hit in facts:
            for line in hit_lines(hit, question, full=True, scored=False):
                context.out(line)
        for other, hits in linked:
            context.out(f"{one_line(other)}:")
            for hit in hits:
                for line in hit_lines(hit, question, full=True, scored=False):
                    context.out("  " + line)
    if not facts and not context.json:
        context.note(f"nothing is held about '{one_line(wanted)}'")
    return 0 if facts else 1


def _listings(
    context: Context, store: Store, question: Question, all_collections: bool
) -> list[Listing]:
    """What each granted partition holds, those with nothing left out."""
    try:
        env = project.open_lexical(store, write=False)
    except IndexDamaged as error:
        context.note(f"degraded: {error}")
        env = None
    found = []
    with store.read(context.grant(all_collections=all_collections)) as reader:
        for part in reader.parts:
            if env is None:
                one = entities.listing(None, reader, part, question, question.text)
            else:
                with env.read(buffers=True) as txn:
                    fresh = txn if project.current_stamp(txn) else None
                    one = entities.listing(fresh, reader, part, question, question.text)
            if one.facts:
                found.append(one)
    return found
