"""A copy of a whole store while it is in use, and the list of the copies that were made.

The copy is one snapshot of the canonical environment, compacted, with the settings, the spool and
the owner's key, encrypted as it is; the projections are left out, they are rebuilt.  It is built
beside its place and renamed, so that a folder of that name is always a whole store.  What is built
holds a locked file that says of which store it is; where nobody holds the lock any more, its maker
is dead, and the next backup to that place takes it away and begins anew.

The list (``backups.json`` in the store) names each copy with the end of the audit chain that it
holds, so that whoever purges can be told which copies were made while the bytes were there.

Source: remem-store(5), BACKUPS.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

import msgspec

from remem.objects import audit, kv
from remem.objects import format as fmt
from remem.objects.errors import IntegrityError, Refused, StoreCorrupt, StoreError
from remem.objects.lock import hold
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store, canon_path, read_generation

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

MANIFEST_FILE = "backups.json"
_LOCK = "backups"
_WAIT_S = 30.0
_ATTEMPTS = 3
_CHUNK_B = 1 << 20
_PARTS = frozenset(
    name.split(".")[0]
    for name in (
        *(fmt.CANON, fmt.INDEX, fmt.LOCKS, fmt.SPOOL, fmt.CONFIG_FILE, fmt.OWNER_KEY_FILE),
        *(fmt.FORMAT_FILE, fmt.GENERATION_FILE, MANIFEST_FILE),
    )
)
_MARK = os.path.join(fmt.LOCKS, "backup")  # in what is built, locked by who builds it


class Backup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One copy.

    Attributes:
        path: folder of the copy, absolute.
        time: when it was made, microseconds UTC.
        rows: number of the last audit row that it holds, 0 for none.
        head: hash of that row, 64 hex digits.
        bytes: size of its data file.
    """

    path: str
    time: int
    rows: int
    head: str
    bytes: int


class _Mark(msgspec.Struct, frozen=True):
    """Of which store an unfinished copy is: its folder, by name, device and inode."""

    store: str
    device: int
    inode: int


class _Manifest(msgspec.Struct, forbid_unknown_fields=True):
    backups: list[Backup]


def backup(store: Store, target: str) -> Backup:
    """Copy a store into a new or empty folder.

    Readers and writers of the store go on meanwhile; what they commit after the beginning is not in
    the copy.

    Args:
        store: the store.
        target: the folder that becomes a store.

    Returns:
        What was made, as it is listed.

    Raises:
        Refused: the folder holds something, or lies within the store.
        StoreError: it cannot be written; nothing is left of it.
        IntegrityError: the copy does not end where the store did.
    """
    target = os.path.abspath(target)
    building = target + ".part"
    _refuse(store, target, building)
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        mark = _begin(store, building)
    except OSError as error:
        raise kv.translate(error, building) from error
    try:
        generation = _fill(store, building)
        head = _check(building, generation)
        size_b = os.path.getsize(os.path.join(canon_path(building, generation), "data.mdb"))
        made = Backup(target, time.time_ns() // 1000, head.seq, head.hash.hex(), size_b)
        with _listing(store):
            listed = [b for b in backups(store.root) if b.path != target]
            _write_list(building, [*listed, made])
            _sync_tree(building)
            # Listed before it has its name: what is cut short here is named rather than missed.
            if not store.readonly:
                _write_list(store.root, [*listed, made])
            os.replace(building, target)
            os.unlink(os.path.join(target, _MARK))
            fmt.sync_folder(os.path.join(target, fmt.LOCKS))
            fmt.sync_folder(os.path.dirname(target))
    except OSError as error:
        raise kv.translate(error, target) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
        os.close(mark)
    return made


def backups(root: str) -> list[Backup]:
    """The copies made of the store in a folder, oldest first, whether or not they still exist.

    Raises:
        StoreCorrupt: the list does not parse.
    """
    path = os.path.join(root, MANIFEST_FILE)
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=_Manifest).backups
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise StoreCorrupt(
            f"'{path}' does not list backups", hint="move it away; the backups themselves are safe"
        ) from error


def holding(root: str, row: int) -> list[Backup]:
    """The copies that hold what audit row number `row` recorded: made at that row or later.

    For something that was created with row c and purged with row p, the copies with its bytes are
    among `holding(root, c)` with rows below p.
    """
    return [made for made in backups(root) if made.rows >= row]


def _refuse(store: Store, target: str, building: str) -> None:
    root = os.path.realpath(store.root)
    real = os.path.realpath(target)
    if real == root or real.startswith(root + os.sep) or root.startswith(real + os.sep):
        raise Refused(
            f"'{target}' and the store lie within each other",
            hint="choose a folder elsewhere, best on another disk",
        )
    if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
        raise Refused(f"'{target}' is not empty", hint="choose a new folder for each backup")
    if os.path.lexists(building):
        _clear(store, building)


def _mark_of(store: Store) -> _Mark:
    found = os.stat(store.root)
    return _Mark(os.path.realpath(store.root), found.st_dev, found.st_ino)


def _begin(store: Store, building: str) -> int:
    """Make the folder, with the locked file in it that says of which store it is; that file."""
    first = f"{building}.{os.getpid()}"
    os.mkdir(first, 0o700)
    handle = -1
    try:
        os.mkdir(os.path.join(first, fmt.LOCKS), 0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        handle = os.open(os.path.join(first, _MARK), flags, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, msgspec.json.encode(_mark_of(store)))
        os.rename(first, building)  # whoever finds it finds it marked
    except OSError:
        shutil.rmtree(first, ignore_errors=True)
        if handle >= 0:
            os.close(handle)
        raise
    return handle


def _clear(store: Store, building: str) -> None:
    """Take away what a backup of this store left that was killed.

    Raises:
        Refused: it is still being built, is of another store, or is nothing of the kind.
    """
    try:
        handle = os.open(os.path.join(building, _MARK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        raise _in_the_way(building) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been finished, or begun anew, since it was opened.
            there = os.stat(os.path.join(building, _MARK))
            if not os.path.samestat(os.fstat(handle), there):
                raise BlockingIOError
        except OSError:
            raise Refused(
                f"a backup to '{building.removesuffix('.part')}' is running",
                hint="wait for it to end, or choose another folder",
            ) from None
        if not _is_ours(store, building, os.read(handle, _CHUNK_B)):
            raise _in_the_way(building)
        shutil.rmtree(building)
    finally:
        os.close(handle)


def _is_ours(store: Store, building: str, data: bytes) -> bool:
    """Whether an unfinished copy is of this store and this user, and holds nothing else."""
    try:
        mark = msgspec.json.decode(data, type=_Mark)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    found = os.lstat(building)
    if mark != _mark_of(store) or found.st_uid != os.geteuid() or os.path.islink(building):
        return False
    return all(name.split(".")[0] in _PARTS for name in os.listdir(building))


def _in_the_way(building: str) -> Refused:
    return Refused(
        f"'{building}' is there, and is nothing that a backup of this store left",
        hint="remove that folder if no backup is running",
    )


def _fill(store: Store, building: str) -> int:
    """Write everything but the list; the number of the generation."""
    # The spool first: what is drained meanwhile is then in both and not in neither.
    _copy_tree(os.path.join(store.root, fmt.SPOOL), os.path.join(building, fmt.SPOOL))
    for name in (fmt.CANON, fmt.INDEX):
        os.mkdir(os.path.join(building, name), 0o700)
    for _ in range(_ATTEMPTS):
        env = store.env()
        generation = store.generation
        folder = canon_path(building, generation)
        os.mkdir(folder, 0o700)
        with env.read():  # takes over the size of the map, when another process has grown it
            env.copy(folder)
        if read_generation(store.root) == generation:
            break
        shutil.rmtree(folder)  # it was compacted meanwhile: the copy may hold what was purged
    else:
        raise StoreError(f"'{store.root}' changes its generation all the time")
    for name in (fmt.CONFIG_FILE, fmt.OWNER_KEY_FILE):
        if os.path.exists(os.path.join(store.root, name)):
            _copy_file(os.path.join(store.root, name), os.path.join(building, name))
    fmt.write_file(os.path.join(building, fmt.GENERATION_FILE), f"{generation}\n")
    fmt.write_file(os.path.join(building, fmt.FORMAT_FILE), fmt.FORMAT_LINE)
    return generation


def _check(building: str, generation: int) -> audit.Head:
    """Open the copy and compare the ends of its logs with its heads; the audit head."""
    copy = Store(building, readonly=True, allow_network=True)
    try:
        with copy.read(maintenance_grant()) as reader:
            head = reader.audit_head()
            last = next(reader.audit_rows(reverse=True), None)
            found = audit.Head(0, audit.ROOT)
            if last is not None:
                found = audit.Head(last[0], audit.row_hash(last[1]))
            if found != head:
                raise IntegrityError(f"the copy in '{building}' does not end with its audit head")
            for part in reader.parts:
                seq = reader.last_seq(part)
                if seq:
                    reader.entry(part, seq)
    finally:
        copy.close()
    os.unlink(os.path.join(canon_path(building, generation), "lock.mdb"))
    return head


def _listing(store: Store) -> AbstractContextManager[None]:
    """The lock under which the list of the store is changed (none where it cannot be)."""
    return nullcontext() if store.readonly else hold(store.locks_path, _LOCK, wait_s=_WAIT_S)


def _write_list(root: str, listed: list[Backup]) -> None:
    data = msgspec.json.format(msgspec.json.encode(_Manifest(listed)), indent=2)
    fmt.write_file(os.path.join(root, MANIFEST_FILE), data.decode() + "\n")


def _copy_tree(source: str, target: str) -> None:
    """Copy folders and plain files; links and devices are left out."""
    os.mkdir(target, 0o700)
    if not os.path.isdir(source):
        return
    for entry in sorted(os.scandir(source), key=lambda e: e.name):
        place = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False):
            _copy_tree(entry.path, place)
        elif entry.is_file(follow_symlinks=False):
            _copy_file(entry.path, place)


def _copy_file(source: str, target: str) -> None:
    try:
        reading = open(source, "rb")
    except FileNotFoundError:  # a spool file that was drained meanwhile
        return
    with reading:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "wb") as writing:
            shutil.copyfileobj(reading, writing, _CHUNK_B)


def _sync_tree(folder: str) -> None:
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            handle = os.open(os.path.join(path, name), os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        fmt.sync_folder(path)
