"""remem status: counts, queues, lags and sizes.  What cannot be told is "unknown", never 0."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli import describe, reminder, spool_state, standing, times
from remem.cli.plain import one_line, visible
from remem.cli.reading import cache_dir, known_scope
from remem.cli.render import plain_lines
from remem.objects import format as fmt
from remem.objects import refs, tombs
from remem.objects.errors import RememError, StoreMissing

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.cli.context import Context
    from remem.cli.describe import Json
    from remem.objects.reader import Part, Reader
    from remem.objects.scope import Grant
    from remem.objects.store import Store

UNKNOWN = "unknown"
_SUMMED = (
    "sessions",
    "refs",
    "closed",
    "superseded",
    "forgotten",
    "waiting_for_purge",
    "held",
)
_OF_STORE = (
    "counts",
    "tiers",
    "waiting",
    "audit",
    "index",
    "generation",
    "format",
    "sizes",
    "spool",
    "readers",
    "consolidation",
)


def run(context: Context, *, all_collections: bool) -> int:
    """Print the state of the store as the granted scope sees it."""
    collection, origin = context.collection()
    value: Json = {
        "store": context.root,
        "exists": True,
        "scope": describe.scope(context.scope()),
        "collection_from": origin,
        "embedder": _embedder(context),
    }
    grant = context.grant(all_collections=all_collections)
    try:
        store = context.store(readonly=True)
    except StoreMissing:
        value |= dict.fromkeys(_OF_STORE, UNKNOWN) | {"exists": False, "collections": []}
        _say(context, value, collection)
        return 0
    with store.read(grant) as reader:
        found = [_count(reader, part) for part in reader.parts]
        value["counts"] = _sum(found)
        value["collections"] = found
        value["audit"] = _audit(reader)
        value["tiers"] = standing.count(reader)
        value["waiting"] = reminder.counts(reader)
        stale = standing.stale_rate(reader)
        ahead = times.ahead(reader.txn)
    value["index"] = {
        "lag": _of_owner(grant, lambda: _lag(store, context, all_collections)),
        "vectors": _of_owner(grant, lambda: _vectors(store, context)),
        "stale_rate": stale,
    }
    value["generation"] = _of_owner(grant, lambda: store.generation)
    value["format"] = fmt.FORMAT_VERSION
    value["sizes"] = _of_owner(grant, lambda: _sizes(store))
    value["spool"] = _of_owner(grant, lambda: spool_state.value(store))
    value["readers"] = _of_owner(grant, lambda: _readers(store))
    value["consolidation"] = _of_owner(grant, lambda: standing.slept(store))
    known_scope(context, store, all_collections=all_collections)
    _say(context, value, collection)
    if ahead:
        context.note(ahead)
    return 0


def folder_bytes(path: str) -> tuple[int, int]:
    """Number and bytes of the files below a folder; a missing one has none."""
    count = size_b = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                size_b += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue  # removed by another process meanwhile
            count += 1
    return count, size_b


def human(size_b: int) -> str:
    """A size for people: "1.5 MiB"."""
    size = float(size_b)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("the last unit takes every size")


# -- what is told -------------------------------------------------------------------------------


def _told(ask: Callable[[], object]) -> object:
    """An answer, or "unknown" where it cannot be had."""
    try:
        return ask()
    except (RememError, OSError):
        return UNKNOWN


def _of_owner(grant: Grant, ask: Callable[[], object]) -> object:
    """What is told of the store as a whole: of other scopes too, so to its owner alone."""
    return _told(ask) if grant.owner else UNKNOWN


def _embedder(context: Context) -> Json:
    from remem.index.embed import available

    spec = context.settings.text("embedder")
    there, reason = available(spec)
    return {"setting": spec, "available": there, "reason": reason}


def _count(reader: Reader, part: Part) -> Json:
    """Refs of one partition by type and status."""
    counts: dict[tuple[int, int], int] = {}
    closed = superseded = held = 0
    for _, state in reader.states(part):
        key = state.type, state.status
        counts[key] = counts.get(key, 0) + 1
        closed += bool(state.flags & refs.CLOSED)
        superseded += state.replaced_by is not None
        held += bool(state.flags & refs.HELD)
    buried = [tomb.purged for _, tomb in tombs.all_of(reader, part)]
    value: Json = {
        "tenant": part.tenant,
        "profile": part.profile,
        "collection": part.collection,
        "sessions": len(reader.lanes(part)),
        "refs": sum(counts.values()),
    }
    for number, name in enumerate(refs.TYPES):
        value[name] = {
            status: counts[number, code]
            for code, status in enumerate(refs.STATUSES)
            if (number, code) in counts
        }
    return value | {
        "closed": closed,
        "superseded": superseded,
        "forgotten": len(buried),
        "waiting_for_purge": buried.count(None),
        "held": held,
    }


def _sum(found: list[Json]) -> Json:
    """The counts of several partitions together."""
    total: Json = {}
    for name in _SUMMED:
        total[name] = sum(number for one in found if isinstance(number := one[name], int))
    for name in refs.TYPES:
        together: dict[str, int] = {}
        for one in found:
            by_status = one[name]
            assert isinstance(by_status, dict)
            for status, number in by_status.items():
                together[status] = together.get(status, 0) + number
        total[name] = together
    return total


def _audit(reader: Reader) -> Json | str:
    if not reader.grant.owner:
        return UNKNOWN
    last = next(reader.audit_rows(reverse=True), None)
    if last is None:
        return {"rows": 0, "last_at": None, "last_action": None}
    number, _, row = last
    return {"rows": number, "last_at": describe.stamp(row.time), "last_action": row.action}


def _lag(store: Store, context: Context, all_collections: bool) -> int | str:
    from remem.index.project import lag

    found = lag(store, context.grant(all_collections=all_collections))
    return UNKNOWN if found is None else sum(found.values())


def _vectors(store: Store, context: Context) -> Json | None:
    """Log entries whose texts have no vector yet, over the whole store; None without embedder."""
    from remem.index.engine import dense_side

    dense = dense_side(context.settings.text("embedder"), cache_dir=cache_dir(context))
    return None if dense is None else {"lag": dense.pending(store)}


def _sizes(store: Store) -> Json:
    info = store.env().info()
    return {
        "canon_b": info["file_b"],
        "canon_used_b": info["used_b"],
        "index_b": folder_bytes(store.index_path)[1],
    }


def _readers(store: Store) -> Json:
    env = store.env()
    stale = env.stale_readers()
    info = env.info()
    return {"live": info["readers"], "stale": stale, "max": info["max_readers"]}


# -- for people ---------------------------------------------------------------------------------


def _say(context: Context, value: Json, collection: str) -> None:
    if context.json:
        context.emit(value)
        return
    scope = context.scope()
    names = (scope.tenant, scope.profile, collection, scope.agent, scope.session)
    root = context.root
    rows = [
        ("store", visible(root if value["exists"] else f"none yet; it would be '{root}'")),
        ("scope", ", ".join(one_line(name) for name in names)),
        ("collection", f"{one_line(collection)} (from {value['collection_from']})"),
    ]
    if value["exists"]:
        rows += _rows(value)
    embedder = value["embedder"]
    assert isinstance(embedder, dict)
    state = "available" if embedder["available"] else str(embedder["reason"])
    rows.append(("embedder", f"{one_line(str(embedder['setting']))}: {one_line(state)}"))
    for line in plain_lines(rows):
        context.out(line)
    if not value["exists"]:
        context.note("the first 'remem add' or 'remem init' makes the store")


def _rows(value: Json) -> list[tuple[str, str]]:
    counts, index, sizes = value["counts"], value["index"], value["sizes"]
    spool, readers, audit = value["spool"], value["readers"], value["audit"]
    assert isinstance(counts, dict) and isinstance(index, dict)
    rows = [
        ("observations", _by_status(counts["observation"])),
        ("memories", _by_status(counts["memory"])),
        ("not current", f"{counts['closed']} closed, {counts['superseded']} superseded"),
        ("sessions", str(counts["sessions"])),
    ]
    if counts["forgotten"] or counts["held"]:
        rows.insert(3, ("forgotten", _forgotten(counts)))
    kept = value["tiers"]
    assert isinstance(kept, dict)
    rows += standing.rows(kept)
    waiting = value["waiting"]
    assert isinstance(waiting, dict)
    if waiting["items"]:
        rows.append(("waiting", reminder.row(waiting)))
    found = value["collections"]
    if isinstance(found, list) and len(found) > 1:
        rows += [("", f"{one_line(str(c['collection']))}: {c['refs']:,}") for c in found]
    vectors = index["vectors"]
    rows += [
        ("index", _behind(index["lag"])),
        ("vectors", _behind(vectors["lag"] if isinstance(vectors, dict) else vectors)),
    ]
    if isinstance(sizes, dict):
        rows.append(("sizes", f"canon {human(sizes['canon_b'])}, index {human(sizes['index_b'])}"))
    else:
        rows.append(("sizes", UNKNOWN))
    if isinstance(spool, dict):
        rows += spool_state.rows(spool, human(spool["bytes"]), human(spool["waiting_b"]))
    else:
        rows.append(("spool", UNKNOWN))
    rows.append(
        (
            "readers",
            f"{readers['live']} live, {readers['stale']} stale"
            if isinstance(readers, dict)
            else UNKNOWN,
        )
    )
    rows += standing.slept_rows(value["consolidation"], index["stale_rate"])
    if isinstance(audit, dict):
        last = f", last {audit['last_action']} {audit['last_at']}" if audit["rows"] else ""
        rows.append(("audit", f"{audit['rows']:,} rows{last}"))
    else:
        rows.append(("audit", UNKNOWN))
    return rows


def _forgotten(counts: Json) -> str:
    waits, held = counts["waiting_for_purge"], counts["held"]
    words = [f"{counts['forgotten']:,}"]
    if waits:
        words.append(f"{waits:,} wait for a purge")
    if held:
        words.append(f"{held:,} refs held")
    return ", ".join(words)


def _by_status(counts: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {status}" for status, number in counts.items()) or "none"


def _behind(lag: object) -> str:
    if lag is None:
        return "no embedder"
    if not isinstance(lag, int):
        return UNKNOWN
    return "up to date" if lag == 0 else f"behind by {lag:,} log entries"
