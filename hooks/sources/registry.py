"""The formats that can be imported, and the one way to read each of them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, cast

import msgspec

from remem.hooks.sources._record import LIMIT_B, Record
from remem.objects.errors import BadInput, UsageError
from remem.objects.model import Rejected

_PACKAGE = "remem.hooks.sources"


class Format(msgspec.Struct, frozen=True):
    """A format by name.

    Attributes:
        module: the module that reads it, imported when it is first needed.
        what: what it is, for lists.
        unit: what one record is made of.
        suffixes: ends of the names of the files that belong to it, where a folder is given.
        streams: whether it can be read from a stream; a repository and a database cannot.
    """

    module: str
    what: str
    unit: str
    suffixes: tuple[str, ...] = ()
    streams: bool = True

    def reader(self) -> Callable[..., Iterator[Record]]:
        """Import the module and give its function that reads a stream, or else a path."""
        module = importlib.import_module(f"{_PACKAGE}.{self.module}")
        found = module.read if self.streams else module.read_path
        return cast("Callable[..., Iterator[Record]]", found)


FORMATS: dict[str, Format] = {
    "jsonl": Format("jsonl", "JSON lines with 'text'", "line", (".jsonl", ".ndjson")),
    "text": Format("text", "plain text", "block between blank lines", (".txt",)),
    "markdown": Format("markdown", "Markdown", "section", (".md", ".markdown")),
    "claude-code": Format("claude_code", "sessions of Claude Code", "content block", (".jsonl",)),
    "codex": Format("codex", "sessions of Codex", "line", (".jsonl",)),
    "gemini": Format("gemini", "sessions of Gemini CLI", "text or tool call", (".json",)),
    "chatgpt": Format("chatgpt", "exports of ChatGPT", "message", ("conversations.json", ".zip")),
    "git": Format("git", "the history of a git repository", "commit or tag", streams=False),
    "bash-history": Format("bash_history", "the history of bash", "command", ("bash_history",)),
    "zsh-history": Format(
        "zsh_history", "the history of zsh", "command", ("zsh_history", ".histfile")
    ),
    "fish-history": Format("fish_history", "the history of fish", "command", ("fish_history",)),
    "atuin": Format("atuin", "the database of atuin", "command", streams=False),
}


def read(
    fmt: str,
    path: str,
    *,
    since: int | None = None,
    limit_b: int = LIMIT_B,
    env: Mapping[str, str] | None = None,
) -> Iterator[Record]:
    """Read a file, every file of a format in a folder, or a repository.

    Args:
        fmt: name of the format, one of FORMATS.
        path: the file or folder.
        since: microseconds UTC; older records come as Skipped.
        limit_b: bytes that one unit may have; a larger one comes as Rejected.
        env: the caller's environment, for formats that run a program.

    Returns:
        The records, read while they are taken.

    Raises:
        UsageError: if there is no such format.
        BadInput: if there is nothing to read at the path; also while reading, if a file that was
            named cannot be opened.
    """
    entry = _entry(fmt)
    if not entry.streams:
        return entry.reader()(path, since=since, limit_b=limit_b, env=env)
    found = files(fmt, path)
    return _read_files(entry, found, since, limit_b, named=found == [path])


def read_stream(
    fmt: str,
    stream: BinaryIO,
    name: str,
    *,
    since: int | None = None,
    limit_b: int = LIMIT_B,
) -> Iterator[Record]:
    """Read a stream of bytes.

    Args:
        fmt: name of the format, one of FORMATS.
        stream: the bytes.
        name: what to call the stream in places ("-" for standard input).
        since: microseconds UTC; older records come as Skipped.
        limit_b: bytes that one unit may have; a larger one comes as Rejected.

    Returns:
        The records, read while they are taken.

    Raises:
        UsageError: if there is no such format, or it cannot be read from a stream.
    """
    entry = _entry(fmt)
    if not entry.streams:
        raise UsageError(f"'{fmt}' cannot be read from a stream", hint="name its path")
    return entry.reader()(stream, name, since=since, limit_b=limit_b)


def files(fmt: str, path: str) -> list[str]:
    """List the files of a format: the path itself or, of a folder, what lies below it, in order.

    Hidden folders below it and links to folders are not entered.

    Raises:
        UsageError: if there is no such format.
        BadInput: if there is no such path, or no file of the format below it.
    """
    entry = _entry(fmt)
    if not os.path.exists(path):
        raise BadInput(f"no such file or folder: '{path}'")
    if not os.path.isdir(path):
        return [path]
    found: list[str] = []
    for folder, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        paths = [os.path.join(folder, name) for name in names if name.endswith(entry.suffixes)]
        found += [path for path in paths if os.path.isfile(path) or not os.path.exists(path)]
    if not found:
        ends = " or ".join(f"'{suffix}'" for suffix in entry.suffixes)
        raise BadInput(f"no file of '{fmt}' below '{path}'", hint=f"their names end in {ends}")
    return sorted(found)


def _entry(fmt: str) -> Format:
    entry = FORMATS.get(fmt)
    if entry is None:
        raise UsageError(f"no such format: '{fmt}'", hint=f"formats: {', '.join(FORMATS)}")
    return entry


def _read_files(
    entry: Format, paths: list[str], since: int | None, limit_b: int, *, named: bool
) -> Iterator[Record]:
    reader = entry.reader()
    for path in paths:
        try:
            with open(path, "rb") as stream:
                yield from reader(stream, path, since=since, limit_b=limit_b)
        except OSError as error:
            why = error.strerror or str(error)
            if named:
                raise BadInput(f"cannot read '{path}': {why[:1].lower()}{why[1:]}") from None
            yield Rejected(path, f"cannot be read: {why[:1].lower()}{why[1:]}")
