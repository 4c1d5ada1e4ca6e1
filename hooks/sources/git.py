"""The history of a git repository: its commits, oldest first, and then its tags.

Unit: a commit that HEAD reaches, the outline of its changes, or a tag of one.  The text of a commit
is its message and a list of the changed files with the lines added and removed; a merge is flagged
and lists no files, as its changes are those of the commits that it joins.  A record tells what the
commit itself tells: which branches lead to it changes, and is no part of it.

The outline of a commit (`remem.hooks.sources._git_diff`) follows it, where its diff names anything:
it is a record of its own, so that it is found by what it names and stands in no one's way else.

What is read here and what the hooks of `remem.hooks.git_hook` read are the same records, by the
same ids.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from typing import IO

from remem.hooks.sources import _git_diff, _json
from remem.hooks.sources._git import Git, complaint_of
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import LIMIT_B, Record, admit
from remem.hooks.sources._times import offset_minutes
from remem.objects.derive.outline import ID_END, KIND
from remem.objects.errors import BadInput
from remem.objects.model import Incoming, Rejected, Skipped

TOOL = "git"
TEXT_FILES = 100  # changed files listed in the text of a record
META_FILES = 200  # changed files listed in its meta
COMMIT, TAG = "commit", "tag"  # kinds; that of an outline is `remem.objects.derive.outline.KIND`
AT_ONCE = 200  # commits named in one command line

_COMMIT = "\x01"  # begins a commit in the stream; no path that git prints in its place does
_FIELDS = ("%H", "%P", "%an", "%ae", "%ad", "%B")
_FORMAT = "--format=tformat:%x01" + "%x00".join(_FIELDS) + "%x00"
_LOG = (
    "log",
    "-z",
    "--raw",
    "--abbrev=7",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "-O" + os.devnull,
    "--encoding=UTF-8",
    "--date=raw",
)
_WALK = ("--reverse", "--date-order")
_NAMED = ("--no-walk=unsorted",)
_RAW = re.compile(r":\d+ \d+ \w+\.* \w+\.* ([A-Z])\d*")
_STAT = re.compile(r"(\d+|-)\t(\d+|-)\t(.*)", re.DOTALL)
_REVERTS = re.compile(r"\bThis reverts commit ([0-9a-f]{7,64})\b")
_SHA_CHARS = (40, 64)  # of SHA-1 and of SHA-256
_TAG_FIELDS = (
    "refname:lstrip=2",
    "objectname",
    "objecttype",
    "*objectname",
    "*objecttype",
    "taggername",
    "creatordate:raw",
    "contents",
)
_TAG_END = b"\0\x01\n"
_TAG_FORMAT = "--format=" + "%00".join(f"%({field})" for field in _TAG_FIELDS) + "%00%01"


def read_git(
    path: str,
    *,
    since: int | None = None,
    limit_b: int = LIMIT_B,
    env: Mapping[str, str] | None = None,
) -> Iterator[Record]:
    """Read the commits of the repository that a folder belongs to.

    Args:
        path: the folder: a work tree, any folder below it, or a bare repository.
        since: microseconds UTC; commits whose author date is older are skipped.
        limit_b: bytes that one message may have.
        env: the caller's environment; of it, everything but git's own variables is handed to git.

    Yields:
        One record for each commit and each tag; one more Rejected if git stops before the end.

    Raises:
        BadInput: the folder is no repository, or git will not read it.
        RememError: there is no git.
    """
    git = repository(path, env or {})
    uri = uri_of(git)
    if not git.text("rev-parse", "--quiet", "--verify", "HEAD^{commit}"):
        if git.text("rev-parse", "--quiet", "--verify", "HEAD"):
            raise BadInput(f"the repository '{path}' is damaged: the commit of HEAD is missing")
        return  # no commit yet
    for record in chain(_log(git, uri, *_WALK, "HEAD"), tags(git, uri, "--merged=HEAD")):
        yield admit(record, since, limit_b) if isinstance(record, Incoming) else record


read_path = read_git


def repository(path: str, env: Mapping[str, str]) -> Git:
    """Open the repository that a folder belongs to.

    Raises:
        BadInput: the folder is no repository, or git will not read it.
        RememError: there is no git.
    """
    git = Git(path, env)
    if not git.text("rev-parse", "--absolute-git-dir") and not git.is_allowed():
        raise BadInput(
            f"'{path}' is not a git repository that can be read: {git.complaint}",
            hint="name a folder with a work tree or a bare repository",
        )
    return git


def uri_of(git: Git) -> str:
    """The source of every record of a repository."""
    return "git:" + git.name()


def named(git: Git, uri: str, shas: list[str]) -> Iterator[Incoming | Rejected]:
    """Read commits by name, in the order given; those that are gone are left out."""
    asked = "".join(f"{sha}\n" for sha in shas).encode()
    found = git.text("cat-file", "--batch-check=%(objectname) %(objecttype)", given=asked)
    there = [line.split(" ")[0] for line in found.split("\n") if line.endswith(" commit")]
    for at in range(0, len(there), AT_ONCE):
        yield from _log(git, uri, *_NAMED, *there[at : at + AT_ONCE])


def tags(git: Git, uri: str, *which: str) -> Iterator[Incoming | Skipped]:
    """Read the tags of commits, the older ones first.

    Args:
        git: the repository.
        uri: its source.
        which: further options of "git for-each-ref".
    """
    # What is taken out of the output is found by its separators: the words go through unharmed.
    with git.start(
        "for-each-ref", "--sort=creatordate", *which, _TAG_FORMAT, "refs/tags",
        errors=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        listed = process.stdout.read()
    for entry in listed.split(_TAG_END)[:-1]:
        fields = entry.split(b"\0")
        if len(fields) == len(_TAG_FIELDS):
            yield _tag(fields, git.path, uri)


def _log(git: Git, uri: str, *which: str) -> Iterator[Incoming | Rejected]:
    # Counting lines and following renames needs the files' contents, which a partial clone fetches.
    more = ("--no-renames",) if git.is_partial() else ("--numstat", "--find-renames")
    with tempfile.TemporaryFile() as errors, ExitStack() as held:
        process = git.start(*_LOG, *more, _FORMAT, *which, "--", errors=errors)
        diffs = None if git.is_partial() else held.enter_context(_diffs(git, which))
        try:
            assert process.stdout is not None
            for record in _parse(_tokens(process.stdout), git.path, uri):
                _resolve(git, record)
                yield record
                if diffs is not None and (outline := diffs.of(record.source_id)):
                    yield _outlined(record, outline)
            if process.wait():
                errors.seek(0)
                why = f"git stopped before the end: {complaint_of(errors.read())}"
                yield Rejected(git.path, why)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def _diffs(git: Git, which: tuple[str, ...]) -> Iterator[_git_diff.Commits]:
    """The outlines of the same commits, from a second git that runs beside the first one."""
    settings = [word for setting in _git_diff.SETTINGS for word in ("-c", setting)]
    process = git.start(
        *settings, *_git_diff.LOG, *which, "--",
        errors=subprocess.DEVNULL, bare=git.text("rev-parse", "--absolute-git-dir"),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield _git_diff.Commits(process.stdout)
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _outlined(commit: Incoming, outline: str) -> Incoming:
    """The record of the outline of a commit's changes."""
    return Incoming(
        text=outline,
        asserted=commit.asserted,
        offset=commit.offset,
        origin="tool",
        source_uri=commit.source_uri,
        source_id=commit.source_id + ID_END,
        tool=TOOL,
        kind=KIND,
        meta={"commit": commit.source_id},
        where=commit.where + ID_END,
    )


def _resolve(git: Git, record: Incoming) -> None:
    """Give the commits that a message says it reverts their full names."""
    full = []
    for name in _REVERTS.findall(record.text):
        if len(name) not in _SHA_CHARS:
            name = git.text("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}")
        if name and name not in full:
            full.append(name)
    if full:
        record.meta["reverts"] = full


def _tokens(stream: IO[bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read(_json.CHUNK_B):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _parse(tokens: Iterator[bytes], path: str, uri: str) -> Iterator[Incoming]:
    token = next(tokens, None)
    while token is not None:
        if not token.startswith(_COMMIT.encode()):
            token = next(tokens, None)
            continue
        fields = [token[1:]]
        fields += [next(tokens, b"") for _ in _FIELDS[1:]]
        changes: list[list[str]] = []
        stats: dict[str, list[int] | None] = {}
        token = next(tokens, None)
        while token is not None and not token.startswith(_COMMIT.encode()):
            entry = token.lstrip(b"\n").decode(errors="backslashreplace")
            if raw := _RAW.fullmatch(entry):
                names = [_path(next(tokens, b"")) for _ in range(2 if raw[1] in "RC" else 1)]
                changes.append([raw[1], *names])
            elif stat := _STAT.fullmatch(entry):
                # A rename has its two names in tokens of their own.
                names = [stat[3]] if stat[3] else [_path(next(tokens, b"")) for _ in range(2)]
                # A binary file has no lines: "-".
                stats[names[-1]] = None if stat[1] == "-" else [int(stat[1]), int(stat[2])]
            token = next(tokens, None)
        yield _record(fields, changes, stats, path, uri)


def _record(
    fields: list[bytes],
    changes: list[list[str]],
    stats: dict[str, list[int] | None],
    path: str,
    uri: str,
) -> Incoming:
    sha, parents = fields[0].decode(), fields[1].decode().split()
    message, guessed = _decoded(fields[5])
    author, _ = _decoded(fields[2])
    meta: Json = {"commit": sha, "parents": parents}
    if len(parents) > 1:
        meta["merge"] = True
    if fields[3]:
        meta["author_email"] = _decoded(fields[3])[0]
    if changes:
        meta["files"] = changes[:META_FILES]
        meta["files_changed"] = len(changes)
    if stats:
        counted = [stat for stat in stats.values() if stat is not None]
        meta["lines"] = [stats.get(change[-1]) for change in changes[:META_FILES]]
        meta["insertions"] = sum(added for added, _ in counted)
        meta["deletions"] = sum(removed for _, removed in counted)
    if guessed:
        meta["encoding"] = "latin-1, guessed"
    asserted, offset = _time(fields[4])
    listed = [_change(change, stats) for change in changes[:TEXT_FILES]]
    if len(changes) > TEXT_FILES:
        listed.append(f"… and {len(changes) - TEXT_FILES:,} more files")
    return Incoming(
        text="\n\n".join(filter(None, (message.strip() or f"commit {sha}", "\n".join(listed)))),
        asserted=asserted,
        offset=offset,
        speaker=author,
        origin="tool",
        source_uri=uri,
        source_id=sha,
        tool=TOOL,
        kind=COMMIT,
        meta=meta,
        where=f"{path}@{sha[:12]}",
    )


def _tag(fields: list[bytes], path: str, uri: str) -> Incoming | Skipped:
    name, made, kind, peeled, peeled_kind = (field.decode(errors="replace") for field in fields[:5])
    annotated = kind == "tag"
    if (peeled_kind if annotated else kind) != "commit":
        return Skipped(f"{path}@{name}", "a tag of no commit")
    sha = peeled if annotated else made
    asserted, offset = _time(fields[6])
    # A plain tag has no words of its own: git gives those of its commit.
    message, _ = _decoded(fields[7]) if annotated else ("", False)
    return Incoming(
        text="\n\n".join(filter(None, (f"tag {name} is commit {sha[:12]}", message.strip()))),
        asserted=asserted,
        offset=offset,
        speaker=_decoded(fields[5])[0],
        origin="tool",
        source_uri=uri,
        source_id=f"tag:{name}:{made}",
        tool=TOOL,
        kind=TAG,
        meta={"tag": name, "commit": sha},
        where=f"{path}@{name}",
    )


def _time(raw: bytes) -> tuple[int | None, int | None]:
    """Microseconds UTC and the offset in minutes, of a time as git writes it raw."""
    seconds, _, zone = raw.decode(errors="replace").partition(" ")
    if not seconds.lstrip("-").isdigit() or abs(int(seconds)) >= 10**11:
        return None, None
    return int(seconds) * 1_000_000, offset_minutes(zone) if zone else None


def _change(change: list[str], stats: dict[str, list[int] | None]) -> str:
    names = " -> ".join(change[1:])
    added, removed = stats.get(change[-1]) or (0, 0)
    lines = f" +{added} -{removed}" if added or removed else ""
    return f"{change[0]} {names}{lines}"


def _decoded(raw: bytes) -> tuple[str, bool]:
    # Git re-encodes what says its encoding; for the rest latin-1 is likely, and takes any byte.
    try:
        return raw.decode(), False
    except UnicodeDecodeError:
        return raw.decode("latin-1"), True


def _path(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")
