"""What kind of text a sentence stands in, and whether it belongs there.

A question or a request is foreign to a letter sooner than to a manual or a chat, which are made of
them.  The kind of a text is known by its form: how its lines begin and end, what signs they hold,
how its sentences speak of people.

Source: remem(7), ADMISSION.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import islice

from remem.objects import instruction_words as words

LETTER, PROSE, TALK, TECHNICAL = "letter", "prose", "talk", "technical"

_LONGEST_LETTER = 8000  # code points from which on a text is no letter
_LOOKED_AT = 400  # lines by which the kind is known
_TECHNICAL = 0.3  # share of lines of a technical form from which on a text is technical
_HEAD = 400  # code points of the beginning or the end of a letter
_TALK_EACH = 100  # code points in which one sign of a talk stands, at most
_AROUND = 8000  # code points before and behind a sentence that are the text around it
_SPACES = bytes(byte if byte > 127 or chr(byte).isalpha() else 32 for byte in range(256))


@cache
def _form() -> re.Pattern[str]:
    """Lines of code, listings, markup and logs."""
    return re.compile(
        r"[ \t]+(?:[^\sA-Za-z]|\S+ ?[=(:{\[]|\S+$|(?:return|def|class|if|for|import|from|else)\b)"
        r"|[#/*+@$%;{}()\[\]<~\\-]|>>>|\.\. |\.[A-Z]{2}|:\w+:|\d{2,4}[-:/.]\d\d"
        r"|[\w./-]+(?:\s{2,}|\t)\S"
        r"|(?:def|class|import|from|return|function|var|let|const|if|elif|else|for|while|try|except"
        r"|with|static|struct|int|void|public|private|package|use|my|sub|func|type|diff|index"
        r"|commit|export|include|set)\b.*[:;{}()=\"',]"
        r"|.*(?:[;{}\\=(,\[]\s*\Z|\w\(|\w_\w|::|->|=>|==|--\w|\$\w|``|\]\(|</)"
    )


@cache
def _talk() -> re.Pattern[str]:
    """Signs of people who speak with each other, as a notice does not, in lower-case text."""
    return re.compile(
        r"!|\b(?:i(?:'m|'ve|'d|'ll)?(?!\.)|me|my|myself|mine|we|we're|we've|you(?:'re|'ve|'d)"
        r"|(?:it|that|what|how|there|he|she|who|let|where)'s|hey|wow|yeah|yep|yup|haha|lol|omg"
        r"|gonna|wanna|awesome|cool|congrats|nice|great|amazing|glad|sorry|thanks|sounds|totally"
        r"|absolutely|definitely|really|love)\b"
    )


@cache
def _letter() -> re.Pattern[str]:
    """A head or a greeting, as letters and notices have them."""
    return re.compile(
        r"^[\W_]*(?:(?:subject|email[_ -]from|from|received(?: date)?|date sent) ?:\s*\S"
        r"|(?-i:Hi|Hello|Dear|Hey|HI|HELLO|DEAR)(?-i: (?:[A-Z]\w*|there|all|team|everyone))?[ ,!])",
        re.MULTILINE | re.IGNORECASE,
    )


@cache
def _end() -> re.Pattern[str]:
    return re.compile(
        r"\b(?:unsubscribe|(?:best|kind|warm) regards|sincerely yours|yours truly|sent from my)\b",
        re.IGNORECASE,
    )


def kind_of(text: str) -> str:
    """LETTER, PROSE, TALK or TECHNICAL, by the form of a text."""
    lines = [line for line in text.split("\n", 4 * _LOOKED_AT) if line.strip()]
    if len(lines) > _LOOKED_AT:
        lines = lines[:: len(lines) // _LOOKED_AT]
    form = _form()
    formed = sum(form.match(line[:200]) is not None for line in lines)
    if len(text) > _LONGEST_LETTER or formed >= max(2, _TECHNICAL * len(lines)):
        is_letter = len(text) <= _LONGEST_LETTER and _is_letter(text)
        return LETTER if is_letter else TECHNICAL
    enough = -(-len(text) // _TALK_EACH)
    signs = sum(1 for _ in islice(_talk().finditer(text.casefold()), enough))
    if signs == enough:
        return TALK
    return LETTER if _is_letter(text) else PROSE


def _is_letter(text: str) -> bool:
    """Whether a text begins or ends as letters do."""
    return _letter().search(text[:_HEAD]) is not None or _end().search(text[-_HEAD:]) is not None


class Around:
    """The text around a sentence: a bounded part of it, by its words."""

    __slots__ = ("_at", "_low", "_text")

    def __init__(self, text: str) -> None:
        """Take the text; nothing is looked at before it is asked for."""
        self._text = text
        self._at = -1
        self._low = b""

    def kinship(self, piece: str, at: int) -> float:
        """Share of the words of a sentence that the text around it has too.

        Args:
            piece: the sentence.
            at: where it begins.
        """
        own = words.stems(piece)
        if not own:
            return 1.0  # "how are you?": it asks for nothing
        low = self._near(at)
        shared = 0
        counts: dict[str, int] = {}
        for stem in own:
            counts[stem] = counts.get(stem, 0) + 1
        for stem, count in counts.items():
            shared += low.count(b" " + stem.encode()) > count
        return shared / len(counts)

    def _near(self, at: int) -> bytes:
        begin = max(0, at // _AROUND - 1) * _AROUND
        if begin != self._at:
            part = self._text[begin : begin + 3 * _AROUND].casefold()
            self._low = b" " + part.encode("utf-8", "surrogatepass").translate(_SPACES)
            self._at = begin
        return self._low
