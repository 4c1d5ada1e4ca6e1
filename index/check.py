"""Comparing the projections with the truth, for ``remem verify``.

Every document of the inverted index must be a revision that may be found, and every such revision
up to the projected entry must have its document; each vector index is checked byte for byte.  In
depth, the inverted index is also checked within itself, posting by posting.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.index import lexcheck, lexical, project
from remem.index.errors import EmbedderMismatch, IndexDamaged
from remem.index.postings import KEY
from remem.objects import lists
from remem.objects.errors import RememError
from remem.objects.forget_plan import ERASED
from remem.objects.scope import maintenance_grant
from remem.objects.tables import Beside, after_prefix

if TYPE_CHECKING:
    from remem.index.dense import Dense
    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader
    from remem.objects.store import Store

MAX_NAMED = 100  # problems that are named for each partition


def check(store: Store, dense: Dense | None = None, *, deep: bool = True) -> dict[str, object]:
    """Check every projection.

    Args:
        store: an open store.
        dense: the dense side whose vectors are checked too, or None.
        deep: every posting too, which takes longer than all the rest.

    Returns:
        {"ok", "deep", "lexical", "partitions": [...], "vectors", "problems": [{"where", "what"}]}.
        An index that is absent or behind is no problem: it is a projection.
    """
    problems: list[dict[str, str]] = []
    partitions: list[dict[str, object]] = []
    state = "present"
    try:
        env = project.open_lexical(store, write=False)
        if env is None:
            state = "absent"
        else:
            # The index first: it may then lag behind the truth, but never be ahead.
            with env.read() as txn, store.read(maintenance_grant()) as reader:
                if project.current_stamp(txn):
                    for part in reader.parts:
                        partitions.append(_part(reader, txn, part, problems, deep))
                    _strangers(reader, txn, problems)
                else:
                    state = "of another version"
    except RememError as error:
        state = "damaged"
        problems.append({"where": "index/terms", "what": str(error)})
    vectors = _vectors(store, dense, problems)
    return {
        "ok": not problems,
        "deep": deep,
        "lexical": state,
        "partitions": partitions,
        "vectors": vectors,
        "problems": problems,
    }


def _part(
    reader: Reader, txn: Txn, part: Part, problems: list[dict[str, str]], deep: bool
) -> dict[str, object]:
    where = f"index/terms part {part.number}"
    at = project.cursor(txn, part.number)
    last = reader.last_seq(part)
    found: list[str] = []
    if at > last:
        found.append(f"it has projected entry {at}, the log ends at {last}")
    expected = 0
    keys = Beside(txn.pairs(KEY, part.prefix, after_prefix(part.prefix)))
    briefs = part.prefix + lists.BRIEF
    opening = Beside(reader.txn.pairs("lists", briefs, after_prefix(briefs)))
    for ref, state in reader.states(part):
        if state.first > at:
            continue
        if state.status == ERASED and state.last <= at:
            for _ in lexical.docs_of_ref(txn, part.number, ref):
                _note(found, f"'{ref.hex()[:10]}' was forgotten, yet it has a document")
        if not project.may_be_found(state) or opening.get(briefs + ref) is not None:
            continue
        for object_id, (seq, _) in sorted(project.revisions_in(reader, part, state)):
            if seq > at:
                continue
            expected += 1
            if keys.get(part.prefix + ref + object_id) is None:
                _note(found, f"'{object_id.hex()[:10]}' has no document")
    documents, _ = lexical.stats(txn, part.number)
    if documents != expected and state_is_settled(reader, part, at):
        _note(found, f"it has {documents} documents, {expected} may be found")
    for finding in lexcheck.check(txn, part.number) if deep else ():
        _note(found, finding)
    problems += [{"where": where, "what": what} for what in found]
    return {"part": part.number, "documents": documents, "projected": at, "entries": last}


def state_is_settled(reader: Reader, part: Part, at: int) -> bool:
    """Whether no entry waits to be projected (what waits may take documents away)."""
    return reader.last_seq(part) == at


def _note(found: list[str], what: str) -> None:
    if len(found) < MAX_NAMED:
        found.append(what)


def _strangers(reader: Reader, txn: Txn, problems: list[dict[str, str]]) -> None:
    """Partitions in the index that the store does not have."""
    own = {part.number for part in reader.parts}
    for number in lexical.parts(txn):
        if number not in own:
            problems.append(
                {"where": f"index/terms part {number}", "what": "the store has no such scope"}
            )


def _vectors(store: Store, dense: Dense | None, problems: list[dict[str, str]]) -> object:
    """Vectors by partition, or why they were not looked at."""
    from remem.index.dense import vector_folder

    with store.read(maintenance_grant()) as reader:
        parts = [p for p in reader.parts if os.path.isdir(vector_folder(store, p.number))]
        if not parts:
            return "absent"
        if dense is None:
            return "not checked: no embedder"
        counts: dict[str, int] = {}
        for part in parts:
            where = f"index/vectors-{part.number}"
            try:
                index = dense.index(store, part)
                found = index.verify()
                numbers = index.ids().tolist()
            except EmbedderMismatch:
                counts[where] = 0  # another embedder made them; reindex makes them anew
                continue
            except IndexDamaged as error:
                problems.append({"where": where, "what": str(error)})
                continue
            except RememError as error:
                counts[where] = 0
                problems.append({"where": where, "what": str(error)})
                continue
            counts[where] = len(numbers)
            for number in numbers:
                what = _homeless(reader, part, number)
                if what:
                    found.append(what)
            problems += [{"where": where, "what": what} for what in found[:MAX_NAMED]]
        return counts


def _homeless(reader: Reader, part: Part, seq: int) -> str:
    """Why a vector should not be there, or an empty string."""
    try:
        entry = reader.entry(part, seq)
    except RememError:
        return f"vector {seq} belongs to no entry of the log"
    # What was forgotten and waits for a purge has its object; its vector goes with the next upkeep.
    if entry.new is None or reader.txn.get("objects", part.prefix + entry.new) is None:
        return f"vector {seq} belongs to an object that is gone"
    return ""
