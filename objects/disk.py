"""What the file system says before LMDB is asked: kind of mount, whole files, room for the lock.

LMDB reads through a memory map.  A data file that ends before a page in use, and a lock file with
holes on a full disk, end a process by a signal at the first touch; both are looked for here.

Layout read here: LMDB 0.9, mdb.c, ``MDB_page``, ``MDB_meta``, ``MDB_db`` and ``MDB_node``, data
version 1, little-endian with 8-byte words.  Anything else is left to LMDB.

::

    page   0 number u64 | 8 pad u16 | 10 flags u16 | 12 lower u16 | 14 upper u16 | 16 content
    meta  16 magic u32 | 20 version u32 | 24 address u64 | 32 map size u64 | 40 free list (db)
          88 main tree (db) | 136 last page u64 | 144 transaction u64
    db     0 pad u32 (of the free list: page size) | 4 flags u16 | 6 depth u16
           8 branches u64 | 16 leaves u64 | 24 overflow u64 | 32 entries u64 | 40 root u64
    node   0 low u16 | 2 high u16 | 4 flags u16 | 6 key size u16 | 8 key, data
"""

from __future__ import annotations

import os
import struct
import sys

from remem.objects.errors import NetworkFilesystem, StoreCorrupt

MOUNTS = "/proc/self/mounts"
_NETWORK_TYPES = frozenset(
    "nfs nfs4 cifs smb3 smbfs smb2 afs ncpfs 9p fuse.sshfs ceph glusterfs fuse.glusterfs "
    "beegfs lustre webdav davfs fuse.davfs2 gfs2 ocfs2 virtiofs".split()
)

_MAGIC = 0xBEEFC0DE
_DATA_VERSION = 1
_META = struct.Struct(
    "<16xII8x8xI2xH32xQ48xQQ"
)  # magic, version, page size, depth, root, last, txn
_NODE = struct.Struct("<HHHH")
_PAGE_HEADER_B = 16
_BRANCH = 1
_LEAF = 2
_BIG_DATA = 1  # node flag: the data lies in overflow pages
_NO_PAGE = (1 << 64) - 1
_TRIES = 3


def filesystem_type(path: str, mounts: str = MOUNTS) -> str:
    """Type of the file system below a path ("ext4", "nfs4"), or "" where it cannot be told."""
    probe = os.path.realpath(path)
    best, kind = "", ""
    try:
        with open(mounts, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                parts = line.split(" ")
                if len(parts) < 3:
                    continue
                point = _unescape(parts[1])
                inside = probe == point or probe.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, parts[2]
    except OSError:
        return ""
    return kind


def refuse_network(path: str, mounts: str = MOUNTS) -> None:
    """Raise NetworkFilesystem when the path lies on a file system without safe maps and locks."""
    kind = filesystem_type(path, mounts)
    if kind in _NETWORK_TYPES:
        raise NetworkFilesystem(f"'{path}' lies on a network file system ({kind})")


def is_full(path: str) -> bool:
    """True when the file system below a path has less than 1 MiB left."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < 1 << 20


def make_folders(path: str) -> None:
    """Make a folder and what is missing above it, each 0700 whatever the umask says."""
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        above = os.path.dirname(path)
        if above == path:
            break
        path = above
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise


def reserve(path: str, size_b: int) -> None:
    """Make a file of zeros, without holes, unless there is one.

    Raises:
        OSError: there is no room, or the folder cannot be written.
    """
    if os.path.exists(path):
        return
    temporary = f"{path}.{os.getpid()}.new"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        left = size_b
        while left > 0:
            left -= os.write(handle, bytes(left))
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.close(handle)
        os.unlink(temporary)


def check_whole(path: str) -> None:
    """Raise StoreCorrupt when pages that the last commit uses lie beyond the end of the file.

    A file may end before its last page: one that was numbered and freed in the same transaction is
    never written.  Such pages are in the list of free pages, so that list is read when the file is
    shorter than its last page says.

    Raises:
        StoreCorrupt: the file was cut short.
        OSError: it cannot be read.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for attempt in range(_TRIES):  # another process may commit between two of our reads
            missing = _missing(handle)
            if missing is None:
                return
            if attempt == _TRIES - 1:
                raise StoreCorrupt(f"'{path}' is cut short ({missing})")
    finally:
        os.close(handle)


def _missing(handle: int) -> str | None:
    """What is missing in the file, or None when every page in use is there."""
    first = os.pread(handle, _META.size, 0)
    if len(first) < _META.size:
        return f"{len(first)} bytes"
    magic, version, page_b, depth, root, last, txn = _META.unpack(first)
    known = magic == _MAGIC and version == _DATA_VERSION and sys.byteorder == "little"
    if not known or sys.maxsize < 1 << 32:
        return None  # not what is described above: LMDB says what it thinks of it
    if page_b < 256 or page_b > 1 << 16 or page_b & (page_b - 1):
        raise StoreCorrupt(f"the data file has pages of {page_b} bytes")
    second = os.pread(handle, _META.size, page_b)
    if len(second) < _META.size:
        return "one meta page"
    other = _META.unpack(second)
    if other[6] > txn:
        _, _, _, depth, root, last, txn = other
    have = os.fstat(handle).st_size // page_b  # after the meta pages: a file only grows
    if have > last:
        return None
    free: set[int] = set()
    try:
        _free_pages(handle, page_b, root, min(depth, 64), have, free)
    except (struct.error, ValueError, OverflowError):
        return f"{have} of {last + 1} pages"
    return None if len(free) == last + 1 - have else f"{have} of {last + 1} pages"


def _free_pages(handle: int, page_b: int, page: int, depth: int, have: int, free: set[int]) -> None:
    """Collect the free pages that lie beyond the end of the file.

    Raises:
        ValueError, OverflowError, struct.error: the list itself is not whole.
    """
    if page == _NO_PAGE:
        return
    data = os.pread(handle, page_b, page * page_b)
    if len(data) < page_b or depth == 0:
        raise ValueError("a page of the free list is missing")
    _, _, flags, lower, _ = struct.unpack_from("<QHHHH", data)
    for at in struct.unpack_from(f"<{(lower - _PAGE_HEADER_B) // 2}H", data, _PAGE_HEADER_B):
        low, high, node_flags, key_b = _NODE.unpack_from(data, at)
        if flags & _BRANCH:
            child = low | high << 16 | node_flags << 32
            _free_pages(handle, page_b, child, depth - 1, have, free)
        elif flags & _LEAF:
            start, size_b = at + _NODE.size + key_b, low | high << 16
            record = data[start : start + size_b]
            if node_flags & _BIG_DATA:
                (big,) = struct.unpack_from("<Q", data, start)
                if size_b > have * page_b:
                    raise ValueError("a record of the free list is larger than the file")
                record = os.pread(handle, size_b, big * page_b + _PAGE_HEADER_B)
            (count,) = struct.unpack_from("<Q", record)
            free.update(n for n in struct.unpack_from(f"<{count}Q", record, 8) if n >= have)
        else:
            raise ValueError("a page of the free list is something else")


def _unescape(text: str) -> str:
    """A path of the mount table, in which blanks and backslashes are written in octal."""
    for code in ("\\040", "\\011", "\\012", "\\134"):
        text = text.replace(code, chr(int(code[1:], 8)))
    return text
