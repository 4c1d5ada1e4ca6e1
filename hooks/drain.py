"""Draining the spool: what shells and other hooks appended becomes evidence, each line once.

How far a file was taken in is written in the transaction that takes its lines in, so a process that
dies anywhere neither repeats nor loses one; each line has an id of its own besides.  What was taken
in is then overwritten in the file, and the file goes when its session has ended.

Source: remem-store(5), SPOOL.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from remem.hooks import glance, spool
from remem.hooks.commands import give_name, look
from remem.hooks.identity import collection_of
from remem.objects.admit import DEFAULT_LIMIT_B, admit
from remem.objects.errors import Refused, RememError, StoreLocked, UsageError
from remem.objects.lock import hold
from remem.objects.model import Incoming, Scope
from remem.objects.scope import (
    DEFAULT_COLLECTION,
    DEFAULT_SESSION,
    Actor,
    maintenance_grant,
    owner_grant,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

    from remem.hooks.ignore import Ignore
    from remem.objects.store import Store
    from remem.objects.tx import Tx

LOCK = "drain"
AGENT = "shell"  # agent of the scope of what a shell captured
KIND = "command"
STEP_B = 4 << 20  # bytes of a file in one transaction
STEP_LINES = 20_000  # lines of all files in one transaction, roughly
SLICE_B = 16 << 10  # the same where others of the process wait for the lock in between
SLICE_LINES = 100
QUIET_S = 2.0  # a file of a process that is gone is removed after so many seconds of rest
DETACHED = 40  # hex digits from which on a head is a commit


class Drained(msgspec.Struct):
    """What became of the spool: read = new + known + blocked + skipped + rejected.

    Attributes:
        read: commands and events, with those that the shell only counted.
        skipped: those that were not kept because a rule says so, by reason.
        rejected: those that the store refused (too large, no text).
        damaged: lines that could not be read.
        removed: files of sessions that ended.
        left: whether more waits (the budget was used up, or another process was at it).
        troubles: why something waits that could not be taken in now.
    """

    read: int = 0
    new: int = 0
    known: int = 0
    blocked: int = 0
    rejected: int = 0
    damaged: int = 0
    removed: int = 0
    skipped: dict[str, int] = {}
    left: bool = False
    troubles: list[str] = []

    def add(self, other: Drained) -> None:
        """Add the counts of another."""
        for name in ("read", "new", "known", "blocked", "rejected", "damaged", "removed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for reason, count in other.skipped.items():
            self.skipped[reason] = self.skipped.get(reason, 0) + count
        self.left |= other.left
        self.troubles = [*self.troubles, *other.troubles]


class Rules(msgspec.Struct, frozen=True):
    """How lines become evidence.

    Attributes:
        ignore: the ignore files.
        collection: collection of everything, or "" for that of the folder of each command.
        limit_b: largest text, bytes.
        known: collections of folders, as they were found.
    """

    ignore: Ignore
    collection: str = ""
    limit_b: int = DEFAULT_LIMIT_B
    known: dict[str, str] = {}

    def collection_in(self, folder: str) -> str:
        """The collection of what happened in a folder."""
        if self.collection:
            return self.collection
        found = self.known.get(folder)
        if found is None:
            found = self.known[folder] = collection_of(folder)[0]
        return found


def actor_for(tenant: str, profile: str) -> Actor:
    """Who takes the spool in: the owner, through hooks, in every collection."""
    scope = Scope(tenant, profile, DEFAULT_COLLECTION, AGENT, DEFAULT_SESSION)
    grant = msgspec.structs.replace(owner_grant(scope), collections=None)
    return Actor(grant, "hook", scope)


def drain(
    store: Store,
    actor: Actor,
    rules: Rules,
    *,
    wait_s: float = 30.0,
    budget_s: float | None = None,
    scratch: Sequence[str] = (),
    progress: Callable[[str, int, int], None] | None = None,
    dry_run: bool = False,
) -> Drained:
    """Take the spool in.

    Args:
        store: open for writing.
        actor: as `actor_for` makes it.
        rules: how lines become evidence.
        wait_s: how long to wait for another drain.
        budget_s: stop after about so many seconds.
        scratch: folders in which shells that ended may have left a file to read history through.
        progress: called with (what, bytes done, of).
        dry_run: the store keeps nothing, so the spool is left as it is.

    Raises:
        StoreLocked: another process is draining.
    """
    if dry_run:
        return _drain(store, actor, rules, budget_s, progress, None, keep=True)
    with hold(store.locks_path, LOCK, wait_s=wait_s):
        total = _drain(store, actor, rules, budget_s, progress, None)
        spool.sweep_scratch((*scratch, spool.folder(store.root)))
        return total


def drain_soon(
    store: Store,
    actor: Actor,
    rules: Rules,
    *,
    patience_s: float = 0.2,
    budget_s: float = 1.0,
    also: Callable[[float], Drained] | None = None,
) -> Drained | None:
    """Take the spool in unless another process is writing to the store.

    It is done in a child of this process, since nothing can wait for LMDB's lock for a while only;
    so this is for a process with one thread.

    Args:
        store: open for writing.
        actor: as `actor_for` makes it.
        rules: how lines become evidence.
        patience_s: how long to wait for the other one.
        budget_s: stop after about so many seconds.
        also: takes in what other hooks left, once the store turned out to be free, in so many
            seconds.

    Returns:
        What was done; None when nothing was, because the store was in use or would not take it.
    """
    read_end, write_end = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(read_end)
        os.close(write_end)
        return None
    if not child:
        _in_child(store, actor, rules, budget_s, also, write_end)
    os.close(write_end)
    with open(read_end, "rb") as answer:
        begun = bool(select.select([answer], [], [], patience_s)[0])
        if not begun:
            os.kill(child, signal.SIGKILL)  # it waits for the lock; it has changed nothing
        data = answer.read()
    os.waitpid(child, 0)
    return msgspec.msgpack.decode(data[1:], type=Drained) if begun and len(data) > 1 else None


def drain_beside(
    store: Store, actor: Actor, rules: Rules, *, proceed: Callable[[], bool]
) -> Drained | None:
    """Take the spool in by small transactions, in a thread beside others of this process.

    Args:
        store: open for writing.
        actor: as `actor_for` makes it.
        rules: how lines become evidence.
        proceed: asked between two transactions; stop when it says no.

    Returns:
        What was done; None when another process is draining.
    """
    try:
        with hold(store.locks_path, LOCK):
            return _drain(store, actor, rules, None, None, None, proceed=proceed)
    except StoreLocked:
        return None


def _in_child(
    store: Store,
    actor: Actor,
    rules: Rules,
    budget_s: float,
    also: Callable[[float], Drained] | None,
    write_end: int,
) -> NoReturn:
    """Drain in a process of its own, which can wait for the lock of LMDB and be ended meanwhile."""
    try:
        with open(os.devnull, "r+b") as null:
            for number in (0, 1, 2):
                os.dup2(null.fileno(), number)

        begun: list[bool] = []

        def begin() -> None:
            if not begun:
                begun.append(True)
                os.write(write_end, b"!")

        # What goes wrong here is told to whoever drains on purpose; nothing is lost meanwhile.
        with suppress(RememError, OSError), hold(store.locks_path, LOCK):
            began = time.monotonic()
            done = _drain(store, actor, rules, budget_s, None, begin)
            if also is not None and not done.left:
                done.add(also(max(0.0, budget_s - (time.monotonic() - began))))
            with open(write_end, "wb") as stream:
                stream.write(msgspec.msgpack.encode(done))
    finally:
        os._exit(0)


def _drain(
    store: Store,
    actor: Actor,
    rules: Rules,
    budget_s: float | None,
    progress: Callable[[str, int, int], None] | None,
    begin: Callable[[], None] | None,
    *,
    keep: bool = False,
    proceed: Callable[[], bool] | None = None,
) -> Drained:
    deadline = None if budget_s is None else time.monotonic() + budget_s
    step = (STEP_B, STEP_LINES) if proceed is None else (SLICE_B, SLICE_LINES)
    total = Drained()
    blanked: dict[str, int] = {}
    size_b = sum(file.size_b for file in spool.files(store.root)) if progress else 0
    done_b = 0
    while True:
        found = spool.files(store.root)
        part, ends = store.write(actor, lambda tx, f=found: _take(tx, f, rules, begin, step))  # type: ignore[misc]
        total.add(part)
        for file, end in ends.items() if not keep else ():
            with suppress(FileNotFoundError):
                spool.blank(file, end, start=blanked.get(file, 0))
                blanked[file] = end
        late = deadline is not None and time.monotonic() >= deadline
        if part.left and (late or (proceed is not None and not proceed())):
            total.left = True
            return total
        if progress is not None:
            done_b = min(size_b, done_b + STEP_B)
            progress("taking the spool in", done_b, size_b)
        if not part.left:
            total.left = False  # it was, after the steps before
            total.removed = 0 if keep else _remove(store, actor)
            return total


# -- lines to evidence --------------------------------------------------------------------------


def _take(
    tx: Tx,
    found: list[spool.File],
    rules: Rules,
    begin: Callable[[], None] | None,
    step: tuple[int, int],
) -> tuple[Drained, dict[str, int]]:
    """Take in what waits, up to a bound; also the ends by path of what was taken in.

    Args:
        tx: transaction.
        found: files of the spool.
        rules: how lines become evidence.
        begin: called before anything is changed.
        step: bytes of a file, and lines of all files, after which it is enough.
    """
    if begin is not None:
        begin()
    total = Drained()
    ends: dict[str, int] = {}
    batch: list[tuple[int, int, spool.File, spool.Line]] = []
    for number, (file, start) in enumerate(spool.waiting(tx.txn, found)):
        if len(batch) >= step[1]:
            total.left = True
            break
        try:
            piece = spool.read(file, start, step[0])
        except OSError:
            continue  # removed meanwhile, or not to be read: doctor tells of permissions
        batch += [(line.at, number, file, line) for line in piece.lines]
        _skip(tx, total, "damaged", piece.damaged)
        total.damaged += piece.damaged
        total.left |= piece.end < file.size_b and piece.end > start
        spool.set_cursor(tx.txn, file.name, piece.end)
        ends[file.path] = piece.end
    batch.sort(key=lambda item: item[:2])  # within a file the order stays
    for _, _, file, line in batch:
        total.read += 1
        _take_line(tx, total, file, line, rules)
    return total, ends


def _take_line(tx: Tx, total: Drained, file: spool.File, line: spool.Line, rules: Rules) -> None:
    if line.skip is not None:
        _skip(tx, total, line.skip, 1)
        return
    name = ""
    try:
        if line.event is not None:
            record = msgspec.convert(line.event, Incoming)
        else:
            if rules.ignore.command(line.cwd or "/", line.cmd or ""):
                _skip(tx, total, "ignored", 1)
                return
            record = command(file, line, rules.collection_in(line.cwd or "/"))
            name, imported = look(tx, record)
            if imported:
                total.known += 1
                return
        admitted = admit(tx, record, limit_b=rules.limit_b)
        status = admitted.status
        if status == "new":
            give_name(tx, record, name, admitted.ref)
    except (UsageError, Refused, msgspec.ValidationError) as error:
        refusal = error.refusal if isinstance(error, Refused) else None
        if refusal is not None:
            tx.refuse(*refusal)
        total.rejected += 1
        return
    if status == "new":
        total.new += 1
    elif status == "known":
        total.known += 1
    else:
        total.blocked += 1


def _skip(tx: Tx, total: Drained, reason: str, count: int) -> None:
    if count:
        spool.add_skipped(tx.txn, reason, count)
        if reason != "damaged":  # those were never read
            total.skipped[reason] = total.skipped.get(reason, 0) + count


def command(file: spool.File, line: spool.Line, collection: str) -> Incoming:
    """A command that ran, as evidence: what was typed, when, and what came of it.

    Args:
        file: file of the spool it stands in.
        line: its line.
        collection: where it belongs.
    """
    text, raw = (line.cmd or "").rstrip("\n"), None
    if not text.isprintable() and (shown := _shown(text)) != text:
        raw = text.encode("utf-8", "surrogateescape")  # bytes that are no UTF-8
        text = shown
    meta: dict[str, object] = {}
    if line.exit is not None:
        meta["exit"] = line.exit
    if line.took is not None and line.took >= 0:  # a clock may have been set back
        meta["duration"] = line.took / 1_000_000
    if line.cwd:
        meta["cwd"] = _shown(line.cwd)
    if line.head:
        name = "commit" if _is_commit(line.head) else "branch"
        meta[name] = _shown(line.head)
    meta["shell"] = file.shell
    if line.tty:
        meta["tty"] = _shown(line.tty)
    session = file.session
    return Incoming(
        text=text,
        raw=raw,
        asserted=line.at,
        offset=_offset(line.at),
        role="user",
        origin="owner",
        collection=collection,
        agent=AGENT,
        session=session,
        source_uri=f"shell:{session}",
        source_id=str(line.seq),
        tool=file.shell,
        kind=KIND,
        meta=meta,
        where=f"{file.name}:{line.seq}",
    )


def _is_commit(head: str) -> bool:
    return len(head) >= DETACHED and all(c in "0123456789abcdef" for c in head)


def _shown(path: str) -> str:
    if path.isascii():
        return path
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _offset(at: int) -> int:
    """Minutes east of UTC here at a time."""
    try:
        return time.localtime(at // 1_000_000).tm_gmtoff // 60
    except (OverflowError, ValueError, OSError):
        return 0


# -- files that are done with -------------------------------------------------------------------


def _remove(store: Store, actor: Actor) -> int:
    """Remove files that were taken in whole and to which nobody appends any more.

    The row goes before the file: a file without a row is read from its beginning, which is blank.
    """
    found = spool.files(store.root)
    with store.read(maintenance_grant()) as reader:
        named = spool.cursors(reader.txn)
        done = [
            file
            for file in spool.finished(found)
            if spool.cursor(reader.txn, file.name) == file.size_b and _rests(file.path)
        ]
    lost = named - {file.name for file in found}
    if not done and not lost:
        return 0
    for file in done:
        with suppress(FileNotFoundError):
            spool.blank(file.path, file.size_b, sync=True)

    def forget(tx: Tx) -> None:
        for name in (*lost, *(file.name for file in done)):
            tx.txn.delete("meta", glance.CURSOR + name.encode())

    store.write(actor, forget)
    removed = 0
    for file in done:
        with suppress(OSError):
            if os.path.getsize(file.path) == file.size_b:
                os.unlink(file.path)
                removed += 1
    return removed


def _rests(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime >= QUIET_S
    except OSError:
        return False
