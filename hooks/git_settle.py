"""What a commit changes in what is known: its earlier form is replaced, what it reverts is closed.

A rewritten commit (amended, rebased) replaces its old form.  A commit that a rebase left out is
closed, if nothing leads to it any more.  A revert closes the commit that it
names, with what was drawn from it alone, from the time of the revert on; the revert of a revert
opens that commit again.  Both leave what somebody has changed by hand since as it is.  What becomes
of a commit becomes of the outline of its changes as well.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from remem.hooks.ingest import Sum
from remem.objects import correct, refs
from remem.objects.admit import admit
from remem.objects.derive.outline import ID_END, KIND
from remem.objects.errors import Refused, RememError, UsageError
from remem.objects.model import Incoming, Observation, Rejected
from remem.objects.reader import Found

if TYPE_CHECKING:
    from typing import Protocol

    from remem.objects.reader import Part
    from remem.objects.tx import Tx

    class Work(Protocol):
        """What was read from git, before it is taken in."""

        records: list[Incoming | Rejected]
        tags: dict[str, list[Incoming]]
        rewrites: list[Rewrite]
        dropped: list[Dropped]


REVERTED = "reverted"  # reason codes
RESTORED = "restored"
DROPPED = "dropped"
COMMIT = "commit"
_ENDS = frozenset(refs.OP_CODE[op] for op in ("supersede", "close"))


class Rewrite(msgspec.Struct, frozen=True):
    """One commit that took the place of another.

    Attributes:
        collection: of its repository.
        uri: source of its repository.
        old: the commit that was rewritten.
        new: the commit that it became.
        at: when, microseconds UTC.
        why: reason code: "amended" or "rebased".
    """

    collection: str
    uri: str
    old: str
    new: str
    at: int
    why: str


class Dropped(msgspec.Struct, frozen=True):
    """A commit that a rebase left out, and that nothing in its repository leads to any more.

    Attributes:
        collection: of its repository.
        uri: source of its repository.
        sha: the commit.
        at: when, microseconds UTC.
    """

    collection: str
    uri: str
    sha: str
    at: int


class Settled(msgspec.Struct):
    """What became of it: the sum of the records, and commits replaced, reverted and dropped."""

    sum: Sum
    rewritten: int = 0
    reverted: int = 0
    dropped: int = 0


def settle(tx: Tx, work: Work, limit_b: int) -> Settled:
    """Take records in, with the tags of commits that are known and the rewrites."""
    done = Settled(Sum())
    for record in work.records:
        done.sum.read += 1
        if isinstance(record, Rejected):
            done.sum.reject(record.where, record.why)
            continue
        done.reverted += _take(tx, record, limit_b, done.sum)
    for tag in (tag for tags in work.tags.values() for tag in tags):
        part = _part(tx, tag)
        if part is not None and _known(tx, part, tag.source_uri, str(tag.meta["commit"])):
            if not _known(tx, part, tag.source_uri, tag.source_id):
                done.sum.read += 1
                _take(tx, tag, limit_b, done.sum)
    later: dict[tuple[str, str], Rewrite] = {}
    for one in reversed(work.rewrites):
        later.setdefault((one.uri, one.old), one)
    for one in work.rewrites:
        done.rewritten += _replace(tx, one, later)
    for gone in work.dropped:
        done.dropped += _drop(tx, gone)
    return done


def reverts(tx: Tx, record: Incoming, ref: bytes) -> int:
    """Close what a commit that has come in reverts, or open what it reverts the revert of.

    An outline that comes in when its commit has ended already ends with it.

    Returns:
        How many commits were closed or opened.
    """
    named = record.meta.get("reverts")
    part = _part(tx, record)
    if part is None:
        return 0
    if record.kind == KIND:
        _join(tx, part, record, ref)
    if record.kind != COMMIT or not isinstance(named, list):
        return 0
    at = tx.present if record.asserted is None else record.asserted
    changed, seen = 0, {ref}
    turned = [(str(sha), True) for sha in named]
    while turned:
        sha, closes = turned.pop()
        found = _find(tx, part, record.source_uri, sha)
        if found is None or found.ref in seen:
            continue
        seen.add(found.ref)
        if closes:
            changed += _close(tx, found, at, REVERTED)
            outline = _find(tx, part, record.source_uri, sha + ID_END)
            if outline is not None:
                _close(tx, outline, at, REVERTED)
        else:
            changed += _open(tx, part, record.source_uri, sha)
            _open(tx, part, record.source_uri, sha + ID_END)
        assert found.state.head is not None
        obj = tx.reader.object(part, found.state.head)
        # What a revert closed opens when the revert is reverted, and so on.
        again = obj.meta.get("reverts") if isinstance(obj, Observation) else None
        if isinstance(again, list):
            turned += [(str(name), not closes) for name in again]
    return changed


def _take(tx: Tx, record: Incoming, limit_b: int, found: Sum) -> int:
    try:
        admitted = admit(tx, record, limit_b=limit_b)
    except (UsageError, Refused) as error:
        if isinstance(error, Refused) and error.refusal is not None:
            tx.refuse(*error.refusal)
        found.reject(record.where, str(error))
        return 0
    if admitted.status == "known":
        found.known += 1
    elif admitted.status == "blocked":
        found.blocked += 1
    else:
        found.new += 1
        return reverts(tx, record, admitted.ref)
    return 0


def _replace(tx: Tx, one: Rewrite, later: dict[tuple[str, str], Rewrite]) -> int:
    """Put the new form of a commit in the place of the old one; a form that is gone is passed."""
    part = _part_of(tx, one.collection)
    if part is None:
        return 0
    old, name = _find(tx, part, one.uri, one.old), one.old
    new, seen = _find(tx, part, one.uri, one.new), {one.old}
    while new is None and one.new not in seen and (one.uri, one.new) in later:
        seen.add(one.new)
        one = later[one.uri, one.new]
        new = _find(tx, part, one.uri, one.new)
    if old is None or new is None or old.ref == new.ref or old.state.replaced_by is not None:
        return 0
    try:
        correct.supersede(tx, old, new.ref, one.at or tx.present, reason=one.why)
    except RememError:  # what takes its place was replaced itself, or is withheld
        return 0
    outline = _find(tx, part, one.uri, name + ID_END)
    if outline is not None and outline.state.replaced_by is None:
        # A new form whose changes name nothing stands for them itself.
        later_outline = _find(tx, part, one.uri, one.new + ID_END) or new
        with suppress(RememError):
            correct.supersede(tx, outline, later_outline.ref, one.at or tx.present, reason=one.why)
    return 1


def _join(tx: Tx, part: Part, record: Incoming, ref: bytes) -> None:
    """End an outline that has come in as its commit has ended."""
    commit = _find(tx, part, record.source_uri, record.source_id.removesuffix(ID_END))
    own = tx.reader.state(part, ref)
    if commit is None or own is None or commit.state.valid_to is None:
        return
    found, at = Found(part, ref, own, None), max(commit.state.valid_to, own.starts + 1)
    reason = _why(tx, part, commit.state)
    with suppress(RememError):
        if commit.state.replaced_by is not None:
            correct.supersede(tx, found, commit.state.replaced_by, at, reason=reason)
        elif commit.state.flags & refs.CLOSED:
            correct.close(tx, found, at, reason=reason)


def _why(tx: Tx, part: Part, state: refs.RefState) -> str:
    """The reason code with which a ref ended; one that names an operation taken back is passed."""
    tx.flush()
    ended = (e.reason for e in tx.reader.entries(part, state) if e.op in _ENDS)
    return next((reason for reason in ended if not reason.startswith(refs.UNDO)), "")


def _drop(tx: Tx, gone: Dropped) -> int:
    """Close a commit that was left out, with its outline."""
    part = _part_of(tx, gone.collection)
    found = None if part is None else _find(tx, part, gone.uri, gone.sha)
    if part is None or found is None:
        return 0
    at = gone.at or tx.present
    outline = _find(tx, part, gone.uri, gone.sha + ID_END)
    if outline is not None:
        _close(tx, outline, at, DROPPED)
    return _close(tx, found, at, DROPPED)


def _close(tx: Tx, found: Found, at: int, reason: str) -> int:
    state = found.state
    if state.flags & refs.CLOSED or state.replaced_by is not None:
        return 0
    # Commits have whole seconds: one may be reverted in the second in which it was made.
    at = max(at, state.starts + 1)
    try:
        correct.close(tx, found, at, reason=reason)
    except RememError:  # it has ended by then, or it is withheld
        return 0
    return 1


def _open(tx: Tx, part: Part, uri: str, sha: str) -> int:
    found = _find(tx, part, uri, sha)
    if found is None or not found.state.flags & refs.CLOSED:
        return 0
    tx.flush()
    last = next(e for e in tx.reader.entries(part, found.state) if refs.OPS[e.op] == "close")
    if last.reason != REVERTED:
        return 0  # somebody else closed it
    try:
        correct.reopen(tx, found, reason=RESTORED)
    except RememError:
        return 0
    return 1


def _find(tx: Tx, part: Part, uri: str, name: str) -> Found | None:
    """The observation that came in under a source's id, as it is now."""
    ref = _known(tx, part, uri, name)
    state = None if ref is None else tx.reader.state(part, ref)
    if ref is None or state is None or state.head is None:
        return None
    if tx.reader.erased(part, ref) is not None:
        return None
    return Found(part, ref, state, None)


def _known(tx: Tx, part: Part, uri: str, name: str) -> bytes | None:
    return tx.txn.get("sources", part.source_key(uri, name))


def _part(tx: Tx, record: Incoming) -> Part | None:
    return _part_of(tx, record.collection)


def _part_of(tx: Tx, collection: str | None) -> Part | None:
    """The partition of a collection, if anything was ever written to it."""
    scope = tx.place(collection, None, None)
    names = (scope.tenant, scope.profile, scope.collection)
    for part in tx.reader.parts:
        if (part.tenant, part.profile, part.collection) == names:
            return part
    return None
