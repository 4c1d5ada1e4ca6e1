"""Deciding from outside: drafts, what is held back, and what becomes of them.

Who may decide is the matter of `remem.objects.review`, for every door: nobody on what it brought in
itself, else the owner and who holds the right to review; and where the owner has set a passphrase,
a decision needs his key, which is unlocked at a terminal only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.hooks import cases, naming, results, shaping
from remem.hooks.reading import Reading
from remem.objects import drafts, encode, memories, oid, quarantine, refs, review, statements
from remem.objects.errors import HeadMoved, NotFound, Refused, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.objects.model import Draft, Memory, Scope
    from remem.objects.reader import Found, Part, Reader
    from remem.objects.tx import Tx

    Kept = tuple[Part, bytes, refs.RefState, Draft]


# -- drafts ---------------------------------------------------------------------------------------


def find_draft(reader: Reader, scope: Scope, text: str) -> Found:
    """The draft that an id names.

    Raises:
        NotFound: it names something else, or a draft that is not this principal's to see.
    """
    found = naming.living(reader, naming.resolve(reader, scope, text))
    if found.state.type != refs.DRAFT or not _may_see(reader, found.part, found.ref):
        raise NotFound(f"'{oid.short(found.ref)}' is no draft", hint="'remem draft list'")
    return found


def _may_see(reader: Reader, part: Part, ref: bytes) -> bool:
    """Whether a draft is shown: to who reviews, and to who proposed it."""
    grant = reader.grant
    return grant.owner or grant.reviews or grant.principal in review.producers(reader, part, ref)


def list_drafts(reader: Reader, *, decided: bool) -> list[Kept]:
    """Drafts that are this principal's to see, oldest first: those that wait, or all of them."""
    found: list[Kept] = []
    for part in reader.parts:
        for ref, state, draft in _drafts(reader, part, decided):
            if _may_see(reader, part, ref):
                found.append((part, ref, state, draft))
    return sorted(found, key=lambda one: one[2].created)


def _drafts(reader: Reader, part: Part, decided: bool) -> list[tuple[bytes, refs.RefState, Draft]]:
    if decided:
        return drafts.all_of(reader, part)
    waiting = {item.ref for item in drafts.waiting(reader) if item.part.number == part.number}
    found = []
    for ref in sorted(waiting):
        state = reader.state(part, ref)
        if state is not None and state.type == refs.DRAFT:
            found.append((ref, *drafts.get(reader, part, ref)))
    return found


def resubmit(tx: Tx, found: Found, number: int, text: str | None, *, limit: int) -> int:
    """Propose an operation again, its claim in other words where it has one; which attempt it is.

    Raises:
        UsageError: words were given, and it proposes none.
        Refused: it waits still, says the same, or was proposed too often.
    """
    draft = drafts.get(tx.reader, found.part, found.ref)[1]
    op = next((op for op in draft.operations if op.number == number), None)
    memory: Memory | None = None
    if op is not None and op.proposed is not None:
        old = memories.head(tx, found.part, op.proposed)[1]
        memory = _reworded(old, text) if text is not None else old
    elif text is not None:
        raise UsageError(f"operation {number} proposes no text")
    return drafts.resubmit(tx, found.part, found.ref, number, memory, limit=limit)


def _reworded(old: Memory, text: str) -> Memory:
    return msgspec.structs.replace(
        old,
        salt=encode.ZERO_SALT,
        text=text,
        triple=statements.reworded(old.triple, old.text, text),
    )


# -- what is held back ----------------------------------------------------------------------------


def find_held(reader: Reader, scope: Scope, text: str, *, release: bool) -> Found:
    """What an id names, to be decided on by itself.

    Args:
        reader: a snapshot.
        scope: in which ``@{last}`` is looked for.
        text: an id.
        release: it is to be let out, so the id has to be that of the words as they are now.

    Raises:
        NotFound: it names nothing here, or no evidence and no memory.
        Refused: a draft proposes it.
        HeadMoved: its words have changed since the id was given out that names them.
    """
    found = naming.content(reader, naming.resolve(reader, scope, text))
    if drafts.in_draft(reader, found.part, found.ref):
        raise Refused(
            f"'{oid.short(found.ref)}' is what a draft proposes",
            hint="'remem draft approve' or 'remem review'",
        )
    head = found.state.head
    if release and head is not None and head != (found.revision or found.ref):
        raise HeadMoved(
            f"'{oid.short(found.revision or found.ref)}' was given other words",
            hint=f"'remem show {oid.short(head)}' prints them; release that id",
        )
    return found


def settle(tx: Tx, found: Found, *, release: bool, reason: str) -> refs.Entry:
    """Let something out that is held back, or reject it for good."""
    if release:
        return review.release(tx, found.part, found.ref, reason=reason, expected=found.state.head)
    return review.reject(tx, found.part, found.ref, reason=reason)


# -- the Python interface -------------------------------------------------------------------------


class Deciding(Reading):
    """What waits in an open store, and deciding on it."""

    def drafts(self, *, decided: bool = False) -> list[results.Draft]:
        """Drafts of which operations wait, oldest first.

        The owner and who reviews see all of them, everybody else its own.

        Args:
            decided: those that are decided on as well.
        """
        with self.objects.read(self.grant) as reader:
            found = list_drafts(reader, decided=decided)
            return [cases.of_draft(reader, *one) for one in found]

    def draft(self, id: str) -> results.Draft:
        """One draft with its operations, whether they wait or not.

        Raises:
            NotFound: there is no such draft, or it is not this principal's to see.
        """
        with self.objects.read(self.grant) as reader:
            found = find_draft(reader, self.actor.scope, id)
            state, draft = drafts.get(reader, found.part, found.ref)
            return cases.of_draft(reader, found.part, found.ref, state, draft)

    def waiting(self) -> list[results.Case]:
        """Everything that waits for a decision, oldest first: what ``remem review`` goes through.

        Raises:
            ScopeRefused: the principal may not review.
        """
        self._check_reviews("review")
        with self.objects.read(self.grant) as reader:
            found = [cases.of_item(reader, item) for item in drafts.waiting(reader)]
            return [cases.value(case) for case in found if case is not None]

    def held_back(self) -> list[results.Held]:
        """What is quarantined, or pending without a draft, oldest first.

        Raises:
            ScopeRefused: the principal may not review.
        """
        self._check_reviews("quarantine")
        with self.objects.read(self.grant) as reader:
            return [cases.of_held(reader, one) for one in quarantine.held(reader)]

    def _check_reviews(self, action: str) -> None:
        if not (self.grant.owner or self.grant.reviews):
            raise self.refused("review", action, "may_not_review")

    def approve(self, id: str, *operations: int, text: str | None = None) -> list[results.Decision]:
        """Apply operations of a draft, each whole or not at all.

        Args:
            id: of the draft.
            operations: numbers; without any, all that wait.
            text: other words for the claim of the one operation; the owner's to give.

        Returns:
            What became of each: one that is stale was not applied.

        Raises:
            NotFound: there is no such draft or operation.
            ReviewRefused: the principal produced it, or may not review.
            SignatureNeeded: decisions are signed here, which takes a person at a terminal.
            Refused: it was decided on already.
        """
        found = self._draft(id)
        wanted = list(operations) or None
        done = self.objects.write(
            self.actor,
            lambda tx: drafts.approve(tx, found.part, found.ref, wanted, edited=text),
        )
        return _decisions(done)

    def deny(self, id: str, *operations: int, critique: str = "") -> list[results.Decision]:
        """Turn operations of a draft down, without any all that wait; see `approve`.

        Args:
            id: of the draft.
            operations: numbers.
            critique: what is wrong with it, kept for whoever proposes it again.
        """
        found = self._draft(id)
        wanted = list(operations) or None
        done = self.objects.write(
            self.actor, lambda tx: drafts.deny(tx, found.part, found.ref, wanted, critique)
        )
        return _decisions(done)

    def resubmit(self, id: str, operation: int, *, text: str | None = None) -> int:
        """Propose an operation again that was denied or is stale; which attempt it is.

        Args:
            id: of the draft.
            operation: its number.
            text: its claim in other words; one that was denied needs them.

        Raises:
            Refused: it waits still, says the same, or was proposed too often.
            ScopeRefused: the principal may not propose.
        """
        found = self._draft(id)
        limit = self.options.attempts
        return self.objects.write(
            self.actor, lambda tx: resubmit(tx, found, operation, text, limit=limit)
        )

    def _draft(self, id: str) -> Found:
        with self.objects.read(self.grant) as reader:
            return find_draft(reader, self.actor.scope, id)

    def release(self, id: str, *, reason: str = "") -> results.Entry:
        """Let out what is held back.

        Args:
            id: of the words as they are now: `results.Held.head`.
            reason: reason code, one word.

        Raises:
            NotFound: nothing of the granted scopes has that id.
            HeadMoved: its words have changed since.
            ReviewRefused, SignatureNeeded, Refused: as `approve` does.
        """
        return self._settle(id, reason, release=True)

    def reject(self, id: str, *, reason: str = "") -> results.Entry:
        """Hold something back for good; see `release`."""
        return self._settle(id, reason, release=False)

    def _settle(self, id: str, reason: str, *, release: bool) -> results.Entry:
        word = refs.given_reason(reason or None)
        with self.objects.read(self.grant) as reader:
            found = find_held(reader, self.actor.scope, id, release=release)
        entry = self.objects.write(
            self.actor, lambda tx: settle(tx, found, release=release, reason=word)
        )
        with self.objects.read(self.grant) as reader:
            return shaping.entry(reader, found.part, entry)


def _decisions(done: Sequence[drafts.Decision]) -> list[results.Decision]:
    return [results.Decision(one.number, one.verdict, one.why or None) for one in done]
