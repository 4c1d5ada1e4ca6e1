"""Keeping evidence and stating facts, for every door: one transaction each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from remem.objects.admit import Admitted, admit
from remem.objects.errors import ScopeRefused
from remem.objects.scope import told

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.hooks.options import Options
    from remem.objects.model import Incoming, Scope
    from remem.objects.reader import Found
    from remem.objects.scope import Actor, Grant
    from remem.objects.statements import Stated
    from remem.objects.store import Store
    from remem.objects.tx import Tx


def observe(
    store: Store,
    actor: Actor,
    record: Incoming,
    *,
    limit_b: int,
    corrects: Found | None = None,
    days: int | None = None,
    derive: Callable[[], bool] | None = None,
) -> Admitted:
    """Take one piece of evidence in.

    Args:
        store: open for writing.
        actor: who writes.
        record: what came in.
        limit_b: largest text, bytes.
        corrects: what it corrects and replaces, or None.
        days: for how long it is kept, or None for good.
        derive: derives from what waits and says whether anything did.  What was said in between
            may have replaced what is said again: then saying it again is new evidence.

    Returns:
        What the actor may know of the outcome.

    Raises:
        BadInput, ScopeRefused: as `admit` does.
        ScopeRefused: what it corrects lies in another partition.
    """

    def change(tx: Tx) -> Admitted:
        if days is not None:
            from remem.objects import tiers

            return tiers.note(tx, record, days=days, limit_b=limit_b)
        if corrects is None:
            return admit(tx, record, limit_b=limit_b)
        return _correct(tx, record, limit_b, corrects)

    result = store.write(actor, change)
    bare = record.asserted is None and not (record.source_uri or record.source_id or record.tool)
    if result.status == "known" and bare and derive is not None and derive():
        result = store.write(actor, change)
    return told(actor.grant, result)


def _correct(tx: Tx, record: Incoming, limit_b: int, found: Found) -> Admitted:
    from remem.objects import correct
    from remem.objects.views import WITHHELD

    admitted = admit(tx, record, limit_b=limit_b, corrects=found.ref)
    if admitted.status == "blocked":
        return admitted
    if tx.part(tx.actor.scope).number != found.part.number:
        raise ScopeRefused(
            "what it corrects lies in another scope",
            hint=f"add it there: --collection '{found.part.collection}'",
        )
    if admitted.receipt.status in WITHHELD:
        return admitted  # nothing is replaced by what may not be shown
    state = correct.fresh(tx, found)
    if state.replaced_by != admitted.ref:
        at = tx.present if record.asserted is None else record.asserted
        correct.supersede(tx, found, admitted.ref, at)
    return admitted


def state(
    store: Store,
    actor: Actor,
    grant: Grant,
    triple: tuple[str, str, str],
    *,
    text: str = "",
    kind: str = "fact",
    starts: int | None = None,
    ends: int | None = None,
    offset: int | None = None,
    single: bool | None = None,
    evidence: str | None = None,
    reason: str = "",
    options: Options,
) -> Stated:
    """State a triple.

    Args:
        store: open for writing.
        actor: who states it.
        grant: in which the evidence is looked for.
        triple: subject, predicate, object.
        text: the sentence; by default the three parts.
        kind: one of model.MEMORY_KINDS.
        starts: when it begins to hold, microseconds UTC, or None for now.
        ends: when it ceases to hold, or None.
        offset: minutes east of UTC in which the times were written.
        single: whether the predicate has one value at a time, or None for the settings.
        evidence: id of the observation that it rests on, or None for its own sentence.
        reason: reason code.
        options: settings.

    Raises:
        BadInput: there is no such kind, or the text cannot be taken.
        UsageError: it ends before it begins.
        NotFound: the evidence is not there, or is none.
        Blocked: it was forgotten.
    """
    from remem.objects import chains, statements
    from remem.objects.errors import BadInput, UsageError
    from remem.objects.model import MEMORY_KINDS

    if kind not in MEMORY_KINDS:
        raise BadInput(f"'{kind}' is no kind", hint="one of " + ", ".join(MEMORY_KINDS))
    if starts is not None and ends is not None and ends <= starts:
        raise UsageError("the end is not after the beginning")
    scope, cited = actor.scope, None
    if evidence is not None:
        scope, cited = _evidence(store, actor, grant, evidence)
    subject, predicate, value = triple
    one = chains.is_single(predicate) if single is None else single
    if single is None and options.single is not None:
        one = options.single(scope.collection, predicate, one)
    fact = statements.Fact(
        triple=triple,
        text=text or f"{subject} {predicate.replace('_', ' ')} {value}",
        kind=kind,
        starts=starts,
        ends=ends,
        offset=offset,
        single=one,
        cited=cited,
        reason=reason,
    )
    return store.write(actor, lambda tx: statements.state(tx, scope, fact, limit_b=options.limit_b))


def _evidence(store: Store, actor: Actor, grant: Grant, name: str) -> tuple[Scope, bytes]:
    """Scope and object id of the observation that an id names."""
    from remem.hooks import naming
    from remem.objects.errors import NotFound
    from remem.objects.model import Observation

    with store.read(grant) as reader:
        found = naming.resolve(reader, actor.scope, name)
        cited = found.revision or found.state.head
        obj = None if cited is None else reader.object(found.part, cited)
        if cited is None or not isinstance(obj, Observation):
            raise NotFound(f"'{name}' is no observation")
        return obj.scope, cited
