"""Taking in everything that hooks left: the one entry point for whoever drains.

The spool of the shells and the notes of the git hooks are different files with one purpose; a
command, a consolidation or a test that wants the store to know all of it calls `everything`.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import msgspec

from remem.hooks import drain, git_hook
from remem.hooks.drain import Drained
from remem.hooks.sources._git import GitMissing
from remem.objects import format as fmt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from remem.hooks.drain import Rules
    from remem.objects.scope import Actor
    from remem.objects.store import Store


class Intake(msgspec.Struct, frozen=True):
    """How what hooks left is taken in; whoever starts a command makes it of the settings.

    Attributes:
        actor: who takes it in.
        rules: how lines become evidence.
        env: the caller's environment, without which git does not find its programs.
        scratch: folders in which shells that ended may have left a file.
    """

    actor: Actor
    rules: Rules
    env: Mapping[str, str] = {}
    scratch: Sequence[str] = ()


def everything(
    store: Store,
    how: Intake,
    *,
    budget_s: float | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    dry_run: bool = False,
) -> Drained:
    """Take in what the shells and the git hooks left.

    Args:
        store: open for writing.
        how: see `Intake`.
        budget_s: stop after about so many seconds.
        progress: called with (what, done, of).
        dry_run: the store keeps nothing, so nothing is taken from the spool.

    Raises:
        StoreLocked: another process is at it.
    """
    deadline = None if budget_s is None else time.monotonic() + budget_s
    done = drain.drain(
        store,
        how.actor,
        how.rules,
        budget_s=budget_s,
        scratch=how.scratch,
        progress=progress,
        dry_run=dry_run,
    )
    if not done.left:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        done.add(of_git(store, how, budget_s=left, dry_run=dry_run))
    return done


def beside(store: Store, how: Intake, *, proceed: Callable[[], bool]) -> Drained | None:
    """Take in what the shells and the git hooks left, in a thread beside others of this process.

    Args:
        store: open for writing.
        how: see `Intake`.
        proceed: asked between two transactions; stop when it says no.

    Returns:
        What was done; None when another process is draining.
    """
    done = drain.drain_beside(store, how.actor, how.rules, proceed=proceed)
    if done is not None and not done.left and proceed():
        done.add(of_git(store, how, budget_s=0.0))
    return done


def of_git(
    store: Store, how: Intake, *, budget_s: float | None = None, dry_run: bool = False
) -> Drained:
    """Take in what the git hooks left; where git itself cannot be run, it waits.

    Args:
        store: open for writing.
        how: see `Intake`.
        budget_s: stop after about so many seconds.
        dry_run: the store keeps nothing, so nothing is taken from the spool.
    """
    by = how.rules
    try:
        done = git_hook.drain(
            store,
            how.actor,
            os.path.join(store.root, fmt.SPOOL),
            env=how.env,
            limit_b=by.limit_b,
            ignored=by.ignore.folder,
            place=by.collection_in,
            budget_s=budget_s,
            dry_run=dry_run,
        )
    except GitMissing as error:
        return Drained(left=True, troubles=[f"what the hooks of git noted waits: {error}"])
    return Drained(
        read=done.read,
        new=done.new,
        known=done.known,
        blocked=done.blocked,
        rejected=done.rejected,
        damaged=done.torn,
        skipped={"ignored": done.skipped} if done.skipped else {},
        left=done.left,
    )
