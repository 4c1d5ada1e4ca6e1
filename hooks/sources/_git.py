"""Running git the same way for everybody, to read and nothing else.

Nothing of the user's settings takes part: they change colours, encodings and the shape of what git
prints.  No hook runs, no pager, no signature check, nothing is fetched, no lock is taken, and git's
own variables (which a hook inherits) lead nowhere.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import IO

from remem.hooks import gitenv
from remem.hooks.identity import normalise_url
from remem.objects.errors import BadInput, RememError

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


class GitMissing(RememError):
    """Git cannot be run at all."""

    kind = "missing_part"
    default_hint = "install git, or look at PATH"


class Git:
    """Runs git in one folder, the same way whoever runs it."""

    def __init__(self, path: str, env: Mapping[str, str]) -> None:
        if not os.path.isdir(path):
            raise BadInput(f"no such folder: '{path}'")
        self.path = path
        self.complaint = ""
        self._env = gitenv.clean(env) | {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
        }
        self._start = ["git", "-C", path, "--no-pager", "--no-optional-locks"]
        for setting in _SETTINGS:
            self._start += ["-c", setting]

    def text(self, *words: str, given: bytes = b"") -> str:
        """Run a command and give what it prints, "" if it fails (see `complaint`).

        Args:
            words: the command.
            given: what it reads from standard input.
        """
        with self.start(*words, errors=subprocess.PIPE, reads=bool(given)) as process:
            out, errors = process.communicate(given or None)
        self.complaint = complaint_of(errors)
        return out.decode(errors="surrogateescape").rstrip("\n") if not process.returncode else ""

    def start(
        self, *words: str, errors: int | IO[bytes], reads: bool = False, bare: str = ""
    ) -> subprocess.Popen[bytes]:
        """Start a command whose output is read while it runs.

        Args:
            words: the command, or settings and the command.
            errors: where its complaints go.
            reads: whether it reads from standard input.
            bare: the folder of the repository itself, to run there as if it had no work tree: what
                is checked out just now (its attributes) then shapes nothing.
        """
        there = ["-C", bare, "--bare"] if bare else []
        try:
            return subprocess.Popen(
                [*self._start, *there, *words],
                env=self._env,
                stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        except OSError as error:
            raise GitMissing(f"cannot run git: {error.strerror}") from None

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

    def name(self) -> str:
        """Name the repository: its normalised origin URL, else the path of its root."""
        url = self.text("config", "--get", "remote.origin.url")
        if url:
            return normalise_url(url, self.path)
        # The common folder is the same for every work tree of a repository.
        common = self.text("rev-parse", "--path-format=absolute", "--git-common-dir")
        root, last = os.path.split(os.path.normpath(common))
        return root if last == ".git" else os.path.normpath(common)


def complaint_of(errors: bytes) -> str:
    """The one line of what git said on stderr that tells what is wrong."""
    found = errors.decode(errors="replace").strip().splitlines()
    fatal = [line for line in found if line.startswith("fatal: ")]
    return (fatal or found or ["no reason given"])[0].removeprefix("fatal: ")
