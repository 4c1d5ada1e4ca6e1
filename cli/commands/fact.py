"""remem fact: a stated triple."""

from __future__ import annotations

from remem.cli import names, times
from remem.cli.commands.correcting import code
from remem.cli.context import Context
from remem.objects import chains, encode
from remem.objects.admit import admit
from remem.objects.correct import STATED
from remem.objects.errors import BadInput, Blocked, NotFound, UsageError
from remem.objects.model import Deriver, Incoming, Memory, Observation
from remem.objects.tx import Tx


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
    """State that something holds; what held before it is replaced, at the right place in time."""
    if multi and single:
        raise UsageError("give either --single or --multi, not both")
    for name, value in (("subject", subject), ("predicate", predicate), ("object", object)):
        if not value.strip():
            raise BadInput(f"the {name} is empty")
    code(reason)
    starts, offset = (None, None) if start is None else times.when(context, start)
    ends = None if end is None else times.when(context, end)[0]
    if starts is not None and ends is not None and ends <= starts:
        raise UsageError("--to is not after --from")
    sentence = text or f"{subject} {predicate.replace('_', ' ')} {object}"
    one = single or (not multi and chains.is_single(predicate))
    store = context.store(create=source_obs is None)
    actor = context.actor()
    cited: bytes | None = None
    if source_obs is not None:
        with names.snapshot(context) as reader:
            found = names.resolve(context, reader, source_obs)
            obj = reader.object(found.part, found.revision or found.state.head or found.ref)
            if not isinstance(obj, Observation):
                raise NotFound(f"'{source_obs}' is no observation")
            cited = found.revision or found.state.head
            scope = obj.scope
    else:
        scope = actor.scope

    def change(tx: Tx) -> tuple[bytes, bytes, str, bool]:
        part = tx.part(scope)
        evidence, blocked = cited, False
        if evidence is None:
            admitted = admit(
                tx, Incoming(text=sentence, asserted=starts, offset=offset, kind="statement")
            )
            evidence, blocked = admitted.id, admitted.status == "blocked"
        if blocked:
            return b"", b"", "blocked", False
        memory = Memory(
            encode.ZERO_SALT,
            scope,
            kind or "fact",
            sentence,
            (subject, predicate, object),
            [evidence],
            None,
            Deriver(STATED),
            1000,
            starts,
            ends,
            offset,
            [],
            "",
            [],
            {},
        )
        ref, status = chains.put(tx, part, memory, status="verified", single=one, valid_from=starts)
        state = tx.reader.state(part, ref)
        head = ref if state is None or state.head is None else state.head
        return head, ref, status, True

    head, ref, status, stored = store.write(actor, change)
    if context.json:
        context.emit(
            {
                "id": head.hex(),
                "status": status,
                "ref": ref.hex(),
                "receipt": {"status": "verified" if stored else "blocked", "codes": []},
            }
        )
    elif not stored:
        context.note("blocked by a tombstone")
    else:
        context.out(head.hex()[:10] + (" already known" if status == "known" else ""))
    return 0 if stored else Blocked.exit_code
