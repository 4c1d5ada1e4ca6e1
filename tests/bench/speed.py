"""Cost of writing, reading and keeping a store, each beside a base of the same run."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tests.bench.coldstart import cold_start, hybrid
from tests.bench.data import DEFAULT_DATA
from tests.bench.ingest import ingest, projection
from tests.bench.process import CommandFailed
from tests.bench.report import note, title
from tests.bench.stand import Stand
from tests.bench.upkeep import install, memory, verify

SECTIONS: dict[str, tuple[str, Callable[[Stand], None]]] = {
    "ingest": ("canonical ingest", ingest),
    "projection": ("projection", projection),
    "cold": ("cold start: add and lexical recall", cold_start),
    "hybrid": ("cold start: hybrid recall", hybrid),
    "verify": ("verify", verify),
    "memory": ("peak memory", memory),
}


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 with ``--check`` where a target was missed or not measured.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench speed", description="Measure the cost of the program."
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"of: {' '.join(SECTIONS)} (default: all)"
    )
    parser.add_argument("--turns", type=int, default=100_000, help="of the large store")
    parser.add_argument("--small", type=int, default=10_000, help="turns of the small store")
    parser.add_argument("--rounds", type=int, default=20, help="of each cold-start command")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    parser.add_argument("--work", type=Path, help="folder for stores (default: temporary files)")
    parser.add_argument("--install", action="store_true", help="also weigh an installation")
    parser.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
    args = parser.parse_args(argv)
    unknown = [name for name in args.sections if name not in SECTIONS]
    if unknown:
        parser.error(f"unknown section '{unknown[0]}'")
    chosen = [SECTIONS[name] for name in args.sections or SECTIONS]
    if args.install:
        chosen.append(("installation", install))

    unmeasured = 0
    with tempfile.TemporaryDirectory(prefix="remem-bench-", dir=args.work) as work:
        stand = Stand(Path(work), args.data, big=args.turns, small=args.small, rounds=args.rounds)
        source = "recombined chats" if stand.real_data else "coined words (data absent)"
        note(f"turns: {source}; {args.turns} and {args.small}")
        for heading, measure in chosen:
            title(f"speed: {heading}")
            try:
                measure(stand)
            except (CommandFailed, msgspec.DecodeError) as failed:
                unmeasured += 1
                note(f"not measured: {failed}")
        missed = stand.verdicts.missed
    return int(bool(args.check and (missed or unmeasured)))
