"""The history of a git repository: one record a commit, oldest first.

Unit: a commit that HEAD reaches.  The record's text is the message and a list of the changed files
with the lines added and removed; a merge is flagged and lists no files, as its changes are those of
the commits that it joins.

The real git is run, with nothing of the user's settings: they change colours, encodings and the
shape of the output.  No hook runs, no pager, no signature check, and nothing is fetched.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import IO

from remem.hooks.identity import normalise_url
from remem.hooks.sources import _json
from remem.hooks.sources._json import Json
from remem.hooks.sources._record import LIMIT_B, Record, admit
from remem.hooks.sources._times import offset_minutes
from remem.objects.errors import BadInput, RememError
from remem.objects.model import Incoming, Rejected

TOOL = "git"
TEXT_FILES = 100  # changed files listed in the text of a record
META_FILES = 200  # changed files listed in its meta

_COMMIT = "\x01"  # begins a commit in the stream; no path that git prints in its place does
_FIELDS = ("%H", "%P", "%an", "%ae", "%ad", "%D", "%B")
_FORMAT = "--format=tformat:%x01" + "%x00".join(_FIELDS) + "%x00"
_SETTINGS = (
    "core.quotePath=false",
    "core.attributesFile=" + os.devnull,
    "core.fsmonitor=false",
    "log.showSignature=false",
    "log.showRoot=true",
    "i18n.logOutputEncoding=UTF-8",
    "color.ui=false",
    "diff.algorithm=myers",
    "diff.ignoreSubmodules=none",
    "diff.renameLimit=1000",
    "diff.relative=false",
)
_LOG = (
    "log",
    "--reverse",
    "--date-order",
    "-z",
    "--raw",
    "--abbrev=7",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "-O" + os.devnull,
    "--encoding=UTF-8",
    "--date=raw",
    "--decorate=short",
    "--decorate-refs=refs/heads",
    "--decorate-refs=refs/tags",
)
_RAW = re.compile(r":\d+ \d+ \w+\.* \w+\.* ([A-Z])\d*")
_STAT = re.compile(r"(\d+|-)\t(\d+|-)\t(.*)", re.DOTALL)


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
        One record for each commit; one more Rejected if git stops before the end.

    Raises:
        BadInput: if the folder is no repository, or git will not read it.
        RememError: if there is no git.
    """
    git = _Git(path, env or {})
    if not git.text("rev-parse", "--absolute-git-dir") and not git.is_allowed():
        raise BadInput(
            f"'{path}' is not a git repository that can be read: {git.complaint}",
            hint="name a folder with a work tree or a bare repository",
        )
    uri = "git:" + repository_name(git)
    if not git.text("rev-parse", "--quiet", "--verify", "HEAD^{commit}"):
        if git.text("rev-parse", "--quiet", "--verify", "HEAD"):
            raise BadInput(f"the repository '{path}' is damaged: the commit of HEAD is missing")
        return  # no commit yet
    for record in _commits(git, path, uri):
        yield admit(record, since, limit_b) if isinstance(record, Incoming) else record


def repository_name(git: _Git) -> str:
    """Name a repository: its normalised origin URL, else the path of its root."""
    url = git.text("config", "--get", "remote.origin.url")
    if url:
        return normalise_url(url, git.path)
    # The common folder is the same for every work tree of a repository.
    common = git.text("rev-parse", "--path-format=absolute", "--git-common-dir")
    root, last = os.path.split(os.path.normpath(common))
    return root if last == ".git" else os.path.normpath(common)


class _Git:
    """Runs git in one folder, the same way whoever runs it."""

    def __init__(self, path: str, env: Mapping[str, str]) -> None:
        if not os.path.isdir(path):
            raise BadInput(f"no such folder: '{path}'")
        self.path = path
        self.complaint = ""
        self._env = {key: value for key, value in env.items() if not key.startswith("GIT_")} | {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "LANGUAGE": "C",
        }
        self._start = ["git", "-C", path, "--no-pager", "--no-optional-locks"]
        for setting in _SETTINGS:
            self._start += ["-c", setting]

    def text(self, *words: str) -> str:
        """Run a command and give what it prints, "" if it fails (see `complaint`)."""
        with self.start(*words, errors=subprocess.PIPE) as process:
            out, errors = process.communicate()
        self.complaint = _complaint(errors)
        return out.decode(errors="surrogateescape").rstrip("\n") if not process.returncode else ""

    def start(self, *words: str, errors: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a command whose output is read while it runs."""
        try:
            return subprocess.Popen(
                [*self._start, *words],
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError as error:
            raise RememError(
                f"cannot run git: {error.strerror}", hint="install git, or look at PATH"
            ) from None

    def is_allowed(self) -> bool:
        """Try again with the folders of other people that the user's own settings call safe."""
        safe = self.safe_folders() if "dubious ownership" in self.complaint else []
        for folder in safe:
            self._start += ["-c", f"safe.directory={folder}"]
        return bool(safe) and bool(self.text("rev-parse", "--absolute-git-dir"))

    def safe_folders(self) -> list[str]:
        """Read the one setting of the user that must count: it gives leave, and shapes nothing."""
        keep = {key: value for key, value in self._env.items() if not key.startswith("GIT_CONFIG_")}
        found = subprocess.run(
            ["git", "config", "--get-all", "safe.directory"],
            cwd=os.sep,
            env=keep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        return found.stdout.decode(errors="surrogateescape").split("\n")[:-1]

    def is_partial(self) -> bool:
        """Say whether files of old commits may be missing and would have to be fetched."""
        return bool(self.text("config", "--get-regexp", r"^remote\..*\.promisor$"))


def _commits(git: _Git, path: str, uri: str) -> Iterator[Incoming | Rejected]:
    # Counting lines and following renames needs the files' contents, which a partial clone fetches.
    more = ("--no-renames",) if git.is_partial() else ("--numstat", "--find-renames")
    with tempfile.TemporaryFile() as errors:
        process = git.start(*_LOG, *more, _FORMAT, "HEAD", "--", errors=errors)
        try:
            assert process.stdout is not None
            yield from _parse(_tokens(process.stdout), path, uri)
            if process.wait():
                errors.seek(0)
                yield Rejected(path, f"git stopped before the end: {_complaint(errors.read())}")
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


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
        stats: dict[str, tuple[int, int]] = {}
        token = next(tokens, None)
        while token is not None and not token.startswith(_COMMIT.encode()):
            entry = token.lstrip(b"\n").decode(errors="backslashreplace")
            if raw := _RAW.fullmatch(entry):
                names = [_path(next(tokens, b"")) for _ in range(2 if raw[1] in "RC" else 1)]
                changes.append([raw[1], *names])
            elif stat := _STAT.fullmatch(entry):
                # A rename has its two names in tokens of their own.
                names = [stat[3]] if stat[3] else [_path(next(tokens, b"")) for _ in range(2)]
                stats[names[-1]] = (_count(stat[1]), _count(stat[2]))
            token = next(tokens, None)
        yield _record(fields, changes, stats, path, uri)


def _record(
    fields: list[bytes],
    changes: list[list[str]],
    stats: dict[str, tuple[int, int]],
    path: str,
    uri: str,
) -> Incoming:
    sha, parents = fields[0].decode(), fields[1].decode().split()
    message, guessed = _decoded(fields[6])
    author, _ = _decoded(fields[2])
    meta: Json = {"commit": sha, "parents": parents}
    if len(parents) > 1:
        meta["merge"] = True
    if fields[3]:
        meta["author_email"] = _decoded(fields[3])[0]
    if refs := _refs(_decoded(fields[5])[0]):
        meta["refs"] = refs
    if changes:
        meta["files"] = changes[:META_FILES]
        meta["files_changed"] = len(changes)
    if stats:
        meta["insertions"] = sum(added for added, _ in stats.values())
        meta["deletions"] = sum(removed for _, removed in stats.values())
    if guessed:
        meta["encoding"] = "latin-1, guessed"
    seconds, _, zone = fields[4].decode(errors="replace").partition(" ")
    known = seconds.lstrip("-").isdigit() and abs(int(seconds)) < 10**11
    listed = [_change(change, stats) for change in changes[:TEXT_FILES]]
    if len(changes) > TEXT_FILES:
        listed.append(f"… and {len(changes) - TEXT_FILES:,} more files")
    return Incoming(
        text="\n\n".join(filter(None, (message.strip() or f"commit {sha}", "\n".join(listed)))),
        asserted=int(seconds) * 1_000_000 if known else None,
        offset=offset_minutes(zone) if known and zone else None,
        speaker=author,
        origin="tool",
        source_uri=uri,
        source_id=sha,
        tool=TOOL,
        kind="commit",
        meta=meta,
        where=f"{path}@{sha[:12]}",
    )


def _change(change: list[str], stats: dict[str, tuple[int, int]]) -> str:
    names = " -> ".join(change[1:])
    added, removed = stats.get(change[-1], (0, 0))
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


def _count(text: str) -> int:
    return 0 if text == "-" else int(text)  # "-" for a binary file


def _refs(decoration: str) -> list[str]:
    # Where HEAD points says where somebody worked, not what the commit is.
    names = (name.removeprefix("HEAD -> ") for name in decoration.split(", "))
    return [name.removeprefix("tag: ") for name in names if name not in ("", "HEAD")]


def _complaint(errors: bytes) -> str:
    found = errors.decode(errors="replace").strip().splitlines()
    fatal = [line for line in found if line.startswith("fatal: ")]
    return (fatal or found or ["no reason given"])[0].removeprefix("fatal: ")
