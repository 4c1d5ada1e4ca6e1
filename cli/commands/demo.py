"""remem demo: the tour, on a real agent session, in a store of its own."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

from remem.cli.context import Context
from remem.objects.errors import Blocked, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

SESSION = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "demo")
FILE = "pomodoro-timer.jsonl"
RETURNING = "the break should last 10 minutes on fridays"
EXPECTED = {RETURNING: Blocked.exit_code}  # exit status of the steps that are refused


def run(context: Context, *, keep: bool) -> int:
    """Run each step of the tour as a person would type it, and show what it prints."""
    if context.json:
        raise UsageError("the tour is there to be read; it has no --json")
    folder = tempfile.mkdtemp(prefix="remem-demo-")
    store = os.path.join(folder, "store")
    os.chmod(folder, 0o700)
    code = 0
    try:
        for note, words in steps():
            if note:
                context.out(f"\n# {note}")
            context.out("$ remem " + " ".join(_quoted(w) for w in words))
            sys.stdout.flush()
            ended = _call(store, words)
            code = max(code, 0 if ended == EXPECTED.get(words[-1], 0) else ended or 1)
        context.out("")
        if keep:
            context.out(f"The store stays in '{store}'; try: remem --store {store} status")
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return code


def steps() -> Iterator[tuple[str, list[str]]]:
    """What the tour shows, in order."""
    session = os.path.join(SESSION, FILE)
    yield (
        "A real agent session goes in: 85 pieces of evidence, each with its own address.",
        ["import", "claude-code", session],
    )
    yield (
        "The same file again adds nothing.",
        ["import", "claude-code", session],
    )
    yield (
        "A question brings ranked hits; each names who said it, when, and its id.",
        ["recall", "-n", "3", "how long is a break"],
    )
    yield (
        "What a tool printed is not what the person said: ask for the person's words.",
        ["recall", "-n", "3", "--role", "user", "which features did I ask for"],
    )
    yield (
        "A cited block for a prompt, never larger than its budget.",
        ["context", "--budget", "900", "pause and resume"],
    )
    yield (
        "One more piece of evidence, said on a certain day.",
        [
            "add",
            "--at",
            "2025-10-22T09:00:00Z",
            "The break should last 10 minutes on Fridays.",
        ],
    )
    yield "Every change is an entry of the log.", ["log", "-n", "3"]
    yield (
        "A stated fact holds from a time on; a later one takes its place.",
        ["fact", "deploy host", "is", "alpha-9", "--from", "2026-01-01"],
    )
    yield "", ["fact", "deploy host", "is", "beta-3", "--from", "2026-06-01"]
    yield "The default answer is what holds now ...", ["recall", "-n", "1", "deploy host"]
    yield (
        "... and the past can be asked.",
        ["recall", "-n", "1", "--as-of", "2026-03-01", "deploy host"],
    )
    yield (
        "Forgetting removes the bytes, and scans every file of the store to prove it.",
        ["forget", "--now", "--yes", "--reason", "mistake", "--query", "break Fridays"],
    )
    yield "What was forgotten cannot come back by any door.", ["add", RETURNING]
    yield (
        "And all of it can be checked: chain, objects, refs, indexes.",
        ["verify"],
    )


def _call(store: str, words: list[str]) -> int:
    from remem.cli.entry import main

    return main(["--store", store, "--collection", "demo", *words])


def _quoted(word: str) -> str:
    plain = word.replace("-", "").replace("_", "").replace("/", "").replace(".", "")
    if word.startswith(SESSION):
        return FILE
    return word if plain.isalnum() or word.startswith("-") else f"'{word}'"
