"""Purging end to end: projections, the next generation, the switch, and the proof.

What waits is gathered first; then its vectors are zeroed and the inverted index is brought up, so
that it has let go of it; both go over to the new generation without it, and the canonical
environment follows (`remem.objects.purge`).  Until the switch nothing is lost, after it everything
that was to go is gone from every file that the store will read again; removing the left files and
the proof (`remem.index.proof`) come last.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import msgspec

from remem.index import lexical, project, proof, seal, spooled
from remem.index.proof import Proof
from remem.objects import backup, kv, purge, refs, signing
from remem.objects import format as fmt
from remem.objects.errors import NotFound, RememError, StoreError
from remem.objects.lock import hold
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.backup import Backup
    from remem.objects.forget_plan import Item
    from remem.objects.scope import Actor
    from remem.objects.store import Store

    Say = Callable[[str, int, int], None]

LOCK = "purge"
WAIT_S = 60.0  # for another purge, or for whoever projects
STEPS = 5


class Purged(msgspec.Struct):
    """What a purge did.

    Attributes:
        refs: those whose bytes were removed (a dry run: would be).
        observations: how many of them are observations.
        memories: how many are memories.
        objects: objects removed.
        vectors: vectors removed.
        spool_lines: lines of the spool that said the same and were blanked.
        generation: the generation in force afterwards.
        left: folders of generations that were removed.
        finished: an earlier purge was interrupted, and this one finished it.
        held: refs that wait and are kept by a hold.
        backups: copies of the store that still hold some of it, each with how many refs.
        proof: what was looked through, or None when nothing was removed.
        seconds: how long it took.
    """

    refs: list[bytes] = []
    observations: int = 0
    memories: int = 0
    objects: int = 0
    vectors: int = 0
    spool_lines: int = 0
    generation: int = 0
    left: list[str] = []
    finished: bool = False
    held: list[bytes] = []
    backups: list[tuple[Backup, int]] = []
    proof: Proof | None = None
    seconds: float = 0.0


def run(
    store: Store,
    actor: Actor,
    *,
    only: set[bytes] | None = None,
    dry_run: bool = False,
    progress: Say | None = None,
) -> Purged:
    """Remove the bytes of what was forgotten, and prove it.

    Args:
        store: an open store.
        actor: the owner.
        only: these refs and what was derived from them, or None for all that wait.
        dry_run: say what would be removed, change nothing.
        progress: called with (what, done, of).

    Returns:
        The report; findings in its proof are an integrity failure.

    Raises:
        SignatureNeeded: the store is protected and the actor brings no key; what waits goes on
            waiting.
        StoreLocked: another purge, or a projector, kept its lock; nothing was removed.
        NotFound: one of ``only`` does not wait for a purge.
    """
    began = time.monotonic()
    say = progress or (lambda what, done, of: None)
    with hold(store.locks_path, LOCK, wait_s=WAIT_S):
        report, items = _look(store, only)
        if not dry_run:
            _refuse_unsigned(store, actor, items)
            earlier = purge.leftover(store)
            report.finished = bool(purge.others(store.root))
            try:
                removed = _remove(store, actor, items, report, say)
            except BaseException:
                purge.sweep(store.root, unfinished=True)
                raise
            report.left = purge.sweep(store.root)
            earlier.objects += removed.objects
            if earlier.objects:
                report.spool_lines = spooled.blank(store.root, earlier.objects)
                say("looking for what is left", STEPS - 1, STEPS)
                report.proof = proof.prove(store, earlier.objects)
            report.backups = _backups(store, [*earlier.refs, *removed.refs])
            say("done", STEPS, STEPS)
    report.seconds = time.monotonic() - began
    return report


def _refuse_unsigned(store: Store, actor: Actor, items: list[Item]) -> None:
    """Refuse at once what the transaction at the end would refuse: nobody is there to sign it."""
    if items and actor.signer is None:
        store.write(actor, lambda tx: signing.require(tx, "purge", *items[0]))


def _look(store: Store, only: set[bytes] | None) -> tuple[Purged, list[Item]]:
    """What waits, without what is held."""
    report = Purged(generation=store.generation)
    with store.read(maintenance_grant()) as reader:
        items = purge.waiting(reader)
        if only is not None:
            missing = only - {ref for _, ref in items}
            if missing:
                raise NotFound(f"'{min(missing).hex()[:10]}' does not wait for a purge")
            items = purge.with_derived(reader, items, only)
        held = purge.held_back(reader, items)
        report.held = [ref for _, ref in held]
        items = [item for item in items if item not in held]
        for part, ref in items:
            state = reader.state(part, ref)
            memory = state is not None and state.type == refs.MEMORY
            report.memories += memory
            report.observations += state is not None and state.type == refs.OBSERVATION
        report.refs = [ref for _, ref in items]
    return report, items


def _remove(
    store: Store,
    actor: Actor,
    items: list[Item],
    report: Purged,
    say: Say,
) -> purge.Removed:
    """Write the next generation without the bytes of these refs."""
    if not items:
        return purge.Removed()
    with store.read(maintenance_grant()) as reader:
        removed = purge.gather(reader, items)
    report.objects = len(removed.objects)
    say("removing vectors", 0, STEPS)
    with hold(store.locks_path, project.LOCK, wait_s=WAIT_S):
        report.vectors = _drop_vectors(store, removed.numbers)
    say("projecting", 1, STEPS)
    try:
        project.project(store, wait_s=WAIT_S)
    except RememError:  # damaged: the next reader builds it anew
        with hold(store.locks_path, project.LOCK, wait_s=WAIT_S):
            project.drop_lexical(store)
    with hold(store.locks_path, project.LOCK, wait_s=WAIT_S):
        say("copying the indexes", 2, STEPS)
        _projections(store, store.generation + 1)
        say("compacting", 3, STEPS)
        report.generation, done = purge.next_generation(store, actor, items)
    purged = set(done)
    report.refs = [ref for ref in report.refs if ref in purged]
    return removed


def _drop_vectors(store: Store, numbers: dict[int, list[int]]) -> int:
    """Take vectors out; a vector index that cannot be opened goes as a whole."""
    from remem.index.dense import vector_folder

    dropped = 0
    for part, wanted in numbers.items():
        folder = vector_folder(store, part)
        if not os.path.isdir(folder):
            continue
        try:
            from remem.index import vecfile
            from remem.index.vectors import VectorIndex

            raw = vecfile.read_head(folder)
            if raw is None:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            head = vecfile.decode(raw, folder)
            index = VectorIndex(folder, name=head.name, dim=head.dim, digest=head.digest)
            dropped += index.remove(wanted)
            index.compact()
        except (RememError, ImportError):
            shutil.rmtree(folder, ignore_errors=True)
    return dropped


def _projections(store: Store, number: int) -> None:
    """Put the projections of a new generation in place: copies of what lives."""
    old = store.index_path
    new = os.path.join(store.root, fmt.INDEX, f"g{number}")
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new, mode=0o700)
    if not os.path.isdir(old):
        return
    for name in os.listdir(old):
        if name.startswith("vectors-"):
            target = os.path.join(new, name)
            os.mkdir(target, 0o700)
            for file in os.listdir(os.path.join(old, name)):
                source = os.path.join(old, name, file)
                try:
                    os.link(source, os.path.join(target, file))
                except OSError:
                    shutil.copy2(source, os.path.join(target, file))
    path = os.path.join(new, project.LEXICAL)
    try:
        _copy_lexical(store, path)
    except RememError:  # damaged: the next reader builds it anew
        kv.forget_env(path)
        shutil.rmtree(path, ignore_errors=True)


def _copy_lexical(store: Store, path: str) -> None:
    env = project.open_lexical(store, write=False)
    if env is None:
        return
    with seal.writing(path):
        fresh = kv.open_env(path, lexical.TABLES, create=True, sync=False)
        try:
            with env.read() as txn:
                for table in lexical.TABLES:
                    purge.copy_table(txn, fresh, table)
        finally:
            kv.forget_env(path)


def _backups(store: Store, gone: list[tuple[int, bytes]]) -> list[tuple[Backup, int]]:
    """Copies made while the bytes of these refs were there, and how many refs each holds."""
    try:
        copies = backup.backups(store.root)
    except StoreError:
        return []
    if not copies or not gone:
        return []
    wanted = set(gone)
    made: dict[tuple[int, bytes], int] = {}
    with store.read(maintenance_grant()) as reader:
        for number, _, row in reader.audit_rows():
            key = (row.part, row.resource)
            if key in wanted and key not in made and row.entry:
                made[key] = number
                if len(made) == len(wanted):
                    break
    counts = [(copy, sum(copy.rows >= row for row in made.values())) for copy in copies]
    return [(copy, count) for copy, count in counts if count]
