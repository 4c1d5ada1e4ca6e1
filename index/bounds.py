"""Bounds of what may be asked, without anything that costs time to import."""

from __future__ import annotations

MAX_LIMIT = 10_000  # hits
