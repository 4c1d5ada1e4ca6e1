"""What hooks can be installed into: a registry, one module a target.

A target is a module with `plan`, `carry_out` and `status` as `Target` says.  A new target is a row
of TARGETS and its module; the command line needs no change.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from remem.objects.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGETS = {
    "shell": "remem.hooks.install_shell",
    "git": "remem.hooks.target_git",
    "claude": "remem.hooks.claude_target",
    "cron": "remem.hooks.cron",
}


class Place(msgspec.Struct, frozen=True):
    """Where and for whom hooks are installed; all paths are absolute.

    Attributes:
        home: the user's home folder.
        config: folder of remem's own settings of this user.
        store: folder of the store.
        folder: where the command was started.
        environ: the caller's environment.
        shells: shells that were named.
        everywhere: for every repository of this user instead of the one here.
        project: for the project here instead of this user.
        with_context: answer prompts with context, too.
    """

    home: str
    config: str
    store: str
    folder: str
    environ: Mapping[str, str]
    shells: tuple[str, ...] = ()
    everywhere: bool = False
    project: bool = False
    with_context: bool = False


class Change(msgspec.Struct, frozen=True):
    """What is to become of a file; None is no file."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def word(self) -> str:
        """Created, changed or removed."""
        if self.before is None:
            return "created"
        return "removed" if self.after is None else "changed"


class Plan(msgspec.Struct):
    """What an installation or its removal changes, and what is to be said about it."""

    changes: list[Change] = []
    notes: list[str] = []


class State(msgspec.Struct, frozen=True):
    """Whether a part of a target is there.

    Attributes:
        name: of the part ("bash").
        state: "installed", "outdated", "edited" or "missing".
        path: the file that says so.
    """

    name: str
    state: str
    path: str


class Target(Protocol):
    """What a module of a target offers."""

    def plan(self, place: Place, *, install: bool) -> Plan:
        """What would be done; changes nothing."""

    def carry_out(self, place: Place, *, install: bool) -> Plan:
        """Do it, and say what was done."""

    def status(self, place: Place) -> list[State]:
        """What is there."""


def load(name: str) -> Target:
    """The module of a target of TARGETS."""
    from importlib import import_module

    return cast("Target", import_module(TARGETS[name]))


def read(path: str) -> bytes | None:
    """Content of a file, or None where there is none.

    Raises:
        Refused: it is there and cannot be read.
    """
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Refused(f"cannot read '{path}': {error.strerror}") from error


def write(change: Change, *, mode: int | None = None) -> None:
    """Make a change: the file is replaced as a whole, and a link goes on pointing at it.

    Args:
        change: which; what stands there must be what it names.
        mode: of a file that is made; None: as the mask of the process says.

    Raises:
        Refused: it changed meanwhile, or cannot be written.
    """
    path = os.path.realpath(change.path)
    if read(path) != change.before:
        raise Refused(f"'{change.path}' was changed meanwhile", hint="run it again")
    try:
        if change.after is None:
            os.unlink(path)
            return
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        _replace(path, change.after, mode)
    except OSError as error:
        raise Refused(f"cannot write '{change.path}': {error.strerror}") from error


def _replace(path: str, data: bytes, mode: int | None) -> None:
    temporary = f"{path}.{os.getpid()}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    handle = os.open(temporary, flags, 0o666 if mode is None else mode)
    try:
        with open(handle, "wb") as file:
            if os.path.exists(path):
                found = os.stat(path)
                os.fchmod(handle, found.st_mode & 0o7777)
                if (found.st_uid, found.st_gid) != (os.geteuid(), os.getegid()):
                    os.fchown(handle, found.st_uid, found.st_gid)
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
