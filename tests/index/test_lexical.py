"""The inverted index against a dictionary that does the same slowly."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import lexical, segments
from remem.index.errors import IndexDamaged
from remem.index.lexcheck import check
from remem.index.lexical import DocIn
from remem.index.postings import (
    DOC,
    KEY,
    LANE,
    PART,
    POST,
    TABLES,
    close_value,
    number_key,
    pack_list,
    part_key,
)
from remem.index.scoring import search
from remem.objects.kv import Env, Txn, forget_env, open_env

P = 7  # the partition under test; others are there to disturb
WORDS = [b"tea", b"cup", b"pot", b"milk", b"sugar", b"kettle"]
FILTERS = [b"\x00k:fact", b"\x00r:user", b"\x00r:bot"]


def made(number: int, *, seq: int | None = None, words: Iterable[bytes] = WORDS[:1]) -> DocIn:
    listed = list(words)
    return DocIn(
        ref=sha256(b"ref%d" % number).digest(),
        oid=sha256(b"oid%d" % number).digest(),
        seq=number if seq is None else seq,
        lane=number % 3,
        when=None if number % 2 else 1_700_000_000_000_000 + number,
        length=len(listed),
        terms=lexical.tally(listed),
        filters=[FILTERS[number % 3]],
    )


documents = st.builds(
    lambda number, seq, words, length, filters: DocIn(
        ref=sha256(b"ref%d" % (number // 2)).digest(),
        oid=sha256(b"oid%d" % number).digest(),
        seq=seq,
        lane=number % 2,
        when=None,
        length=length,
        terms=words,
        filters=filters,
    ),
    st.integers(0, 30),
    st.integers(0, 12),
    st.dictionaries(st.sampled_from(WORDS), st.integers(1, 300), max_size=5),
    st.integers(0, 300),
    st.lists(st.sampled_from(FILTERS), unique=True, max_size=3),
)
changes = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(documents, max_size=6)),
        st.tuples(st.just("remove"), st.lists(st.integers(0, 31), max_size=6)),
    ),
    max_size=8,
)


@pytest.fixture
def env(tmp_path: Path) -> Iterable[Env]:
    path = str(tmp_path / "index")
    opened = open_env(path, TABLES, create=True, sync=False)
    yield opened
    forget_env(path)


def apply(txn: Txn, steps: list[tuple[str, list]], part: int = P) -> dict[bytes, DocIn]:  # type: ignore[type-arg]
    """Run changes against the index and against a dictionary; return the dictionary."""
    model: dict[bytes, DocIn] = {}
    for step, what in steps:
        if step == "add":
            lexical.add(txn, part, what)
            model |= {doc.ref + doc.oid: doc for doc in what}
        else:
            names = [
                (sha256(b"ref%d" % (n // 2)).digest(), sha256(b"oid%d" % n).digest()) for n in what
            ]
            there = {ref + oid for ref, oid in names} & model.keys()
            assert lexical.remove(txn, part, names) == len(there)
            for name in there:
                del model[name]
    return model


def facts(txn: Txn, part: int = P) -> dict[str, object]:
    """Everything an index says, in terms that do not depend on how it was built."""
    numbers = [int.from_bytes(key[4:], "big") for key, _ in txn.scan_prefix(DOC, part_key(part))]
    rows = {number: lexical.doc(txn, part, number) for number in numbers}
    names = {number: row.oid for number, row in rows.items()}
    found: dict[str, object] = {
        "rows": sorted(rows.values(), key=lambda row: (row.seq, row.oid)),
        "stats": lexical.stats(txn, part),
        "vocabulary": list(lexical.vocabulary(txn, part)),
        "filters": [lexical.df(txn, part, name) for name in FILTERS],
        "terms": {names[n]: lexical.terms_of(txn, part, n) for n in numbers},
        "filters of": {names[n]: lexical.filters_of(txn, part, n) for n in numbers},
        "neighbours": {
            names[n]: [[names[m] for m in side] for side in lexical.neighbours(txn, part, n, 2)]
            for n in numbers
        },
    }
    for limit, numpy in ((3, False), (3, True), (50, False)):
        for must in ((), FILTERS[:1], FILTERS[:2]):
            asked = [(WORDS[0], 1.0), (WORDS[3], 0.5), (WORDS[4], 2.0), (b"unknown", 1.0)]
            hits = search(txn, part, asked, must=must, limit=limit, use_numpy=numpy)
            found[f"hits {limit} {numpy} {must}"] = [
                (names[number], score, hits.score(number), hits.explain(number))
                for number, score in hits
            ]
            found[f"count {limit} {numpy} {must}"] = hits.count()
    return found


@given(changes, st.sampled_from([(1, 8), (2, 3), (8, 8)]))
def test_whatever_the_history_the_answers_are_those_of_a_fresh_index(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, list]],  # type: ignore[type-arg]
    shape: tuple[int, int],
) -> None:
    env = open_env(str(tmp_path_factory.mktemp("env")), TABLES, create=True, sync=False)
    patch = pytest.MonkeyPatch()
    patch.setattr(segments, "RATIO", shape[0])
    patch.setattr(segments, "MAX_SEGMENTS", shape[1])
    try:

        def build(txn: Txn) -> dict[str, object]:
            lexical.add(txn, P - 1, [made(n) for n in range(9)])
            model = apply(txn, steps)
            assert check(txn, P) == []
            held = segments.load_part(txn, P)
            assert len(held.segments) <= shape[1]
            n = len(model)
            assert lexical.stats(txn, P) == (n, sum(doc.length for doc in model.values()))
            for word in WORDS:
                assert lexical.df(txn, P, word) == sum(word in d.terms for d in model.values())
            for doc in model.values():
                number = lexical.docno_of(txn, P, doc.ref, doc.oid)
                assert number is not None
                assert number in lexical.docs_of_ref(txn, P, doc.ref)
                row = lexical.doc(txn, P, number)
                assert (row.ref, row.oid, row.seq, row.lane, row.when, row.length) == (
                    doc.ref, doc.oid, doc.seq, doc.lane, doc.when, doc.length,
                )  # fmt: skip
                counts = {term: min(count, 255) for term, count in doc.terms.items()}
                assert lexical.terms_of(txn, P, number) == counts
                assert lexical.filters_of(txn, P, number) == sorted(doc.filters)
            lexical.add(txn, P + 1, list(model.values()))
            assert check(txn, P + 1) == []
            assert facts(txn, P + 1) == facts(txn, P)
            return facts(txn, P)

        before = env.write(build)
        with env.read(buffers=True) as txn:
            assert facts(txn) == before
            assert check(txn, P - 1) == []
            assert lexical.stats(txn, P - 1) == (9, 9)
    finally:
        patch.undo()
        forget_env(env.path)


def test_one_by_one_makes_few_segments(env: Env) -> None:
    rng = random.Random(5)

    def build(txn: Txn) -> int:
        most = 0
        for number in range(900):
            lexical.add(txn, P, [made(number, words=rng.choices(WORDS, k=4))])
            most = max(most, len(segments.load_part(txn, P).segments))
        return most

    most = env.write(build)
    assert 2 <= most <= 5
    with env.read() as txn:
        assert check(txn, P) == []
        assert lexical.stats(txn, P) == (900, 3600)


def test_there_are_never_more_segments_than_allowed() -> None:
    rng = random.Random(2)
    sizes: list[int] = []
    moved = added = 0
    for _ in range(20_000):
        new = rng.choice((1, 1, 1, 10, 200))
        at = segments.first_to_merge(sizes, new)
        moved += sum(sizes[at + 1 :]) + new
        added += new
        sizes[at:] = [sum(sizes[at:]) + new]
        assert len(sizes) <= segments.MAX_SEGMENTS
    assert moved / added < 8
    full = [9**n for n in range(segments.MAX_SEGMENTS, 0, -1)]
    assert segments.first_to_merge(full, 1) == len(full) - 1


def test_what_is_removed_leaves_no_trace(env: Env) -> None:
    secret = made(1, words=[b"zanzibar", b"tea"])
    env.write(lambda txn: lexical.add(txn, P, [secret, made(2)]))

    def traces(txn: Txn) -> int:
        pairs = [pair for table in TABLES for pair in txn.scan(table)]
        needles = (b"zanzibar", secret.ref, secret.oid, secret.oid[:8])
        return sum(needle in key or needle in value for key, value in pairs for needle in needles)

    with env.read() as txn:
        assert traces(txn) > 5
    assert env.write(lambda txn: lexical.remove(txn, P, [(secret.ref, secret.oid)])) == 1
    with env.read() as txn:
        assert traces(txn) == 0
        assert [term for term, _ in lexical.vocabulary(txn, P)] == [b"tea"]
        assert check(txn, P) == []


def test_an_emptied_partition_gives_no_number_twice(env: Env) -> None:
    one = made(1)
    env.write(lambda txn: lexical.add(txn, P, [one]))
    env.write(lambda txn: lexical.remove(txn, P, [(one.ref, one.oid)]))
    env.write(lambda txn: lexical.add(txn, P, [one]))
    with env.read() as txn:
        assert lexical.docno_of(txn, P, one.ref, one.oid) == 1
        assert check(txn, P) == []
    env.write(lambda txn: lexical.clear(txn, P))
    with env.read() as txn:
        assert [list(txn.scan(table)) for table in TABLES] == [[]] * len(TABLES)
        assert lexical.parts(txn) == []


def test_clearing_one_partition_leaves_the_others(env: Env) -> None:
    for part in (0, P, 2**32 - 1):
        env.write(lambda txn, part=part: lexical.add(txn, part, [made(1), made(2)]))
    with env.read() as txn:
        assert lexical.parts(txn) == [0, P, 2**32 - 1]
    env.write(lambda txn: lexical.clear(txn, P))
    with env.read() as txn:
        assert lexical.parts(txn) == [0, 2**32 - 1]
        assert lexical.stats(txn, P) == (0, 0)
        assert lexical.stats(txn, 0) == lexical.stats(txn, 2**32 - 1) == (2, 2)
        assert check(txn, 0) == check(txn, 2**32 - 1) == []


def test_neighbours_are_of_one_lane_and_in_order(env: Env) -> None:
    batch = [made(n, seq=100 - n) for n in range(30)]
    env.write(lambda txn: lexical.add(txn, P, batch[10:]))
    env.write(lambda txn: lexical.add(txn, P, batch[:10]))
    with env.read(buffers=True) as txn:
        number = lexical.docno_of(txn, P, batch[15].ref, batch[15].oid)
        assert number is not None
        before, behind = lexical.neighbours(txn, P, number, 3)
        assert [lexical.doc(txn, P, n).seq for n in before] == [82, 79, 76]
        assert [lexical.doc(txn, P, n).seq for n in behind] == [88, 91, 94]
        first = lexical.docno_of(txn, P, batch[29].ref, batch[29].oid)
        assert first is not None
        assert lexical.neighbours(txn, P, first, 99)[0] == []
        assert len(lexical.neighbours(txn, P, first, 99)[1]) == 9
        assert lexical.neighbours(txn, P, first, 0) == ([], [])


def test_a_mark_is_kept_with_the_documents_or_not_at_all(env: Env) -> None:
    def both(txn: Txn) -> None:
        lexical.add(txn, P, [made(1)])
        lexical.set_mark(txn, b"cursor", b"41")

    env.write(both)

    def fails(txn: Txn) -> None:
        lexical.add(txn, P, [made(2)])
        lexical.set_mark(txn, b"cursor", b"42")
        raise KeyError("stop")

    with pytest.raises(KeyError):
        env.write(fails)
    with env.read() as txn:
        assert lexical.mark(txn, b"cursor") == b"41"
        assert lexical.stats(txn, P) == (1, 1)
        assert lexical.mark(txn, b"other") is None
    env.write(lambda txn: lexical.set_mark(txn, b"cursor", None))
    with env.read() as txn:
        assert lexical.mark(txn, b"cursor") is None


def test_vocabulary_by_prefix(env: Env) -> None:
    env.write(lambda txn: lexical.add(txn, P, [made(1, words=WORDS), made(2, words=WORDS[:3])]))
    with env.read() as txn:
        assert list(lexical.vocabulary(txn, P, b"k")) == [(b"kettle", 1)]
        assert list(lexical.vocabulary(txn, P, b"\x00")) == [(FILTERS[1], 1), (FILTERS[2], 1)][::-1]
        assert lexical.vocabulary_size(txn, P) == len(WORDS)
        assert dict(lexical.vocabulary(txn, P))[b"tea"] == 2


@pytest.mark.parametrize(
    "spoil",
    [
        {"terms": {b"": 4}},
        {"terms": {b"x" * 401: 4}},
        {"terms": {b"a\x00b": 4}},
        {"terms": {b"\x00k:fact": 4}},
        {"terms": {b"tea": 0}},
        {"terms": {b"tea": -1}},
        {"filters": [b"fact"]},
        {"filters": [b"\x00a\x00b"]},
        {"filters": [b"\x00"]},
        {"filters": [b""]},
        {"length": -1},
        {"seq": 2**64},
        {"lane": 2**32},
        {"ref": b"short"},
        {"oid": b""},
    ],
)
def test_what_cannot_be_indexed_is_refused_whole(env: Env, spoil: dict[str, object]) -> None:
    bad = made(2)
    for name, value in spoil.items():
        setattr(bad, name, value)
    with pytest.raises(ValueError):
        env.write(lambda txn: lexical.add(txn, P, [made(1), bad]))
    with env.read() as txn:
        assert lexical.parts(txn) == []
    env.write(lambda txn: lexical.add(txn, P, [made(1), made(2)]))
    with env.read() as txn:
        assert lexical.stats(txn, P) == (2, 2)


def test_extreme_values_are_kept(env: Env) -> None:
    wide = DocIn(
        b"\xff" * 32, b"\x00" * 32, 2**64 - 1, 2**32 - 1, -1, 2**32 - 1,
        {b"\xff" * 400: 255, "né".encode(): 1}, [b"\x00" + b"\xff" * 300],
    )  # fmt: skip
    bare = DocIn(b"\x00" * 32, b"\xff" * 32, 0, 0, None, 0, {}, [])
    env.write(lambda txn: lexical.add(txn, 2**32 - 1, [wide, bare]))
    with env.read(buffers=True) as txn:
        assert check(txn, 2**32 - 1) == []
        number = lexical.docno_of(txn, 2**32 - 1, wide.ref, wide.oid)
        assert number == 1
        assert lexical.terms_of(txn, 2**32 - 1, 1) == wide.terms
        assert lexical.filters_of(txn, 2**32 - 1, 1) == wide.filters
        assert lexical.doc(txn, 2**32 - 1, 1).when == -1
        assert lexical.terms_of(txn, 2**32 - 1, 0) == {}
        assert lexical.doc(txn, 2**32 - 1, 0).when is None


def test_an_unknown_document_is_an_error_not_an_empty_row(env: Env) -> None:
    env.write(lambda txn: lexical.add(txn, P, [made(1)]))
    with env.read() as txn:
        assert lexical.doc(txn, P, 0).seq == 1
        with pytest.raises(IndexDamaged, match="no document 1"):
            lexical.doc(txn, P, 1)


def lists_of(txn: Txn) -> list[bytes]:
    return [key for key, _ in txn.scan(POST)]


def rewrite(table: str, change: Callable[[bytes], bytes]) -> Callable[[Txn], None]:
    """Change the body of the first value of a table and give it a sum that matches."""

    def run(txn: Txn) -> None:
        key, value = next(iter(txn.scan(table)))
        txn.put(table, key, close_value(key, change(bytes(value[4:]))))

    return run


def another_code(txn: Txn) -> None:
    key = number_key(P, 0) + b"tea"
    value = txn.get(POST, key)
    assert value is not None
    body = bytearray(value[4:])
    body[-1] ^= 4
    txn.put(POST, key, close_value(key, bytes(body)))


def stray_list(txn: Txn) -> None:
    key = number_key(P, 99) + b"tea"
    txn.put(POST, key, close_value(key, pack_list(b"tea", [4 << 40])))


def ghost(txn: Txn) -> None:
    txn.delete(DOC, number_key(P, 1))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda txn: txn.delete(POST, number_key(P, 0) + b"tea"), "as its row says"),
        (another_code, "document 4 as its row says"),
        (stray_list, "belongs to no segment"),
        (ghost, "document 1, which has no row"),
        (lambda txn: txn.delete(KEY, next(iter(txn.scan(KEY)))[0]), "under its key"),
        (lambda txn: txn.delete(LANE, next(iter(txn.scan(LANE)))[0]), "in its lane"),
        (rewrite(PART, lambda body: b"\x09" + body[1:]), "not as recorded"),
        (rewrite(PART, lambda body: body[:-1] + b"\x01"), "recorded|range"),
        (rewrite(PART, lambda body: body[:9]), "cut short"),
        (rewrite(POST, lambda body: body[4:] + body[:4]), "not in order"),
        (lambda txn: txn.put(POST, lists_of(txn)[0], b"1234567"), "has 7 bytes"),
        (lambda txn: txn.put(DOC, number_key(P, 1), b"1234567"), "row of document 1"),
        (lambda txn: txn.put(KEY, part_key(P) + bytes(64), b"12345678"), "keys"),
    ],
)
def test_a_check_finds_what_is_wrong(
    env: Env, damage: Callable[[Txn], object], message: str
) -> None:
    env.write(lambda txn: lexical.add(txn, P, [made(n, words=WORDS[: 1 + n]) for n in range(5)]))
    with env.read() as txn:
        assert check(txn, P) == []
    env.write(damage)
    with env.read(buffers=True) as txn:
        found = check(txn, P)
        assert found
        import re

        assert re.search(message, "\n".join(found)), found


def test_removing_from_a_damaged_index_is_refused(env: Env) -> None:
    one = made(1)
    env.write(lambda txn: lexical.add(txn, P, [one, made(2)]))
    env.write(lambda txn: txn.delete(POST, number_key(P, 0) + b"tea"))
    with pytest.raises(IndexDamaged, match="'tea' is missing"):
        env.write(lambda txn: lexical.remove(txn, P, [(one.ref, one.oid)]))
    with env.read() as txn:
        assert lexical.stats(txn, P) == (2, 2)
