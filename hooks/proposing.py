"""Proposing changes from outside: ids as people write them, times as instants, one draft.

An operation that proposes text makes a memory that waits; it cites its evidence.  Nothing of it is
shown before somebody who did not propose it has approved it (`remem.objects.review`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.hooks import naming, results
from remem.objects import drafts, encode
from remem.objects.errors import BadInput, NotFound
from remem.objects.model import Deriver, Memory, Observation, Span

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.objects.drafts import Proposal
    from remem.objects.model import Scope
    from remem.objects.reader import Found, Part, Reader
    from remem.objects.scope import Actor, Grant
    from remem.objects.store import Store
    from remem.objects.tx import Tx

MAX_OPERATIONS = 100
MAX_CITES = 256
CONFIDENCE = 500  # per mille, of what somebody proposes without saying how sure it is
_CLAIMS = frozenset(("new", "supersede", "summary", "verbatim", "attach"))


class Operation(msgspec.Struct, kw_only=True, frozen=True):
    """One operation as somebody outside proposes it.

    Attributes:
        action: new, supersede, attach, close, retire-duplicate, summary or verbatim.
        text: what is claimed; of verbatim the very words of the evidence.
        kind: of the memory that is proposed: fact, preference, instruction and so on.
        triple: subject, predicate, object, where the claim is one.
        evidence: ids of the observations that it rests on, or that attach adds.
        target: id of the memory that changes.
        into: of retire-duplicate: id of the memory that stays.
        since: when the claim began to hold, microseconds UTC, or None.
        until: when it ceased to hold; of close: when the target ends.
        confidence: how sure the proposer is, 0 to 1.
        reason: one word.
    """

    action: str
    text: str = ""
    kind: str = ""
    triple: tuple[str, str, str] | None = None
    evidence: list[str] = []
    target: str = ""
    into: str = ""
    since: int | None = None
    until: int | None = None
    confidence: float | None = None
    reason: str = ""


def propose(
    store: Store,
    actor: Actor,
    grant: Grant,
    operations: Sequence[Operation],
    *,
    note: str = "",
    surface: str = "api",
) -> results.Proposed:
    """Write a draft.

    Args:
        store: open for writing.
        actor: who proposes.
        grant: in which ids are looked for.
        operations: what is proposed.
        note: a few words on the whole.
        surface: through which door, kept as the name of the deriver.

    Raises:
        BadInput: there is none or too many, or one lacks what its action needs.
        NotFound: an id names nothing here.
        HeadMoved, Blocked, ScopeRefused: as `drafts.propose` does.
    """
    if not 0 < len(operations) <= MAX_OPERATIONS:
        raise BadInput(f"a draft has 1 to {MAX_OPERATIONS} operations, not {len(operations)}")
    with store.read(grant) as reader:
        whole = [_proposal(reader, actor.scope, one, surface) for one in operations]

    def change(tx: Tx) -> drafts.Proposed:
        return drafts.propose(tx, actor.scope, whole, deriver=_made_by(surface), note=note)

    made = store.write(actor, change)
    draft = None if made.ref is None else made.ref.hex()
    return results.Proposed(draft, made.made, made.known)


def _made_by(surface: str) -> Deriver:
    return Deriver(f"proposal:{surface}")


def _proposal(reader: Reader, scope: Scope, one: Operation, surface: str) -> Proposal:
    """An operation with its ids looked up, and its claim as a memory."""
    if len(one.evidence) > MAX_CITES:
        raise BadInput(f"an operation cites at most {MAX_CITES} observations")
    cites = [_observation(reader, scope, id) for id in one.evidence]
    target = None if not one.target else _ref(reader, scope, one.target)
    into = None if not one.into else _ref(reader, scope, one.into)
    memory = _claim(reader, scope, one, cites, surface)
    return drafts.Proposal(
        action=one.action,
        memory=memory,
        target=None if target is None else target.ref,
        into=None if into is None else into.ref,
        at=one.until if one.action == "close" else None,
        cites=[cited for _, cited in cites] if one.action == "attach" else [],
        reason=one.reason,
    )


def _claim(
    reader: Reader, scope: Scope, one: Operation, cites: list[tuple[Part, bytes]], surface: str
) -> Memory | None:
    """The memory that an operation proposes, or None where it proposes no text.

    Raises:
        BadInput: a field goes with no claim, or the claim lacks its evidence.
    """
    given = [
        name
        for name, value in (
            ("kind", one.kind),
            ("triple", one.triple),
            ("since", one.since),
            ("confidence", one.confidence),
            ("until", None if one.action == "close" else one.until),
        )
        if value not in (None, "")
    ]
    if not one.text:
        if given:
            raise BadInput(f"'{given[0]}' goes with a claim: give its 'text'")
        if cites and one.action != "attach":
            raise BadInput(f"'{one.action}' without a text takes no evidence")
        return None
    if one.action not in _CLAIMS:
        raise BadInput(f"'{one.action}' takes no text")
    if not cites:
        raise BadInput("a claim cites at least one observation: give its 'evidence'")
    sure = CONFIDENCE if one.confidence is None else round(1000 * one.confidence)
    if not 0 <= sure <= 1000:
        raise BadInput("the confidence is between 0 and 1")
    return Memory(
        encode.ZERO_SALT,
        scope,
        one.kind or ("summary" if one.action == "summary" else "fact"),
        one.text,
        one.triple,
        [cited for _, cited in cites],
        _span(reader, cites, one.text),
        _made_by(surface),
        sure,
        one.since,
        one.until,
        None,
        [],
        "",
        [],
        {},
    )


def _span(reader: Reader, cites: list[tuple[Part, bytes]], text: str) -> Span | None:
    """Where the very words of a claim stand in its evidence, or None."""
    for number, (part, cited) in enumerate(cites):
        at = reader.object(part, cited).text.find(text)
        if at >= 0:
            return Span(number, at, at + len(text))
    return None


def _ref(reader: Reader, scope: Scope, id: str) -> Found:
    return naming.content(reader, naming.resolve(reader, scope, id))


def _observation(reader: Reader, scope: Scope, id: str) -> tuple[Part, bytes]:
    """Partition and object id of the evidence that an id names.

    Raises:
        NotFound: it names a memory, or nothing.
    """
    found = _ref(reader, scope, id)
    cited = found.revision or found.state.head
    obj = None if cited is None else reader.object(found.part, cited)
    if cited is None or not isinstance(obj, Observation):
        raise NotFound(f"'{id}' is no observation", hint="cite the evidence, not a memory")
    return found.part, cited
