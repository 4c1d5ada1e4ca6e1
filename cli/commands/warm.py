"""remem warm: a process that stays and answers questions faster."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from remem.cli import reading, warmed
from remem.hooks import warm_client
from remem.objects.errors import NotFound, StoreError, UsageError

if TYPE_CHECKING:
    from subprocess import Popen

    from remem.cli.context import Context
    from remem.cli.describe import Json

MAX_IDLE_MIN = 7 * 24 * 60
READY_S = 20.0
NONE_RUNS = "no resident process runs"


def run(context: Context, *, idle: int | None, stop: bool, status: bool, foreground: bool) -> int:
    """Start it, stop it, or say how it is."""
    if sum((stop, status, foreground)) > 1:
        raise UsageError("give one of --stop, --status and --foreground")
    minutes = context.settings.number("warm.idle") if idle is None else idle
    if not 0 < minutes <= MAX_IDLE_MIN:
        raise UsageError(f"--idle must be between 1 and {MAX_IDLE_MIN:,} minutes")
    folder = warmed.folder(context.environ)
    if foreground:
        return _serve(context, folder, minutes)
    found = _ask(folder, warm_client.STOP if stop else warm_client.STATUS)
    if stop:
        return _stopped(context, folder, found)
    if found is None and status:
        raise NotFound(NONE_RUNS)
    if found is None:
        found = start(context, folder, minutes)
        context.detail(f"started a resident process, process {found['pid']}")
    if context.json:
        context.emit(found)
    else:
        context.out(
            f"resident process {found['pid']}: {found['answered']} questions answered in "
            f"{found['seconds']} s; ends after {int(str(found['idle_seconds'])) // 60} idle minutes"
        )
    return 0


def start(context: Context, folder: str, minutes: int) -> Json:
    """Start it in the background and wait until it answers.

    Raises:
        StoreError: it does not.
    """
    child = spawn(context, minutes)
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        found = _ask(folder, warm_client.STATUS)
        if found is not None:
            return found
        if child.poll() is not None and child.returncode != 0:
            break
        time.sleep(0.02)
    raise StoreError(
        "the resident process does not start", hint="'remem warm --foreground' says why"
    )


def spawn(context: Context, minutes: int) -> Popen[bytes]:
    """Start it in the background, away from this terminal and this folder."""
    import subprocess

    words = [sys.executable, "-P", "-m", "remem", "warm", "--foreground", "--idle", str(minutes)]
    return subprocess.Popen(
        words,
        cwd="/",
        env=_plain(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def soon(context: Context) -> None:
    """Start one for the next question, if the settings ask for it and none is there."""
    if context.environ.get(warmed.COLD) or not context.settings.flag("warm.auto"):
        return
    folder = warmed.folder(context.environ)
    link = warm_client.connect(folder)
    if link is not None:
        link.close()
        return
    try:
        spawn(context, context.settings.number("warm.idle"))
    except OSError as error:
        context.detail(f"cannot start the resident process: {error.strerror}")


def _serve(context: Context, folder: str, minutes: int) -> int:
    """Be the resident process."""
    from remem.cli import warm_serving
    from remem.hooks.warm import Server

    embedder = context.settings.text("embedder")
    numeric = () if embedder == "none" else warm_serving.NUMERIC
    server = Server(
        folder,
        idle_s=60.0 * minutes,
        answer=warm_serving.answer,
        rehearse=warm_serving.rehearse,
        modules=(*warm_serving.MODULES, *numeric),
        embedder=embedder,
        cache_dir=reading.cache_dir(context),
    )
    if not server.run():
        raise NotFound("a resident process runs already", hint="'remem warm --stop' ends it")
    if context.json:
        context.emit({})
    return 0


def _stopped(context: Context, folder: str, found: Json | None) -> int:
    """Wait until the process that was told to stop is gone."""
    if found is None:
        raise NotFound(NONE_RUNS)
    deadline = time.monotonic() + READY_S
    while os.path.exists(os.path.join(folder, warm_client.SOCKET)):
        if time.monotonic() > deadline:
            raise StoreError(f"the resident process {found['pid']} does not stop")
        time.sleep(0.01)
    if context.json:
        context.emit(found)
    return 0


def _ask(folder: str, what: str) -> Json | None:
    """What a resident process says of itself, or None where there is none."""
    import msgspec

    fields = warmed.request(what, [])
    reply = None if fields is None else warm_client.ask(folder, fields)
    if reply is None or not reply.parts:
        return None
    return msgspec.json.decode(reply.parts[0][1], type=dict[str, object])


def _plain() -> dict[str, str]:
    """The environment of this process without what belongs to one command."""
    kept = ("REMEM_EMBEDDER", "REMEM_WARM_IDLE")
    return {n: v for n, v in os.environ.items() if not n.startswith("REMEM_") or n in kept}
