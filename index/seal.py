"""The seal of an index: opening its LMDB environment only in a state that cannot do harm.

LMDB maps its file and believes it.  A file that was cut short or has a flipped bit can end the
process with a signal, which no exception handler sees.  So before a process opens the environment
of an index it calls :func:`check_seal`, and a writer writes inside :func:`writing`.  The file
``SEAL`` beside ``data.mdb`` says which of three things holds:

* *sealed*: the identity of the data file (inode, size, time of modification and of change) at the
  end of the last write.  While it is the same, nobody has touched the file since: a cold start
  costs one small read and one ``stat``.
* *busy*: a writer is at work.  It holds a lock (``flock``) on the folder, which the kernel drops
  if the writer dies.  While it is held the file is trusted: the writer has checked it before it
  began, and LMDB's own snapshots keep readers from seeing half a write.
* anything else, or an identity that has changed: the file is inspected page by page
  (:mod:`remem.index.pages`), by one process at a time (a lock on ``SEAL``), and then sealed or
  refused.  That is so after a writer was killed, after a copy was restored, and after damage.

Order of writing: *busy* reaches the disk before the first page does; the pages reach the disk
before the seal is written.  So after a loss of power *busy* is still there, with the name of an
earlier boot: then pages may be missing that the newest meta page counts on, and the index is
refused, to be built again.  (After a mere ``kill`` the kernel has every page; nothing is missing.)
The environment itself can therefore be opened without ``sync``.

File times are as coarse as the kernel's tick, so a change right after the seal could leave them
as they were.  The seal therefore sets the time of modification one nanosecond back: whatever is
written later gets a later time.

A process keeps the environment open as long as it likes; damage done to a file under an open map
is beyond this module, except that every value carries a sum of its own.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from contextlib import contextmanager, suppress

from remem.index.errors import IndexDamaged
from remem.index.pages import inspect, read_meta
from remem.index.postings import TABLES, damaged
from remem.objects.disk import make_folders
from remem.objects.errors import StoreLocked
from remem.objects.kv import translate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SEAL = "SEAL"
DATA = "data.mdb"
_SEALED = "remem seal 1"
_BUSY = "remem busy 1"
LINES = (_SEALED, _BUSY)  # what a seal begins with
_MAX_B = 256
_WAIT_S = 0.005
_PATIENCE_S = 120.0
_NO_LOCK, _WRITER = -1, -2
_BOOT = "/proc/sys/kernel/random/boot_id"


def guard(env_path: str) -> None:
    """Compare the size of the data file with what its meta pages say: some 50 microseconds.

    Raises:
        IndexDamaged: a meta page is damaged, or the file lacks pages it should have.
    """
    path = os.path.join(env_path, DATA)
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise damaged(f"cannot read '{path}': {error.strerror}") from None
    try:
        meta = read_meta(file)
        whole = os.fstat(file).st_size >= (meta.last + 1) * meta.page_b
    finally:
        os.close(file)
    if not whole:
        inspect(path)  # pages that were given back unwritten may be missing at the end


def check_seal(env_path: str) -> None:
    """Make sure that LMDB can open the environment of an index, if there is one.

    Call it before each opening.  Returns at once if nobody but our writers has touched the file;
    otherwise the file is inspected, and sealed where this process may write.

    Raises:
        IndexDamaged: it must not be opened; remove the folder and build the index again.
        StoreLocked: another process inspects the file, and does not come to an end.
    """
    if _is_sealed(env_path) or not os.path.exists(os.path.join(env_path, DATA)):
        return
    lock = _lock(env_path, beside_writer=True)
    if lock == _WRITER:
        return
    try:
        if not _is_sealed(env_path):
            _verify(env_path)
            if lock != _NO_LOCK:
                with suppress(OSError):  # without a seal it is only inspected once more
                    _write_seal(env_path, lock)
    finally:
        if lock != _NO_LOCK:
            os.close(lock)


@contextmanager
def writing(env_path: str) -> Iterator[None]:
    """Change the environment of an index inside this block; the caller holds the index lock.

    The folder is made if there is none.  Blocks do not nest.

    Raises:
        IndexDamaged: what is there must not be opened; or the block raised it, and then the file
            will be inspected before it is opened again.
        StoreLocked: another process inspects the file, and does not come to an end.
    """
    try:
        make_folders(env_path)
    except OSError as error:
        raise translate(error, env_path) from error
    lock = _lock(env_path, beside_writer=False)
    folder = -1
    try:
        if os.path.exists(os.path.join(env_path, DATA)) and not _is_sealed(env_path):
            _verify(env_path)
        folder = _begin(env_path, lock)
        sound = True
        try:
            yield
        except IndexDamaged:
            sound = False
            raise
        finally:
            _end(env_path, lock, sound)
    finally:
        if folder >= 0:
            os.close(folder)
        os.close(lock)


def seal(env_path: str) -> None:
    """Seal the present state of an environment that was just made or swapped in.

    The caller vouches for it, and that nobody writes to it meanwhile.
    """
    try:
        lock = _open_seal(env_path)
    except OSError as error:
        raise translate(error, env_path) from error
    try:
        _end(env_path, lock, True)
    finally:
        os.close(lock)


# -- inside -----------------------------------------------------------------------------------


def _begin(env_path: str, lock: int) -> int:
    """Say that a writer is at work; the descriptor that says so until it is closed."""
    folder = -1
    try:
        folder = os.open(env_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _write_line(lock, f"{_BUSY} {_boot()}")
        os.fsync(lock)
        os.fsync(folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
    except OSError as error:
        if folder >= 0:
            os.close(folder)
        raise translate(error, env_path) from error
    return folder


def _end(env_path: str, lock: int, sound: bool) -> None:
    """Seal what was written, or leave it without a seal, to be inspected."""
    try:
        if sound and os.path.exists(os.path.join(env_path, DATA)):
            _write_seal(env_path, lock)
        else:
            _write_line(lock, "")
    except OSError as error:
        raise translate(error, env_path) from error


def _verify(env_path: str) -> None:
    """Refuse a file that LMDB must not open."""
    words = _read_line(env_path).split(" ")
    if " ".join(words[:3]) == _BUSY and (not _boot() or words[3:] != [_boot()]):
        raise damaged("the machine stopped while it was being written")
    path = os.path.join(env_path, DATA)
    try:
        inspect(path, TABLES)
    except OSError as error:
        raise damaged(f"cannot read '{path}': {error.strerror}") from None


def _lock(env_path: str, *, beside_writer: bool) -> int:
    """Take the right to inspect or write.

    Returns:
        A descriptor of the locked seal; _NO_LOCK where there is none and none can be made;
        _WRITER, if that is wanted, where a writer is at work.
    """
    try:
        lock = _open_seal(env_path)
    except OSError as error:
        if beside_writer and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            return _WRITER if _writer_at_work(env_path) else _NO_LOCK
        raise translate(error, env_path) from error
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                os.close(lock)
                raise translate(error, env_path) from error
        if beside_writer and _writer_at_work(env_path):
            os.close(lock)
            return _WRITER
        if time.monotonic() > deadline:
            os.close(lock)
            raise StoreLocked(f"another process has inspected '{env_path}' for too long")
        time.sleep(_WAIT_S)


def _writer_at_work(env_path: str) -> bool:
    """Whether a writer that has checked the file holds the lock on the folder."""
    folder = os.open(env_path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(folder)
    return False


def _open_seal(env_path: str) -> int:
    return os.open(os.path.join(env_path, SEAL), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _is_sealed(env_path: str) -> bool:
    try:
        return _read_line(env_path) == _identity(env_path)
    except OSError:
        return False


def _read_line(env_path: str) -> str:
    try:
        file = os.open(os.path.join(env_path, SEAL), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        return os.read(file, _MAX_B).decode("ascii", "replace").partition("\n")[0]
    finally:
        os.close(file)


def _write_line(lock: int, line: str) -> None:
    raw = line.encode("ascii") + b"\n"
    os.pwrite(lock, raw, 0)
    os.ftruncate(lock, len(raw))


def _identity(env_path: str) -> str:
    known = os.stat(os.path.join(env_path, DATA))
    return f"{_SEALED} {known.st_ino} {known.st_size} {known.st_mtime_ns} {known.st_ctime_ns}"


def _write_seal(env_path: str, lock: int) -> None:
    """Bring the data file to the disk and write down what it is."""
    path = os.path.join(env_path, DATA)
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.fsync(file)
        now = os.fstat(file)
        os.utime(file, ns=(now.st_atime_ns, now.st_mtime_ns - 1))
    finally:
        os.close(file)
    _write_line(lock, _identity(env_path))


def _boot() -> str:
    """What names this run of the kernel, or an empty string where nothing does."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
