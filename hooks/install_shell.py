"""Putting the shells' hooks where they are sourced, and taking them away again.

bash and zsh: the hook is a file in the folder of the user's settings, and a marked block at the end
of the start-up file sources it; no process is started for that.  fish: the hook is a file of its
own in conf.d.  What the block says of the file before it lets it be restored byte for byte.
"""

from __future__ import annotations

import os
import re
import shlex

from remem.hooks import targets
from remem.hooks.shell.scripts import SHELLS, script
from remem.hooks.targets import Change, Place, Plan, State
from remem.objects.errors import Refused, UsageError

NEW_FILE = ", in a new file"
NO_LINE_FEED = ", after a line without its end"

_BEGIN = "# >>> remem hook{how} >>>"
_END = "# <<< remem hook <<<"
_BLOCK = re.compile(
    rb"^# >>> remem hook(?P<how>[^\r\n]*?) >>>\r?\n(?P<inside>.*?)"
    rb"^# <<< remem hook <<<(?:\r?\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(rb"^# (?:>>>|<<<) remem hook.*$", re.MULTILINE)
_OURS = re.compile(
    rb"if \[ -r [^\r\n]+ \]; then \. [^\r\n]*hook\.(?:bash|zsh)[^\r\n]*; fi\r?\n?", re.MULTILINE
)
_HEAD = b"# remem: capture of commands for "


def chosen(place: Place) -> tuple[str, ...]:
    """The shells that were named, or the user's own.

    Raises:
        UsageError: none was named, and the user's is none of them.
    """
    if place.shells:
        return place.shells
    own = os.path.basename(place.environ.get("SHELL", ""))
    if own in SHELLS:
        return (own,)
    raise UsageError(
        f"the shell '{own or 'unknown'}' has no hook", hint="name one: --bash, --zsh or --fish"
    )


def hook_path(place: Place, shell: str) -> str:
    """Where the hook of a shell lies."""
    if shell == "fish":
        base = place.environ.get("XDG_CONFIG_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(place.home, ".config")
        return os.path.join(base, "fish", "conf.d", "remem.fish")
    return os.path.join(place.config, f"hook.{shell}")


def start_path(place: Place, shell: str) -> str:
    """The file that a shell reads when it starts."""
    if shell == "bash":
        return os.path.join(place.home, ".bashrc")
    return os.path.join(place.environ.get("ZDOTDIR") or place.home, ".zshrc")


def plan(place: Place, *, install: bool) -> Plan:
    """What an installation or its removal changes.

    Raises:
        UsageError: no shell is named and none can be told.
        Refused: a file is not ours, or cannot be read.
    """
    found = Plan()
    for shell in chosen(place):
        path = hook_path(place, shell)
        before = targets.read(path)
        if before is not None and not before.startswith(_HEAD):
            raise Refused(f"'{path}' is not a file of remem", hint="move it out of the way first")
        after = script(shell, place.store).encode() if install else None
        if shell != "fish":
            start = start_path(place, shell)
            data = targets.read(start)
            new = installed(data, path) if install else removed(data, start, found.notes)
            if new != data:
                found.changes.append(Change(start, data, new))
        if before != after:
            found.changes.append(Change(path, before, after))
    if install and not os.path.isdir(os.path.join(place.store, "spool")):
        found.notes.append(f"capture begins once there is a store in '{place.store}'")
    if found.changes:
        found.notes.append(
            "shells that start from now on capture; in one that runs, start another with 'exec'"
            if install
            else "shells that run go on until they end; REMEM_OFF=1 stops one"
        )
    return found


def carry_out(place: Place, *, install: bool) -> Plan:
    """Do what `plan` says, the hook before the line that sources it, and give it back.

    Raises:
        UsageError, Refused: as `plan`, or a file cannot be written.
    """
    found = plan(place, install=install)
    hooks = {hook_path(place, shell) for shell in chosen(place)}
    for change in sorted(found.changes, key=lambda c: (c.path in hooks) != install):
        targets.write(change)
    return found


def status(place: Place) -> list[State]:
    """What is there for each shell: installed, outdated, edited or missing."""
    found = []
    for shell in SHELLS:
        path = hook_path(place, shell)
        hook = targets.read(path)
        shown = path if shell == "fish" else start_path(place, shell)
        state = "missing"
        block = None if shell == "fish" else _BLOCK.search(targets.read(shown) or b"")
        if hook is not None and (shell == "fish" or block is not None):
            state = "installed"
            if hook != script(shell, place.store).encode():
                state = "outdated"
            if block is not None and block["inside"] != _line(path):
                state = "edited"
        elif block is not None:
            state = "outdated"  # the line without the file
        found.append(State(shell, state, shown))
    return found


# -- the block in the start-up file -------------------------------------------------------------


def _line(path: str) -> bytes:
    quoted = shlex.quote(path)
    return os.fsencode(f"if [ -r {quoted} ]; then . {quoted}; fi\n")


def installed(data: bytes | None, path: str) -> bytes:
    """A start-up file with the block that sources a hook, once."""
    found = _BLOCK.search(data or b"")
    if data is not None and found is not None:
        inside = found["inside"]
        ours = _OURS.search(inside)
        line = _line(path)
        if ours is None:
            inside = line + inside
        else:
            inside = inside[: ours.start()] + line + inside[ours.end() :]
        return data[: found.start("inside")] + inside + data[found.end("inside") :]
    how, gap = "", b""
    if data is None:
        how = NEW_FILE
    elif data and not data.endswith(b"\n"):
        how, gap = NO_LINE_FEED, b"\n"
    block = _BEGIN.format(how=how).encode() + b"\n" + _line(path) + _END.encode() + b"\n"
    return (data or b"") + gap + block


def removed(data: bytes | None, path: str, notes: list[str]) -> bytes | None:
    """A start-up file without the block; notes gets what was left and why."""
    if data is None:
        return None
    found = _BLOCK.search(data)
    if found is None:
        return _fragments(data, path, notes)
    how = found["how"].decode("utf-8", "replace")
    left = _OURS.sub(b"", found["inside"])
    before, after = data[: found.start()], data[found.end() :]
    if left.strip():
        count = len(left.splitlines())
        lines = "a line" if count == 1 else f"{count} lines"
        notes.append(f"left {lines} that somebody wrote into the block of remem in '{path}'")
        return before + left + after
    if how == NO_LINE_FEED and not after and before.endswith(b"\n"):
        before = before[:-1]
    whole = before + after
    return None if how == NEW_FILE and not whole else whole


def _fragments(data: bytes, path: str, notes: list[str]) -> bytes:
    """Without what is left of a block of which a mark is gone: the marks and our own line."""
    if _MARK.search(data) is None:
        return data
    notes.append(f"a mark of the block of remem in '{path}' was gone: look at its end")
    data = _OURS.sub(b"", data)
    return re.sub(rb"^# (?:>>>|<<<) remem hook.*(?:\n|\Z)", b"", data, flags=re.MULTILINE)
