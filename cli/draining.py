"""Taking the spool in before a command that reads or changes the store.

What a shell or git noted a moment ago is evidence like any other, so a question asked now should
find it.  While another process writes, the command goes on without.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.objects.errors import RememError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remem.cli.context import Context
    from remem.cli.settings import Settings
    from remem.hooks.drain import Drained, Rules
    from remem.hooks.intake import Intake
    from remem.objects.scope import Actor
    from remem.objects.store import Store

# Commands that tell of the spool, or must leave the store as it is.
LEAVE = frozenset(
    (
        "audit",
        "backup",
        "completion",
        "config",
        "consolidate",
        "demo",
        "doctor",
        "drain",
        "help",
        "hook",
        "init",
        "jobs",
        "owner",
        "principal",
        "status",
        "verify",
    )
)
PATIENCE_S = 0.2  # to wait for another writer before going on without
BUDGET_S = 1.0


def before(context: Context, store: Store) -> None:
    """Take the spool in, if there is anything in it, nobody else writes, and the owner asks."""
    if context.command.name in LEAVE or context.bound is not None:
        return
    from remem.hooks import glance

    try:
        lines, events = glance.waits(store)
        if not (lines or events):
            return
        from remem.hooks import drain

        writable = context.open_again() if store.readonly else store
        try:
            done = drain.drain_soon(
                writable,
                actor(context),
                rules(context),
                patience_s=PATIENCE_S,
                budget_s=BUDGET_S,
                also=(lambda left_s: _of_git(context, writable, left_s)) if events else None,
            )
        finally:
            if writable is not store:
                writable.close()
    except (RememError, OSError) as error:
        context.detail(f"the spool waits: {error}")
        return
    if done is None:
        context.detail("the spool waits: another process is writing to the store")
    elif done.troubles:
        context.detail("; ".join(done.troubles))
    elif done.left:
        context.note("more waits in the spool; 'remem drain' takes it in")
    elif done.read:
        context.detail(f"took {done.read:,} lines in from the spool")


def everything(context: Context, store: Store) -> Drained:
    """Take all of the spool in.

    Raises:
        StoreLocked: another process is at it.
    """
    from remem.cli.reading import Meter
    from remem.hooks import intake

    meter = Meter(context)
    try:
        return intake.everything(store, how(context), progress=meter)
    finally:
        meter.clear()


def _of_git(context: Context, store: Store, budget_s: float) -> Drained:
    """Take in what the hooks of git noted."""
    from remem.hooks import intake

    return intake.of_git(store, how(context), budget_s=budget_s)


def how(context: Context) -> Intake:
    """How everything that hooks left is taken in."""
    from remem.hooks.intake import Intake

    return Intake(actor(context), rules(context), context.environ, scratch(context))


def actor(context: Context) -> Actor:
    """Who takes it in: the owner, in the tenant and profile of the settings files.

    Neither options nor the environment decide: they belong to whoever happens to drain, and not to
    the shell that captured.
    """
    from remem.hooks.drain import actor_for

    filed = _filed(context)
    return actor_for(filed.text("tenant"), filed.text("profile"))


def rules(context: Context) -> Rules:
    """How its lines become evidence, by the settings."""
    from remem.hooks.drain import Rules
    from remem.hooks.ignore import Ignore

    return Rules(Ignore(), _filed(context).text("collection"), context.limit_b)


def scratch(context: Context) -> Sequence[str]:
    """Folders in memory through which a shell may have read its history."""
    named = context.environ.get("XDG_RUNTIME_DIR", "")
    return [path for path in (named, f"/run/user/{os.geteuid()}", "/dev/shm") if path]


def _filed(context: Context) -> Settings:
    """The settings as the files have them, whatever was given to this command."""
    from remem.cli.settings import Settings

    kept = {k: v for k, v in context.environ.items() if not k.startswith("REMEM_")}
    settings = Settings({}, kept)
    settings.use_store(context.own_root, found=context.found)
    return settings
