"""The hooks of Claude Code as a target: entries in its settings, of this user or of the project.

Each entry is a program with its arguments, no line for a shell.  Other hooks and everything else in
the file stay as they are.  Entries of a project name no folder of this machine, since the file goes
with the project: ``remem`` is looked for in PATH, the store where every command finds it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from remem.hooks import claude_settings, targets
from remem.hooks.targets import Change, Plan, State

if TYPE_CHECKING:
    from remem.hooks.claude_settings import Json
    from remem.hooks.targets import Place

# Event -> argument of hook-event, seconds it may take.
EVENTS = {
    "SessionStart": ("session-start", 10),
    "PostToolUse": ("post-tool-use", 10),
    "SessionEnd": ("session-end", 60),
}
PROMPT = "UserPromptSubmit"
PROMPT_EVENT = ("user-prompt-submit", 15)
_MATCHED = frozenset(("PostToolUse",))  # events of tools: every tool


def settings_path(place: Place) -> str:
    """The settings file of this user, or of the project."""
    if place.project:
        return os.path.join(_top(place.folder), ".claude", "settings.json")
    base = place.environ.get("CLAUDE_CONFIG_DIR", "")
    return os.path.join(base if os.path.isabs(base) else os.path.join(place.home, ".claude"),
                        "settings.json")  # fmt: skip


def _refuse_link(path: str, top: str) -> None:
    """Raise where a link, which a clone can bring, leads out of the project."""
    from remem.objects.errors import Refused

    real, inside = os.path.realpath(path), os.path.realpath(top) + os.sep
    if not real.startswith(inside):
        raise Refused(f"'{path}' leads out of the project, to '{real}'", hint="remove the link")


def _top(folder: str) -> str:
    """Top of the work tree that a folder lies in, or the folder itself."""
    from remem.hooks.identity import find_root

    found = find_root(folder)
    return folder if found is None else found[0]


def program(place: Place) -> tuple[str, list[str]]:
    """What is called, and the arguments before those of the event."""
    if place.project:
        return "remem", []
    script = os.path.join(os.path.dirname(sys.executable), "remem")
    store = ["--store", place.store]
    if os.access(script, os.X_OK):
        return script, store
    return sys.executable, ["-m", "remem", *store]


def entry(place: Place, event: str) -> Json:
    """The entry of an event."""
    word, limit_s = PROMPT_EVENT if event == PROMPT else EVENTS[event]
    command, before = program(place)
    hook: Json = {
        "type": "command",
        "command": command,
        "args": [*before, "hook-event", "claude", word],
        "timeout": limit_s,
    }
    group: Json = {"matcher": "*"} if event in _MATCHED else {}
    return {**group, "hooks": [hook]}


def is_ours(hook: Json) -> bool:
    """Whether a hook of the settings calls this program."""
    args = hook.get("args")
    return isinstance(args, list) and args[-3:-1] == ["hook-event", "claude"]


def plan(place: Place, *, install: bool) -> Plan:
    """What would be done; changes nothing.

    Raises:
        Refused: the settings cannot be read, are no JSON, or lie elsewhere by a link of a project.
    """
    path = settings_path(place)
    if place.project:
        _refuse_link(path, _top(place.folder))
    before = targets.read(path)
    found = Plan()
    if before is None and not install:
        return found
    text = None if before is None else _text(before, path)
    after: str | None = None
    if install:
        after = _installed(text, path, place)
    elif text is not None:
        after = _removed(text, path)
    data = None if after is None else after.encode()
    if data != before:
        found.changes.append(Change(path, before, data))
    if install and not os.path.isdir(os.path.join(place.store, "spool")):
        found.notes.append(f"capture begins once there is a store in '{place.store}'")
    if found.changes:
        found.notes.append("sessions of Claude Code that start from now on are captured"
                           if install else "sessions that run go on as they began")  # fmt: skip
    return found


def carry_out(place: Place, *, install: bool) -> Plan:
    """Do what `plan` says, and give it back.

    Raises:
        Refused: as `plan`, or the file cannot be written.
    """
    found = plan(place, install=install)
    for change in found.changes:
        targets.write(change, mode=0o600)
    return found


def status(place: Place) -> list[State]:
    """What is there, for this user and for the project here."""
    import msgspec

    found = []
    for name, project in (("user", False), ("project", True)):
        at = msgspec.structs.replace(place, project=project)
        path = settings_path(at)
        found.append(State(name, _state(at, path), path))
    return found


def _state(place: Place, path: str) -> str:
    data = targets.read(path)
    if data is None:
        return "missing"
    text = _text(data, path)
    there = {
        event: hook
        for event, _, _, hook in claude_settings.hooks_of(claude_settings.read(text, path))
        if is_ours(hook)
    }
    if not there:
        return "missing"
    if not EVENTS.keys() <= there.keys():
        return "edited"
    wanted = {event: entry(place, event)["hooks"] for event in there if event in _known()}
    same = all(wanted.get(event) == [hook] for event, hook in there.items())
    return "installed" if same else "outdated"


def _known() -> set[str]:
    return {*EVENTS, PROMPT}


def _text(data: bytes, path: str) -> str:
    from remem.objects.errors import Refused

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"'{path}' is not UTF-8", hint="mend it first") from error
    return text if text.strip() else "{}" + text


def _installed(text: str | None, path: str, place: Place) -> str:
    events = [*EVENTS, *([PROMPT] if place.with_context else [])]
    if text is None:
        hooks = {event: [entry(place, event)] for event in events}
        return claude_settings.dump({"hooks": hooks}, "  ", 0) + "\n"
    for event in events:
        text = claude_settings.put(text, path, event, entry(place, event), is_ours)
    if not place.with_context:
        text = claude_settings.drop(text, path, is_ours, PROMPT)
    return text


def _removed(text: str, path: str) -> str | None:
    """The file without our hooks; None where it holds nothing but what was made for them."""
    left = claude_settings.drop(text, path, is_ours)
    if left == text or claude_settings.read(left, path).items:
        return left
    made = claude_settings.was_made_here(text, claude_settings.read(text, path))
    return None if made else left
