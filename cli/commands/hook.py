"""remem hook: install, remove, show and print what feeds the memory by itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli.plain import one_line
from remem.cli.render import plain_lines
from remem.cli.settings import home
from remem.hooks import targets
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.hooks.mcp.clients import Told
    from remem.hooks.targets import Change, Place, Plan

ACTIONS = ("install", "uninstall", "status", "print")


def run(
    context: Context,
    *,
    action: str,
    target: str | None,
    bash: bool,
    zsh: bool,
    fish: bool,
    everywhere: bool,
    project: bool,
    with_context: bool,
    dry_run: bool,
) -> int:
    """Do one of ACTIONS."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action of hook", hint="one of " + ", ".join(ACTIONS))
    shells = tuple(name for name, given in (("bash", bash), ("zsh", zsh), ("fish", fish)) if given)
    of_claude = project or with_context
    if action in ("status", "print") and (shells or dry_run or everywhere or of_claude):
        raise UsageError(f"{action} takes no options")
    if action in ("install", "print"):
        _ = context.own_root  # what hooks name they trust from then on
    place = place_of(
        context, shells, everywhere=everywhere, project=project, with_context=with_context
    )
    if action == "print":
        return _print(context, target, place)
    if target is not None and target not in targets.TARGETS:
        raise UsageError(
            f"'{target}' cannot be hooked", hint="one of " + ", ".join(targets.TARGETS)
        )
    if action == "status":
        return _status(context, target, place)
    if target is None:
        raise UsageError(f"{action} needs a target", hint="one of " + ", ".join(targets.TARGETS))
    if shells and target != "shell":
        raise UsageError("--bash, --zsh and --fish belong to the target 'shell'")
    if everywhere and target != "git":
        raise UsageError("--global belongs to the target 'git'")
    if of_claude and target != "claude":
        raise UsageError("--project and --with-context belong to the target 'claude'")
    if with_context and action != "install":
        raise UsageError("--with-context goes with install")
    module = targets.load(target)
    install = action == "install"
    do = module.plan if dry_run else module.carry_out
    _say(context, target, do(place, install=install), install=install, dry_run=dry_run)
    return 0


def place_of(
    context: Context,
    shells: tuple[str, ...] = (),
    *,
    everywhere: bool = False,
    project: bool = False,
    with_context: bool = False,
) -> Place:
    """Where hooks go for the user who runs this."""
    return targets.Place(
        home=home(context.environ),
        config=os.path.dirname(context.settings.user_file),
        store=context.root,
        folder=context.folder,
        environ=context.environ,
        shells=shells,
        everywhere=everywhere,
        project=project,
        with_context=with_context,
    )


def _print(context: Context, shell: str | None, place: Place) -> int:
    from remem.hooks import cron
    from remem.hooks.mcp import clients
    from remem.hooks.shell.scripts import SHELLS, script

    if shell in clients.CLIENTS:
        return _print_client(context, clients.settings(shell, place.store))
    if shell == "git":
        return _print_git(context, place)
    if shell == "cron":
        text = cron.text(place)
    elif shell in SHELLS:
        text = script(shell, place.store)
    else:
        known = ", ".join((*SHELLS, "git", "cron", *clients.CLIENTS))
        raise UsageError("print needs a shell, git, cron or a client", hint=f"one of {known}")
    if context.json:
        context.emit({"shell": shell, "script": text})
    else:
        context.out(text.rstrip("\n"))
    return 0


def _print_git(context: Context, place: Place) -> int:
    """Print the script that the hooks of git run, and the line by which each of them does."""
    from remem.hooks import target_git

    script, path, lines = target_git.text(place)
    if context.json:
        context.emit({"file": path, "script": script, "lines": lines})
        return 0
    context.note(f"for '{path}'; and a line in the hook of each event:")
    for line in lines:
        context.note(line)
    context.out(script.rstrip("\n"))
    return 0


def _print_client(context: Context, told: Told) -> int:
    """Print what starts the MCP server, and into which file of a client it belongs."""
    if context.json:
        context.emit({"file": told.file, "text": told.text})
    else:
        context.note(f"for '{told.file}'")
        context.out(told.text.rstrip("\n"))
    return 0


def _status(context: Context, target: str | None, place: Place) -> int:
    names = [target] if target else list(targets.TARGETS)
    found = [(name, state) for name in names for state in targets.load(name).status(place)]
    if context.json:
        context.emit(
            [
                {"target": name, "name": s.name, "state": s.state, "path": s.path}
                for name, s in found
            ]
        )
        return 0
    rows = [(name, s.name, s.state, one_line(s.path)) for name, s in found]
    for line in plain_lines(rows):
        context.out(line)
    return 0


def _say(context: Context, target: str, plan: Plan, *, install: bool, dry_run: bool) -> None:
    if context.json:
        context.emit(
            {
                "target": target,
                "dry_run": dry_run,
                "changes": [{"path": c.path, "change": c.word} for c in plan.changes],
                "notes": plan.notes,
            }
        )
        return
    if not plan.changes:
        context.out("nothing to do: " + ("installed already" if install else "not installed"))
    for change in plan.changes:
        if dry_run:
            for line in diff(change):
                context.out(line)
        else:
            context.out(f"{change.word} {one_line(change.path)}")
    for note in plan.notes:
        context.note(note)


def diff(change: Change) -> list[str]:
    """A change as a unified diff; what is no text in it is escaped."""
    from difflib import unified_diff

    from remem.cli.plain import visible

    old, new = (
        [] if data is None else data.decode("utf-8", "backslashreplace").splitlines()
        for data in (change.before, change.after)
    )
    was, becomes = (
        "/dev/null" if data is None else change.path for data in (change.before, change.after)
    )
    return [visible(line) for line in unified_diff(old, new, was, becomes, lineterm="")]
