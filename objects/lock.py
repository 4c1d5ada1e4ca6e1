"""Advisory locks between processes: files under locks/, held by the kernel, freed when it ends.

A lock is a byte-range lock of the open file description (flock), so a killed holder never leaves it
behind and a reused process id means nothing.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from remem.objects import disk
from remem.objects.errors import StoreError, StoreFull, StoreLocked, StoreReadOnly

if TYPE_CHECKING:
    from collections.abc import Iterator

_STEP_S = 0.02


@contextmanager
def hold(folder: str, name: str, *, wait_s: float = 0.0, shared: bool = False) -> Iterator[None]:
    """Hold a lock for the block.

    Args:
        folder: the store's locks folder; made (0700) when missing.
        name: which lock.
        wait_s: how long to wait for another holder, seconds.
        shared: several holders at once, none of them exclusive.

    Raises:
        StoreLocked: another process held it all that time.
        StoreReadOnly, StoreFull, StoreError: the lock's file cannot be made.
    """
    path = os.path.join(folder, name)
    try:
        disk.make_folders(folder)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (1, 13, 30):
            raise StoreReadOnly(f"cannot lock '{path}'") from error
        if error.errno in (28, 122):
            raise StoreFull(f"no space left for '{path}'") from error
        raise StoreError(f"cannot lock '{path}': {error.strerror}") from error
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    deadline = time.monotonic() + wait_s
    try:
        while True:
            try:
                fcntl.flock(handle, mode | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (11, 13, 35):
                    raise StoreError(f"cannot lock '{path}': {error.strerror}") from error
                if time.monotonic() >= deadline:
                    raise StoreLocked(
                        f"another process holds '{path}'",
                        hint="wait for it to end, or find it with 'fuser' and the path above",
                    ) from error
                time.sleep(_STEP_S)
        yield
    finally:
        os.close(handle)
