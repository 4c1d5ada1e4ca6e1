"""Purging end to end: canonical bytes, projections, the switch, and the proof.

The proof is a scan of every file under the store for what was removed: the whole text in UTF-8 (as
given, NFC and NFD) and UTF-16, and each distinctive token, that is each that occurs in no living
object.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import unicodedata
from typing import TYPE_CHECKING

import msgspec

from remem.index import lexical, project, seal
from remem.index.analyze import terms
from remem.objects import format as fmt
from remem.objects import kv, purge
from remem.objects.errors import RememError, StoreMissing
from remem.objects.lock import hold
from remem.objects.scope import maintenance_grant

if TYPE_CHECKING:
    from collections.abc import Callable

    from remem.objects.reader import Reader
    from remem.objects.scope import Actor
    from remem.objects.store import Store

LOCK = "purge"
MIN_TOKEN_B = 5  # a shorter run of bytes occurs by chance
MIN_TEXT_B = 6
EACH = 200  # needles looked for one by one; more are looked up word by word
_WORD = re.compile(rb"[0-9A-Za-z_\x80-\xff]{%d,}" % MIN_TOKEN_B)
_TEXT_WORD = re.compile(r"[^\W_](?:[\w.@/+-]*[^\W_])?|\w+")


class Finding(msgspec.Struct, frozen=True):
    """A place where removed bytes were found."""

    file: str
    offset: int
    form: str


class Purged(msgspec.Struct):
    """What a purge did and what its scan found.

    Attributes:
        refs: refs whose bytes were removed.
        objects: objects removed.
        documents: documents taken out of the inverted index.
        vectors: vectors removed.
        generation: the generation in force afterwards.
        left: generations removed.
        files: files scanned.
        size_b: their size in bytes.
        needles: byte strings looked for.
        findings: where one was found; empty is the proof.
        held: refs that a hold keeps.
    """

    refs: list[bytes] = []
    objects: int = 0
    documents: int = 0
    vectors: int = 0
    generation: int = 0
    left: list[str] = []
    files: int = 0
    size_b: int = 0
    needles: int = 0
    findings: list[Finding] = []
    held: list[bytes] = []


def run(
    store: Store,
    actor: Actor,
    *,
    only: set[bytes] | None = None,
    dry_run: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Purged:
    """Remove the bytes of what was forgotten, and prove it.

    Args:
        store: an open store.
        actor: the owner.
        only: these refs, or None for all that wait.
        dry_run: say what would be removed, change nothing.
        progress: called with (what, done, of).

    Returns:
        The report; findings are an integrity failure.
    """
    report = Purged()
    say = progress or (lambda what, done, of: None)
    with hold(store.locks_path, LOCK, wait_s=60.0):
        with store.read(maintenance_grant()) as reader:
            items = [(p, r) for p, r in purge.waiting(reader) if only is None or r in only]
            report.held = purge.held_back(reader, items)
            items = [(p, r) for p, r in items if r not in report.held]
            due = purge.compaction_due(reader)
        report.refs = [ref for _, ref in items]
        report.generation = store.generation
        if dry_run or not (items or due):
            if not dry_run:
                report.left = purge.sweep(store.root)
            return report
        say("removing", 0, 4)
        removed = store.write(actor, lambda tx: purge.remove(tx, items))
        report.objects = removed.objects
        say("removing", 1, 4)
        needles = _Needles(removed.texts, removed.raws)
        with hold(store.locks_path, project.LOCK, wait_s=60.0):
            report.vectors = _drop_vectors(store, removed.numbers)
        try:
            report.documents = project.project(store).removed
        except RememError:
            project.rebuild(store)
        say("compacting", 2, 4)
        with hold(store.locks_path, project.LOCK, wait_s=60.0):
            report.generation = purge.next_generation(
                store, lambda number: _projections(store, number)
            )
            report.left = purge.sweep(store.root)
        say("scanning", 3, 4)
        _scan(store, needles, report)
    return report


def _drop_vectors(store: Store, numbers: dict[int, list[int]]) -> int:
    """Take vectors out; a vector index that cannot be opened goes as a whole."""
    from remem.index.dense import vector_folder

    dropped = 0
    for part, wanted in numbers.items():
        folder = vector_folder(store, part)
        if not os.path.isdir(folder):
            continue
        try:
            from remem.index import vecfile
            from remem.index.vectors import VectorIndex

            raw = vecfile.read_head(folder)
            if raw is None:
                continue
            head = vecfile.decode(raw, folder)
            index = VectorIndex(folder, name=head.name, dim=head.dim, digest=head.digest)
            dropped += index.remove(wanted)
            index.compact()
            index.close()
        except (RememError, ImportError):
            shutil.rmtree(folder, ignore_errors=True)
    return dropped


def _projections(store: Store, number: int) -> None:
    """Put the projections of a new generation in place: copies of what lives."""
    old = store.index_path
    new = os.path.join(store.root, fmt.INDEX, f"g{number}")
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new, mode=0o700)
    if not os.path.isdir(old):
        return
    for name in os.listdir(old):
        if name.startswith("vectors-"):
            target = os.path.join(new, name)
            os.mkdir(target, 0o700)
            for file in os.listdir(os.path.join(old, name)):
                source = os.path.join(old, name, file)
                try:
                    os.link(source, os.path.join(target, file))
                except OSError:
                    shutil.copy2(source, os.path.join(target, file))
    env = project.open_lexical(store, write=False)
    if env is None:
        return
    path = os.path.join(new, project.LEXICAL)
    with seal.writing(path):
        fresh = kv.open_env(path, lexical.TABLES, create=True, sync=False)
        with env.read() as txn:
            for table in lexical.TABLES:
                purge.copy_table(txn, fresh, table)
        kv.forget_env(path)


class _Needles:
    """What must not be found: whole texts in several encodings, distinctive tokens."""

    def __init__(self, texts: list[str], raws: list[bytes]) -> None:
        self.texts = texts
        self.raws = raws

    def build(self, reader: Reader, store: Store) -> dict[bytes, str]:
        """Byte strings to look for, and what form of the text each is."""
        needles: dict[bytes, str] = {}
        for text in self.texts:
            for form, name in ((text, "text"), (unicodedata.normalize("NFD", text), "NFD")):
                whole = form.encode("utf-8", "surrogatepass")
                if len(whole) >= MIN_TEXT_B:
                    needles.setdefault(whole[:4096], name)
            wide = text.encode("utf-16-le", "surrogatepass")
            if len(wide) >= 2 * MIN_TEXT_B:
                needles.setdefault(wide[:4096], "UTF-16")
        for raw in self.raws:
            if len(raw) >= MIN_TEXT_B:
                needles.setdefault(raw[:4096], "raw")
        for token in self._distinctive(store):
            needles.setdefault(token, "token")
        living = _living(reader, needles)
        return {needle: form for needle, form in needles.items() if needle not in living}

    def _distinctive(self, store: Store) -> set[bytes]:
        """Words of the texts that no document of the index has."""
        words = {w for text in self.texts for w in _TEXT_WORD.findall(text)}
        words = {w for w in words if len(w.encode("utf-8", "replace")) >= MIN_TOKEN_B}
        env = project.open_lexical(store, write=False)
        if env is None:
            return {w.encode("utf-8", "replace") for w in words}
        kept = set()
        with env.read() as txn:
            numbers = lexical.parts(txn)
            for word in words:
                own = terms(word)
                if any(not any(lexical.df(txn, n, t) for n in numbers) for t in own):
                    kept.add(word.encode("utf-8", "replace"))
        return kept


def _living(reader: Reader, needles: dict[bytes, str]) -> set[bytes]:
    """Needles that some living object holds, so that finding them proves nothing."""
    left = set(needles)
    for part in reader.parts:
        for _, data in reader.txn.scan_prefix("objects", part.prefix):
            if not left:
                return set(needles)
            if len(left) > EACH:
                left.difference_update(_WORD.findall(data))
            else:
                left = {n for n in left if n not in data}
    return set(needles) - left


def _scan(store: Store, needles: _Needles, report: Purged) -> None:
    """Look through every file under the store."""
    with store.read(maintenance_grant()) as reader:
        wanted = needles.build(reader, store)
    report.needles = len(wanted)
    each = dict(list(wanted.items())[:EACH]) if len(wanted) > EACH else wanted
    words = {n for n, form in wanted.items() if form == "token"} if len(wanted) > EACH else set()
    for folder, _, names in os.walk(store.root):
        for name in names:
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, store.root)
            try:
                size = os.path.getsize(path)
                report.files += 1
                report.size_b += size
                if size:
                    _scan_file(path, shown, each, words, report)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StoreMissing(f"cannot scan '{path}': {error.strerror}") from error


def _scan_file(
    path: str, shown: str, each: dict[bytes, str], words: set[bytes], report: Purged
) -> None:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for needle, form in each.items():
            at = data.find(needle)
            if at >= 0:
                report.findings.append(Finding(shown, at, form))
        if words:
            for match in _WORD.finditer(data):
                if match.group() in words:
                    report.findings.append(Finding(shown, match.start(), "token"))
