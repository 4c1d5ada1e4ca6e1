"""What the threads of a process share of one open environment, and what a forked child must not.

A transaction is counted in before it begins and out after its end.  The map is replaced, and the
environment closed, only while none is counted in.  An idle environment is closed before a fork.
One that is in use then belongs to the parent alone: its reader slots lie in shared memory, and a
child that ended a transaction, or closed the environment, would free the slots of its parent.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakSet

from remem.objects.errors import StoreError, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ALONE_S = 30.0  # how long to wait for the transactions of other threads


class _Gone:
    """Stands in a forked child for a transaction that its parent had open."""

    def __getattr__(self, name: str) -> Any:
        raise StoreError("a transaction was used across a fork")


GONE = _Gone()


class Counted(Protocol):
    """A transaction as it is counted here: the one of LMDB in it can be taken away."""

    _raw: Any


class Shared:
    """An environment that is opened on first use and shared by the threads of a process."""

    def __init__(self, path: str, opener: Callable[[], Any]) -> None:
        """Remember how to open it.

        Args:
            path: folder of the environment, for messages.
            opener: opens it; called inside the gate.
        """
        self.path = path
        self.raw: Any = None
        self._opener = opener
        self._retired = False
        self._fresh()
        _known.add(self)

    def _fresh(self) -> None:
        """A gate that nobody holds and no transactions."""
        self.gate = threading.Condition()
        self._live: dict[Any, int] = {}  # -> thread that began it
        self._resizing = False
        self._write_lock = threading.Lock()
        self._writer = 0

    def open(self) -> Any:
        """The open environment; call it inside the gate."""
        if self.raw is None:
            self.raw = self._opener()
        return self.raw

    def close(self) -> None:
        """Close it, together with what is open in it; the next use opens it again."""
        with self.gate:
            if self.raw is not None:
                self.raw.close()
            self.raw = None

    @property
    def idle(self) -> bool:
        """True when no transaction of this process is open."""
        return not self._live

    def retire(self) -> None:
        """Close it as soon as it is idle."""
        with self.gate:
            self._retired = True
            if not self._live:
                self.close()

    def revive(self) -> None:
        """Take retire back."""
        with self.gate:
            self._retired = False

    def enter(self, txn: Counted) -> Any:
        """Count a transaction in and return the open environment."""
        me = threading.get_ident()
        with self.gate:
            # A thread that reads already is let through: who resizes waits for it.
            self.gate.wait_for(lambda: not self._resizing or me in self._live.values())
            raw = self.open()
            self._live[txn] = me
            return raw

    def leave(self, txn: Counted) -> None:
        """Count a transaction out."""
        with self.gate:
            self._live.pop(txn, None)
            self.gate.notify_all()
            if self._retired and not self._live:
                self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only thread of this process that writes.

        Raises:
            StoreError: this thread writes already, and would wait for itself.
        """
        me = threading.get_ident()
        if self._writer == me:
            raise StoreError(f"a change of '{self.path}' was begun inside another one")
        with self._write_lock:
            self._writer = me
            try:
                yield
            finally:
                self._writer = 0

    def alone(self, act: Callable[[], bool], why: str) -> bool:
        """Do something while no transaction of this process is open and none begins.

        Raises:
            StoreLocked: transactions stayed open all the time, or this thread has one itself.
        """
        with self.gate:
            if threading.get_ident() in self._live.values():
                raise StoreLocked(f"{why} ('{self.path}'): this thread has a transaction open")
            self.gate.wait_for(lambda: not self._resizing)
            self._resizing = True
            try:
                if not self.gate.wait_for(lambda: not self._live, timeout=ALONE_S):
                    raise StoreLocked(f"{why} ('{self.path}'): other threads keep reading")
                return act()
            finally:
                self._resizing = False
                self.gate.notify_all()

    def before_fork(self) -> None:
        """Close it when it is idle, so that the child inherits nothing of it."""
        with self.gate:
            if not self._live and not self._resizing:
                self.close()

    def after_fork(self) -> None:
        """In the child: leave what belongs to the parent alone, for ever."""
        if self.raw is not None:
            _disown(self.raw)
        for txn in self._live:
            txn._raw = GONE
        self.raw = None
        self._fresh()


def _disown(raw: Any) -> None:
    """Make an open environment of the parent undying and, to py-lmdb, unknown.

    It must not be closed, not even when the process ends: that would free slots of the parent and,
    if another thread of the parent was at work in it, wait for that thread for ever.  py-lmdb (3.0
    and later) refuses a second environment on the same files; in the child there is no first.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(raw))
    guard: Any = sys.modules.get("lmdb._envid")
    if guard is not None:
        child, keys = os.getpid(), guard.env_keys
        guard.env_keys = lambda *args: tuple((child, key) for key in keys(*args))


_known: WeakSet[Shared] = WeakSet()
registry_lock = threading.RLock()


def _before_fork() -> None:
    for shared in list(_known):
        shared.before_fork()


def _after_fork() -> None:
    global registry_lock
    registry_lock = threading.RLock()
    for shared in list(_known):
        shared.after_fork()


os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
