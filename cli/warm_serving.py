"""What the resident process runs for a client: the command itself, as the client would have."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from remem.cli.context import Context
from remem.cli.front import parse
from remem.cli.run import guarded, run_parsed
from remem.hooks import warm_client
from remem.objects import format as fmt
from remem.objects.errors import RememError

if TYPE_CHECKING:
    from remem.hooks.warm import Link, Request

# What a question needs.  Whatever is missing here is loaded after the first one that needed it.
MODULES = (
    "blake3",
    "lmdb",
    "msgspec",
    "remem.cli.commands.context",
    "remem.cli.commands.recall",
    "remem.cli.deriving",
    "remem.cli.draining",
    "remem.cli.reminder",
    "remem.cli.times",
    "remem.hooks.drain",
    "remem.hooks.identity",
    "remem.index.context",
    "remem.index.engine",
    "remem.index.pinned",
    "remem.objects.store",
)
NUMERIC = ("numpy", "remem.index.dense", "remem.index.vectors", "remem.index.bert")


# Words that need every part of what reads a question.
_SAMPLE = "What did I run here on the 3rd of May 2023, and where did Ann's e-mail go before?"


def rehearse() -> None:
    """Do beforehand what the first question of a process does once: expressions, tables, stems."""
    from remem.index.analyze import query_terms
    from remem.index.past import about_past
    from remem.index.timewords import periods
    from remem.objects.views import Lens

    now = time.time_ns() // 1000
    query_terms(_SAMPLE)
    periods(_SAMPLE, now=now)
    about_past(_SAMPLE, Lens(now))


def answer(asked: Request, link: Link) -> int | None:
    """Run a client's command in this process, which is there for nothing else.

    Returns:
        Its exit status, or None when the client has to run it: it is none of those that are
        answered here, or it may not be answered for this client.
    """
    os.umask(asked.umask)
    os.environ.clear()
    os.environ.update(asked.env)
    time.tzset()
    try:
        os.chdir(asked.cwd)
    except OSError:
        return None
    parsed = parse(asked.words)
    if parsed is None or parsed.command.name not in warm_client.COMMANDS:
        return None
    if parsed.values.get("batch") is not None:
        return None
    try:
        root = Context(parsed.command, parsed.given).root
    except RememError:
        return None
    # Who could not read the store by itself shall not have it read by another process.
    if not link.may_read(os.path.join(root, fmt.FORMAT_FILE)):
        return None
    sys.stdin, sys.stdout, sys.stderr = link.streams(asked)
    code = guarded(run_parsed, asked.words)
    sys.stdout.flush()
    sys.stderr.flush()
    return code
