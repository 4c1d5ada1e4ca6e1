"""The seal of an index: opening its LMDB environment only in a state that cannot do harm.

LMDB maps its file and believes it.  A file that was cut short or has a flipped bit can end the
process with a signal, which no exception handler sees.  So before a process opens the environment
of an index it calls :func:`check_seal`, and a writer writes inside :func:`writing`.  The file
``SEAL`` beside ``data.mdb`` says which of three things holds:

* *sealed*: the identity of the data file (inode, size, time of modification and of change) at the
  end of the last write.  While it is the same, nobody has touched the file since: a cold start
  costs one small read and one ``stat``.
* *busy*: a writer is at work.  It holds a lock (``flock``) on ``SEAL``, which the kernel drops if
  the writer dies.  While it is held the file is trusted: the writer has checked it before it began,
  and LMDB's own snapshots keep readers from seeing half a write.
* anything else, or an identity that has changed: the file is inspected page by page
  (:mod:`remem.index.pages`), by one process while others wait, and then sealed or refused.  That
  is so after a writer was killed, after a copy was restored, and after damage.

Order of writing: *busy* reaches the disk before the first page does; the pages reach the disk
before the seal is written.  So after a loss of power *busy* is still there, with the name of an
earlier boot: then pages may be missing that the newest meta page counts on, and the index is
refused, to be built again.  (After a mere ``kill`` the kernel has every page; nothing is missing.)

File times are as coarse as the kernel's tick, so a change right after the seal could leave them
as they were.  The seal therefore sets the time of modification one nanosecond back: whatever is
written later gets a later time.

A process keeps the environment open as long as it likes; damage done to a file under an open map
is beyond this module, except that every value carries a sum of its own.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager

from remem.index.errors import IndexDamaged
from remem.index.pages import inspect, read_meta
from remem.index.postings import TABLES, damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SEAL = "SEAL"
DATA = "data.mdb"
_SEALED = "remem seal 1"
_BUSY = "remem busy 1"
_MAX_B = 256
_WAIT_S = 0.01
_BOOT = "/proc/sys/kernel/random/boot_id"


def guard(env_path: str) -> None:
    """Compare the size of the data file with what its meta pages say; a few microseconds.

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
        if os.fstat(file).st_size < (meta.last + 1) * meta.page_b:
            raise damaged(f"'{path}' is cut short")
    finally:
        os.close(file)


def check_seal(env_path: str) -> None:
    """Make sure that LMDB can open the environment of an index.

    Call it before each opening.  Returns at once if nobody but our writers has touched the file;
    otherwise the file is inspected, and sealed where this process may write.

    Raises:
        IndexDamaged: it must not be opened; remove the folder and build the index again.
    """
    if _read_seal(env_path) == _identity(env_path):
        return
    seal = _lock(env_path, wait_for_writer=False)
    if seal is None:
        return
    try:
        if _read_seal(env_path) != _identity(env_path):
            _verify(env_path)
            if seal >= 0:
                _write_seal(env_path, seal)
    finally:
        if seal >= 0:
            os.close(seal)


def seal(env_path: str) -> None:
    """Seal the present state: of an environment that was just made or swapped in.

    The caller vouches for it, and that nobody writes to it meanwhile.
    """
    file = _open_seal(env_path)
    try:
        _write_seal(env_path, file)
    finally:
        os.close(file)
