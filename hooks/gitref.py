"""Checkpoints in a git repository: a chain of commits under ``refs/remem/checkpoints``.

Each commit holds one file, ``checkpoint``, with one note.  They are made with git's plumbing: the
index, HEAD, branches and the work tree are not touched, no hook of the repository runs, and author
and committer are remem's own, whatever the user's settings say.  The ref is pushed and fetched only
by who asks for it: ``git push origin refs/remem/checkpoints``.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from remem.hooks import gitenv
from remem.objects.errors import NotFound, StoreError, StoreLocked

if TYPE_CHECKING:
    from collections.abc import Mapping

REF = "refs/remem/checkpoints"
FILE = "checkpoint"
MAX_COMMITS = 100_000
_IDENTITY = {
    "GIT_AUTHOR_NAME": "remem",
    "GIT_AUTHOR_EMAIL": "remem@localhost",
    "GIT_COMMITTER_NAME": "remem",
    "GIT_COMMITTER_EMAIL": "remem@localhost",
}
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "i18n.commitEncoding=UTF-8",
    "gc.auto=0",
    "core.fsmonitor=false",
    "log.showSignature=false",
)
_TRIES = 5
_TIMEOUT_S = 30.0


class Checkpoints:
    """The checkpoints of the repository that a folder belongs to."""

    def __init__(self, folder: str, environ: Mapping[str, str]) -> None:
        """Look for the repository.

        Args:
            folder: a folder of its work tree, or a bare repository.
            environ: the caller's environment; git's own variables in it are left out.

        Raises:
            NotFound: the folder belongs to no repository.
            StoreError: there is no git.
        """
        self._env = gitenv.clean(environ) | _IDENTITY
        self._start = ["git", "-C", folder, "--no-pager"]
        for setting in _SETTINGS:
            self._start += ["-c", setting]
        done = self._run("rev-parse", "--absolute-git-dir")
        if done.returncode:
            raise NotFound(
                f"'{folder}' belongs to no git repository",
                hint="run it in a repository, or keep the checkpoint in a file",
            )
        self.folder = os.fsdecode(done.stdout.rstrip(b"\n"))

    def notes(self) -> list[tuple[str, str]]:
        """(commit, note) of every checkpoint, oldest first.

        Raises:
            StoreError: the ref or one of its commits cannot be read.
        """
        if self._tip() is None:
            return []
        listed = self._text("rev-list", "--reverse", f"--max-count={MAX_COMMITS}", REF)
        return [
            (f"commit {name[:12]}", self._text("cat-file", "blob", f"{name}:{FILE}"))
            for name in listed.split()
        ]

    def add(self, note: str, time_s: int) -> str:
        """Add a checkpoint.

        Args:
            note: the signed note.
            time_s: record time of the store, seconds since 1970; the date of the commit.

        Returns:
            The commit.

        Raises:
            StoreLocked: other processes moved the ref again and again.
            StoreError: git refused.
        """
        blob = self._text("hash-object", "-w", "--stdin", given=note).strip()
        tree = self._text("mktree", given=f"100644 blob {blob}\t{FILE}\n").strip()
        date = f"@{time_s} +0000"
        subject = f"remem checkpoint {' '.join(note.splitlines()[:2])}\n"
        for _ in range(_TRIES):
            tip = self._tip()
            parents = [] if tip is None else ["-p", tip]
            commit = self._text("commit-tree", tree, *parents, given=subject, date=date).strip()
            before = tip or "0" * len(commit)
            done = self._run("update-ref", "--no-deref", REF, commit, before)
            if not done.returncode:
                return commit
            if self._tip() == tip:
                raise StoreError(f"git cannot move '{REF}': {_complaint(done.stderr)}")
        raise StoreLocked(f"'{REF}' of '{self.folder}' is moved by others all the time")

    def _tip(self) -> str | None:
        done = self._run("rev-parse", "--quiet", "--verify", f"{REF}^{{commit}}")
        if not done.returncode:
            return done.stdout.decode("ascii", "replace").strip()
        if self._run("rev-parse", "--quiet", "--verify", REF).returncode:
            return None
        raise StoreError(f"'{REF}' of '{self.folder}' names no commit")

    def _text(self, *words: str, given: str = "", date: str = "") -> str:
        done = self._run(*words, given=given, date=date)
        if done.returncode:
            raise StoreError(f"git {words[0]} failed: {_complaint(done.stderr)}")
        return done.stdout.decode("utf-8", "replace")

    def _run(
        self, *words: str, given: str = "", date: str = ""
    ) -> subprocess.CompletedProcess[bytes]:
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
        try:
            return subprocess.run(
                [*self._start, *words],
                env=self._env | dates,
                input=given.encode(),
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise StoreError(f"git {words[0]} does not end") from error
        except OSError as error:
            raise StoreError(
                f"cannot run git: {error.strerror}", hint="install git, or use a file"
            ) from error


def _complaint(errors: bytes) -> str:
    lines = errors.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ")[:200] if lines else "it gave no reason"
