"""BM25 over the inverted index: the formula, both ways to it, order, filters, damage."""

from __future__ import annotations

import itertools
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import accumulate, lexical, scoring
from remem.index.errors import IndexDamaged
from remem.index.lexical import DocIn
from remem.index.postings import DOC, LENGTHS, POST, TABLES, length_code, number_key
from remem.index.scoring import search
from remem.index.segments import load_part
from remem.objects.errors import RememError
from remem.objects.kv import Env, Txn, forget_env, open_env

P = 3
WORDS = [b"w%d" % n for n in range(60)]
EVEN, RARE, MOST = b"\x00even", b"\x00rare", b"\x00most"


def corpus(count: int, seed: int, seqs: int = 10**9) -> list[DocIn]:
    rng = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    docs = []
    for number in range(count):
        words = rng.choices(WORDS, weights, k=rng.randint(1, 12))
        filters = [EVEN] * (number % 2 == 0) + [RARE] * (number % 97 == 0)
        docs.append(
            DocIn(
                ref=sha256(b"r%d" % number).digest(),
                oid=sha256(b"o%d" % number).digest(),
                seq=number % seqs,
                lane=number % 5,
                when=None,
                length=len(words) * rng.choice((1, 1, 40)),
                terms=lexical.tally(words),
                filters=filters + [MOST] * (number % 11 > 0),
            )
        )
    return docs


def naive(
    docs: list[DocIn],
    asked: list[tuple[bytes, float]],
    must: tuple[bytes, ...] = (),
    k1: float = 1.2,
    b: float = 0.75,
) -> list[tuple[bytes, float]]:
    """Object ids and scores, best first, straight from the formula."""
    average = (sum(doc.length for doc in docs) / len(docs)) or 1.0
    frequencies = {word: sum(word in doc.terms for doc in docs) for word, _ in asked}
    ranked = []
    for doc in docs:
        if not set(must) <= set(doc.filters):
            continue
        score = 0.0
        for word, weight in sorted(asked, key=lambda pair: (frequencies[pair[0]], pair[0])):
            if word in doc.terms:
                df = frequencies[word]
                idf = math.log(1 + (len(docs) - df + 0.5) / (df + 0.5))
                tf = min(doc.terms[word], 255) / 4
                length = LENGTHS[length_code(doc.length)]
                score += idf * weight * (tf / (tf + k1 * (1 - b + b * length / average)))
        if score:
            ranked.append((doc, score))
    ranked.sort(key=lambda pair: (-pair[1], pair[0].seq, pair[0].oid, pair[0].ref))
    return [(doc.oid, score) for doc, score in ranked]


def question(rng: random.Random, most: int = 6) -> list[tuple[bytes, float]]:
    words = rng.sample(WORDS, rng.randint(1, most))
    return [(word, rng.choice((1.0, 1.0, 0.5, 1.5))) for word in words]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Env, list[DocIn]]]:
    """Three thousand documents that came in disorder, in batches, after others had left."""
    env = open_env(str(tmp_path_factory.mktemp("many")), TABLES, create=True, sync=False)
    docs = corpus(3300, 1, seqs=700)
    gone, kept = docs[3000:], docs[:3000]
    shuffled = docs[:]
    random.Random(4).shuffle(shuffled)

    def build(txn: Txn) -> None:
        at = 0
        for size in (2000, 700, 400, 150, 49, 1):
            lexical.add(txn, P, shuffled[at : at + size])
            at += size
        lexical.remove(txn, P, [(doc.ref, doc.oid) for doc in gone])
        lexical.add(txn, P + 1, docs)

    env.write(build)
    yield env, kept
    forget_env(env.path)


def named(txn: Txn, found: Iterator[tuple[int, float]], limit: int) -> list[tuple[bytes, float]]:
    return [(lexical.doc(txn, P, n).oid, score) for n, score in itertools.islice(found, limit)]


@pytest.mark.parametrize("must", [(), (EVEN,), (RARE,), (MOST,), (MOST, EVEN), (RARE, EVEN, MOST)])
@pytest.mark.parametrize("limit", [1, 10, 400])
def test_every_way_gives_what_the_formula_gives(
    many: tuple[Env, list[DocIn]], must: tuple[bytes, ...], limit: int
) -> None:
    env, docs = many
    rng = random.Random(limit)
    with env.read(buffers=True) as txn:
        assert len(load_part(txn, P).segments) > 1
        assert not load_part(txn, P).ordered
        for _ in range(12):
            asked = question(rng)
            expected = naive(docs, asked, must)
            for numpy in (False, True):
                hits = search(txn, P, asked, must=must, limit=limit, use_numpy=numpy)
                assert named(txn, iter(hits.top), limit) == expected[:limit]
                assert named(txn, iter(hits), limit + 30) == expected[: limit + 30]
                assert hits.count() == len(expected)
            whole = search(txn, P, asked, must=must, limit=limit, use_numpy=False)
            assert named(txn, iter(whole), len(docs)) == expected


def test_pruning_drops_documents_but_never_the_best(
    many: tuple[Env, list[DocIn]], monkeypatch: pytest.MonkeyPatch
) -> None:
    env, _ = many
    rng = random.Random(8)
    cut = 0
    with env.read(buffers=True) as txn:
        for few, exact in itertools.product((0, 256), (0, 512)):
            monkeypatch.setattr(accumulate, "_FEW", few)
            monkeypatch.setattr(accumulate, "_EXACT", exact)
            for _ in range(60):
                asked = question(rng)
                limit = rng.choice((1, 3, 20))
                hits = search(txn, P, asked, limit=limit, use_numpy=False)
                everything = accumulate.sum_all(hits.terms, None)
                some, complete = accumulate.sum_best(hits.terms, None, limit)
                cut += not complete
                assert complete == (len(some) == len(everything))
                assert some.items() <= everything.items()
                top = search(txn, P, asked, limit=limit, use_numpy=True).top
                assert hits.top == top
    assert cut > 20


@given(st.integers(0, 10**6), st.floats(0, 3), st.floats(0, 1))
def test_parameters_and_parts_of_the_score(
    many: tuple[Env, list[DocIn]], seed: int, k1: float, b: float
) -> None:
    env, docs = many
    rng = random.Random(seed)
    asked = question(rng)
    with env.read(buffers=True) as txn:
        hits = search(txn, P, asked, limit=5, k1=k1, b=b, use_numpy=False)
        fast = search(txn, P, asked, limit=5, k1=k1, b=b, use_numpy=True)
        assert hits.top == fast.top
        expected = dict(naive(docs, asked, k1=k1, b=b))
        for doc in rng.sample(docs, 20):
            number = lexical.docno_of(txn, P, doc.ref, doc.oid)
            assert number is not None
            score = hits.score(number)
            assert score == fast.score(number) == expected.get(doc.oid, 0.0)
            why = hits.explain(number)
            assert sum(part.score for part in why) == pytest.approx(score, abs=1e-12)
            assert {part.term: part.tf for part in why} == {
                word: min(doc.terms[word], 255) / 4 for word, _ in asked if word in doc.terms
            }
            for part in why:
                assert part.df == sum(part.term in other.terms for other in docs)
                assert part.weight == dict(asked)[part.term]
        assert hits.score(-1) == fast.score(-1) == hits.score(10**9) == fast.score(10**9) == 0.0


def test_a_document_outside_the_filter_has_no_score(many: tuple[Env, list[DocIn]]) -> None:
    env, docs = many
    odd = next(doc for doc in docs if EVEN not in doc.filters and WORDS[0] in doc.terms)
    with env.read(buffers=True) as txn:
        number = lexical.docno_of(txn, P, odd.ref, odd.oid)
        assert number is not None
        for numpy in (False, True):
            asked = [(WORDS[0], 1.0)]
            assert search(txn, P, asked, use_numpy=numpy).score(number) > 0
            hits = search(txn, P, asked, must=[EVEN], limit=1, use_numpy=numpy)
            assert hits.score(number) == 0.0
            assert hits.explain(number) == []
            assert hits.count() == sum(
                EVEN in doc.filters and WORDS[0] in doc.terms for doc in docs
            )


def test_equal_scores_stand_in_order_however_they_came(tmp_path: Path) -> None:
    docs = [
        DocIn(bytes([n]) * 32, bytes([255 - n]) * 32, n // 4, 0, None, 3, {b"tea": 4}, [])
        for n in range(40)
    ]
    orders = []
    for seed in range(6):
        env = open_env(str(tmp_path / str(seed)), TABLES, create=True, sync=False)
        shuffled = docs[:]
        if seed:
            random.Random(seed).shuffle(shuffled)

        def build(txn: Txn, docs: list[DocIn] = shuffled, step: int = 1 + 7 * seed) -> None:
            for at in range(0, len(docs), step):
                lexical.add(txn, P, docs[at : at + step])

        env.write(build)
        with env.read(buffers=True) as txn:
            for numpy in (False, True):
                for limit in (7, 100):
                    hits = search(txn, P, [(b"tea", 1.0)], limit=limit, use_numpy=numpy)
                    orders.append([lexical.doc(txn, P, number).oid for number, _ in hits])
        forget_env(env.path)
    expected = [doc.oid for doc in sorted(docs, key=lambda doc: (doc.seq, doc.oid))]
    assert orders == [expected] * len(orders)


def test_documents_in_order_need_no_rows_to_be_ranked(tmp_path: Path) -> None:
    env = open_env(str(tmp_path), TABLES, create=True, sync=False)
    docs = corpus(200, 3)
    env.write(lambda txn: lexical.add(txn, P, docs[100:]))
    env.write(lambda txn: lexical.add(txn, P + 1, docs[:100]))
    env.write(lambda txn: lexical.add(txn, P + 1, docs[100:]))
    with env.read() as txn:
        assert load_part(txn, P).ordered
        assert load_part(txn, P + 1).ordered
    env.write(lambda txn: lexical.add(txn, P, docs[:100]))
    with env.read() as txn:
        assert not load_part(txn, P).ordered
        asked = [(WORDS[0], 1.0), (WORDS[1], 1.0)]
        one, other = (
            [lexical.doc(txn, part, number) for number, _ in search(txn, part, asked, limit=9)]
            for part in (P, P + 1)
        )
        assert one == other
    forget_env(env.path)


def test_questions_without_an_answer(many: tuple[Env, list[DocIn]]) -> None:
    env, docs = many
    with env.read(buffers=True) as txn:
        assert search(txn, P, [(WORDS[0], 1.0)]).count() == sum(
            WORDS[0] in doc.terms for doc in docs
        )
        for part, asked, must in (
            (P, [], ()),
            (P, [(b"unknown", 1.0)], ()),
            (P, [(WORDS[0], 0.0)], ()),
            (P, [(WORDS[0], 1.0)], (b"\x00unknown",)),
            (P + 99, [(WORDS[0], 1.0)], ()),
        ):
            for numpy in (False, True):
                hits = search(txn, part, asked, must=must, use_numpy=numpy)
                assert (hits.top, list(hits), hits.count()) == ([], [], 0)
                assert hits.score(0) == 0.0
                assert hits.explain(0) == []


def test_weights_of_a_repeated_term_add_up(many: tuple[Env, list[DocIn]]) -> None:
    env, _ = many
    with env.read(buffers=True) as txn:
        twice = search(txn, P, [(WORDS[9], 0.5), (WORDS[9], 1.0)], limit=4).top
        assert twice == search(txn, P, [(WORDS[9], 1.5)], limit=4).top
        assert twice != search(txn, P, [(WORDS[9], 1.0)], limit=4).top


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"k1": -0.1}, {"b": 1.1}, {"b": -0.1}])
def test_parameters_out_of_range_are_refused(
    many: tuple[Env, list[DocIn]], wrong: dict[str, float]
) -> None:
    env, _ = many
    with env.read(buffers=True) as txn:
        assert search(txn, P, [(WORDS[0], 1.0)], limit=1, k1=0, b=0).top
        with pytest.raises(ValueError):
            search(txn, P, [(WORDS[0], 1.0)], **wrong)  # type: ignore[arg-type]


def test_an_answer_does_not_outlive_its_transaction(many: tuple[Env, list[DocIn]]) -> None:
    env, _ = many
    with env.read(buffers=True) as txn:
        hits = search(txn, P, [(word, 1.0) for word in WORDS[:5]], limit=3, use_numpy=False)
        kept = hits.top
        assert hits.explain(kept[0][0])
    assert kept == hits.top
    for late in (lambda: hits.explain(kept[0][0]), lambda: hits.score(10**6), hits.count):
        with pytest.raises(Exception, match="closed"):
            late()


def test_any_flipped_bit_in_a_value_that_is_read_is_noticed(tmp_path: Path) -> None:
    env = open_env(str(tmp_path), TABLES, create=True, sync=False)
    env.write(lambda txn: lexical.add(txn, P, corpus(60, 2)))
    key = number_key(P, 0) + WORDS[0]
    asked = [(WORDS[0], 1.0), (WORDS[1], 1.0)]
    with env.read() as txn:
        value = txn.get(POST, key)
        before = search(txn, P, asked).top
    assert value is not None
    assert before
    rng = random.Random(1)
    for numpy in (False, True):
        for _ in range(40):
            flipped = bytearray(value)
            flipped[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
            env.write(lambda txn, value=bytes(flipped): txn.put(POST, key, value))
            with env.read(buffers=True) as txn, pytest.raises(IndexDamaged):
                search(txn, P, asked, use_numpy=numpy)
    for size in (0, 3, 4, 5, len(value) // 2, len(value) - 6, len(value) - 1):
        env.write(lambda txn, size=size: txn.put(POST, key, value[:size]))
        with env.read(buffers=True) as txn, pytest.raises(IndexDamaged):
            search(txn, P, asked)
    env.write(lambda txn: txn.put(POST, key, value))
    with env.read(buffers=True) as txn:
        assert search(txn, P, asked).top == before
    env.write(lambda txn: txn.put(DOC, number_key(P, 0), b"x"))
    with env.read() as txn, pytest.raises(RememError):
        lexical.doc(txn, P, 0)
    forget_env(env.path)


COLD = """
import sys
from remem.index.scoring import search
from remem.index import scoring
from remem.index.postings import TABLES
from remem.objects.kv import open_env
env = open_env(sys.argv[1], TABLES)
with env.read(buffers=True) as txn:
    first = search(txn, 3, [(b"w1", 1.0), (b"w2", 1.0)]).top
    assert first and "numpy" not in sys.modules
    scoring.COLD_POSTINGS = 1
    assert search(txn, 3, [(b"w1", 1.0), (b"w2", 1.0)]).top == first
    assert "numpy" in sys.modules
"""


def test_numpy_is_loaded_only_when_there_is_much_to_score(many: tuple[Env, list[DocIn]]) -> None:
    env, _ = many
    pytest.importorskip("numpy")
    subprocess.run([sys.executable, "-c", COLD, env.path], check=True, timeout=60)


def test_without_numpy_everything_is_still_found(
    many: tuple[Env, list[DocIn]], monkeypatch: pytest.MonkeyPatch
) -> None:
    env, _ = many
    with env.read(buffers=True) as txn:
        asked = [(word, 1.0) for word in WORDS[:4]]
        expected = search(txn, P, asked, use_numpy=True).top
        monkeypatch.setitem(sys.modules, "numpy", None)
        monkeypatch.setattr(scoring, "WARM_POSTINGS", 1)
        hits = search(txn, P, asked)
        assert hits.top == expected
        assert hits._scores is None


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from test_scoring import P, corpus
from remem.index import lexical
from remem.index.postings import TABLES
from remem.objects.kv import open_env
env = open_env(sys.argv[1], TABLES, sync=False)
docs = corpus(1500, 6)
print("ready", flush=True)
for line in sys.stdin:
    at = int(line)
    env.write(lambda txn: lexical.add(txn, P, docs[at : at + 50]))
    env.write(lambda txn: lexical.remove(txn, P, [(d.ref, d.oid) for d in docs[at : at + 10]]))
    print("done", flush=True)
"""


def test_a_snapshot_stays_as_it_is_while_another_process_merges(tmp_path: Path) -> None:
    env = open_env(str(tmp_path / "shared"), TABLES, create=True, sync=False)
    docs = corpus(1500, 6)
    env.write(lambda txn: lexical.add(txn, P, docs[:50]))
    here = os.path.dirname(os.path.abspath(__file__))
    asked = [(word, 1.0) for word in WORDS[:6]]
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, env.path, here],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        living = docs[:50]
        for at in range(50, 1500, 50):
            with env.read(buffers=True) as txn:
                hits = search(txn, P, asked, limit=5, use_numpy=False)
                other.stdin.write(f"{at}\n")
                other.stdin.flush()
                assert other.stdout.readline() == "done\n"
                assert named(txn, iter(hits), 10**6) == naive(living, asked)
            living += docs[at + 10 : at + 50]
        other.stdin.close()
        assert other.wait(30) == 0
    with env.read() as txn:
        assert lexical.stats(txn, P)[0] == len(living) == 50 + 29 * 40
        assert named(txn, iter(search(txn, P, asked)), 10**6) == naive(living, asked)
    forget_env(env.path)
