"""The proof of a purge: a scan of every file under the store for what was removed.

Looked for are the whole texts (UTF-8 as given, NFC and NFD, and UTF-16, to 4 KiB), the raw bytes,
and each word of five letters or more of what was removed, as it stood and case-folded, that occurs
in no living object.  What a living object holds, or one that waits for a purge of its own, proves
nothing and is left out; it is counted.  So is a word that the store itself is made of (names of
tables, of statuses, of backups, settings).  What lives is looked through only as long as that
strikes something off the list; the rest is looked for in the files, and what is found there is held
against all that lives.

A short word occurs among random bytes by chance, the more often the more words and bytes there are.
So the least length grows with both, and what is too short for it is counted as well.
"""

from __future__ import annotations

import os
import re
import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.index import lexical, project, seal, vecfile
from remem.index.needles import MIN_B, Needles
from remem.objects import encode
from remem.objects import format as fmt
from remem.objects.backup import MANIFEST_FILE
from remem.objects.errors import StoreError
from remem.objects.model import Draft, Memory, Observation, Run
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from remem.objects.encode import Stored
    from remem.objects.reader import Reader
    from remem.objects.store import Store

MAX_NEEDLE_B = 4096  # of a longer text its beginning is looked for
WORD = "word"  # form of a single word
CHANCE = 0.001  # of one word being found among random bytes
_CHUNK_B = 8 << 20
_IDLE_B = 64 << 20  # of what lives, looked through in vain: enough before the files are
_BETWEEN = b"\xff\xfe\xff\xfe\xff\xfe\xff\xfe"  # between living texts: no text holds it
_NAMES = ("aliases", "parts", "lanes", "jobs")
_LIVING = ("objects", *_NAMES, "log", "audit", "tombs", "receipts", "meta")
_WORD = re.compile(r"[^\W_](?:[\w.@/+-]*[^\W_])?")
_PIECE = re.compile(r"[^\W_]+")


class Finding(msgspec.Struct, frozen=True):
    """A place where removed bytes were found: file (relative to the store), offset, what form."""

    file: str
    offset: int
    form: str


class Proof(msgspec.Struct):
    """What was looked through and what was found.

    Attributes:
        files: files read.
        bytes: their size.
        needles: byte strings looked for.
        living: byte strings left out because something that is still there holds them.
        short: texts and words left out because they are too short to be told from chance.
        sampled: byte strings left out because there were too many (without numpy).
        findings: where one was found; empty is the proof.
    """

    files: int = 0
    bytes: int = 0
    needles: int = 0
    living: int = 0
    short: int = 0
    sampled: int = 0
    findings: list[Finding] = []


def prove(store: Store, removed: Iterable[Stored]) -> Proof:
    """Look through every file under the store for what was removed.

    Raises:
        StoreError: a file cannot be read.
    """
    report = Proof()
    objects = list(removed)
    gone = {obj.salt for obj in objects}
    forms, report.short = _forms(objects, _size(store.root))
    own = _own_words(store)
    with store.read(maintenance_grant()) as reader:
        wanted = _without_living(reader, forms, gone, own, _IDLE_B)
    needles = Needles(wanted)
    found = list(_scan(store.root, needles, report)) if needles.wanted else []
    said: set[bytes] = set()
    if found:  # what lives further on, or what somebody said meanwhile, is no remainder
        there = {needle: forms[needle] for _, _, needle in found}
        with store.read(maintenance_grant()) as reader:
            said = there.keys() - set(_without_living(reader, there, gone, own))
        report.findings = [Finding(f, at, forms[n]) for f, at, n in found if n not in said]
    report.living = len(forms) - len(wanted) + len(said)
    report.needles, report.sampled = len(needles.wanted) - len(said), needles.left_out
    return report


# -- what is looked for -------------------------------------------------------------------------


def _forms(removed: list[Stored], size_b: int) -> tuple[dict[bytes, str], int]:
    """Byte strings to look for, each with its form, words first; and how many are too short."""
    words: dict[bytes, str] = {}
    texts: dict[bytes, str] = {}
    for obj in removed:
        for text in strings_of(obj):
            for word in _words(text):
                words.setdefault(word, WORD)
        for text in _texts(obj):
            for form, name in (
                (text, "text"),
                (unicodedata.normalize("NFC", text), "NFC"),
                (unicodedata.normalize("NFD", text), "NFD"),
            ):
                texts.setdefault(_utf8(form)[:MAX_NEEDLE_B], name)
            wide = text.encode("utf-16-le", "surrogatepass")[:MAX_NEEDLE_B]
            texts.setdefault(wide, "UTF-16")
        if isinstance(obj, Observation) and obj.raw is not None:
            texts.setdefault(obj.raw[:MAX_NEEDLE_B], "raw")
    forms = words | texts
    least = MIN_B
    while least < 8 and len(forms) * size_b > CHANCE * 256.0**least:
        least += 1
    kept = {needle: form for needle, form in forms.items() if len(needle) >= least}
    return kept, len(forms) - len(kept)


def _texts(obj: Stored) -> list[str]:
    """What an object says, as a whole."""
    if isinstance(obj, Draft):
        found = [obj.note, *(op.critique for op in obj.operations)]
        return [text for text in found if text.strip()]
    if isinstance(obj, Run):
        return [text for text in obj.notes if text.strip()]
    found = [obj.text]
    if isinstance(obj, Memory):
        found += [*(obj.triple or ()), *obj.cues, *obj.anchors, obj.trigger]
    return [text for text in found if text.strip()]


def strings_of(obj: Stored) -> Iterator[str]:
    """Every string of an object that was given with it."""
    yield from _texts(obj)
    yield from _inside(obj.meta)
    if isinstance(obj, Observation):
        yield obj.speaker
        if obj.source is not None:
            yield from (obj.source.uri, obj.source.id)
        if obj.raw is not None:
            yield obj.raw.decode("utf-8", "ignore")


def _inside(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _inside(key)
            yield from _inside(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _inside(inner)


def _words(text: str) -> Iterator[bytes]:
    """Words of a text, whole and in pieces, as they stand and case-folded, of enough letters."""
    for word in _WORD.findall(text):
        for piece in {word, *_PIECE.findall(word)}:
            for form in {piece, piece.casefold()}:
                data = _utf8(form)
                if len(form) >= MIN_B or (len(data) > len(form) and len(data) >= 2 * MIN_B):
                    yield data[:MAX_NEEDLE_B]


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


# -- what lives ---------------------------------------------------------------------------------


def _without_living(
    reader: Reader, forms: dict[bytes, str], gone: set[bytes], own: bytes, idle_b: int | None = None
) -> list[bytes]:
    """Those of the byte strings that nothing which is still there holds, in their order.

    Args:
        reader: a snapshot.
        forms: byte strings, each with its form.
        gone: salts of the objects that are to be gone.
        own: what the files of a store hold of themselves.
        idle_b: stop once so many bytes of what lives held none of those that are left; None: look
            through all of it.
    """
    needles = Needles(forms)
    found = {needle for needle in needles.first(own) if forms[needle] == WORD}
    idle = 0
    for block in _blocks(_living(reader, gone)):
        fresh = needles.first(block, found).keys()
        found |= fresh
        idle = 0 if fresh else idle + len(block)
        left = [needle for needle in needles.wanted if needle not in found]
        if not left or (idle_b is not None and idle >= idle_b):
            break
        if 2 * len(left) < len(needles.wanted):
            needles = Needles(left)  # fewer are found faster
    return [needle for needle in forms if needle not in found]


def _own_words(store: Store) -> bytes:
    """What the files of a store hold of themselves; a text as a whole counts there all the same."""
    words = [*fmt.TABLES, *lexical.TABLES, fmt.FORMAT_LINE, *seal.LINES]
    pieces = [_utf8(word) for word in words] + [vecfile.MAGIC, project.stamp()]
    paths = [os.path.join(store.root, name) for name in (fmt.CONFIG_FILE, MANIFEST_FILE)]
    for folder, _, names in os.walk(store.index_path):
        paths += [os.path.join(folder, name) for name in names if name == vecfile.HEAD]
    for path in paths:
        try:
            with open(path, "rb") as file:
                pieces.append(file.read(_CHUNK_B))
        except FileNotFoundError:
            continue
    joined = _BETWEEN.join(pieces)
    return _BETWEEN.join((joined, joined.lower()))


def _blocks(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Pieces put together to some megabytes each, nothing running over from one to the next."""
    block: list[bytes] = []
    size_b = 0
    for piece in pieces:
        block.append(piece)
        size_b += len(piece)
        if size_b >= _CHUNK_B:
            yield _BETWEEN.join(block)
            block, size_b = [], 0
    yield _BETWEEN.join(block)


def _living(reader: Reader, gone: set[bytes]) -> Iterator[bytes]:
    """The bytes of everything that lives, as they are and as an index may have folded them.

    Args:
        reader: a snapshot.
        gone: salts of the objects that are to be gone; should one be there, it does not count.
    """
    for table in _LIVING:
        for key, value in reader.txn.scan(table):
            data = bytes(value)
            texts: list[str] = []
            if table == "objects":
                obj = encode.read(data)
                part = reader.part(int.from_bytes(key[:4], "big"))
                if obj.salt in gone and reader.erased(part, key[4:]) is not None:
                    continue
                texts = [text for text in strings_of(obj) if not text.isascii()]
            elif table in _NAMES:
                texts = [(key + data).decode("utf-8", "replace")]
            yield data
            yield data.lower()
            for text in texts:
                folded = unicodedata.normalize("NFKC", text).casefold()
                yield _utf8(folded)
                bare = unicodedata.normalize("NFKD", folded)
                yield _utf8("".join(c for c in bare if not unicodedata.combining(c)))


# -- files --------------------------------------------------------------------------------------


def _size(root: str) -> int:
    return sum(os.path.getsize(path) for path in _files(root) if os.path.exists(path))


def _files(root: str) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        for name in sorted(names):
            yield os.path.join(folder, name)


def _scan(root: str, needles: Needles, report: Proof) -> Iterator[tuple[str, int, bytes]]:
    """(file, offset, byte string) of the first place in each file."""
    for path in _files(root):
        try:
            with open(path, "rb") as file:
                report.files += 1
                seen: set[bytes] = set()
                offset, tail = 0, b""
                while chunk := file.read(_CHUNK_B):
                    report.bytes += len(chunk)
                    data = tail + chunk
                    for needle, at in sorted(needles.first(data, seen).items()):
                        seen.add(needle)
                        yield os.path.relpath(path, root), offset - len(tail) + at, needle
                    offset += len(chunk)
                    tail = data[-(needles.longest - 1) :] if needles.longest > 1 else b""
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StoreError(f"cannot look through '{path}': {error.strerror}") from error
