"""Stores that lie in folders: where one is looked for, and which of them this user accepted.

A store of a folder lies in its ``.remem``, or, in a work tree of git, in ``remem`` of the git
folder that all work trees of a repository share: what is checked out, cleaned or committed there
never touches it, and a clone cannot bring one.

One that was found rather than named is taken only where ``init --here`` made or accepted it.  The
list of these holds, with each path, by what the store is known again: a branch that tracks
``.remem`` replaces the files at an accepted path as it is checked out.

Source: remem-init(1), FILES.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.objects import format as fmt
from remem.objects.errors import Refused
from remem.objects.lock import hold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from remem.objects.store import Store

HERE = ".remem"  # folder of a store for a folder and those below it
IN_GIT = "remem"  # the same, in the git folder of a repository
LOCK = "here.lock"
ACCEPT = "'remem init --here' in its folder accepts it (or, where git tracks it, makes your own)"
_DIGEST_DIGITS = 64
_SLACK_S = 2.0  # between the files of a store and the line that accepts it
_LOCK_WAIT_S = 30.0
_INDEX_V4 = b"DIRC\0\0\0\4"  # of git: its paths are shortened
_NAME_MASK = 0xFFF  # of the flags of an entry: the length of its path


def find(folder: str, listed: str) -> str | None:
    """The store of a folder: the nearest one, or None.

    A store in ``.remem`` that was never accepted stands back behind that of the repository in which
    it lies, which may have brought it.

    Args:
        folder: where the command was started.
        listed: path of the list of accepted stores.

    Raises:
        Refused: the nearest one is not accepted.
    """
    brought = None
    for here, common in _upwards(folder):
        own = os.path.join(here, HERE)
        if brought is None and is_store(own):
            if os.path.realpath(own) in accepted(listed):
                return own
            brought = own
        if common is None:
            continue
        kept = os.path.join(common, IN_GIT)
        if is_store(kept):
            if os.path.realpath(kept) not in accepted(listed):
                raise _not_accepted(kept)
            return kept
        if brought is not None:
            break
    if brought is not None:
        raise _not_accepted(brought)
    return None


def place(folder: str, listed: str) -> tuple[str, list[str]]:
    """Where ``init --here`` makes or accepts the store of a folder.

    Returns:
        (folder of the store, stores of this work tree that git tracks: not one's own).
    """
    own = os.path.join(folder, HERE)
    passed: list[str] = []
    for here, common in _upwards(folder):
        passed.append(os.path.join(here, HERE))
        if common is None:
            continue
        there = [path for path in passed if is_store(path)]
        brought = [path for path in there if is_tracked(path)]
        known = accepted(listed)
        for path in there:
            if path not in brought and (path == own or os.path.realpath(path) in known):
                return path, brought
        return os.path.join(common, IN_GIT), brought
    return own, []


def check(store: Store, listed: str) -> None:
    """Refuse a store that is not the one that was accepted at its path.

    An entry of an earlier version names the path alone.  It is completed where nothing speaks for
    another store in the place of the accepted one, whether the store has a value to be known by
    or not: one that has may have lost the process that was about to list it.

    Raises:
        Refused: it is another one, or may be.
    """
    from remem.objects import recognised

    path = os.path.realpath(store.root)
    entry = accepted(listed).get(path)
    if entry == "":
        against = doubt(store.root, listed)
        if against:
            raise Refused(
                f"the store '{store.root}' may not be the one that you accepted: {against}",
                hint=f"if it is yours, {ACCEPT}",
            )
        if store.readonly:
            return
        accept(store, listed, completing=True)
        entry = accepted(listed).get(path)  # another process may have completed it first
    if entry is None:
        raise _not_accepted(store.root)
    if entry and entry == recognised.digest(store):
        return
    raise Refused(
        f"the store '{store.root}' is another one than you accepted there",
        hint=f"a checkout or a clone may have put it there: bring yours back, or {ACCEPT}",
    )


def accept(
    store: Store, listed: str, *, instead_of: Sequence[str] = (), completing: bool = False
) -> str:
    """Let commands in the folder of a store and below it take the store.

    Args:
        store: open for writing.
        listed: path of the list of accepted stores; made when it is missing.
        instead_of: stores that are not accepted any more.
        completing: only say by what a store is known that is in the list already.

    Returns:
        What the list said of its path before: "nothing", "path", "same" or "other".
    """
    from remem.objects import recognised

    path = os.path.realpath(store.root)
    with hold(os.path.dirname(listed), LOCK, wait_s=_LOCK_WAIT_S):
        known = accepted(listed)
        before = known.get(path)
        if completing and before != "":
            return "same"
        for other in instead_of:
            known.pop(os.path.realpath(other), None)
        known[path] = recognised.make(store)
        lines = [f"{digest} {name}".strip() for name, digest in known.items()]
        fmt.write_file(listed, "\n".join(lines) + "\n")
    if not before:
        return "nothing" if before is None else "path"
    return "same" if before == known[path] else "other"


def accepted(listed: str) -> dict[str, str]:
    """The accepted paths and the digests by which their stores are known ("" where none is)."""
    try:
        with open(listed, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return {}
    found = {}
    for line in lines:
        digest, _, path = line.partition(" ")
        if line.startswith("/"):
            found[line] = ""
        elif len(digest) == _DIGEST_DIGITS and path:
            found[path] = digest
    return found


def is_store(folder: str) -> bool:
    """Whether a store lies in a folder."""
    return os.path.exists(os.path.join(folder, fmt.FORMAT_FILE))


def doubt(root: str, listed: str) -> str:
    """What speaks for files that were put in the place of an accepted store; "" for nothing.

    git writes files as the umask says, and those that it writes are in its index.
    """
    if is_tracked(root):
        return "git tracks its files"
    from remem.objects.store import canon_path, read_generation

    data = os.path.join(canon_path(root, read_generation(root)), "data.mdb")
    stated = os.path.join(root, fmt.FORMAT_FILE)
    for path in (stated, os.path.join(root, fmt.GENERATION_FILE), data):
        if os.lstat(path).st_mode & 0o177077 != 0o100000:
            return f"others may read '{path}'"
    try:
        newer = os.stat(stated).st_mtime > os.stat(listed).st_mtime + _SLACK_S
    except OSError:
        return ""
    return "it was made after that" if newer else ""


def is_tracked(path: str) -> bool:
    """Whether git tracks anything in a folder, as far as the files of git tell without git."""
    from remem.hooks.identity import git_folders

    top = os.path.realpath(path)
    while (parent := os.path.dirname(top)) != top:
        top = parent
        found = git_folders(top)
        if found is not None:
            name = os.fsencode(os.path.relpath(os.path.realpath(path), top)) + b"/"
            return any(_names(file, name) for file in _indexes(*found))
    return False


def _indexes(git: str, common: str) -> Iterator[str]:
    """The index of a work tree, and those that it may be split into."""
    yield os.path.join(git, "index")
    for folder in {git, common}:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (os.path.join(folder, n) for n in names if n.startswith("sharedindex."))


def _names(index: str, name: bytes) -> bool:
    """Whether an index has a path that begins so; true where its paths are not written out."""
    try:
        with open(index, "rb") as file:
            data = file.read()
    except OSError:
        return False
    if data.startswith(_INDEX_V4):
        return True
    at = data.find(name)
    while at >= 0:
        length = min(data.find(b"\0", at) - at, _NAME_MASK)
        for flags in (data[at - 2 : at], data[at - 4 : at - 2]):  # the second with more of them
            if int.from_bytes(flags, "big") & _NAME_MASK == length:
                return True
        at = data.find(name, at + 1)
    return False


def _upwards(folder: str) -> Iterator[tuple[str, str | None]]:
    """A folder and those above it, each with the git folder of the work tree that it is top of."""
    here = folder
    while True:
        common = None
        if os.path.lexists(os.path.join(here, ".git")):
            from remem.hooks.identity import git_folders

            found = git_folders(here)
            common = None if found is None else found[1]
        yield here, common
        parent = os.path.dirname(here)
        if parent == here:
            return
        here = parent


def _not_accepted(root: str) -> Refused:
    return Refused(
        f"the store '{root}' was not made or accepted by you",
        hint=f"{ACCEPT}; --store names another",
    )
