"""The two streams of the protocol, kept apart from those that a library may print to.

Claimed before anything else is loaded: from then on descriptor 1 is standard error and descriptor 0
is empty, for this process, its libraries and whatever it starts.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper


class Wire:
    """Standard input and output of the process, for the protocol alone.

    Attributes:
        stdin: lines of the client.
        stdout: lines to the client.
        open: the input has not ended.
    """

    def __init__(self) -> None:
        """Take the descriptors over."""
        sys.stdout.flush()
        self.open = True
        self.stdin = TextIOWrapper(
            os.fdopen(os.dup(0), "rb"), encoding="utf-8", errors="replace", newline="\n"
        )
        self.stdout = TextIOWrapper(
            os.fdopen(os.dup(1), "wb"), encoding="utf-8", errors="replace", newline="\n"
        )
        os.dup2(2, 1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        sys.stdout = sys.stderr
