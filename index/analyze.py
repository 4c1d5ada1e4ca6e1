"""Text analysis of the inverted index: the same terms for documents and for queries.

A text is cut at white space.  Each piece is normalised (NFKC), cut where the script changes, and
turned into terms (UTF-8):

* plain ASCII words: lower case, Snowball English stem;
* identifiers (paths, versions, `snake_case`, `camelCase`, URLs, e-mail addresses, `--flags`, `C++`,
  hexadecimal ids): the whole, case-folded, and its parts at every level;
* Han, kana, Thai, Lao, Khmer, Myanmar: overlapping bigrams of code points; Han characters also
  alone, for questions of one character;
* Hangul: the spaced word and its bigrams;
* other scripts: words with their combining marks, also without accents; emoji by themselves.

The terms of a piece depend on the piece alone, so a bounded memo makes a repeated word cost one
look-up.  In queries a word weighs 1 and the parts of one identifier weigh 1 together.

Sources: UAX 15 (NFKC), Unicode 3.13 (case folding), UTS 51 (emoji); Porter's Snowball English.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache

TYPE_CHECKING = False  # importing typing for it would cost more than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION = 1  # changes whenever the terms of some text change: the index is then rebuilt
MAX_TERM_BYTES = 200
_KEPT_BYTES = 120  # of a longer term, before the digest
_MAX_SPLIT = 1024  # characters; beyond this an identifier is only cut into its words
_MAX_STEM = 40  # characters; longer runs of letters are no English words
_MAX_OPAQUE = 64  # characters; longer words are not cut at changes of case
_MEMO_ENTRIES = 1 << 16
_MEMO_PIECE = 40  # characters of the longest piece remembered
_MEMO_TERMS = 12  # terms of the richest piece remembered
_WHOLE = 1.5  # weight of a whole identifier beside its parts (which share 1.0)

# Function words and contractions of English.  Fragments that only arise when contractions are torn
# at the apostrophe (don, won, ma) are no stop words here, for nothing is torn there.
STOP_WORDS = frozenset(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she
    her hers herself it its itself they them their theirs themselves
    what which who whom this that these those
    am is are was were be been being have has had having do does did doing
    can could will would shall should might must ought
    a an the and but if or because as until while of at by for with about against between into
    through during before after above below to from up down in out on off over under again further
    then once here there when where why how all any both each few more most other some such no nor
    not only own same so than too very just now
    i'm i've i'll i'd you're you've you'll you'd he'll he'd she'll she'd it'll it'd we're we've
    we'll we'd they're they've they'll they'd that'll who'll who've who'd
    aren't can't cannot couldn't didn't doesn't don't hadn't hasn't haven't isn't mightn't mustn't
    needn't shan't shouldn't should've wasn't weren't won't wouldn't would've could've ain't
    """.split()
)

# Shapes: one stand-in for each kind of character, so that one expression over ASCII classes cuts
# any text.  Letters of any script stand as a or A, digits as 0, ASCII as itself.
_HAN, _KANA, _SEA, _HANGUL = "漢かท한"
_EMOJI, _TONE, _FLAG = "☺🏽🇦"
_ZWJ, _IGNORED, _ZWSP = "\u200d\u00ad\u200b"

# First and last code point and shape; Thai, Lao, Myanmar, Khmer and the Tai scripts have one shape,
# kana and Bopomofo another.
_RANGES = """
    0E00 0EFF ท 1000 109F ท 1100 11FF 한 1780 17FF ท 1950 1AAF ท 231A 231B ☺ 23E9 23FA ☺ 2600 2793 ☺
    2B1B 2B55 ☺ 2E80 2FDF 漢 3005 3007 漢 3021 302F 漢 3031 3035 か 3038 303C 漢 3041 312F か
    3131 318E 한 31A0 31BF か 31F0 31FF か 3400 4DBF 漢 4E00 9FFF 漢 A960 A97F 한 A9E0 A9FF ท
    AA60 AA7F ท AC00 D7FB 한 F900 FAFF 漢 1AFF0 1B16F か 1F000 1F1E5 ☺ 1F1E6 1F1FF 🇦 1F200 1F3FA ☺
    1F3FB 1F3FF 🏽 1F400 1FAFF ☺ 20000 3FFFD 漢
""".split()
_STARTS = [int(low, 16) for low in _RANGES[::3]]
_CASES = r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"
_DASHES = {0x2019: "'", 0x02BC: "'", 0x2010: "-", 0x2212: "-"}
_STROKES = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "\u0131": "i", "æ": "ae", "œ": "oe"}
)

# Whole forms, parts, terms for documents only, length in words, weight that the parts share.
_Form = tuple[list[bytes], list[bytes], list[bytes], int, float]
_NOTHING: _Form = ([], [], [], 0, 0.0)


def analyze(text: str) -> tuple[list[bytes], int]:
    """Return the terms of a document and its length.

    Args:
        text: any string; lone surrogates and control characters are passed over.

    Returns:
        Every term in the order of the text, repeats included, each at most MAX_TERM_BYTES bytes;
        and the length for BM25 in words: an identifier counts as one however many parts it has,
        unspaced scripts count about one word in two to four characters, stop words count nothing.
        A text of stop words alone keeps them.
    """
    found: list[bytes] = []
    length = 0
    known = _memo.get
    for piece in text.split():
        entry = known(piece)
        if entry is None:
            entry = _learn(piece)
        found += entry[0]
        length += entry[1]
    if not found:
        found = [_encode(surface) for kind, surface in _surfaces(text) if kind == "word"]
        length = len(found)
    return found, length


def terms(text: str) -> list[bytes]:
    """Return every term of a document in the order of the text, repeats included."""
    return analyze(text)[0]


def query_terms(text: str) -> list[tuple[bytes, float]]:
    """Return the distinct terms of a query, in order of appearance, with their weights.

    A word weighs 1.0.  A whole identifier weighs 1.5 and its parts share 1.0; a run of an unspaced
    script shares 1.0 (two characters) to 2.0 among its bigrams; a form without accents weighs half
    of the form as written.  A term that comes up more than once keeps its greatest weight.  Stop
    words are left out unless there is nothing else.
    """
    weights: dict[bytes, float] = {}
    for piece in text.split():
        for kind, found in _scan(piece):
            whole, parts, _, _, share = _FORMS[kind](found)
            weight = _WHOLE if parts else 1.0
            for term in whole:
                weights[term] = max(weight, weights.get(term, 0.0))
                weight = 0.5
            if parts:
                each = share / len(set(parts))
                for term in parts:
                    weights[term] = max(each, weights.get(term, 0.0))
    if not weights:
        weights = {_encode(surface): 1.0 for kind, surface in _surfaces(text) if kind == "word"}
    return list(weights.items())


def distinct_tokens(text: str) -> set[bytes]:
    """Return what stands in a text on the surface: case-folded, not stemmed, stop words included.

    Words, whole identifiers and the words in them, whole runs of unspaced scripts, emoji.  Long
    tokens are not shortened: these are bytes to look for, not terms of the index.
    """
    found: set[str] = set()
    for kind, surface in _surfaces(text):
        found.add(surface)
        if kind in ("word", "url"):
            found.update(re.split(r"[-_./\\@:~&'#+$?=%]+", surface))
    found.discard("")
    return {token.encode() for token in found}


def stamp() -> str:
    """Name what decides the terms: this module's version and the stemmer's."""
    import Stemmer  # type: ignore[import-not-found, import-untyped, unused-ignore]

    return f"{VERSION}/{Stemmer.version()}"


# White-space piece -> (terms, length): small entries, and a limit to their number.
_memo: dict[str, tuple[tuple[bytes, ...], int]] = {}


def _learn(piece: str) -> tuple[tuple[bytes, ...], int]:
    """Work out the terms of a piece and remember them if they are few."""
    gathered: list[bytes] = []
    length = 0
    for kind, found in _scan(piece):
        whole, parts, more, words, _ = _FORMS[kind](found)
        gathered += whole
        gathered += parts
        gathered += more
        length += words
    entry = (tuple(gathered), length)
    if len(piece) <= _MEMO_PIECE and len(gathered) <= _MEMO_TERMS:
        if len(_memo) >= _MEMO_ENTRIES:
            _memo.clear()
        _memo[piece] = entry
    return entry


def _scan(piece: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text as written but normalised) for each token of a piece without spaces."""
    if piece.isascii():
        if piece.isalpha():
            yield "word", piece
            return
        shape = piece
    else:
        piece = unicodedata.normalize("NFKC", piece).translate(_DASHES)
        shape = piece.translate(_shapes)
    for match in _token().finditer(shape):
        kind = match.lastgroup or "word"
        found = piece[match.start() : match.end()]
        passed = _IGNORED if kind == "emoji" else _IGNORED + _ZWJ + _ZWSP
        if any(mark in match[0] for mark in passed):
            found = "".join(char for char in found if _shapes[ord(char)] not in passed)
        if found:
            yield kind, found


def _surfaces(text: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, case-folded surface) for each token of a text."""
    for piece in text.split():
        for kind, found in _scan(piece):
            surface = found if kind == "emoji" else _fold(found)
            if surface.strip("_"):
                yield kind, surface


# --- words and identifiers ------------------------------------------------------------------------


def _form_word(found: str) -> _Form:
    """Terms of a plain word or of an identifier."""
    if found.isascii() and found.isalpha():
        low = found.lower()
        if low in STOP_WORDS:
            return _NOTHING
        if found[1:].islower() or found.isupper() or len(found) == 1:
            return [_stem(low)], [], [], 1, 0.0
        return _assemble(found, _cut_word(found))
    parts: list[str] = []
    if found.lower() not in STOP_WORDS and found[-2:] in ("'s", "'S"):
        found = found[:-2]
    if found.lower() in STOP_WORDS or not found.strip("_"):
        return _NOTHING
    if "'" in found:
        parts = [part for part in found.split("'") if len(part) > 1 and part.isalnum()]
        found = found.replace("'", "").lower()
    if len(found) > _MAX_SPLIT:
        words = [word for word in re.split(r"[\W_]+", found) if word]
        form = _assemble(found, words if len(words) > 1 else [])
        return (*form[:3], len(words), form[4])
    bare = found.lstrip("-#@.$")
    if bare != found:
        parts.append(bare)
    return _assemble(found, parts + _cut(bare))


def _form_url(found: str) -> _Form:
    """Terms of a URL: without its scheme; the page without its query; host, path, their parts.

    The whole form does without scheme and last slash: it equals the address as people write it.
    """
    scheme, _, rest = found.partition("://")
    rest = rest.rstrip("/.:?&=#-+%$~@")
    if not rest or len(rest) > _MAX_SPLIT:
        return _form_word(rest or scheme)
    parts = [scheme]
    for area in re.split(r"[?#&=+%$]", rest):
        if area.strip("/") not in ("", rest):
            parts.append(area.strip("/"))
        parts += _cut(area.strip("/"))
    return _assemble(rest, parts)


def _assemble(whole: str, parts: list[str]) -> _Form:
    """Encode an identifier; parts that are stop words serve documents only."""
    kept: list[bytes] = []
    stops: list[bytes] = []
    for part in parts:
        low = part.lower()
        if low in STOP_WORDS:
            stops.append(low.encode())
        else:
            kept += _leaf(part)
    return _leaf(whole), kept, stops, 1, 1.0 if len(kept) > 1 else 0.5


def _cut(found: str) -> list[str]:
    """Cut an identifier into its parts: areas, dotted names, words, changes of case."""
    parts: list[str] = []
    areas = [area for area in re.split(r"[/\\@:~&]+|(?<=\d)[Tt](?=\d\d:)", found) if area]
    for area in areas:
        if area != found:
            parts.append(area)
        names = [name for name in re.split(r"(?<!\d)\.|\.(?!\d)", area) if name]
        if len(names) > 1 and all(len(name) == 1 and name.isalpha() for name in names):
            parts.append("".join(names))  # U.S. is found as US
        for name in names:
            if name != area:
                parts.append(name)
            words = [word for word in re.split(r"[-_]+", name) if word]
            for word in words:
                if word != name:
                    parts.append(word)
                parts += _cut_word(word)
    return parts


def _cut_word(word: str) -> list[str]:
    """Cut a word without separators: versions, `C++`, hexadecimal ids, changes of case."""
    if word.isalpha() and (word[1:].islower() or word.isupper()):
        return []
    if "." in word:
        version = re.fullmatch(r"([^\W\d]*)(\d+(?:\.\d+)+)(\w*)", word)
        if version is None:
            return [part for part in word.split(".") if part]
        head, number, tail = version.groups()
        groups = number.split(".")
        parts = [number] if head or tail else []
        if len(groups) > 2:
            parts.append(".".join(groups[:2]))
        parts += groups
        return parts + [part for part in (head, tail) if len(part) > 1]
    if word.endswith("#") or "+" in word:
        marked = re.fullmatch(r"(\w+)(\+\+|#)(\d*)", word)
        if marked is None:
            return [part for part in re.split(r"\W+", word) if len(part) > 1]
        core, mark, number = marked.groups()
        # A single letter before the mark is no part: C does not find C++.
        return [part for part in (core, core + mark, number) if part not in ("", word, core[:1])]
    if re.fullmatch(r"(?=[a-f]*\d)(?=\d*[a-f])[\da-f]{7,}", word, re.I | re.A):
        return [word[:7]] if len(word) > 7 else []  # so that an abbreviation of it is found
    if len(word) > _MAX_OPAQUE:
        return []
    shape = word if word.isascii() else word.translate(_shapes)
    spans = [match.span() for match in re.finditer(_CASES, shape)]
    if len(spans) < 2 or (len(spans) > 3 and len(word) < 2.5 * len(spans)):
        return []
    pieces = [word[start:end] for start, end in spans]
    if pieces[0].isdigit():  # 3pm, 25th
        rest = [part for part in pieces[1:] if part.lower() not in ("st", "nd", "rd", "th")]
        return [pieces[0], *(part for part in rest if len(part) > 1)]
    return [part for part in pieces if len(part) > 1]


# --- unspaced scripts and emoji -------------------------------------------------------------------

_grams: dict[str, bytes] = {}


def _bigrams(run: str) -> list[bytes]:
    """Overlapping pairs of code points, encoded once each."""
    if len(_grams) > _MEMO_ENTRIES:
        _grams.clear()
    found = []
    for pair in map(str.__add__, run, run[1:]):
        term = _grams.get(pair)
        if term is None:
            term = _grams[pair] = pair.encode()
        found.append(term)
    return found


def _form_unspaced(found: str, per_word: int = 2) -> _Form:
    """Terms of a run of an unspaced script, whose words have about per_word characters.

    Pairs are of code points, also where marks join them into clusters (Thai), so that any two
    characters out of the middle are found.
    """
    size = len(found)
    if size < 2:
        return [found.encode()], [], [], size, 0.0
    alone = [char.encode() for char in found if _shapes[ord(char)] == _HAN]
    return [], _bigrams(found), alone, max(1, -(-size // per_word)), min(2.0, size / 2)


def _form_hangul(found: str) -> _Form:
    """Terms of a Korean word: as written, and its bigrams for what stands before particles."""
    size = len(found)
    pairs = _bigrams(found) if size > 2 else []
    noun = [found[0].encode()] if 2 <= size <= 3 else []  # of one syllable, before a particle
    return [_encode(found)], pairs, noun, max(1, size // 4), 1.0


def _form_emoji(found: str) -> _Form:
    """Terms of an emoji sequence: as drawn, and without its skin tones."""
    plain = "".join(char for char in found if _shapes[ord(char)] != _TONE)
    return [_encode(found)], ([_encode(plain)] if plain not in ("", found) else []), [], 1, 0.5


_FORMS: dict[str, Callable[[str], _Form]] = {
    "word": _form_word,
    "url": _form_url,
    "han": _form_unspaced,
    "sea": lambda found: _form_unspaced(found, 4),
    "hangul": _form_hangul,
    "emoji": _form_emoji,
}


# --- characters -----------------------------------------------------------------------------------


class _Shapes(dict[int, str]):
    """Code point -> stand-in, worked out at first sight."""

    def __missing__(self, point: int) -> str:
        shape = self[point] = _shape(point)
        return shape


_shapes = _Shapes()


def _shape(point: int) -> str:
    """Tell what kind of character this is."""
    char = chr(point)
    if point < 0x80:
        return char if char.isprintable() else " "
    if point in (0x200B, 0x200D):
        return char
    category = unicodedata.category(char)
    if category in ("Cf", "Me") or 0xFE00 <= point <= 0xFE0F or 0xE0100 <= point <= 0xE01EF:
        return _IGNORED  # directions, soft hyphens, enclosing marks, variation selectors
    if point == 0x0640:
        return _IGNORED  # Arabic tatweel only stretches a word
    if category == "Nd":
        return "0"
    at = bisect_right(_STARTS, point) - 1
    if at >= 0 and point <= int(_RANGES[3 * at + 1], 16):
        shape = _RANGES[3 * at + 2]
        if shape in (_EMOJI, _TONE, _FLAG):
            return shape if category in ("So", "Sk", "Cn") else " "
        return shape if char.isalnum() or category[0] == "M" or category == "Cn" else " "
    if category[0] == "M":
        return "a"
    if not char.isalnum():
        return " "
    return "A" if char.isupper() else "a"


def _fold(text: str) -> str:
    """Case-fold; the result is normalised."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _leaf(text: str) -> list[bytes]:
    """Terms of one form: the English stem, or the text case-folded and then without accents."""
    folded = _fold(text)
    if folded.isascii():
        return [_stem(folded) if folded.isalpha() else _encode(folded)] if folded else []
    forms = [_encode(folded)]
    bare = "".join(
        char if char.isascii() or not char.isdecimal() else str(unicodedata.decimal(char))
        for char in unicodedata.normalize("NFD", folded)
        if unicodedata.combining(char) < 10  # nukta and virama make letters, accents do not
    ).translate(_STROKES)
    bare = unicodedata.normalize("NFKC", bare)
    if bare and bare != folded:
        forms.append(_stem(bare) if bare.isascii() and bare.isalpha() else _encode(bare))
    return forms


@cache
def _stemmer() -> Callable[[str], str]:
    """Load Snowball English at first use; its own cache is not needed beside the memo."""
    import Stemmer

    stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord
    return stem


def _stem(word: str) -> bytes:
    """Stem a lower-case ASCII word."""
    return _stemmer()(word).encode() if len(word) <= _MAX_STEM else _encode(word)


def _encode(term: str) -> bytes:
    """Encode a term; one that is too long becomes its beginning and a BLAKE3 digest."""
    data = term.encode()
    if len(data) <= MAX_TERM_BYTES:
        return data
    from blake3 import blake3

    head = data[:_KEPT_BYTES].decode(errors="ignore").encode()
    return head + b"~" + blake3(data).hexdigest().encode()


@cache
def _token() -> re.Pattern[str]:
    """Compile the expression that cuts shapes into tokens, at first use."""
    ignored = f"{_ZWJ}{_IGNORED}"
    word = rf"[\w{ignored}]"
    unit = rf"{word}++(?:\+\+\d*|\#(?!{word}))?"
    sign = r"(?:(?<![-\w])--?|(?<![.\w])\.)(?=[A-Za-z])|(?:(?<!\#)\#|(?<![@\w])@|\$)(?=\w)"
    joint = rf"(?:::|:[/\\]|:(?!\w{{1,15}}://)|/[.@~]?|\\\\?|[-.@'~&])(?={word})"
    emoji = f"{_EMOJI}{_IGNORED}*{_TONE}?{_IGNORED}*"
    return re.compile(
        rf"(?P<url>[A-Za-z][A-Za-z0-9+.-]{{0,15}}://[\w.\-~:/?\#@$&+=%]+)"
        rf"|(?P<word>(?:{sign})?{unit}(?:{joint}{unit})*)"
        rf"|(?P<han>[{_HAN}{_KANA}](?:[{_HAN}{_KANA}{ignored}{_ZWSP}]*[{_HAN}{_KANA}])?)"
        rf"|(?P<sea>{_SEA}(?:[{_SEA}{ignored}{_ZWSP}]*{_SEA})?)"
        rf"|(?P<hangul>{_HANGUL}(?:[{_HANGUL}{ignored}]*{_HANGUL})?)"
        rf"|(?P<emoji>{_FLAG}{_FLAG}?|{_TONE}|{emoji}(?:{_ZWJ}{emoji})*)",
        re.ASCII,
    )
