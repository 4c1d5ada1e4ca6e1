"""Retention: rules by which what is old expires or is forgotten.

A rule names what it is about (kind, tier, role, origin, status, type), how old it must be, and what
happens then.  Age counts from the record time of the head: what was corrected is as young as the
correction.

A rule does not reach over the trust of what it finds.  Memories that a person verified are left
alone unless the rule names the status ``verified``, and so is the evidence that nothing but such a
memory would keep; pinned and held refs are left alone by every rule.  How much untrusted evidence
there is changes nothing.

Rules lie in ``meta`` under ``retain``, so a backup has them.

Source: remem-store(5), RETENTION; remem-retain(1).
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from remem.objects import chains, forget, memories, oid, refs
from remem.objects.attests import RETAIN
from remem.objects.errors import NotFound, UsageError
from remem.objects.forget_plan import ERASED, plan
from remem.objects.model import Memory, Observation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from remem.objects.encode import Obj, Stored
    from remem.objects.forget_plan import Item
    from remem.objects.reader import Part, Reader
    from remem.objects.scope import Actor
    from remem.objects.store import Store
    from remem.objects.tx import Tx

KEY = b"retain"  # in ``meta``
ACTIONS = ("expire", "forget")
BATCH = 20_000  # refs a transaction
_SALT_B = 16
_UNITS_US = {
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "w": 7 * 86_400_000_000,
    "y": 365 * 86_400_000_000,
}
_AGE = re.compile(r"(\d{1,9})\s*(s|min|h|d|w|y)")
_VERIFIED = refs.STATUS_CODE["verified"]
_OVER = frozenset(refs.STATUS_CODE[s] for s in ("erased", "expired", "rejected"))


class Rule(msgspec.Struct, frozen=True, array_like=True):
    """One rule.

    Attributes:
        number: its number, from 1, never given twice.
        tenant: tenant that it is about.
        profile: profile that it is about.
        collection: collection that it is about, empty for all of them.
        type: "observation" or "memory", empty for both.
        kind: kind of the observation or memory, empty for any.
        tier: ``tier`` in the metadata, empty for any.
        role: role of the observation, empty for any.
        origin: origin of the observation, empty for any.
        status: status, empty for any but verified memories.
        age: least age, microseconds.
        action: "expire" or "forget".
        created: record time of its making.
        principal: who made it.
    """

    number: int
    tenant: str
    profile: str
    collection: str
    type: str
    kind: str
    tier: str
    role: str
    origin: str
    status: str
    age: int
    action: str
    created: int
    principal: str


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    """Number of the last rule made, the rules in force, and what makes their digest unguessable."""

    last: int
    rules: list[Rule]
    salt: bytes = b""


class Due(msgspec.Struct):
    """What a rule comes to.

    Attributes:
        items: refs that it is about and that are old enough.
        observations: how many observations go (with ``forget``: all that go).
        memories: how many memories go.
        lost_citation: how many memories lose a citation.
        held: how many a hold keeps.
        pinned: how many are pinned.
        kept: how many observations are kept because verified memories rest on them alone.
    """

    rule: Rule
    items: list[Item] = []
    observations: int = 0
    memories: int = 0
    lost_citation: int = 0
    held: int = 0
    pinned: int = 0
    kept: int = 0


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Stored).decode


def age_of(text: str) -> int:
    """Microseconds of an age such as "90d", "12h" or "2w".

    Raises:
        UsageError: it is none.
    """
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"'{text[:40]}' is no age", hint="a number and one of s, min, h, d, w, y: 90d"
        )
    return int(match[1]) * _UNITS_US[match[2]]


# -- the rules ----------------------------------------------------------------------------------


def rules(reader: Reader) -> list[Rule]:
    """The rules of the tenant and profile of the grant, by number."""
    data = reader.txn.get("meta", KEY)
    found = [] if data is None else _decode(data).rules
    grant = reader.grant
    return [
        rule
        for rule in found
        if grant.everything
        or (
            (rule.tenant, rule.profile) == (grant.tenant, grant.profile)
            and (grant.collections is None or rule.collection in ("", *grant.collections))
        )
    ]


def add(tx: Tx, rule: Rule) -> Rule:
    """Put a rule in force; its number, time and principal are set here.

    Raises:
        UsageError: it selects nothing in particular, or a word is none of the known ones.
    """
    if rule.action not in ACTIONS:
        raise UsageError(f"'{rule.action}' is no action", hint="one of " + ", ".join(ACTIONS))
    if rule.type not in ("", *refs.TYPES[: refs.DRAFT]):
        raise UsageError(f"'{rule.type}' is no type", hint="one of observation, memory")
    if rule.status not in ("", *refs.STATUSES) or rule.status in ("erased", "expired"):
        raise UsageError(f"'{rule.status}' is no status that a rule can name")
    if not any((rule.type, rule.kind, rule.tier, rule.role, rule.origin, rule.status)):
        raise UsageError(
            "the rule would be about everything",
            hint="say about what: --type, --kind, --tier, --role, --origin or --status",
        )
    stored = _stored(tx)
    made = msgspec.structs.replace(
        rule, number=stored.last + 1, created=tx.now, principal=tx.actor.grant.principal
    )
    _put(tx, _Stored(made.number, [*stored.rules, made], stored.salt), f"set-{made.number}")
    return made


def drop(tx: Tx, number: int) -> Rule:
    """Take a rule out of force.

    Raises:
        NotFound: there is none of that number for this tenant and profile.
    """
    found = next((rule for rule in rules(tx.reader) if rule.number == number), None)
    if found is None:
        raise NotFound(f"there is no rule {number}", hint="'remem retain list' shows them")
    stored = _stored(tx)
    left = [rule for rule in stored.rules if rule.number != number]
    _put(tx, _Stored(stored.last, left, stored.salt), f"unset-{number}")
    return found


def _put(tx: Tx, stored: _Stored, outcome: str) -> None:
    """Store the rules, with a row of the audit chain that attests them."""
    if not stored.salt:
        stored = msgspec.structs.replace(stored, salt=os.urandom(_SALT_B))
    data = _encode(stored)
    tx.txn.put("meta", KEY, data)
    tx.done("retain", 0, outcome=outcome, attests={RETAIN: oid.digest(data)})


def _stored(tx: Tx) -> _Stored:
    data = tx.txn.get("meta", KEY)
    return _Stored(0, []) if data is None else _decode(data)


# -- what is due --------------------------------------------------------------------------------


def due(reader: Reader, rule: Rule, now: int) -> Due:
    """What a rule would do now, counted exactly; nothing is changed."""
    found = Due(rule)
    items: list[Item] = []
    for part, ref, state in _matching(reader, rule, now):
        if state.flags & refs.HELD:
            found.held += 1
        elif state.flags & refs.PINNED:
            found.pinned += 1
        else:
            items.append((part, ref))
    if rule.action == "expire":
        found.items = items
        types = [at.type for part, ref in items if (at := reader.state(part, ref)) is not None]
        found.memories = types.count(refs.MEMORY)
        found.observations = types.count(refs.OBSERVATION)
        return found
    guarded = rule.status != "verified" or rule.type == "observation"
    while True:
        planned = plan(reader, items)
        named = set(items)
        held = {(part, asked) for part, asked, _ in planned.held}
        kept: set[Item] = set()
        for one in planned.erase:
            # What would go although the rule does not name it, and must not.
            if (one.part, one.ref) not in named and _protected(one.state, guarded):
                kept |= _grounds(reader, one.part, one.revisions, named)
        if not held | kept:
            break
        found.held += len(held)
        found.kept += len(kept - held)
        items = [item for item in items if item not in held | kept]
    found.items = items
    for one in planned.erase:
        memory = one.state.type == refs.MEMORY
        found.memories += memory
        found.observations += not memory
    found.lost_citation = len(planned.lose)
    return found


def _matching(reader: Reader, rule: Rule, now: int) -> Iterator[tuple[Part, bytes, refs.RefState]]:
    for part in reader.parts:
        if (part.tenant, part.profile) != (rule.tenant, rule.profile):
            continue
        if rule.collection and part.collection != rule.collection:
            continue
        for ref, state in reader.states(part):
            if _selects(reader, rule, part, state, now):
                yield part, ref, state


def _selects(reader: Reader, rule: Rule, part: Part, state: refs.RefState, now: int) -> bool:
    if state.type > refs.MEMORY:
        return False  # bookkeeping has rules of its own
    over = state.status in _OVER if rule.action == "expire" else state.status == ERASED
    if over or state.head is None or now - state.created < rule.age:
        return False
    if rule.type and refs.TYPES[state.type] != rule.type:
        return False
    if rule.status and refs.STATUSES[state.status] != rule.status:
        return False
    if not rule.status and state.type == refs.MEMORY and state.status == _VERIFIED:
        return False
    if state.first != state.last and now - _head_time(reader, part, state) < rule.age:
        return False
    if not (rule.kind or rule.tier or rule.role or rule.origin):
        return True
    return _is(reader.object(part, state.head), rule)


def _is(obj: Obj, rule: Rule) -> bool:
    if rule.kind and obj.kind != rule.kind:
        return False
    if rule.tier and obj.meta.get("tier") != rule.tier:
        return False
    if rule.role or rule.origin:
        if not isinstance(obj, Observation):
            return False
        return rule.role in ("", obj.role) and rule.origin in ("", obj.origin)
    return True


def _head_time(reader: Reader, part: Part, state: refs.RefState) -> int:
    """Record time at which the head became it."""
    for entry in reader.entries(part, state):
        if entry.new != entry.old and entry.reason not in (forget.FORGOTTEN, memories.EVIDENCE):
            return entry.time
    return state.created


def _protected(state: refs.RefState, guarded: bool) -> bool:
    verified = guarded and state.type == refs.MEMORY and state.status == _VERIFIED
    return verified or bool(state.flags & refs.PINNED)


def _grounds(
    reader: Reader, part: Part, revisions: list[tuple[bytes, Stored]], named: set[Item]
) -> set[Item]:
    """The observations among these that a memory cites."""
    return {
        (part, ref)
        for _, obj in revisions
        if isinstance(obj, Memory)
        for cited in obj.cites
        if (part, ref := reader.ref_of(part, cited)) in named
    }


# -- doing it -----------------------------------------------------------------------------------


def run(
    store: Store,
    actor: Actor,
    *,
    now: int,
    only: set[int] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Due]:
    """Carry out every rule of the actor's tenant and profile, in their order.

    Args:
        store: an open store.
        actor: who acts.
        now: instant at which ages are measured, microseconds UTC.
        only: numbers of the rules, or None for all of them.
        progress: called with (what, done, of).

    Returns:
        What each rule did.
    """
    with store.read(actor.grant) as reader:
        wanted = [rule for rule in rules(reader) if only is None or rule.number in only]
    return [_run(store, actor, rule, now, progress) for rule in wanted]


def _run(
    store: Store,
    actor: Actor,
    rule: Rule,
    now: int,
    progress: Callable[[str, int, int], None] | None,
) -> Due:
    """Carry out one rule, some thousand refs a transaction."""
    total = Due(rule)
    while True:
        done, left = store.write(actor, lambda tx: _carry_out(tx, rule, now))
        total.items += done.items
        for name in ("observations", "memories", "lost_citation"):
            setattr(total, name, getattr(total, name) + getattr(done, name))
        total.held, total.pinned, total.kept = done.held, done.pinned, done.kept
        if progress is not None:
            progress("retention", len(total.items), len(total.items) + left)
        if not left:
            return total


def _carry_out(tx: Tx, rule: Rule, now: int) -> tuple[Due, int]:
    """What is due of one rule, up to a limit; what was done, and how many refs are left."""
    found = due(tx.reader, rule, now)
    reason = f"retain-{rule.number}"
    items = found.items[:BATCH]
    left = len(found.items) - len(items)
    if rule.action == "forget":
        took = forget.forget_many(tx, items, reason=reason)
        found.observations, found.memories = len(took.observations), len(took.memories)
        found.lost_citation = len(took.lost_citation)
    else:
        found.observations = found.memories = 0
        for part, ref in items:
            state = tx.reader.state(part, ref)
            assert state is not None
            tx.record(part, "expire", ref, state, status="expired", reason=reason)
            found.memories += state.type == refs.MEMORY
            found.observations += state.type == refs.OBSERVATION
            if state.type == refs.MEMORY:
                chains.relink_of(tx, part, ref)
    found.items = items
    return found, left


def describe(rule: Rule) -> str:
    """A rule in words, for lists and messages."""
    about = [
        f"{name} {value}"
        for name, value in (
            ("type", rule.type),
            ("kind", rule.kind),
            ("tier", rule.tier),
            ("role", rule.role),
            ("origin", rule.origin),
            ("status", rule.status),
        )
        if value
    ]
    return ", ".join(about)


def age_text(age: int) -> str:
    """An age as it is written: "90d"."""
    for unit in ("y", "w", "d", "h", "min"):
        if age and not age % _UNITS_US[unit]:
            return f"{age // _UNITS_US[unit]}{unit}"
    return f"{age // _UNITS_US['s']}s"
