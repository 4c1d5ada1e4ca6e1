"""Instruction-like text: what speaks to its reader, where it ought to be data.

A page, a mail or a tool's output informs; one that tells the reader what to do, now or later, is an
attempt to be obeyed, whoever wrote it.  The rules are words and forms of sentences, not a model:
each says by its name why it fired.  They hold evidence back, they do not judge it; a person who
reads it may release it.

Two kinds of rule.  *Forms* need no context: overriding, standing orders, false frames, talk about
"your answer", pasted code to be built in.  *Tasks* are plain questions and requests ("explain how
solar panels work"); they count only where they have nothing to do with the text around them
(`remem.objects.instruction_tasks`).

Most text is tool output, and most of that is long and plain: a text is looked at in blocks, and a
pattern runs only on a block that has the words without which it cannot match.

Source: remem(7), ADMISSION; the kinds of attack follow Yi et al., "Benchmarking and Defending
Against Indirect Prompt Injection Attacks on Large Language Models" (2023), section 3.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from remem.objects import instruction_advice as advice
from remem.objects import instruction_agents as agents
from remem.objects import instruction_forms as forms
from remem.objects import instruction_tasks as tasks
from remem.objects import instruction_words as words
from remem.objects.instruction_carrier import TECHNICAL, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = "instructions/3"
PREFIX = "instruction:"
CONVENTION = frozenset(("commit",))  # kinds whose texts are requests by custom, to nobody

_BLOCK = 900  # code points that are looked at together
_OVERLAP = 240  # of them that are looked at with the next ones too, so that no form is cut
_NEAR = 60  # code points from a verb to what it garbles
_MANUAL = 2000  # code points of a text of technical form from which on it shows commands
_TOGETHER = 160  # code points between two signs of one advice, at most


def codes(text: str, kind: str = "") -> list[str]:
    """Rules that fire on a text, sorted; empty for one that only informs.

    Args:
        text: the text as it is stored.
        kind: kind of the evidence: where requests are the custom, tasks do not count.
    """
    found = set(_hidden(text))
    plain = _plain(text)
    custom = kind in CONVENTION
    form = kind_of(plain)
    manual = form == TECHNICAL and len(plain) > _MANUAL
    for block in _blocks(plain):
        found.update(_of_block(block, found, custom=custom, manual=manual))
    if not custom:
        found.update(tasks.foreign(plain, form))
    found.update(_decoded(plain))
    return sorted(PREFIX + name for name in found)


def of_agent(text: str) -> list[str]:
    """Strong rules that fire on the words of an agent, sorted (`instruction_agents`)."""
    found = {*_hidden(text), *agents.names(_plain(text))}
    return sorted(PREFIX + name for name in found)


def _blocks(text: str) -> Iterator[str]:
    """A text in parts that overlap, each cut at the end of a line or a word where there is one."""
    at = 0
    while len(text) - at > _BLOCK:
        end = at + _BLOCK
        cut = max(text.rfind("\n", end - _OVERLAP, end), text.rfind(" ", end - _OVERLAP, end))
        cut = end if cut < 0 else cut
        yield text[at:cut]
        begin = cut - _OVERLAP
        early = max(at + 1, begin - _OVERLAP)
        at = max(text.rfind("\n", early, begin), text.rfind(" ", early, begin))
        at = begin if at < 0 else at
    yield text[at:]


def _of_block(block: str, known: set[str], *, custom: bool, manual: bool = False) -> Iterator[str]:
    """Rules that fire on a part of a text.

    Args:
        block: the part.
        known: rules that fired on the parts before it, which need not fire again.
        custom: requests are the custom in such texts.
        manual: it is part of a long text that shows commands.
    """
    low = block.casefold()
    held = forms.split(low)
    joined = ""
    for form in forms.index().in_text(held, low):
        if form.name not in known:
            joined = joined or _joined(block).casefold()
            if form.pattern.search(low if form.of_lines else joined):
                yield form.name
    signs = {
        sign
        for name, one, other, sign in words.pairs()
        if name not in known and not one.isdisjoint(held) and not other.isdisjoint(held)
    }
    if signs and any(sign.search(low) for sign in signs):
        for _, piece in tasks.sentences(_joined(block)):
            yield from _of_sentence(piece)
    if not custom and "bypass" not in known:
        yield from _shortcuts(block, low, held, manual=manual)


_WRAP = re.compile(r"\n(?=[a-z])")


def _joined(text: str) -> str:
    """A text with its wrapped lines joined: a form may begin on one and end on the next."""
    return _WRAP.sub(" ", text)


_TAGS = re.compile("(?:[\U000e0020-\U000e007e][^\U000e0020-\U000e007e]*){4}")
_UNSEEN = re.compile(  # characters of the category Cf, fillers, and selectors of a form
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
    "\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)


# Variation selectors, each of which can stand for a byte; a picture or a letter takes one.
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_LOW_SELECTORS = re.compile("[\ufe00-\ufe0f]{16,}")
_READABLE = re.compile(r"[ -~\t\n\r]{8,}")
_LETTERS = 4  # of a readable run, at least: selectors of rare letters decode to signs, not to these


def _plain(text: str) -> str:
    """The text as a reader takes it in: compatible forms, without characters that do not show."""
    if text.isascii():
        return text
    folded = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2018", "'")
    return _UNSEEN.sub("", folded)


def _hidden(text: str) -> list[str]:
    """Text in characters that no reader sees (tags, selectors) is addressed to a machine."""
    if text.isascii():
        return []
    return ["hidden"] if _TAGS.search(text) or _in_selectors(text) else []


def _in_selectors(text: str) -> bool:
    """Whether the variation selectors of a text spell readable text, in bytes or half bytes."""
    found = _SELECTORS.findall(text)
    if len(found) < 8:
        return False
    told = bytes(ord(c) - (0xFE00 if c < "\uff00" else 0xE00F0) for c in found)
    if _reads(told):
        return True
    for run in _LOW_SELECTORS.findall(text):
        halves = "".join(f"{ord(c) - 0xFE00:x}" for c in run)
        if _reads(bytes.fromhex(halves[: len(halves) & ~1])):
            return True
    return False


def _reads(data: bytes) -> bool:
    """Whether eight or more characters of readable text stand in a row."""
    runs = _READABLE.findall(data.decode("latin-1"))
    return any(sum(c.isalpha() for c in run) >= _LETTERS for run in runs)


# -- sentences ----------------------------------------------------------------------------------


def _of_sentence(piece: str) -> Iterator[str]:
    """Forms that are forms of one sentence."""
    low = piece.casefold()
    bare = words.bare(piece)
    imperative = words.is_imperative(bare)
    if _of_answer(low, bare):
        yield "reply"
    if words.relay().match(bare):
        yield "relay"
    if imperative and words.garbling().search(bare) and words.letters().search(bare[:_NEAR]):
        yield "encode"
    if _hands_code(low, bare, imperative):
        yield "code"


def _of_answer(piece: str, bare: str) -> bool:
    """Whether a sentence says what the reader's answer has to be like."""
    denied = words.denied().match(bare)
    order = bare[denied.end() :] if denied else bare
    if words.answer().search(piece) and not words.bound().match(order):
        return True
    if not words.reply().search(piece):
        return False
    if words.obliges().search(piece):
        return True
    return words.is_imperative(order) and not words.thanks().match(order)


def _hands_code(piece: str, bare: str, imperative: bool) -> bool:
    """Whether a sentence wants code built in that it hands over."""
    code = words.code().search(piece)
    if code is None or words.tells().search(piece[: code.start()]):
        return False
    if words.own_code().search(piece):
        return True
    code = words.code().search(bare)
    if code is None or words.describes().search(bare[: code.start()]):
        return False
    if words.urged().match(piece) is not None:
        return True
    return imperative and words.runs().match(bare) is None


# -- advice -------------------------------------------------------------------------------------


def _shortcuts(text: str, low: str, held: set[bytes], *, manual: bool) -> Iterator[str]:
    """Advice to get round what protects the reader: two signs of it, or one that suffices."""
    if not advice.FETCHES.isdisjoint(held):
        for name, pattern in advice.dangers():
            for match in pattern.finditer(text):
                shown = manual and name == "remote-code" and _is_shown(text, match.start())
                if not shown:
                    yield name
                    break
    signs = advice.index().in_text(held, low)
    if len(signs) < 2:
        return
    hits: list[re.Pattern[str]] = []
    for left, sign in zip(range(len(signs), 0, -1), signs, strict=True):
        if len(hits) + left < 2:
            return
        if sign.pattern.search(text):
            hits.append(sign.pattern)
    places = [[m.span() for m in hit.finditer(text)] for hit in hits]
    for one, two in combinations(places, 2):
        if any(0 <= max(a, b)[0] - min(a, b)[1] <= _TOGETHER for a in one for b in two):
            yield "bypass"
            return


def _is_shown(text: str, at: int) -> bool:
    """Whether a command stands in a line of its own, as manuals show how to install something."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return not line.strip(" \t$>#%")


# -- encoded ------------------------------------------------------------------------------------


_BASE64 = bytes(97 if (chr(b).isalnum() and b < 128) or b in b"+/_-" else 32 for b in range(256))
_HEX = bytes(97 if b in b"0123456789abcdefABCDEF" else 32 for b in range(256))
_LONG = b"a" * 32
_PAIRS = b"aa aa aa aa aa aa"


@cache
def _runs() -> re.Pattern[str]:
    return re.compile(r"(?<![\w+/])[A-Za-z0-9+/_-]{32,}={0,2}|(?<!\w)(?:[0-9a-fA-F]{2}[ :]?){24,}")


def _decoded(text: str) -> Iterator[str]:
    """Base64 or hexadecimal that reads as an instruction."""
    data = text.encode("utf-8", "surrogatepass")
    for table, sign in ((_BASE64, _LONG), (_HEX, _PAIRS)):
        for line in _lines_with(data, data.translate(table), sign):
            if any(_is_order(run[0]) for run in _runs().finditer(line)):
                yield "encoded"
                return


def _lines_with(data: bytes, signs: bytes, sign: bytes) -> Iterator[str]:
    """Lines of a text in whose signs, which are as many, one stands."""
    at = signs.find(sign)
    while at >= 0:
        begin = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        yield data[begin:end].decode("utf-8", "replace")
        at = signs.find(sign, end)


def _is_order(run: str) -> bool:
    """Whether a run of letters and digits is an order to its reader in disguise."""
    import base64
    import binascii

    padded = run.translate({43: "-", 47: "_"}).rstrip("=")
    padded += "=" * (-len(padded) % 4)
    for decode, given in (
        (bytes.fromhex, run.replace(":", "")),
        (base64.urlsafe_b64decode, padded),
    ):
        try:
            inner = decode(given).decode()
        except (ValueError, binascii.Error):
            continue
        if inner.isprintable() and " " in inner and _speaks(inner):
            return True
    return False


def _speaks(inner: str) -> bool:
    plain = _plain(inner)
    if any(name for block in _blocks(plain) for name in _of_block(block, set(), custom=False)):
        return True
    return any(words.is_imperative(words.bare(piece)) for _, piece in tasks.sentences(plain))
