"""Hook files: our lines in them, and taking them out again to the byte.

A hook that does not exist is made; a shell script gets our lines behind its first line, so that its
name, its folder and its exit status stay what they were.  Anything else (another language, a link,
a file that git ignores because it is not executable) is moved to ``remem.d`` beside it, under its
own name, and a script of ours runs it, with its arguments and its standard input, as the last
thing, so that its exit status decides.
"""

from __future__ import annotations

import os
import re
import shlex
import stat

import msgspec

from remem.objects.errors import Refused

ASIDE = "remem.d"  # folder of the hooks that were moved
READS = frozenset(("post-rewrite",))  # hooks that get something on standard input

_SHELL = re.compile(
    rb"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:\S*/)?"
    rb"(?:ba|da|k|z|a|mk)?sh(?:[ \t][^\r\n]*)?\n"
)
_BLOCK = re.compile(
    rb"# >>> remem (?P<how>made|folder made|put in|moved) >>>\n(?P<inside>.*?)# <<< remem <<<\n",
    re.DOTALL,
)
_NOTICE = b"# 'remem hook uninstall git' removes this: remem-hook(1)\n"
_CALL = rb'sh [^\n]*"\$@"(?: </dev/null)? >/dev/null 2>&1 \|\| :\n'
_READ = b"remem_read=$(cat)\n"
_HANDED = b"exec <<remem_read\n$remem_read\nremem_read\n"
_PIPE = b"printf '%s\\n' \"$remem_read\" | "
_OURS = re.compile(
    rb"^(?:%b|%b|%b|(?:%b)?%b)"
    % (*map(re.escape, (_NOTICE, _READ, _HANDED)), re.escape(_PIPE), _CALL),
    re.MULTILINE,
)
_FIRST = b"#!/bin/sh\n"


class File(msgspec.Struct, frozen=True):
    """What stands at a path: bytes and mode, or the target of a link."""

    data: bytes
    mode: int = 0o755
    link: bool = False


class Change(msgspec.Struct, frozen=True):
    """What is to become of a path; None is nothing there."""

    path: str
    before: File | None
    after: File | None


def look(path: str) -> File | None:
    """What stands at a path.

    Raises:
        Refused: it is neither a file nor a link, or cannot be read.
    """
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return File(os.fsencode(os.readlink(path)), 0o777, True)
        if not stat.S_ISREG(found.st_mode):
            raise Refused(f"'{path}' is no file")
        with open(path, "rb") as file:
            return File(file.read(), stat.S_IMODE(found.st_mode))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Refused(f"cannot read '{path}': {error.strerror}") from None


def apply(changes: list[Change]) -> None:
    """Make changes, each file at once or not at all.

    Raises:
        Refused: a path cannot be written, or is not what it was when the changes were planned.
    """
    for change in changes:
        if look(change.path) != change.before:
            raise Refused(f"'{change.path}' has changed meanwhile", hint="try it again")
        try:
            _write(change.path, change.after)
        except OSError as error:
            raise Refused(f"cannot write '{change.path}': {error.strerror}") from None


def _write(path: str, wanted: File | None) -> None:
    if wanted is None:
        os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    made = f"{path}.remem-{os.getpid()}"
    try:
        if wanted.link:
            os.symlink(os.fsdecode(wanted.data), made)
        else:
            with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(wanted.data)
            os.chmod(made, wanted.mode)
        os.replace(made, path)
    except OSError:
        if os.path.lexists(made):
            os.unlink(made)
        raise


def line_of(script: str, spool: str, listed: str, event: str) -> str:
    """The one line that notes an event and never says anything."""
    given = "" if event in READS else " </dev/null"
    return f'{command_of(script, spool, listed, event)} "$@"{given} >/dev/null 2>&1 || :'


def command_of(script: str, spool: str, listed: str, event: str) -> str:
    """What notes an event, given the arguments of the hook."""
    return shlex.join(("sh", script, spool, listed, event))


def planned(folder: str, event: str, line: str) -> list[Change]:
    """What makes the hook of an event note it; nothing if it does already.

    Raises:
        Refused: something else is in the way.
    """
    path, aside = os.path.join(folder, event), os.path.join(folder, ASIDE, event)
    now, moved = look(path), look(aside)
    renewed = _renewed(now, moved, event, line)
    if renewed is not None:
        return _changes((path, now, renewed))
    hook, kept = _original(now, moved)
    folder_made = not os.path.isdir(folder) or (now is not None and b" folder made " in now.data)
    if hook is None:
        how = "folder made" if folder_made else "made"
        return _changes((path, now, File(_FIRST + _lines(how, line, event))))
    shell = not hook.link and hook.mode & 0o100 and _SHELL.match(hook.data)
    if shell:
        end = shell.end()
        data = hook.data[:end] + _lines("put in", line, event) + hook.data[end:]
        return _changes((path, now, File(data, hook.mode)), (aside, moved, None))
    if moved is not None and not kept:
        raise Refused(f"'{aside}' is in the way", hint="move it elsewhere")
    data = _FIRST + _lines("moved", line, event) + _last(event)
    return _changes((aside, moved, _farther(hook)), (path, now, File(data)))


def removal(folder: str, event: str, notes: list[str] | None = None) -> list[Change]:
    """What brings the hook of an event back to what it was, the bytes and the mode.

    Lines that somebody wrote between ours stay, and notes gets a word of them.
    """
    path, aside = os.path.join(folder, event), os.path.join(folder, ASIDE, event)
    now, moved = look(path), look(aside)
    if now is None or not is_ours(now):
        return []
    hook, kept = _original(now, moved)
    added = _added(now)
    if added and notes is not None:
        count = len(added.splitlines())
        lines = "a line" if count == 1 else f"{count} lines"
        notes.append(f"left {lines} that somebody wrote into the block of remem in '{path}'")
    if kept and (added or _around(now, event)):
        if notes is not None:
            notes.append(f"'{path}' goes on running the hook in '{aside}'")
        return _changes((path, now, File(_without_ours(now), now.mode)))
    return _changes((path, now, hook), (aside, moved, None if kept else moved))


def tidy(folder: str, *, made: bool) -> None:
    """Remove the folders that were made for hooks, where nothing is left in them."""
    for path in (os.path.join(folder, ASIDE), *((folder,) if made else ())):
        try:
            os.rmdir(path)
        except OSError:
            continue  # not there, or in use


def is_ours(file: File | None) -> bool:
    """Whether our lines stand in a hook."""
    return file is not None and not file.link and _BLOCK.search(file.data) is not None


def is_edited(file: File | None, event: str) -> bool:
    """Whether somebody changed our block: wrote lines into it, or took some of it away."""
    found = None if file is None or file.link else _BLOCK.search(file.data)
    if file is None or found is None:
        return False
    reads = event in READS and found["how"] not in (b"made", b"folder made")
    ours = len(_OURS.findall(found["inside"]))
    around = _around(file, event) if found["how"] == b"moved" else b""
    return bool(_added(file) or around) or ours != (4 if reads else 2)


def made_folder(folder: str, events: tuple[str, ...]) -> bool:
    """Whether the folder of the hooks was not there before ours."""
    found = [look(os.path.join(folder, event)) for event in events]
    return any(file is not None and b"# >>> remem folder made >>>" in file.data for file in found)


def _changes(*wanted: tuple[str, File | None, File | None]) -> list[Change]:
    return [Change(*one) for one in wanted if one[1] != one[2]]


def _original(now: File | None, moved: File | None) -> tuple[File | None, bool]:
    """The hook without us, and whether it is the one that was moved."""
    if now is None or now.link:
        return now, False
    found = _BLOCK.search(now.data)
    if found is None:
        return now, False
    how = found["how"]
    if how == b"moved" and moved is not None:
        return _nearer(moved), True
    left = _without_ours(now)
    if how != b"put in" and left == _FIRST:
        return None, False  # ours alone; what somebody has added since is kept
    return File(left, now.mode), False


def _without_ours(file: File) -> bytes:
    """A hook without our lines: what somebody wrote between them stays."""
    found = _BLOCK.search(file.data)
    assert found is not None
    inside = _OURS.sub(b"", found["inside"])
    kept = inside if inside.strip() else b""
    return file.data[: found.start()] + kept + file.data[found.end() :]


def _added(file: File) -> bytes:
    """What somebody wrote into our block, b"" for nothing."""
    found = _BLOCK.search(file.data)
    left = b"" if found is None else _OURS.sub(b"", found["inside"])
    return left if left.strip() else b""


def _around(file: File, event: str) -> bytes:
    """What somebody wrote into a script of ours that runs a hook which was moved."""
    found = _BLOCK.search(file.data)
    if found is None:
        return b""
    around = file.data[: found.start()] + file.data[found.end() :]
    return b"" if around == _FIRST + _last(event) else around


def _renewed(now: File | None, moved: File | None, event: str, line: str) -> File | None:
    """A script that runs a moved hook and that somebody changed, with our lines as they are now."""
    found = None if now is None or now.link else _BLOCK.search(now.data)
    if now is None or found is None or found["how"] != b"moved" or moved is None:
        return None
    added = _added(now)
    if not added and not _around(now, event):
        return None
    block = _lines("moved", line, event)
    end = block.rindex(b"# <<< remem <<<")
    data = now.data[: found.start()] + block[:end] + added + block[end:] + now.data[found.end() :]
    return File(data, now.mode)


def _lines(how: str, line: str, event: str) -> bytes:
    if event in READS and how not in ("made", "folder made"):
        # What git hands over is read for us and handed on.
        told = _READ + _PIPE + os.fsencode(line) + b"\n" + _HANDED
    else:
        told = os.fsencode(line) + b"\n"
    return b"# >>> remem %b >>>\n%b%b# <<< remem <<<\n" % (how.encode(), _NOTICE, told)


def _last(event: str) -> bytes:
    hook = f"remem_hook=${{0%/*}}/{ASIDE}/{event}"
    return f'{hook}\n[ -x "$remem_hook" ] || exit 0\nexec "$remem_hook" "$@"\n'.encode()


def _farther(file: File) -> File:
    """A link as seen from the folder below."""
    if file.link and not file.data.startswith(b"/"):
        return File(b"../" + file.data, file.mode, True)
    return file


def _nearer(file: File) -> File:
    if file.link and file.data.startswith(b"../"):
        return File(file.data[3:], file.mode, True)
    return file
