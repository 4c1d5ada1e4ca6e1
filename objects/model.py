"""The objects of the store and the records that come in: plain structs, no behaviour.

Fields are encoded in the order written here (remem-store(5), OBJECTS); a new field goes to the end.
Instants are integers, microseconds since 1970-01-01T00:00:00Z; offsets are minutes east of UTC and
serve display only.
"""

from __future__ import annotations

import msgspec

ROLES = ("user", "assistant", "tool", "system", "")
ORIGINS = ("owner", "agent", "tool", "untrusted")
MEMORY_KINDS = (
    "fact",
    "preference",
    "instruction",
    "event",
    "procedure",
    "summary",
    "relation",
    "loop",
    "task",
    "pin",
)
DRAFT_ACTIONS = (
    "new",
    "attach",
    "supersede",
    "close",
    "retire-duplicate",
    "summary",
    "verbatim",
)
VERDICTS = ("", "approved", "denied", "stale")
SALT_BYTES = 16


class Scope(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where something belongs; none of the five parts is blank."""

    tenant: str
    profile: str
    collection: str
    agent: str
    session: str


class Source(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where evidence came from, as given when it came in."""

    uri: str = ""
    id: str = ""
    tool: str = ""


class Observation(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="observation"):
    """Immutable evidence: a turn, a command, a commit, a tool result, a note.

    Attributes:
        salt: 16 bytes, keyed BLAKE3 of the object with a zero salt.
        raw: the bytes as given, or None when they are the UTF-8 of text.
        text: NFC, line feeds only.
        asserted: when it was said, microseconds UTC; None means unknown, never "now".
        offset: minutes east of UTC in which the asserted time was written.
        corrects: object id of the ref that this evidence corrects.
        kind: what sort of evidence (turn, command, commit, ...), free, may be empty.
        meta: further fields of the source, kept and searchable by name only.
    """

    salt: bytes
    scope: Scope
    raw: bytes | None
    text: str
    role: str
    speaker: str
    origin: str
    source: Source | None
    asserted: int | None
    offset: int | None
    corrects: bytes | None
    kind: str
    meta: dict[str, object]


class Deriver(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Who made a memory: name and version, model and prompt where a model was used."""

    name: str
    version: int = 1
    model: str = ""
    prompt: str = ""


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The part of a cited observation that grounds a claim: code point offsets in its text."""

    cite: int
    start: int
    end: int


class Memory(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="memory"):
    """A derived or stated claim that cites at least one observation of its own scope.

    Attributes:
        salt: as in Observation.
        triple: subject, predicate, object; empty when the claim is not one.
        cites: object ids of observations, at least one.
        confidence: per mille, 0 to 1000.
        valid_from: when it began to hold, microseconds UTC, or None for unknown.
        valid_to: when it ceased to hold (exclusive), or None.
        offset: minutes east of UTC in which valid_from was written.
        cues: words that should bring it back.
        trigger: of a loop: a time or a topic, as written.
        anchors: files, symbols or commits it hangs on.
    """

    salt: bytes
    scope: Scope
    kind: str
    text: str
    triple: tuple[str, str, str] | None
    cites: list[bytes]
    span: Span | None
    deriver: Deriver
    confidence: int
    valid_from: int | None
    valid_to: int | None
    offset: int | None
    cues: list[str]
    trigger: str
    anchors: list[str]
    meta: dict[str, object]


class Operation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One operation of a draft: what it would do, to what, and what was decided.

    Attributes:
        number: its number in the draft, from 1; kept when others go.
        action: one of DRAFT_ACTIONS.
        proposed: ref of the pending memory that holds the proposed text, or None.
        target: ref that it changes, or None.
        seen: head of the target when it was proposed (compare-and-set).
        into: of retire-duplicate: the ref that stays.
        into_seen: head of that one when it was proposed.
        at: of close: when the target ends, microseconds UTC; None for when it is approved.
        cites: of attach: object ids of the observations that are added.
        reason: reason code.
        by: principal who proposed it last.
        attempt: 1, and one more for each time that it was proposed again.
        verdict: one of VERDICTS; empty while it waits.
        critique: why it was denied, in the words of the reviewer.
    """

    number: int
    action: str
    proposed: bytes | None
    target: bytes | None
    seen: bytes | None
    into: bytes | None
    into_seen: bytes | None
    at: int | None
    cites: list[bytes]
    reason: str
    by: str
    attempt: int
    verdict: str
    critique: str


class Draft(msgspec.Struct, frozen=True, array_like=True, tag="draft"):
    """Operations that wait for a decision.  It names what they propose and holds none of it.

    Attributes:
        salt: as in Observation.
        deriver: who made the proposals.
        made: record time of the proposal, microseconds UTC.
        note: words of the proposer on the whole, may be empty.
    """

    salt: bytes
    scope: Scope
    deriver: Deriver
    made: int
    note: str
    operations: list[Operation]
    meta: dict[str, object]


class Run(msgspec.Struct, frozen=True, array_like=True, tag="run"):
    """What one consolidation did: bookkeeping, never indexed and never recalled.

    Attributes:
        salt: as in Observation.
        started: microseconds UTC.
        ended: microseconds UTC, or None when it was broken off.
        counts: what was done, by name.
        notes: what went wrong or was left, one line each.
    """

    salt: bytes
    scope: Scope
    started: int
    ended: int | None
    counts: dict[str, int]
    notes: list[str]
    meta: dict[str, object]


class Incoming(msgspec.Struct, kw_only=True, gc=False):
    """One piece of evidence on its way in, before the admission gate.

    Attributes:
        text: what was said, decoded.
        raw: the bytes as given when they are not the UTF-8 of text.
        asserted: when it was said, microseconds UTC, or None for unknown.
        offset: minutes east of UTC in which asserted was written.
        collection: a collection other than the process's own, or None.
        agent: an agent other than the process's own, or None.
        session: a session other than the process's own, or None.
        source_id: the source's own id of it; ingest is idempotent on (source_uri root, source_id).
        where: place in the file it was read from, for messages ("turns.jsonl:12").
    """

    text: str
    raw: bytes | None = None
    asserted: int | None = None
    offset: int | None = None
    role: str = ""
    speaker: str = ""
    origin: str = "owner"
    collection: str | None = None
    agent: str | None = None
    session: str | None = None
    source_uri: str = ""
    source_id: str = ""
    tool: str = ""
    kind: str = ""
    meta: dict[str, object] = {}
    where: str = ""


class Rejected(msgspec.Struct, frozen=True):
    """A record that could not be read: named, counted, never fatal."""

    where: str
    why: str


class Skipped(msgspec.Struct, frozen=True):
    """A record that holds nothing to remember (bookkeeping of the tool that wrote it)."""

    where: str
    why: str
