"""remem fact: a stated triple."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.cli import deriving, names, times
from remem.cli.commands.correcting import code
from remem.cli.context import MIB, Context
from remem.objects import chains, statements
from remem.objects.errors import BadInput, NotFound, UsageError
from remem.objects.model import MEMORY_KINDS, Observation

if TYPE_CHECKING:
    from remem.objects.model import Scope


def run(
    context: Context,
    *,
    subject: str,
    predicate: str,
    object: str,
    start: str | None,
    end: str | None,
    text: str | None,
    kind: str | None,
    source_obs: str | None,
    multi: bool,
    single: bool,
    reason: str | None,
) -> int:
    """State that something holds; what held before is replaced, at the right place in time."""
    if multi and single:
        raise UsageError("give either --single or --multi, not both")
    if kind is not None and kind not in MEMORY_KINDS:
        raise BadInput(f"'{kind}' is no kind", hint="one of " + ", ".join(MEMORY_KINDS))
    starts, offset = (None, None) if start is None else times.when(context, start)
    ends = None if end is None else times.when(context, end)[0]
    if starts is not None and ends is not None and ends <= starts:
        raise UsageError("--to is not after --from")
    store = context.store(create=source_obs is None)
    scope, cited = context.scope(), None
    if source_obs is not None:
        scope, cited = _evidence(context, source_obs)
    one = single
    if not single and not multi:
        default = chains.is_single(predicate)
        one = deriving.one_value(context)(scope.collection, predicate, default)
    fact = statements.Fact(
        triple=(subject, predicate, object),
        text=text or f"{subject} {predicate.replace('_', ' ')} {object}",
        kind=kind or "fact",
        starts=starts,
        ends=ends,
        offset=offset,
        single=one,
        cited=cited,
        reason=code(reason),
    )
    limit_b = context.settings.number("admission.max_mib") * MIB
    stated = store.write(
        context.actor(), lambda tx: statements.state(tx, scope, fact, limit_b=limit_b)
    )
    if context.json:
        context.emit(
            {
                "id": stated.id.hex(),
                "status": stated.status,
                "ref": stated.ref.hex(),
                "receipt": {"status": "verified", "codes": []},
            }
        )
    else:
        context.out(stated.id.hex()[:10] + (" already known" if stated.status == "known" else ""))
    return 0


def _evidence(context: Context, name: str) -> tuple[Scope, bytes]:
    """Scope and object id of the observation that --source-obs names."""
    with names.snapshot(context) as reader:
        found = names.resolve(context, reader, name)
        cited = found.revision or found.state.head
        obj = None if cited is None else reader.object(found.part, cited)
        if cited is None or not isinstance(obj, Observation):
            raise NotFound(f"'{name}' is no observation")
        return obj.scope, cited
