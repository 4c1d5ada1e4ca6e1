"""Taking out what must not be kept: private regions first, then secrets.

A region between ``<private>`` and ``</private>`` goes with its marks, in any letter case.  Regions
nest; one that is not closed reaches to the end of the text, and a closing mark that nothing opened
closes a region whose beginning was cut off, so that all before it goes.  A secret is replaced by
``[redacted:KIND]``.  Cleaning what is clean changes nothing.

Source: remem(7), ADMISSION.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from remem.objects import detectors

if TYPE_CHECKING:
    from typing import BinaryIO

_SIGN = "private"
_SIGNS = r"<\s*(/?)\s*private(?:\s[^<>]*)?/?\s*>"
_MAX_SIGN = 200  # bytes of a mark that may be cut between two reads
_STEP_B = 1 << 20
EMPTY = "<private></private>"  # a region of which only the place is left
_ROUNDS = 4  # what stood beside one secret may be the next; marks themselves are none
_SHORTEST = 5  # code points of a secret that is looked for in other fields of the same record
# Words of a key or a predicate that say that its value is a secret.
_TELLS = ("pass", "pwd", "secret", "token", "key", "credential", "kennwort", "contrase")


class Cleaned(msgspec.Struct, frozen=True):
    """A text without what must not be kept.

    Attributes:
        text: what is left.
        private: regions that were removed.
        secrets: secrets that were replaced.
        kinds: kinds of those secrets, sorted, each once.
    """

    text: str
    private: int = 0
    secrets: int = 0
    kinds: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """True when anything was taken out."""
        return self.private > 0 or self.secrets > 0


def clean(text: str) -> tuple[str, int]:
    """Text without private regions and secrets, and how many of both were taken out.

    Args:
        text: any text, whole: one that was cut before hides where a region began.
    """
    found = scan(text)
    return found.text, found.private + found.secrets


def scan(text: str) -> Cleaned:
    """As `clean`, with the counts apart and the kinds of the secrets."""
    if not suspect(text):
        return Cleaned(text)
    return _scan(text, {})


def suspect(text: str) -> bool:
    """Whether a text may hold anything that must not be kept: cheap, and never False for one."""
    return "<" in text or detectors.possible(text)


def _scan(text: str, values: dict[str, str]) -> Cleaned:
    """Scan, and note the secrets themselves with their kinds in ``values``."""
    left, private = without_private(text)
    count = 0
    kinds: set[str] = set()
    for _ in range(_ROUNDS):
        spans = detectors.find(left)
        if not spans:
            break
        count += len(spans)
        pieces = []
        at = 0
        for start, end, kind in spans:
            kinds.add(kind)
            values.setdefault(left[start:end], kind)
            pieces += [left[at:start], mark(kind)]
            at = end
        left = "".join((*pieces, left[at:]))
    return Cleaned(left, private, count, tuple(sorted(kinds)))


def mark(kind: str) -> str:
    """What stands where a secret stood."""
    return f"{detectors.MARK}{kind}]"


# -- private regions ----------------------------------------------------------------------------


def without_private(text: str) -> tuple[str, int]:
    """Text without its private regions, and how many there were."""
    if "<" not in text or _SIGN not in text.lower():
        return text, 0
    regions = Regions()
    left = regions.feed(text)
    return (left, regions.count) if regions.count else (text, 0)


class Regions:
    """Private regions of a text that comes in pieces, such as lines, none cut within a mark.

    Attributes:
        depth: regions that are open.
        count: regions that were removed.
        unopened: closing marks that nothing opened: what came before them is private.
    """

    __slots__ = ("_left", "count", "depth", "unopened")

    def __init__(self, left: str = "") -> None:
        """Begin outside of any region.

        Args:
            left: what stands where a region was: nothing, or `EMPTY` where the gate is to count it.
        """
        self.depth = 0
        self.count = 0
        self.unopened = 0
        self._left = left

    def feed(self, text: str) -> str:
        """The part of the next piece that stands in no region."""
        pieces: list[str] = []
        at = 0
        for sign in re.finditer(_SIGNS, text, re.IGNORECASE):
            if not sign[1]:
                if self.depth == 0:
                    pieces += (text[at : sign.start()], self._left)
                    self.count += 1
                self.depth += 1
            elif self.depth > 0:
                self.depth -= 1
            else:
                pieces = [self._left]  # it was opened before the text begins
                self.count += 1
                self.unopened += 1
            at = sign.end()
        if self.depth == 0:
            pieces.append(text[at:])
        return "".join(pieces)


def by_lines(text: str) -> str:
    """Text with an empty region in the place of each, and as many lines as before.

    For readers that cut a text into records: each region goes before it is cut through.
    """
    if "<" not in text or _SIGN not in text.lower():
        return text
    regions = Regions(EMPTY)
    lines: list[str] = []
    for line in text.split("\n"):
        before = regions.unopened
        left = regions.feed(line)
        if regions.unopened > before:
            lines = [""] * len(lines)
        lines.append(left)
    return "\n".join(lines)


def read(stream: BinaryIO, limit_b: int) -> bytes:
    """Bytes of a stream up to a limit that private regions do not count for.

    Returns:
        All of it; where that is more than ``limit_b`` bytes, with an empty region in the place of
        each; more than ``limit_b`` bytes where even that is too much.
    """
    data = stream.read(limit_b + 1)
    if len(data) <= limit_b:
        return data
    regions = Regions(EMPTY)
    kept: list[bytes] = []
    size_b = 0
    held = ""
    while data and size_b <= limit_b:
        text = held + data.decode("latin-1")  # marks are ASCII, and so in every byte of UTF-8
        cut = text.rfind("<", -_MAX_SIGN)
        held = text[cut:] if cut >= 0 and ">" not in text[cut:] else ""
        before = regions.unopened
        left = regions.feed(text[: len(text) - len(held)]).encode("latin-1")
        if regions.unopened > before:
            kept, size_b = [], 0
        kept.append(left)
        size_b += len(left)
        data = stream.read(_STEP_B)
    if regions.depth == 0:
        kept.append(held.encode("latin-1"))
    return b"".join(kept)


# -- the fields of a record ---------------------------------------------------------------------


class Tally:
    """Cleans the fields of one record and counts what it took out.

    A secret that one field shows is taken out of the fields cleaned after it, too.
    """

    __slots__ = ("_kinds", "_private", "_secrets", "_values")

    def __init__(self) -> None:
        """Begin with nothing found."""
        self._private = 0
        self._secrets = 0
        self._kinds: set[str] = set()
        self._values: dict[str, str] = {}

    @property
    def changed(self) -> bool:
        """True when anything was taken out."""
        return self._private > 0 or self._secrets > 0

    def clean(self, text: str) -> str:
        """A text without what must not be kept; the very same object where nothing was found."""
        if suspect(text):
            found = _scan(text, self._values)
            if found.changed:
                self._private += found.private
                self._secrets += found.secrets
                self._kinds.update(found.kinds)
                text = found.text
        for value, kind in self._values.items():
            if len(value) >= _SHORTEST and value in text and detectors.MARK not in value:
                self._secrets += text.count(value)
                text = text.replace(value, mark(kind))
        return text

    def triple(self, parts: tuple[str, str, str]) -> tuple[str, str, str]:
        """A triple, read together: its predicate may say that its object is a secret."""
        subject, predicate, value = (self.clean(part) for part in parts)
        return subject, predicate, self._named(predicate, value)

    def _named(self, name: str, value: str) -> str:
        """A value without what the name of it shows to be a secret."""
        low = name.lower()
        if not any(word in low for word in _TELLS) or detectors.MARK in value:
            return value
        found: dict[str, str] = {}
        key = "_".join(name.split())
        _scan(f'{key}="{value}"' if '"' not in value else f"{key}={value}", found)
        for secret, kind in found.items():
            if secret in value and len(secret) >= _SHORTEST:
                self._secrets += 1
                self._kinds.add(kind)
                self._values.setdefault(secret, kind)
                value = value.replace(secret, mark(kind))
        return value

    def value(self, given: object, depth: int) -> object:
        """A value of meta with every text in it cleaned, keys too; the same where none changed.

        Args:
            given: what JSON can express.
            depth: how many levels are still looked into; what lies deeper is left to the limit of
                the format, which refuses it.
        """
        if isinstance(given, str):
            return self.clean(given)
        if depth == 0:
            return given
        if isinstance(given, dict):
            made = {}
            same = True
            for key, inner in given.items():
                new_key = self.clean(key) if isinstance(key, str) else key
                new = self.value(inner, depth - 1)
                if isinstance(new, str) and isinstance(key, str):
                    new = self._named(key, new)
                same = same and new is inner and new_key is key
                made[new_key] = new
            return given if same else made
        if isinstance(given, (list, tuple)):
            items = [self.value(inner, depth - 1) for inner in given]
            return given if all(map(_same, items, given)) else items
        if isinstance(given, (bytes, bytearray)):
            text = bytes(given).decode("utf-8", "surrogateescape")
            left = self.clean(text)
            return given if left is text else left.encode("utf-8", "surrogateescape")
        return given

    def codes(self) -> list[str]:
        """Reason codes of what was taken out."""
        codes = []
        if self._private:
            codes.append(f"private:{self._private}")
        if self._secrets:
            codes.append(f"redacted:{self._secrets}")
            codes += [f"secret:{kind}" for kind in sorted(self._kinds)]
        return codes


def _same(one: object, other: object) -> bool:
    return one is other
