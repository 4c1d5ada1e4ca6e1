"""What a program gets back: one typed shape for each answer, the same for every door.

The command line prints these as JSON, the MCP server returns them, `remem.open` hands them out.
Ids are 64 hex digits; instants are aware datetimes in UTC, which msgspec writes as RFC 3339.  How
they are made of what is stored, `remem.hooks.shaping` says.

Source: CLI contract, SHAPES; remem(7).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class Names(msgspec.Struct, frozen=True):
    """The five names of a scope."""

    tenant: str
    profile: str
    collection: str
    agent: str
    session: str


class Origin(msgspec.Struct, frozen=True):
    """Where evidence came from, as given when it came in."""

    uri: str
    id: str


class Citation(msgspec.Struct, frozen=True):
    """An observation behind a hit, and the words of it that bear on the question."""

    id: str
    source: Origin | None
    quote: str


class Stale(msgspec.Struct, frozen=True):
    """Why a summary no longer fits its sources, and what they say now."""

    reason: str
    current_value: str


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: a memory or an observation.

    Attributes:
        id: object id of the revision; ref: id of the thing it is a revision of.
        type: "memory" or "observation".
        score: comparable within one answer only.
        status: trust verdict; truth: "current", "historical" or "changed".
        cites: the observations behind a memory; of an observation, itself.
        conflict: ids of other hits that hold at the same time and say otherwise.
        why: parts of the score, where they were asked for.
        confidence: how likely it answers the question, 0 to 1; of an answer to one.
        by: the principal that brought it, "" where a pack did; mark: whose words it is and its
            status where it is not verified, "" for the owner's own (`remem.index.whose`).
    """

    id: str
    ref: str
    type: str
    kind: str
    text: str
    score: float
    status: str
    origin: str
    role: str
    speaker: str
    by: str
    mark: str
    scope: Names
    asserted_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: datetime
    truth: str
    replaced_by: str | None
    stale: Stale | None
    source: Origin | None
    cites: list[Citation]
    conflict: list[str] | UnsetType = UNSET
    why: dict[str, float] | UnsetType = UNSET
    confidence: float | UnsetType = UNSET


class Understood(msgspec.Struct, frozen=True):
    """What was read from a question about commands.

    Attributes:
        cwd: folders; exit: "failed", "ok" or a status; branch: that was checked out.
        words: those of the question that are left.
        found: whether a command fits; where none does, its words answered.
    """

    kind: str
    cwd: list[str]
    exit: str | None
    branch: str | None
    since: datetime | None
    until: datetime | None
    words: str
    found: bool


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Hits, best first, and what was amiss.

    Attributes:
        view: the view that was looked through.
        view_reason: words of the question that chose it, or None when it was asked for.
        mode: the mode of ranking that was used.
        degraded: why the answer is less than it could be, or None.
        confidence: how likely one of the hits answers the question, 0 to 1.
        understood: the filters that were read from a question about commands.
    """

    query: str
    view: str
    view_reason: str | None
    as_of: datetime | None
    known_at: datetime | None
    mode: str
    degraded: str | None
    confidence: float
    hits: list[Hit]
    understood: Understood | UnsetType = UNSET

    def __iter__(self) -> Iterator[Hit]:
        """The hits, best first."""
        return iter(self.hits)

    def __len__(self) -> int:
        """Number of hits."""
        return len(self.hits)


class Said(msgspec.Struct, frozen=True):
    """A pin or a loop as it stands in a context; by and mark as in a hit."""

    id: str
    ref: str
    text: str
    by: str
    mark: str


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A cited block for a prompt.

    Attributes:
        unit: "characters" or "tokens", of budget and used.
        omitted: entries that did not fit.
        text: the block; empty when nothing was found or fits.
        pins: what is pinned, word for word; due: loops whose time or topic has come.
        hits: the hits that stand in it.
    """

    query: str
    budget: int
    unit: str
    used: int
    omitted: int
    degraded: str | None
    view: str
    view_reason: str | None
    text: str
    pins: list[Said]
    due: list[Said]
    hits: list[Hit]


class Receipt(msgspec.Struct, frozen=True):
    """What the admission gate decided: status and reason codes."""

    status: str
    codes: list[str]


class Observed(msgspec.Struct, frozen=True):
    """What became of evidence: status is "new", "known" or "blocked"."""

    id: str
    status: str
    ref: str
    receipt: Receipt


class Imported(msgspec.Struct, frozen=True):
    """What became of many: read = new + known + skipped + blocked + rejected."""

    read: int
    new: int
    known: int
    skipped: int
    blocked: int
    rejected: int
    errors: list[Problem]


class Problem(msgspec.Struct, frozen=True):
    """A record that was not taken, and why."""

    where: str
    why: str


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the ref log."""

    seq: int
    ref: str
    op: str
    old: str | None
    new: str | None
    status: str
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: datetime
    principal: str
    reason: str
    type: str
    replaced_by: str | None
    surface: str
    scope: Names
    made_at: datetime | UnsetType = UNSET
    made_status: str | UnsetType = UNSET


class Admission(msgspec.Struct, frozen=True):
    """A receipt with the versions of what judged."""

    status: str
    codes: list[str]
    gate: int
    detectors: list[str]


class Deriver(msgspec.Struct, frozen=True):
    """Who made a memory: name and version, model and prompt where a model was used."""

    name: str
    version: int
    model: str
    prompt: str


class Drawn(msgspec.Struct, frozen=True):
    """A memory that cites an observation."""

    id: str | None
    ref: str
    kind: str
    status: str


class Revision(msgspec.Struct, frozen=True):
    """One revision of a ref; the first is number 1."""

    number: int
    id: str
    op: str
    recorded_at: datetime
    principal: str
    reason: str


class Quoted(msgspec.Struct, frozen=True):
    """An observation behind an object; source and words are None when they may not be shown."""

    id: str
    source: Origin | None
    quote: str | None


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """One revision of a ref with everything that is known about it.

    Attributes:
        id: object id of the revision; head: that of the newest one.
        kind, text, origin, role, speaker: None when its bytes are gone or held back.
        flags: held, pinned, flagged.
        derived: memories that cite it.
        revision: its number among the revisions.
    """

    id: str
    ref: str
    head: str | None
    type: str
    kind: str | None
    text: str | None
    status: str
    truth: str
    flags: list[str]
    asserted_at: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: datetime
    changed_at: datetime
    replaced_by: str | None
    scope: Names
    origin: str | None
    role: str | None
    speaker: str | None
    source: Origin | None
    tool: str | UnsetType = UNSET
    corrects: str | UnsetType | None = UNSET
    triple: tuple[str, str, str] | UnsetType | None = UNSET
    span: tuple[int, int, int] | UnsetType | None = UNSET
    deriver: Deriver | UnsetType = UNSET
    confidence: int | UnsetType = UNSET
    cues: list[str] | UnsetType = UNSET
    trigger: str | UnsetType = UNSET
    anchors: list[str] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET
    receipt: Admission | None
    cites: list[Quoted]
    derived: list[Drawn]
    revision: int
    revisions: list[Revision]


class Pin(msgspec.Struct, frozen=True):
    """One pin; shown is false, and why says the reason, where it shows nothing any more."""

    id: str | None
    ref: str
    since: datetime
    shown: bool
    why: str
    replaced_by: str | None
    text: str | None
    collection: str
    by: str
    mark: str


class Pinned(msgspec.Struct, frozen=True):
    """A pin that was made; pinned is false when it was there already."""

    id: str
    ref: str
    pinned: bool


class Loop(msgspec.Struct, frozen=True):
    """An intent that comes back at a time (due) or with a topic."""

    id: str
    ref: str
    text: str
    due: datetime | None
    topic: str | None
    trigger: str
    open: bool
    overdue: bool
    status: str
    recorded_at: datetime
    closed_at: datetime | None
    note: str | None
    collection: str
    by: str
    mark: str


class Opened(msgspec.Struct, frozen=True):
    """A loop that was opened: status is "new" or "known"."""

    id: str
    ref: str
    status: str
    due: datetime | None
    topic: str | None


class Task(msgspec.Struct, frozen=True):
    """One state of a task: truth is "current" or "historical"."""

    id: str
    ref: str
    key: str
    text: str
    truth: str
    valid_from: datetime
    valid_to: datetime | None
    recorded_at: datetime
    replaced_by: str | None
    collection: str
    by: str
    mark: str


class TaskSet(msgspec.Struct, frozen=True):
    """A state that a task was given: status is "new" or "known"."""

    id: str
    ref: str
    status: str
    key: str


class TaskEnded(msgspec.Struct, frozen=True):
    """A task that ended, with its last state."""

    ref: str
    key: str
    text: str


class Brief(msgspec.Struct, frozen=True):
    """Word for the next consolidation that waits."""

    id: str
    text: str
    recorded_at: datetime
    principal: str
    promote: list[str]
    noise: list[str]
    done: list[str]
    collection: str


class Briefed(msgspec.Struct, frozen=True):
    """A brief that was left, with the refs that its hints name."""

    id: str
    ref: str
    status: str
    promote: list[str]
    noise: list[str]
    done: list[str]


class Forgetting(msgspec.Struct, frozen=True):
    """What a forgetting took: refs.

    Attributes:
        lost_citation: memories that stand on other evidence still.
        held: what was asked for and a hold keeps; known: what was forgotten before.
        drafts: drafts that rested on it; what is left of one goes on as another.
    """

    observations: list[str]
    memories: list[str]
    lost_citation: list[str]
    held: list[str]
    known: list[str]
    drafts: list[str]


class Proposed(msgspec.Struct, frozen=True):
    """A draft that was made.

    Attributes:
        draft: its id, or None when every operation was known.
        operations: numbers of its operations; they wait until somebody else decides.
        known: places, from 0, of those that wait already, or were denied.
    """

    draft: str | None
    operations: list[int]
    known: list[int]


class Ground(msgspec.Struct, frozen=True):
    """An observation behind a claim, for who decides on it.

    Attributes:
        text: what was said, or None when it is gone.
        spans: the parts that ground the claim, [start, end) in characters.
        held: its status when it is held back itself.
    """

    id: str
    text: str | None
    spans: list[tuple[int, int]]
    held: str | None


class Side(msgspec.Struct, frozen=True):
    """A memory that an operation would change, or that stays: its ref and its words."""

    ref: str
    text: str | None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to decide on.

    Attributes:
        kind: "operation" of a draft, "quarantined", or "claim": pending without a draft.
        id: the draft, or what is held back.
        operation: its number in the draft; this and the next four are None for the other kinds.
        verdict: "waiting", "approved", "denied" or "stale".
        stale: why it cannot be applied any more.
        ref: the ref whose words are decided on; text: these words.
        target: the memory that would change; into: the one that stays.
        codes: why it is held back.
        producers: who produced it; None for who is not known.
    """

    kind: str
    id: str
    operation: int | None
    action: str | None
    verdict: str | None
    attempt: int | None
    critique: str | None
    stale: str | None
    ref: str | None
    text: str | None
    triple: tuple[str, str, str] | None
    target: Side | None
    into: Side | None
    ends_at: datetime | None
    evidence: list[Ground]
    codes: list[str]
    producers: list[str | None]
    since: datetime
    age_s: int
    collection: str


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Operations that were proposed together; waiting of them wait."""

    id: str
    status: str
    made_at: datetime
    deriver: Deriver
    note: str
    waiting: int
    scope: Names
    operations: list[Case]


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """What is held back: why, by whom and since when.

    Attributes:
        id: the ref; head: the revision whose words were held back, to be released by this id.
    """

    id: str
    head: str | None
    type: str
    status: str
    codes: list[str]
    producers: list[str | None]
    since: datetime
    age_s: int
    text: str | None
    scope: Names


class Decision(msgspec.Struct, frozen=True):
    """What became of one operation: "approved", "denied", or "stale" and why."""

    number: int
    verdict: str
    why: str | None


class Waiting(msgspec.Struct, frozen=True):
    """What waits for a decision."""

    items: int
    oldest_at: datetime | None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Who acts, where, and what stands there.

    Attributes:
        can: what the principal may do: read, write, propose, review; the owner everything.
        collections: the collections that it sees, or None for all of the tenant and profile.
        open_loops, due_loops, pins, tasks, briefs: how many there are.
        waiting: for review.
    """

    principal: str
    can: list[str]
    scope: Names
    collections: list[str] | None
    open_loops: int
    due_loops: int
    pins: int
    tasks: int
    briefs: int
    waiting: Waiting
