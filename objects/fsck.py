"""What ``remem verify`` runs: everything in the store that can be computed again, compared.

It reads one snapshot, writes nothing, names every place that does not hold and never stops at the
first.  Memory does not grow with the store: tables are read in order, side by side.

What it cannot tell by itself: a chain that was rewritten as a whole by someone who can write the
files holds in itself.  Only a checkpoint kept elsewhere shows that (`remem.objects.checkpoint`).

Source: remem-store(5), VERIFYING.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from remem.objects import format as fmt
from remem.objects import kv, mdbfile
from remem.objects.errors import IntegrityError, StoreCorrupt
from remem.objects.findings import Findings, Problem, Report
from remem.objects.fsck_log import LogCheck, check_chain
from remem.objects.fsck_objects import ObjectCheck, check_lanes, check_parts
from remem.objects.fsck_review import check_review
from remem.objects.reader import Reader
from remem.objects.scope import maintenance_grant
from remem.objects.store import canon_path, read_generation

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.kv import Txn
    from remem.objects.reader import Part
    from remem.objects.store import Store

__all__ = ["Problem", "Report", "verify"]

_CHAIN_TABLES = frozenset(("meta", "audit"))
_LOG_TABLES = frozenset(("parts", "log", "heads", "refs", "revs", "replaces", "tombs", "signs"))
_ATTESTED_TABLES = frozenset(("receipts", "aliases"))
_OBJECT_TABLES = frozenset(fmt.TABLES) - _CHAIN_TABLES - _LOG_TABLES


def verify(
    store: Store,
    *,
    fast: bool = False,
    objects: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
    index_check: Callable[[Reader], dict[str, object]] | None = None,
    also: Callable[[Txn, int, Findings], None] | None = None,
) -> Report:
    """Check a store against its format.

    Args:
        store: opened with ``readonly=True`` where not even missing tables are to be made.
        fast: walk the audit chain only.
        objects: read the objects and what points at them.
        progress: told (phase, done, total) now and then; phases are "audit" and "objects".
        index_check: checks the projections against the reader it is given; what it returns is the
            report's ``index``.  A list of problems or {"where", "what"} under its key "problems"
            joins the report's own.
        also: compares the snapshot, whose generation it is told, with what was kept elsewhere
            (`remem.objects.checkpoint.compare`).

    Returns:
        The report; damage never raises.

    Raises:
        RememError: the store cannot be opened for a reason that is no damage (it belongs to
            another user, every reader slot is taken).
    """
    report = Report(fast=fast)
    found = Findings(report, progress)
    root = store.root
    found.guard("FORMAT", root, lambda: fmt.check_format(root))
    found.guard("GENERATION", root, lambda: _check_generations(root, found))
    found.guard("modes", root, lambda: _check_modes(root, found))
    if not report.problems:
        found.guard("canon", root, lambda: _refuse_damaged(root))
    if not report.problems and _opens(store, found):
        asked = (index_check, also)
        found.guard("canon", root, lambda: _check_tables(store, found, fast, objects, *asked))
    report.ok = not report.problems
    return report


def _opens(store: Store, found: Findings) -> bool:
    """True when the canonical environment opens; that it is damaged is a problem."""
    try:
        with store.env().read():
            return True
    except (StoreCorrupt, IntegrityError) as error:
        found.problem("canon", str(error))
        return False


def _check_tables(
    store: Store,
    found: Findings,
    fast: bool,
    objects: bool,
    index_check: Callable[[Reader], dict[str, object]] | None,
    also: Callable[[Txn, int, Findings], None] | None,
) -> None:
    env = store.env()
    path, generation = env.path, store.generation
    with env.read() as txn:
        damaged: set[str] = set()
        wanted = _CHAIN_TABLES if fast else None
        found.guard("canon", path, lambda: damaged.update(_check_pages(path, found, wanted)))
        if mdbfile.MAIN in damaged or damaged & _CHAIN_TABLES:
            return
        if also is not None:
            found.guard("checkpoint", path, lambda: also(txn, generation, found))
        if fast or damaged & _LOG_TABLES:
            found.guard("table audit", path, lambda: check_chain(txn, found, None))
            return
        parts: dict[int, Part] = {}
        found.guard("table parts", path, lambda: parts.update(check_parts(txn, found)))
        rows = not damaged & _ATTESTED_TABLES
        log = LogCheck(txn, found, parts, heads="objects" not in damaged, rows=rows)
        found.guard("table audit", path, lambda: check_chain(txn, found, log))
        found.guard("table log", path, log.finish)
        if objects and not damaged & _OBJECT_TABLES:
            found.guard("table lanes", path, lambda: check_lanes(txn, found))
            check = ObjectCheck(txn, found, parts, log.folds, log.attests)
            found.guard("table objects", path, check.run)
            found.guard("table cites", path, check.check_pointers)
            found.guard("table chains", path, check.check_lookups)
            found.guard("table tombs", path, check.check_tombstones)
            found.guard("table waits", path, lambda: check_review(txn, found, parts))
            log.attests.warn()
        if index_check is not None and not damaged:
            found.guard("index", path, lambda: _ask_index(txn, found, index_check))


def _check_pages(path: str, found: Findings, only: frozenset[str] | None) -> set[str]:
    """Names of the tables with damaged pages; to read those could end the process."""
    damaged: set[str] = set()
    for table, what in mdbfile.damage(os.path.join(path, "data.mdb"), only):
        damaged.add(table)
        found.problem(f"table {table}", what)
    return damaged


def _ask_index(
    txn: Txn, found: Findings, index_check: Callable[[Reader], dict[str, object]]
) -> None:
    answer = dict(index_check(Reader(txn, maintenance_grant())))
    listed = answer.pop("problems", [])
    found.report.index = answer
    for item in listed if isinstance(listed, list) else [listed]:
        if isinstance(item, Problem):
            found.problem(item.where, item.what)
        elif isinstance(item, dict):
            found.problem(str(item.get("where", "index")), str(item.get("what", "")))
        else:
            found.problem("index", str(item))


# -- files ------------------------------------------------------------------------------------


def _check_generations(root: str, found: Findings) -> None:
    """The present generation is there; folders of others are left-overs."""
    number = read_generation(root)
    for base in (fmt.CANON, fmt.INDEX):
        folder = os.path.join(root, base)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            left = name[:1] == "g" and name[1:].isdigit() and int(name[1:]) < number
            if left and os.path.exists(os.path.join(canon_path(root, number), "data.mdb")):
                found.warn(f"{base}/{name}", "it is of a generation that was left")


def _check_modes(root: str, found: Findings) -> None:
    """Nobody but the owner may read folders and files."""
    pending = [root]
    while pending:
        path = pending.pop()
        name = os.path.relpath(path, root)
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                with os.scandir(path) as items:
                    pending.extend(sorted((item.path for item in items), reverse=True))
        except FileNotFoundError:  # the store is in use: a spool file was drained, say
            continue
        except OSError:
            found.warn(name, "it cannot be read")
            continue
        if stat.S_IMODE(mode) & 0o077 and not stat.S_ISLNK(mode):
            wanted = "0700" if stat.S_ISDIR(mode) else "0600"
            what = f"others may use it (mode {stat.S_IMODE(mode):04o}, it should be {wanted})"
            found.warn(name, what)


def _refuse_damaged(root: str) -> None:
    """Raise when to open the data file could end the process."""
    path = os.path.join(canon_path(root, read_generation(root)), "data.mdb")
    try:
        why = mdbfile.top_damage(path)
    except OSError as error:
        raise kv.translate(error, path) from error
    if why:
        raise StoreCorrupt(f"'{path}' cannot be read: {why}")
