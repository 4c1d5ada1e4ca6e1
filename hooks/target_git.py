"""The hooks of git as a target: see `remem.hooks.git_install` for where they go and why."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.hooks import git_files, git_install
from remem.hooks.git_spool import EVENTS, SCRIPT
from remem.hooks.spool import folder
from remem.hooks.targets import Change, Plan, State
from remem.objects.errors import Refused, RememError

if TYPE_CHECKING:
    from remem.hooks.targets import Place


def plan(place: Place, *, install: bool) -> Plan:
    """What would be done; changes nothing.

    Raises:
        Refused: hooks cannot be put there; the message says why and the hint how else.
        RememError: there is no git.
    """
    setup, notes = _setup(place), list[str]()
    if install:
        found = git_install.plan(setup, place.folder, everywhere=place.everywhere)
    else:
        found = git_install.uninstall(
            setup, place.folder, everywhere=place.everywhere, dry_run=True, notes=notes
        )
    return _told(place, found, notes, install=install)


def carry_out(place: Place, *, install: bool) -> Plan:
    """Do it, and say what was done.

    Raises:
        Refused: as `plan`, or a file cannot be written.
        RememError: there is no git.
    """
    setup, notes = _setup(place), list[str]()
    if install:
        os.makedirs(setup.spool, mode=0o700, exist_ok=True)
        found = git_install.install(setup, place.folder, everywhere=place.everywhere)
    else:
        found = git_install.uninstall(setup, place.folder, everywhere=place.everywhere, notes=notes)
    return _told(place, found, notes, install=install)


def status(place: Place) -> list[State]:
    """The hooks of the repository here, if there is one, and those for all of this user."""
    setup = _setup(place)
    try:
        found = git_install.status(setup, place.folder)
        hooks = git_install.locate(setup, place.folder, check=False).folder
    except RememError:
        return [State("all repositories", *_everywhere(place))]
    ours = [event for event in EVENTS if found[event] in ("installed", "edited")]
    if "edited" in found.values():
        state = "edited"
    elif len(ours) == len(EVENTS):
        state = "installed" if not _is_behind(place) else "outdated"
    else:
        state = "edited" if ours else "missing"
    return [State("this repository", state, hooks), State("all repositories", *_everywhere(place))]


def text(place: Place) -> tuple[str, str, list[str]]:
    """The script that hooks run, where it belongs, and the line of the hook of each event."""
    setup = _setup(place)
    lines = [git_files.line_of(setup.script, setup.spool, git_install.ALL, one) for one in EVENTS]
    return SCRIPT, setup.script, lines


def _is_behind(place: Place) -> bool:
    """Whether installing again would change anything."""
    try:
        return bool(plan(place, install=True).changes)
    except Refused:
        return False


def _everywhere(place: Place) -> tuple[str, str]:
    setup = _setup(place)
    return git_install.status_everywhere(setup)


def _setup(place: Place) -> git_install.Setup:
    return git_install.Setup(place.config, folder(place.store), place.environ)


def _told(place: Place, found: list[git_files.Change], notes: list[str], *, install: bool) -> Plan:
    changes = [Change(one.path, _bytes(one.before), _bytes(one.after)) for one in found]
    if install and place.everywhere and any(one.path.endswith("post-commit") for one in found):
        notes.append("in a repository that is there already, 'git init' brings the hooks")
    if not install and place.everywhere and changes:
        notes.append("a repository that was made meanwhile keeps its hooks until 'uninstall' there")
    return Plan(changes, notes)


def _bytes(file: git_files.File | None) -> bytes | None:
    if file is None:
        return None
    return b"-> " + file.data + b"\n" if file.link else file.data
