"""remem revise, rollback, close, reopen, undo: corrections, each a new entry of the log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from remem.cli import describe, names, times
from remem.cli.context import Context
from remem.cli.passphrase import signed
from remem.objects import chains, correct, oid, refs
from remem.objects.admit import decode_text
from remem.objects.errors import HeadMoved, NotFound, UsageError
from remem.objects.signing import SignatureNeeded
from remem.objects.undo import author, last_operation

DERIVER = "deriver"  # whose operations may be taken back too

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.reader import Found, Reader
    from remem.objects.tx import Tx


def revise(
    context: Context,
    *,
    id: str,
    text: list[str],
    at: str | None,
    if_head: str | None,
    reason: str | None,
) -> int:
    """Give a ref a new text."""
    limit_b = context.limit_b
    if text == ["-"]:
        new = decode_text(sys.stdin.buffer.read(limit_b + 1), "standard input", limit_b)
    else:
        new = " ".join(text)
    since = None if at is None else times.when(context, at)[0]

    def change(tx: Tx, found: Found, expected: bytes | None) -> bytes:
        return correct.revise(
            tx,
            found,
            new,
            expected=expected,
            since=since,
            reason=refs.given_reason(reason),
            limit_b=limit_b,
        )

    return _change(context, id, if_head, change)


def rollback(
    context: Context,
    *,
    id: str,
    to: str | None,
    if_head: str | None,
    reason: str | None,
) -> int:
    """Make an earlier revision the head again."""
    context.store()  # opened for writing before the snapshot
    wanted: bytes | None = None
    if to is not None:
        with names.snapshot(context) as reader:
            found = names.resolve(context, reader, id)
            wanted = _revision(reader, found, to)

    def change(tx: Tx, found: Found, expected: bytes | None) -> bytes:
        return correct.rollback(
            tx, found, wanted, expected=expected, reason=refs.given_reason(reason)
        )

    return _change(context, id, if_head, change)


def close(
    context: Context,
    *,
    id: str,
    at: str | None,
    if_head: str | None,
    reason: str | None,
) -> int:
    """End the validity of a ref."""
    end = None if at is None else times.when(context, at)[0]

    def change(tx: Tx, found: Found, expected: bytes | None) -> None:
        correct.close(
            tx,
            found,
            tx.present if end is None else end,
            reason=refs.given_reason(reason),
            expected=expected,
        )

    return _change(context, id, if_head, change)


def reopen(
    context: Context,
    *,
    id: str,
    if_head: str | None,
    reason: str | None,
) -> int:
    """Take back a close."""

    def change(tx: Tx, found: Found, expected: bytes | None) -> None:
        correct.reopen(tx, found, reason=refs.given_reason(reason), expected=expected)

    return _change(context, id, if_head, change)


def undo(context: Context, *, seq: str | None, dry_run: bool) -> int:
    """Reverse the last operation of this principal, or the one that an entry belongs to."""
    if seq is not None and not seq.isdigit():
        raise UsageError(f"'{seq}' is no number of an entry", hint="'remem log' shows them")
    store = context.store()
    actor = context.actor()
    principal = actor.grant.principal
    with names.snapshot(context) as reader:
        part = next((p for p in reader.parts), None)
        if part is None:
            raise NotFound("there is nothing to undo here")
        number = None if seq is None else int(seq)
        if number is None:
            number = last_operation(reader, part, principal)
            if number is None:
                raise NotFound(f"'{principal}' has done nothing here that could be undone")
        elif author(reader, part, number) not in (principal, DERIVER):
            raise NotFound(f"entry {number} is not an operation of '{principal}'")

    def change(tx: Tx) -> list[refs.Entry]:
        made = correct.undo(tx, part, number)
        if dry_run:
            raise _Trial(made)
        return made

    try:
        made = store.write(actor, change)
    except _Trial as trial:
        made = trial.made
    except SignatureNeeded:
        # Only now is it known that a decision is among what is undone.
        actor = signed(context, store, f"undoing entry {number}")
        try:
            made = store.write(actor, change)
        except _Trial as trial:
            made = trial.made
    with names.snapshot(context) as reader:
        if context.json:
            context.emit([describe.entry(reader, part, e) for e in made])
        else:
            would = "would " if dry_run else ""
            for e in made:
                text = describe.text_line(reader, part, e.ref, e.new)
                context.out(f"{would}{refs.OPS[e.op]} {oid.short(e.ref)}  {text}")
    return 0


class _Trial(Exception):
    """Carries the entries out of a transaction that must not be kept."""

    def __init__(self, made: list[refs.Entry]) -> None:
        super().__init__()
        self.made = made


def _change(
    context: Context,
    name: str,
    if_head: str | None,
    change: Callable[[Tx, Found, bytes | None], bytes | None],
) -> int:
    """Resolve the ref, run the change, print what holds now."""
    store = context.store()
    with names.snapshot(context) as reader:
        found = names.resolve(context, reader, name)
        expected = None
        if if_head is not None:
            head = found.state.head
            start, stop = oid.prefix_range(if_head)
            if head is None or not start <= head or (stop and head >= stop):
                raise HeadMoved(f"the head of '{oid.short(found.ref)}' is not '{if_head[:64]}'")
            expected = head
    done = store.write(context.actor(), lambda tx: change(tx, found, expected))
    with names.snapshot(context) as reader:
        state = reader.state(found.part, found.ref)
        assert state is not None
        head = done or state.head or found.ref
        if context.json:
            entries = reader.entries(found.part, state)
            last = next(e for e in entries if e.reason != chains.LINK)
            context.emit({"id": head.hex(), **describe.entry(reader, found.part, last)})
        else:
            context.out(oid.short(head))
    return 0


def _revision(reader: Reader, found: Found, to: str) -> bytes:
    """The revision that --to names: an id, a prefix, or a number as 'remem show' has it."""
    made = [e.new for e in describe.revisions(reader, found.part, found.state)]
    heads = [head for head in made if head is not None]
    if to.isdigit() and len(to) < oid.MIN_PREFIX:
        if not 1 <= int(to) <= len(heads):
            raise NotFound(f"'{oid.short(found.ref)}' has {len(heads)} revisions")
        return heads[int(to) - 1]
    start, stop = oid.prefix_range(to)
    fits = {head for head in heads if head >= start and (not stop or head < stop)}
    if len(fits) != 1:
        raise NotFound(f"'{to[:64]}' is no revision of '{oid.short(found.ref)}'")
    return fits.pop()
