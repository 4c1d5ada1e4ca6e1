"""WordPiece tokens of the uncased BERT vocabulary.

A single query does not repay the import of a tokenizer library and the building of its tables
(26 ms here, against 5 ms for the vocabulary as a dict), so the few rules are written out: clean
the text, split CJK characters and punctuation off, decompose and drop accents, lower case, then
take the longest known piece from the left.

Source: Devlin et al. 2019, "BERT", and the BasicTokenizer and WordpieceTokenizer described with
it; Schuster and Nakajima 2012 for WordPiece.  Unassigned characters follow Python's own Unicode
tables, so texts of scripts younger than them may give other unknown tokens elsewhere.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_WORD_CHARS = 100  # a longer word is one unknown token
MAX_TEXT_CHARS = 32_768  # what lies behind cannot reach the first 256 tokens of a real text
_MEMO_WORDS = 50_000

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class _CharTable(dict[int, str]):
    """What each character becomes: filled as characters are met, for ``str.translate``."""

    def __missing__(self, code: int) -> str:
        out = self[code] = _normal(chr(code))
        return out


class WordPiece:
    """Tokenizer over one vocabulary, uncased, with ``[CLS]`` and ``[SEP]`` around the text.

    Args:
        vocabulary: bytes of ``vocab.txt``: one token a line, the line number is its id.
        max_tokens: longest result, the two outer tokens included.

    Raises:
        ValueError: the vocabulary lacks ``[UNK]``, ``[CLS]`` or ``[SEP]``.
    """

    __slots__ = ("_chars", "_cls", "_ids", "_max", "_memo", "_sep", "_unk")

    def __init__(self, vocabulary: bytes, *, max_tokens: int = 256) -> None:
        """Read the vocabulary."""
        tokens = vocabulary.decode("utf-8").replace("\r\n", "\n").rstrip("\n").split("\n")
        self._ids = dict(zip(tokens, range(len(tokens)), strict=True))
        try:
            self._unk, self._cls, self._sep = (self._ids[t] for t in ("[UNK]", "[CLS]", "[SEP]"))
        except KeyError as error:
            raise ValueError(f"vocabulary without {error.args[0]}") from None
        self._max = max_tokens
        self._chars = _CharTable()
        self._memo: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, cut to ``max_tokens``."""
        room = self._max - 2
        out = [self._cls]
        memo = self._memo
        for word in text[:MAX_TEXT_CHARS].translate(self._chars).split():
            pieces = memo.get(word)
            if pieces is None:
                pieces = self._remember(word)
            out += pieces
            if len(out) > room:
                del out[room + 1 :]
                break
        out.append(self._sep)
        return out

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Token ids of each text."""
        return [self.encode(text) for text in texts]

    def _remember(self, word: str) -> tuple[int, ...]:
        if len(self._memo) >= _MEMO_WORDS:
            self._memo.clear()
        pieces = self._memo[word] = self._pieces(word)
        return pieces

    def _pieces(self, word: str) -> tuple[int, ...]:
        ids = self._ids
        whole = ids.get(word)
        if whole is not None and len(word) <= MAX_WORD_CHARS:
            return (whole,)
        if len(word) > MAX_WORD_CHARS:
            return (self._unk,)
        out: list[int] = []
        start, end = 0, len(word)
        while start < len(word):
            for stop in range(end, start, -1):
                piece = ids.get("##" + word[start:stop] if start else word[:stop])
                if piece is not None:
                    out.append(piece)
                    start = stop
                    break
            else:
                return (self._unk,)
        return tuple(out)


def _normal(char: str) -> str:
    if char in "\t\n\r":
        return " "
    code = ord(char)
    if code in (0, 0xFFFD) or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co"):
        return ""
    if char.isspace():
        return " "
    # Lower case goes character by character, so that a final sigma stays the plain one.
    kept = "".join(
        part.lower()
        for part in unicodedata.normalize("NFD", char)
        if unicodedata.category(part) != "Mn"
    )
    if any(low <= code <= high for low, high in _CJK):
        return f" {kept} "
    return "".join(f" {part} " if _is_punctuation(part) else part for part in kept)


def _is_punctuation(char: str) -> bool:
    code = ord(char)
    if code < 128:
        return 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return unicodedata.category(char).startswith("P")
