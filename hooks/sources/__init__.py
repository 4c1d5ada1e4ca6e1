"""Readers of what other programs wrote: one module a format, one registry, no store.

Every reader turns a file into a stream of records and touches nothing else.  Each unit of the
input (a line, a block, a message, a commit: see the module of the format) gives exactly one of

* `Incoming`: evidence, to be handed to the admission gate,
* `Skipped`: understood, holds nothing to remember (the reason says why),
* `Rejected`: could not be read (the place and the reason are named),

so the number of records read is the sum of the three, and nothing is lost without being counted.
"""

from __future__ import annotations

from remem.hooks.sources._detect import detect
from remem.hooks.sources._record import LIMIT_B, Record
from remem.hooks.sources.registry import FORMATS, Format, files, read, read_stream

__all__ = ["FORMATS", "LIMIT_B", "Format", "Record", "detect", "files", "read", "read_stream"]
