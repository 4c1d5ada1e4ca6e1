"""Where a command is called from: the folder by its names, its work trees, the branch.

Filters over captured commands, and "in this folder" in a question, mean these.  A shell knows the
folder by the path that it was entered by, the system by the one without links; both are handed
down.  Nothing below looks at the working directory itself.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.index.asked import Here, says
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.cli.context import Context
    from remem.index.asked import Understood
    from remem.index.ran import Ran

MAX_TREES = 100  # linked work trees that are looked at


def here(context: Context) -> Here:
    """Where the command was called from."""
    top = _above(context.folder)
    return Here(
        tuple(shown(path) for path in _names(context, context.folder)),
        () if top is None else tuple(shown(path) for path in _trees(top)),
        "" if top is None else _branch(top),
    )


def asked_of(
    context: Context, folder: str | None, exit: str | None, branch: str | None, kinds: Sequence[str]
) -> tuple[Ran, tuple[str, ...]]:
    """What the options ask of commands, and the kinds that are left: commands alone.

    Raises:
        UsageError: an exit status is none, an option is empty, or other kinds are asked for.
    """
    if exit is not None and not exit.strip():
        raise UsageError("--exit names no exit status")
    if branch is not None and not branch.strip():
        raise UsageError("--branch names no branch")
    folders: list[str] = []
    if folder is not None:
        if not folder:
            raise UsageError("--cwd names no folder")
        path = os.path.normpath(os.path.join(context.folder, os.path.expanduser(folder)))
        folders = [shown(name) for name in _names(context, path)]
    from remem.hooks import questions

    return questions.of_commands(folders, exit or "", branch or "", kinds)


def say_understood(context: Context, found: Understood) -> None:
    """Say what was read from a question about commands."""
    if found.found:
        context.note(f"understood as: {says(found)}")
    else:
        context.note(f"nothing was captured that fits: {says(found)}; answered by its words")


def say_elsewhere(context: Context, folder: str, *, all_collections: bool) -> None:
    """Say where commands of a folder are kept, when nothing was found and it is not here."""
    from remem.hooks.identity import collection_of

    path = os.path.join(context.folder, os.path.expanduser(folder))
    there, here_ = collection_of(path)[0], context.collection()[0]
    if there != here_ and not all_collections:
        context.note(f"what ran in '{folder}' is kept in '{there}': '--collection {there}'")


def shown(path: str) -> str:
    """A path as captured commands have it."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _names(context: Context, path: str) -> list[str]:
    """A folder as it was written, as the shell knows it, and as it is without links."""
    found = [path, os.path.realpath(path)]
    logical = context.environ.get("PWD", "")
    if path == context.folder and os.path.isabs(logical):
        try:
            if os.path.samefile(logical, path):
                found.insert(0, os.path.normpath(logical))
        except OSError:
            pass
    return list(dict.fromkeys(found))


def _above(folder: str) -> str | None:
    """Top of the work tree that a folder lies in."""
    while not os.path.exists(os.path.join(folder, ".git")):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return None
    return folder


def _git_folder(top: str) -> str:
    dot = os.path.join(top, ".git")
    line = _line(dot)
    return os.path.normpath(os.path.join(top, line[8:])) if line.startswith("gitdir: ") else dot


def _trees(top: str) -> list[str]:
    """The work trees of a repository: commands in any of them are commands in the project."""
    git = _git_folder(top)
    common = _line(os.path.join(git, "commondir"))
    common = os.path.normpath(os.path.join(git, common)) if common else git
    found = [top, os.path.realpath(top)]
    if os.path.basename(common) == ".git":
        found.append(os.path.dirname(common))
    linked = os.path.join(common, "worktrees")
    try:
        names = sorted(os.listdir(linked))[:MAX_TREES]
    except OSError:
        names = []
    found += [os.path.dirname(_line(os.path.join(linked, name, "gitdir"))) for name in names]
    return list(dict.fromkeys(path for path in found if path))


def _branch(top: str) -> str:
    head = _line(os.path.join(_git_folder(top), "HEAD"))
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _line(path: str) -> str:
    """The first line of a file of git, or "" for none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.readline(4096).rstrip("\n")
    except (OSError, ValueError):
        return ""
