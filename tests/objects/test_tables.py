"""Ordered reading: pairs without a line of Python for each, and rows beside those of others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import kv
from remem.objects.tables import Beside, after_prefix

KEYS = [b"a", b"ab", b"ab\xff", b"ab\xff\xff", b"ac", b"b", b"b\x00", b"\xff", b"\xff\xff"]
some_keys = st.sampled_from(KEYS)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kv.Env]:
    path = str(tmp_path_factory.mktemp("env"))
    made = kv.open_env(path, ("full", "empty"), create=True)
    made.write(lambda txn: txn.put_many("full", [(key, key * 3) for key in sorted(KEYS)], True))
    yield made
    kv.forget_env(path)


@given(st.just(b"") | some_keys, st.none() | some_keys)
def test_pairs_are_those_of_a_scan(env: kv.Env, start: bytes, stop: bytes | None) -> None:
    with env.read() as txn:
        found = list(txn.pairs("full", start, stop))
        assert found == list(txn.scan("full", start, stop))
        inside = [key for key in sorted(KEYS) if key >= start and (stop is None or key < stop)]
        assert found == [(key, key * 3) for key in inside]
        assert list(txn.pairs("empty", start, stop)) == []


def test_pairs_of_a_prefix_that_nothing_follows(env: kv.Env) -> None:
    with env.read() as txn:
        found = [key for key, _ in txn.pairs("full", b"\xff", after_prefix(b"\xff"))]
        assert found == [b"\xff", b"\xff\xff"]
        found = [key for key, _ in txn.pairs("full", b"ab", after_prefix(b"ab"))]
        assert found == [b"ab", b"ab\xff", b"ab\xff\xff"]


@given(
    st.dictionaries(st.binary(max_size=2), st.binary(max_size=2)),
    st.lists(st.binary(max_size=2)),
)
def test_beside_finds_what_a_lookup_finds(rows: dict[bytes, bytes], asked: list[bytes]) -> None:
    beside = Beside(iter(sorted(rows.items())))
    for key in sorted(asked):  # a key may come again
        assert beside.get(key) == rows.get(key)
