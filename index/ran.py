"""Commands by where they ran and what came of it: the filters and the terms that index them.

A command that a shell or a history told of carries its folder, its exit status and its branch where
they are known.  Each folder above it has a filter term of its own, a digest of its path, so that a
folder with all that is below it is one list of the inverted index.  What a digest lets through is
compared with the object itself, so two paths of one digest do no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects.model import Observation

if TYPE_CHECKING:
    from remem.objects.encode import Obj

KIND = "command"
FAILED, OK = "failed", "ok"

_FOLDER = b"\0d:"
_EXIT = b"\0x:"
_BRANCH = b"\0b:"
_DIGEST_B = 8
_MAX_BRANCH_B = 150
_MAX_DEPTH = 40  # folders above a command that have a term; deeper ones are compared alone
_MEMO = 4096
_terms: dict[str, list[bytes]] = {}


class Ran(msgspec.Struct, frozen=True):
    """What is asked of a command; what is left empty is not asked.

    Attributes:
        folders: it ran in one of these folders or below it: absolute paths, the same place by
            several names (a link and where it leads).
        exit: "failed", "ok" or an exit status in digits.
        branch: the branch that was checked out.
    """

    folders: tuple[str, ...] = ()
    exit: str = ""
    branch: str = ""

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return bool(self.folders or self.exit or self.branch)

    def fits(self, obj: Obj) -> bool:
        """Whether an object is such a command."""
        if not isinstance(obj, Observation) or obj.kind != KIND:
            return False
        if self.folders:
            folder = folder_of(obj)
            if not any(_within(folder, above) for above in self.folders):
                return False
        if self.exit:
            code = exit_of(obj)
            if code is None or not _is_exit(code, self.exit):
                return False
        return not self.branch or obj.meta.get("branch") == self.branch

    def groups(self) -> list[list[bytes]]:
        """Filter terms: a command that fits has one of each group.

        A folder too deep to have a term asks for nothing here; `fits` tells.
        """
        found = []
        if self.folders and all(path.count("/") <= _MAX_DEPTH for path in self.folders):
            found.append([_folder_term(path) for path in self.folders])
        if self.exit:
            found.append([_exit_term(self.exit)])
        if self.branch:
            found.append([_branch_term(self.branch)])
        return found


def filters(obj: Observation) -> list[bytes]:
    """Filter terms of an observation; none but a command has any."""
    if obj.kind != KIND:
        return []
    found = list(_above(folder_of(obj)))
    code = exit_of(obj)
    if code is not None:
        found.append(_exit_term(str(code)))
        found.append(_exit_term(FAILED if code else OK))
    branch = obj.meta.get("branch")
    if isinstance(branch, str) and branch:
        found.append(_branch_term(branch))
    return found


def folder_of(obj: Observation) -> str:
    """The folder in which a command ran, or ""."""
    folder = obj.meta.get("cwd")
    return _plain(folder) if isinstance(folder, str) and folder.startswith("/") else ""


def exit_of(obj: Observation) -> int | None:
    """The exit status of a command, or None."""
    code = obj.meta.get("exit")
    return code if type(code) is int else None


def _is_exit(code: int, wanted: str) -> bool:
    if wanted in (FAILED, OK):
        return (code != 0) == (wanted == FAILED)
    return str(code) == wanted


def _within(folder: str, above: str) -> bool:
    above = _plain(above)
    return folder == above or folder.startswith(above.rstrip("/") + "/")


def _plain(path: str) -> str:
    return path.rstrip("/") or "/"


def _above(folder: str) -> list[bytes]:
    """Terms of a folder and of those above it."""
    if not folder:
        return []
    found = _terms.get(folder)
    if found is None:
        parts = folder.split("/")[1:] if folder != "/" else []
        paths = ["/", *("/" + "/".join(parts[:end]) for end in range(1, len(parts) + 1))]
        if len(_terms) > _MEMO:
            _terms.clear()
        found = _terms[folder] = [_folder_term(path) for path in paths[: _MAX_DEPTH + 1]]
    return found


def _folder_term(path: str) -> bytes:
    data = _plain(path).encode("utf-8", "surrogatepass")
    return _FOLDER + blake3(data).hexdigest(_DIGEST_B).encode()


def _exit_term(code: str) -> bytes:
    return _EXIT + code.encode()


def _branch_term(branch: str) -> bytes:
    return _BRANCH + branch.encode("utf-8", "replace").replace(b"\0", b"")[:_MAX_BRANCH_B]
