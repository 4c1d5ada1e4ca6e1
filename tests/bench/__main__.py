"""Front door of the bench: ``python -m tests.bench [NAME [OPTIONS]]``.

Each measurement is a module with a ``run(argv) -> int``; its name, its place and one sentence
stand in `COMMANDS`.  Adding a measurement is adding a line here.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from tests.bench.report import print_machine

COMMANDS: dict[str, tuple[str, str]] = {
    "recall": (
        "tests.bench.recall:run",
        "recall@k, MRR and nDCG beside BM25, dense and fused; confidence of answers",
    ),
    "corrections": (
        "tests.bench.corrections:run",
        "old statements give way, are kept, and nothing else is hidden",
    ),
    "speed": ("tests.bench.speed:run", "ingest, projection, cold start, verify, memory, install"),
    "attacks": ("tests.bench.attacks:run", "injected instructions held back, clean text let in"),
    "scale": ("tests.bench.scale:run", "what grows from ten thousand turns to a million"),
    "hooks": ("tests.bench.hooks:run", "time that prompts gain, rate of taking the spool in"),
    "side_by_side": ("tests.bench.side_by_side:run", "the same turns and questions through a peer"),
    "mcp": ("tests.bench.mcp:run", "start, recall and memory of the MCP server"),
    "forget": ("tests.bench.forget:run", "purge beside a copy, many by a query, stalls of others"),
}
"""Name of each measurement, ``module:function`` and what it prints."""

ALL = "all"
LONG = frozenset(("scale", "side_by_side"))  # run by name only
LISTED = " and ".join(sorted(LONG))


def load(name: str) -> Callable[[Sequence[str]], int]:
    """Import one measurement.

    Args:
        name: a key of `COMMANDS`.

    Returns:
        The function that takes the remaining words of the command line and returns an exit code.

    Raises:
        KeyError: the name is not registered.
    """
    module, _, function = COMMANDS[name][0].partition(":")
    found: Callable[[Sequence[str]], int] = getattr(importlib.import_module(module), function)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run one measurement, or each in turn.

    Args:
        argv: words after ``python -m tests.bench``; those of the process when None.

    Returns:
        The greatest exit code of the measurements that ran.
    """
    listing = "\n".join(f"  {name:12} {about}" for name, (_, about) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure recall and cost; print ratios taken in this run.",
        epilog=f"measurements:\n{listing}\n  {ALL:12} each but {LISTED}, with its defaults",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", default=ALL, choices=[*COMMANDS, ALL], metavar="NAME")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="see NAME --help")
    args = parser.parse_args(argv)
    if args.name == ALL and args.options:
        parser.error(f"'{ALL}' takes no options")
    if "--json" not in args.options:
        print_machine()
    names = [n for n in COMMANDS if n not in LONG] if args.name == ALL else [args.name]
    return max(load(name)(args.options) for name in names)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # as of `| head`: stores in temporary folders are removed by now
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
