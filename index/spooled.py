"""Taking what was forgotten out of the spool: events that hooks appended and nobody took in yet.

A line that says what was removed is overwritten with spaces, in place.  So nothing moves, whoever
appends to the file meanwhile is not disturbed, and a blank line is one that is passed over.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from remem.objects import format as fmt
from remem.objects.errors import StoreError
from remem.objects.model import Draft, Run
from remem.objects.tombs import normal_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remem.objects.encode import Stored

MIN_TEXT_B = 5  # a shorter text is not looked for inside of others


def blank(root: str, removed: Iterable[Stored]) -> int:
    """Overwrite the lines of the spool that say what these objects say.

    Args:
        root: folder of the store.
        removed: what was removed.

    Returns:
        The number of lines.

    Raises:
        StoreError: a file cannot be written.
    """
    texts = {obj.text for obj in removed if not isinstance(obj, Draft | Run)}
    values = {normal_value(text) for text in texts}
    whole = [t for t in (text.encode("utf-8", "replace") for text in texts) if len(t) >= MIN_TEXT_B]
    count = 0
    for folder, _, names in os.walk(os.path.join(root, fmt.SPOOL)):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                try:
                    count += _blank_file(path, values, whole)
                except FileNotFoundError:
                    continue  # it was taken in meanwhile
                except OSError as error:
                    raise StoreError(f"cannot write '{path}': {error.strerror}") from error
    return count


def _blank_file(path: str, values: set[str], whole: list[bytes]) -> int:
    count = 0
    with open(path, "r+b") as file:
        offset = 0
        for line in file.read().splitlines(keepends=True):
            body = line.rstrip(b"\r\n")
            if body.strip() and _says(body, values, whole):
                os.pwrite(file.fileno(), b" " * len(body), offset)
                count += 1
            offset += len(line)
        if count:
            os.fsync(file.fileno())
    return count


def _says(line: bytes, values: set[str], whole: list[bytes]) -> bool:
    """True for a line that holds one of the texts, as it stands or as a string of its JSON."""
    if any(text in line for text in whole):
        return True
    if normal_value(line.decode("utf-8", "replace")) in values:
        return True
    try:
        value = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return False
    return any(
        normal_value(text) in values or any(w in text.encode("utf-8", "replace") for w in whole)
        for text in _strings(value)
    )


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
