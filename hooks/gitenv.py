"""The environment in which git is run: the same whoever runs it, and whatever hook called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIXED = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "LANGUAGE": "C",
}


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without git's own variables, and with those that keep it quiet."""
    kept = {key: value for key, value in environ.items() if not key.startswith("GIT_")}
    return kept | _FIXED
