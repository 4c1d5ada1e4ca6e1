"""What the bench prints: the machine, plain tables, targets met and missed."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence


def print_machine() -> None:
    """Print what a reader must know of the machine to judge the ratios."""
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(
        f"machine: {platform.system()} {platform.release()} {platform.machine()}, "
        f"{os.cpu_count()} cores ({usable} usable), load average {load}"
    )
    print(
        f"python {platform.python_version()} ({sys.implementation.name}), "
        f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"
    )


def title(text: str) -> None:
    """Print a heading between two measurements."""
    print(f"\n== {text}")


def note(text: str) -> None:
    """Print a remark that belongs to the figures above or below it."""
    print(f"   {text}", flush=True)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows in columns: the first to the left, the others to the right.

    Args:
        head: one word a column.
        rows: each as long as the head.

    Returns:
        The table, without a line end after its last line.

    Raises:
        ValueError: a row is shorter or longer than the head.
    """
    lines = [list(head), *(list(row) for row in rows)]
    if any(len(line) != len(head) for line in lines):
        raise ValueError("each row needs one cell for each column of the head")
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    laid = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    laid.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(laid)


class Verdicts:
    """Targets of one run, printed as they are judged."""

    __slots__ = ("missed",)

    def __init__(self) -> None:
        """Start with no target missed."""
        self.missed = 0

    def judge(self, what: str, ok: bool, figure: str, target: str) -> None:
        """Print one target as met or missed, with the figure beside it."""
        self.missed += not ok
        print(f"{'met   ' if ok else 'MISSED'}  {what}: {figure} (target {target})", flush=True)
