"""Many byte strings looked for in many bytes, at every offset.

Few strings are looked for one after the other.  Many are looked for at once: of each its first
eight bytes (or all, when it is shorter) are kept in a table, each offset of the data is looked up
there, and what is found is compared as a whole.  That takes numpy; without it only as many strings
are looked for as can be one by one, and the rest is counted.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    U64 = NDArray[np.uint64]
    Classes = list[tuple[int, U64, NDArray[np.bool_]]]

EACH = 12  # strings that are looked for one by one: about as fast as all at once
EACH_PLAIN = 400  # the same where there is no numpy
MIN_B = 5  # shorter strings occur by chance
_WINDOW_B = 8
_BLOCK_B = 1 << 18  # looked at in one go: what is worked out for it fits the cache
_BITS = 20  # of the table that an offset is looked up in first
_FACTOR = 0x9E3779B97F4A7C15


class Needles:
    """Byte strings that are looked for together.

    Attributes:
        wanted: those that are looked for.
        left_out: number of those that are not, because there are too many of them without numpy.
        longest: length of the longest one, bytes.
    """

    def __init__(self, strings: Iterable[bytes], *, numpy: bool | None = None) -> None:
        """Prepare them.

        Args:
            strings: each of at least MIN_B bytes; the more important ones first.
            numpy: whether to use numpy (None: where it is installed).

        Raises:
            ValueError: a string is too short.
        """
        found = list(dict.fromkeys(strings))
        if any(len(string) < MIN_B for string in found):
            raise ValueError(f"a string has fewer than {MIN_B} bytes")
        vector = find_spec("numpy") is not None if numpy is None else numpy
        self._table: dict[int, dict[bytes, list[bytes]]] | None = None
        self.left_out = 0
        if vector and len(found) > EACH:
            self._table = {}
            for string in found:
                own = self._table.setdefault(min(_WINDOW_B, len(string)), {})
                own.setdefault(string[:_WINDOW_B], []).append(string)
            self._classes = self._tables()
        elif not vector and len(found) > EACH_PLAIN:
            self.left_out = len(found) - EACH_PLAIN
            found = found[:EACH_PLAIN]
        self.wanted = found
        self.longest = max(map(len, found), default=0)

    def first(self, data: bytes, known: Container[bytes] = ()) -> dict[bytes, int]:
        """The strings that occur in some bytes, each with the first offset at which it does.

        Args:
            data: what is looked through.
            known: strings that are not asked for any more.
        """
        if self._table is None:
            asked = [string for string in self.wanted if string not in known]
            places = ((string, data.find(string)) for string in asked)
            return {string: at for string, at in places if at >= 0}
        found: dict[bytes, int] = {}
        for width, offsets in self._candidates(data):
            own = self._table[width]
            for at in offsets:
                for string in own.get(data[at : at + width], ()):
                    if data.startswith(string, at) and at < found.get(string, at + 1):
                        found[string] = at
        return {string: at for string, at in found.items() if string not in known}

    def _tables(self) -> Classes:
        """Of each width: the windows, and which of their hashes are those of a string."""
        import numpy as np

        assert self._table is not None
        classes: Classes = []
        for width, own in self._table.items():
            windows = [int.from_bytes(window, "little") for window in own]
            marks = np.zeros(1 << _BITS, np.bool_)
            keys = np.sort(np.array(windows, np.uint64))
            marks[_hashes(keys)] = True
            classes.append((width, keys, marks))
        return classes

    def _candidates(self, data: bytes) -> Iterator[tuple[int, list[int]]]:
        """(width, offsets) where the first so many bytes of some string stand, in no order."""
        import numpy as np

        padded = data + bytes(_WINDOW_B)
        for start in range(0, len(data), _BLOCK_B):
            for shift in range(start, min(start + _WINDOW_B, len(data))):
                count = (min(start + _BLOCK_B, len(padded)) - shift + _WINDOW_B - 1) // _WINDOW_B
                count = min(count, (len(padded) - shift) // _WINDOW_B)
                windows = np.frombuffer(padded, "<u8", count, shift)
                for width, keys, marks in self._classes:
                    mask = np.uint64((1 << 8 * width) - 1)
                    masked = windows if width == _WINDOW_B else windows & mask
                    places = np.flatnonzero(marks[_hashes(masked)])
                    if places.size:
                        at = np.searchsorted(keys, masked[places])
                        at[at == keys.size] = 0
                        places = places[keys[at] == masked[places]]
                        yield width, (places * _WINDOW_B + shift).tolist()


def _hashes(windows: U64) -> NDArray[np.int64]:
    import numpy as np

    hashed = windows * np.uint64(_FACTOR)
    hashed >>= np.uint64(64 - _BITS)
    return hashed.view(np.int64)
