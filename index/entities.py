"""Entities named in a question: their facts, and those of what they are linked to.

Subjects and objects of triples are filter terms of the index (`fields.entity`).  The
words of a question, alone and up to `GRAM` together, are looked up there, other names of the same
thing included; the facts found lead one step further, to the facts of their other end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from remem.index import lexical, project
from remem.index.accumulate import Postings
from remem.index.fields import ENTITY, entity, filters
from remem.index.segments import load_part
from remem.index.truths import Collector
from remem.objects import chains, refs
from remem.objects.errors import RememError
from remem.objects.model import Memory
from remem.objects.views import CURRENT, Eye

if TYPE_CHECKING:
    from remem.index.hits import Hit, Question
    from remem.objects.kv import Txn
    from remem.objects.reader import Part, Reader

GRAM = 3  # words that a name has at most
WORDS = 64  # words of a question that are looked at
COMMON = 24  # facts of an entity from which on naming it says less
LINKS = 24  # facts that are followed, facts that are taken at the other end
NAMED = 0.12  # of the best score, for a fact of a named entity
LINKED = 0.06  # for a fact one step further

_WORD = re.compile(r"[^\W_][\w.@/'\u2019-]*")
_POSSESSIVE = re.compile(r"['\u2019]s?$")


def names_in(text: str) -> list[str]:
    """Folded words of a question, alone and together, that may be a name."""
    words = [_POSSESSIVE.sub("", w).rstrip(".-/") for w in _WORD.findall(text)[:WORDS]]
    words = [chains.fold(word) for word in words]
    grams = [
        " ".join(words[at : at + size])
        for size in range(GRAM, 0, -1)
        for at in range(len(words) - size + 1)
    ]
    return [gram for gram in dict.fromkeys(grams) if gram]


class Entities:
    """The entity vocabulary of one partition."""

    def __init__(self, txn: Txn, reader: Reader, part: Part) -> None:
        """Bind an index and a snapshot."""
        self.txn = txn
        self.reader = reader
        self.part = part
        self._held = load_part(txn, part.number)
        self._others = other_names(reader, part)

    def facts(self, eye: Eye, text: str) -> dict[int, float]:
        """Documents of facts that a question reaches by name, with what that is worth."""
        if next(lexical.vocabulary(self.txn, self.part.number, ENTITY), None) is None:
            return {}
        found: dict[int, float] = {}
        named: set[str] = set()
        followed: list[int] = []
        for name in names_in(text):
            same = self._same(name)
            docs = self._docs(same)
            if docs and not same & named:
                named |= same
                followed += docs[:LINKS]
                share = NAMED * min(1.0, COMMON / len(docs))
                for docno in docs[: 4 * LINKS]:
                    found[docno] = max(found.get(docno, 0.0), share)
        for name in self._ends(eye, followed[:LINKS], named):
            for docno in self._docs(self._same(name))[:LINKS]:
                found.setdefault(docno, LINKED)
        return found

    def _same(self, name: str) -> set[str]:
        """All names of what a name stands for."""
        stands = chains.canonical(self.reader, self.part, name)
        return {name, stands, *self._others.get(stands, ())}

    def _docs(self, names: set[str]) -> list[int]:
        """Documents of the facts of an entity, the latest first."""
        docs: set[int] = set()
        for name in names:
            postings = Postings(self.txn, self._held, entity(name))
            if postings.count:
                docs |= set(postings.documents())
        return sorted(docs, reverse=True)

    def _ends(self, eye: Eye, docs: list[int], named: set[str]) -> list[str]:
        """Names at the other end of facts that hold."""
        ends: dict[str, None] = {}
        for docno in docs:
            row = lexical.doc(self.txn, self.part.number, docno)
            seen = eye.see(self.part, row.ref, row.oid, row.seq)
            if seen is None or seen[1] != CURRENT:
                continue
            try:
                obj = self.reader.object(self.part, row.oid)
            except RememError:
                continue
            if isinstance(obj, Memory) and obj.triple is not None:
                for name in (obj.triple[0], obj.triple[2]):
                    if chains.fold(name) not in named:
                        ends.setdefault(chains.fold(name))
        return list(ends)


def other_names(reader: Reader, part: Part) -> dict[str, list[str]]:
    """Aliases of a partition: the folded names that stand for each name."""
    found: dict[str, list[str]] = {}
    for _, data in reader.txn.scan_prefix("aliases", part.prefix):
        name = chains.fold(msgspec.msgpack.decode(data, type=tuple[str, str])[0])
        found.setdefault(chains.canonical(reader, part, name), []).append(name)
    return found


class Listing(msgspec.Struct, frozen=True):
    """What is held about an entity.

    Attributes:
        names: folded names of it, the one that all stand for first.
        facts: its facts, those that hold first.
        linked: name -> facts that hold of what it is linked to.
    """

    names: list[str]
    facts: list[Hit]
    linked: dict[str, list[Hit]]


def listing(txn: Txn | None, reader: Reader, part: Part, question: Question, name: str) -> Listing:
    """Everything held about a name in a partition.

    Args:
        txn: the inverted index, or None to look at every memory instead.
        reader: a snapshot.
        part: the partition.
        question: carries the lens; its text is not looked at.
        name: a subject or object, or another name of it.
    """
    eye = Eye(question.lens, reader)
    others = other_names(reader, part)
    stands = chains.canonical(reader, part, name)
    same = list(dict.fromkeys([stands, *others.get(stands, ()), chains.fold(name)]))
    collector = Collector(eye, question, [])
    for ref, object_id in _revisions(txn, reader, part, same):
        collector.offer(0.0, part, ref, object_id, 0, {})
    facts = collector.facts()
    linked: dict[str, list[Hit]] = {}
    current = msgspec.structs.replace(question.lens, view="now")
    for other in _other_ends(reader, part, facts, stands):
        around = Collector(
            Eye(current, reader), msgspec.structs.replace(question, lens=current), []
        )
        names = [other, *others.get(other, ())]
        for ref, object_id in _revisions(txn, reader, part, names):
            around.offer(0.0, part, ref, object_id, 0, {})
        own = {hit.ref for hit in facts}
        found = [hit for hit in around.facts() if hit.ref not in own]
        if found:
            linked[other] = found[:LINKS]
    return Listing(same, facts, linked)


def _other_ends(reader: Reader, part: Part, facts: list[Hit], stands: str) -> list[str]:
    """Names at the other end of facts that hold, as they are compared."""
    ends: dict[str, None] = {}
    for hit in facts:
        if hit.truth == CURRENT and isinstance(hit.obj, Memory) and hit.obj.triple is not None:
            for name in (hit.obj.triple[0], hit.obj.triple[2]):
                other = chains.canonical(reader, part, name)
                if other != stands:
                    ends.setdefault(other)
    return list(ends)[:LINKS]


def _revisions(
    txn: Txn | None, reader: Reader, part: Part, names: list[str]
) -> list[tuple[bytes, bytes]]:
    """(ref, object id) of every revision of a memory that has one of these names."""
    found: dict[tuple[bytes, bytes], None] = {}
    after = 0
    if txn is not None:
        after = project.cursor(txn, part.number)
        held = load_part(txn, part.number)
        for name in names:
            postings = Postings(txn, held, entity(name))
            for docno in sorted(postings.documents()) if postings.count else ():
                row = lexical.doc(txn, part.number, docno)
                found[(row.ref, row.oid)] = None
    wanted = {entity(name) for name in names}
    for entry in reader.log(part, after=after):
        if entry.type == refs.MEMORY and entry.new is not None and entry.new != entry.old:
            try:
                obj = reader.object(part, entry.new)
            except RememError:
                continue
            if wanted.intersection(filters(obj)):
                found[(entry.ref, entry.new)] = None
    return list(found)
