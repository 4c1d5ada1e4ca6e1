"""Where the git hooks of a repository lie, and putting ours there.

Git is asked where hooks lie; it knows of worktrees, submodules and ``core.hooksPath``.  A folder
that a work tree tracks, or whose new files "git status" would show, is left alone: what is written
there would come into somebody's commit.  Then `Refused` says so, and names the line to add by hand.

A folder that several repositories share (``core.hooksPath`` of the user or of the system) notes
only the repositories that are listed.  For all repositories of a user there are hooks in git's own
configuration from git 2.54 on.  Before that, ``init.templateDir``: ``core.hooksPath`` would switch
off the hooks that repositories have, and cannot be chained, since the mere presence of some hooks
(push-to-checkout, proc-receive, fsmonitor-watchman) changes what git does.  A template reaches the
repositories that are made from then on, and older ones when "git init" is run in them.

Source: githooks(5), git-config(1), git-init(1).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from typing import TYPE_CHECKING

import msgspec

from remem.hooks import git_files
from remem.hooks.git_files import Change, File, look
from remem.hooks.git_spool import EVENTS, SCRIPT
from remem.hooks.identity import find_root
from remem.objects.errors import PartMissing, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

SCRIPT_NAME = "git-hook"  # files in the folder of the user's settings
LIST_NAME = "git-repositories"
TEMPLATE_NAME = "git-template"
ALL = "all"
EVERY = "*"
HOOKS_BY_CONFIG = (2, 54)  # version of git
_OUR_SECTION = "hook.remem-{event}"


class Place(msgspec.Struct, frozen=True):
    """Where hooks go.

    Attributes:
        folder: the folder of the hooks.
        repository: the common folder of the repository, "" for all of a user.
        listed: the folder is shared, so that only listed repositories are noted.
    """

    folder: str
    repository: str = ""
    listed: bool = False


class Setup(msgspec.Struct, frozen=True):
    """What an installation is made with.

    Attributes:
        config: folder of the user's settings, for the script.
        spool: the store's spool.
        env: the caller's environment.
    """

    config: str
    spool: str
    env: Mapping[str, str]

    @property
    def script(self) -> str:
        """Path of the script that the hooks run."""
        return os.path.join(self.config, SCRIPT_NAME)

    @property
    def list(self) -> str:
        """Path of the list of repositories that note events through shared hooks."""
        return os.path.join(self.config, LIST_NAME)


def plan(setup: Setup, folder: str, *, everywhere: bool = False) -> list[Change]:
    """What an installation changes; nothing if it is complete.

    Args:
        setup: what it is made with.
        folder: a folder of the repository.
        everywhere: for all repositories of this user.

    Raises:
        Refused: hooks cannot be put there; the message says why and the hint how else.
        PartMissing: there is no git.
    """
    changes = _written(setup.script, File(SCRIPT.encode(), 0o644))
    if everywhere:
        return changes + _everywhere(setup)
    place = locate(setup, folder)
    if place.listed:
        changes += _listing(setup, place.repository, listed=True)
    return changes + _hooks(setup, place)


def install(setup: Setup, folder: str, *, everywhere: bool = False) -> list[Change]:
    """Do what `plan` says, and give it back; the script is written even if hooks are refused."""
    if not everywhere:
        locate(setup, folder, check=False)  # without a repository there is nothing to do by hand
    script = _written(setup.script, File(SCRIPT.encode(), 0o644))
    git_files.apply(script)
    changes = plan(setup, folder, everywhere=everywhere)
    git_files.apply(changes)
    return script + changes


def uninstall(
    setup: Setup,
    folder: str,
    *,
    everywhere: bool = False,
    dry_run: bool = False,
    notes: list[str] | None = None,
) -> list[Change]:
    """Bring hooks back to what they were, and give the changes; notes gets what was left and why.

    Raises:
        Refused: a file cannot be read or written.
        Refused: the folder is in no repository.
        PartMissing: there is no git.
    """
    removed: list[Change] = []
    if everywhere:
        place, removed = _global_place(setup), _config_removal(setup)
        removed += _listing(setup, EVERY, listed=False)
    else:
        place = locate(setup, folder, check=False)
        removed += _listing(setup, place.repository, listed=False)
    # A shared folder keeps its hooks while another repository is listed.
    if place is not None and not (place.listed and _others(setup, place)):
        made = git_files.made_folder(place.folder, EVENTS)
        for event in EVENTS:
            removed += git_files.removal(place.folder, event, notes)
        if not dry_run:
            git_files.apply(removed)
            git_files.tidy(place.folder, made=made)
    elif not dry_run:
        git_files.apply(removed)
    if everywhere and not dry_run:
        _remove_template(setup)
    return removed


def status(setup: Setup, folder: str) -> dict[str, str]:
    """State of each event in a repository: "installed", "edited", "missing" or "replaced".

    Raises:
        Refused: the folder is in no repository.
        PartMissing: there is no git.
    """
    place = locate(setup, folder, check=False)
    found = {}
    by_config = _configured(setup)
    for event in EVENTS:
        file = look(os.path.join(place.folder, event))
        ours = event in by_config or git_files.is_ours(file)
        if ours and place.listed and event not in by_config:
            ours = bool({place.repository, EVERY} & set(_list(setup)))
        if ours and event not in by_config and git_files.is_edited(file, event):
            found[event] = "edited"
        else:
            found[event] = "installed" if ours else "missing" if file is None else "replaced"
    return found


def status_everywhere(setup: Setup) -> tuple[str, str]:
    """State of the hooks for all repositories of a user, and the file or folder that says so.

    Raises:
        PartMissing: there is no git.
    """
    if _configured(setup):
        return "installed", _config_file(setup)
    place = _global_place(setup)
    if place is None:
        return "missing", _config_file(setup)
    ours = all(git_files.is_ours(look(os.path.join(place.folder, event))) for event in EVENTS)
    listed = not place.listed or EVERY in _list(setup)
    return "installed" if ours and listed else "missing", place.folder


def locate(setup: Setup, folder: str, *, check: bool = True) -> Place:
    """Where the hooks of a repository lie.

    Raises:
        Refused: hooks cannot be put there.
        Refused: the folder is in no repository.
        PartMissing: there is no git.
    """
    git_dir = _git(setup, folder, "rev-parse", "--absolute-git-dir")
    if not git_dir:
        raise Refused(
            f"'{folder}' is in no git repository", hint="go into one, or use --global for all"
        )
    top = _git(setup, folder, "rev-parse", "--show-toplevel") or git_dir
    # A relative core.hooksPath counts from where hooks run.
    hooks = os.path.join(top, _git(setup, top, "rev-parse", "--git-path", "hooks"))
    common = os.path.join(top, _git(setup, top, "rev-parse", "--git-common-dir"))
    hooks, common = os.path.normpath(hooks), os.path.realpath(common)
    if _is_below(hooks, common):
        return Place(hooks, common)
    scope = _git(setup, top, "config", "--show-scope", "--get", "core.hooksPath").split("\t")[0]
    if check:
        _check(setup, hooks)
    return Place(hooks, common, scope not in ("local", "worktree"))


def _check(setup: Setup, hooks: str) -> None:
    """Raise for a folder of hooks that belongs to somebody's work tree, or to a program."""
    if os.path.lexists(hooks) and not os.path.isdir(hooks):
        raise Refused(
            f"hooks are switched off: core.hooksPath is '{hooks}'",
            hint="set it to a folder, or 'remem import git' now and then",
        )
    above = hooks
    while not os.path.isdir(above):
        above = os.path.dirname(above)
    root = find_root(above)
    if root is None or _is_below(above, root[1]):
        return
    line = git_files.line_of(setup.script, setup.spool, ALL, EVENTS[0])
    by_hand = f"add to the hooks there by hand, each with its own name: {line}"
    if _git(setup, root[0], "ls-files", "--", hooks):
        raise Refused(f"the hooks in '{hooks}' (core.hooksPath) are tracked by git", hint=by_hand)
    if os.path.exists(os.path.join(hooks, "husky.sh")) or os.path.basename(hooks) == "_":
        raise Refused(
            f"the hooks in '{hooks}' (core.hooksPath) are written anew by the program that made "
            "them",
            hint=by_hand.replace("there", f"in '{os.path.dirname(hooks)}'"),
        )
    new = [os.path.join(hooks, event) for event in (*EVENTS, git_files.ASIDE)]
    for path in new:
        if not os.path.lexists(path) and not _git(setup, root[0], "check-ignore", "--", path):
            raise Refused(
                f"the hooks in '{hooks}' (core.hooksPath) lie in the work tree, where 'git status' "
                "would show new ones",
                hint=by_hand,
            )


def _hooks(setup: Setup, place: Place) -> list[Change]:
    changes = []
    for event in EVENTS:
        listed = setup.list if place.listed else ALL
        line = git_files.line_of(setup.script, setup.spool, listed, event)
        changes += git_files.planned(place.folder, event, line)
    return changes


# -- all repositories of a user -----------------------------------------------------------------


def _everywhere(setup: Setup) -> list[Change]:
    if _version(setup) >= HOOKS_BY_CONFIG:
        wanted: list[tuple[str, ...]] = []
        for event in EVENTS:
            section = _OUR_SECTION.format(event=event)
            command = git_files.command_of(setup.script, setup.spool, ALL, event)
            wanted += [
                ("--replace-all", f"{section}.event", event),
                ("--replace-all", f"{section}.command", command),
            ]
        return _config_change(setup, wanted)
    place = _global_place(setup)
    if place is not None:
        _check(setup, place.folder)
        listing = _listing(setup, EVERY, listed=True) if place.listed else []
        return listing + _hooks(setup, place)
    template = os.path.join(setup.config, TEMPLATE_NAME)
    changes = _default_template(setup, template)
    changes += _hooks(setup, Place(os.path.join(template, "hooks")))
    return changes + _config_change(setup, [("--replace-all", "init.templateDir", template)])


def _global_place(setup: Setup) -> Place | None:
    """The folder of hooks that the user's own configuration names for all repositories."""
    home = setup.env.get("HOME") or "/"
    shared = _git(setup, home, "config", "--global", "--type=path", "--get", "core.hooksPath")
    if shared:
        return Place(os.path.join(home, shared), listed=True)
    template = _git(setup, home, "config", "--global", "--type=path", "--get", "init.templateDir")
    return Place(os.path.join(home, template, "hooks")) if template else None


def _default_template(setup: Setup, template: str) -> list[Change]:
    """What git itself would put into a new repository: it takes one template only."""
    changes = []
    with tempfile.TemporaryDirectory(prefix="remem-") as made:
        bare = {**setup.env, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        asked = Setup(setup.config, setup.spool, bare)
        _git(asked, made, "init", "--quiet", "--bare", made)
        for folder, _, names in os.walk(made):
            inside = os.path.relpath(folder, made)
            if inside.split(os.sep)[0] in ("objects", "refs"):
                continue
            for name in sorted(names):
                if (inside == "." and name in ("HEAD", "config")) or name.endswith(".sample"):
                    continue
                path = os.path.normpath(os.path.join(template, inside, name))
                changes += _written(path, look(os.path.join(folder, name)))
    return changes


def _remove_template(setup: Setup) -> None:
    """Remove the template that an installation for all repositories made."""
    template = os.path.join(setup.config, TEMPLATE_NAME)
    for folder, folders, names in os.walk(template, topdown=False):
        for name in names:
            os.unlink(os.path.join(folder, name))
        for name in folders:
            os.rmdir(os.path.join(folder, name))
    if os.path.isdir(template):
        os.rmdir(template)


def _config_removal(setup: Setup) -> list[Change]:
    wanted: list[tuple[str, ...]] = []
    for event in _configured(setup):
        wanted.append(("--remove-section", _OUR_SECTION.format(event=event)))
    home = setup.env.get("HOME") or "/"
    template = _git(setup, home, "config", "--global", "--type=path", "--get", "init.templateDir")
    if template == os.path.join(setup.config, TEMPLATE_NAME):
        wanted.append(("--unset-all", "init.templateDir"))
    return _config_change(setup, wanted) if wanted else []


def _configured(setup: Setup) -> list[str]:
    """Events that are noted through git's own configuration."""
    home = setup.env.get("HOME") or "/"
    names = _git(setup, home, "config", "--global", "--name-only", "--get-regexp", r"^hook\.remem-")
    return [event for event in EVENTS if _OUR_SECTION.format(event=event) + ".event" in names]


def _config_change(setup: Setup, wanted: list[tuple[str, ...]]) -> list[Change]:
    """The user's configuration with other settings, written by git itself in a copy."""
    path = _config_file(setup)
    before = look(path)
    if before is not None and before.link:
        path = os.path.realpath(path)
        before = look(path)
    with tempfile.TemporaryDirectory(prefix="remem-") as folder:
        copy = os.path.join(folder, "config")
        with open(copy, "wb") as file:
            file.write(b"" if before is None else before.data)
        for words in wanted:
            _git(setup, folder, "config", "--file", copy, *words)
        with open(copy, "rb") as file:
            data = file.read()
    # Git leaves the head of a section that it has emptied.
    if wanted[-1][0] == "--unset-all":
        data = data.removesuffix(b"[init]\n")
    after = File(data, 0o644 if before is None else before.mode)
    return _written(path, after if data else None)


def _config_file(setup: Setup) -> str:
    """The file that "git config --global" writes: git-config(1), FILES."""
    named = setup.env.get("GIT_CONFIG_GLOBAL")
    if named:
        return named
    home = setup.env.get("HOME") or "/"
    own = os.path.join(home, ".gitconfig")
    base = setup.env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    other = os.path.join(base, "git", "config")
    return other if os.path.exists(other) and not os.path.exists(own) else own


# -- the list of repositories, and git ----------------------------------------------------------


def _list(setup: Setup) -> list[str]:
    found = look(setup.list)
    return [] if found is None else os.fsdecode(found.data).splitlines()


def _listing(setup: Setup, repository: str, *, listed: bool) -> list[Change]:
    """The list with a repository, or without it."""
    now = _list(setup)
    if (repository in now) == listed:
        return []
    left = [*now, repository] if listed else [one for one in now if one != repository]
    data = os.fsencode("".join(f"{one}\n" for one in left))
    return _written(setup.list, File(data, 0o600) if left else None)


def _others(setup: Setup, place: Place) -> bool:
    return any(one != (place.repository or EVERY) for one in _list(setup))


def _written(path: str, wanted: File | None) -> list[Change]:
    now = look(path)
    return [] if now == wanted else [Change(path, now, wanted)]


def _is_below(path: str, folder: str) -> bool:
    real, root = os.path.realpath(path), os.path.realpath(folder)
    return real == root or real.startswith(root.rstrip(os.sep) + os.sep)


def _version(setup: Setup) -> tuple[int, ...]:
    words = _git(setup, os.sep, "version").split()
    numbers = words[2].split(".")[:2] if len(words) > 2 else []
    return tuple(int(number) for number in numbers if number.isdigit())


def _git(setup: Setup, folder: str, *words: str) -> str:
    """What git says, "" if it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            env=dict(setup.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise PartMissing(
            f"cannot run git: {error.strerror}", hint="install git, or look at PATH"
        ) from None
    return os.fsdecode(done.stdout).rstrip("\n") if done.returncode == 0 else ""
