"""Admission: the same evidence once, every form of it, and nothing that cannot be kept."""

from __future__ import annotations

import runpy
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.objects import encode, oid, refs
from remem.objects.admit import Admitted, admit, decode_text, normalise
from remem.objects.errors import BadInput, UsageError
from remem.objects.model import Incoming, Observation
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
from remem.objects.tx import Tx

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("_workers.py"))))
ELSEWHERE = msgspec.structs.replace(W.HOME, collection="b")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "s"))


def kept(store: Store, object_id: bytes) -> Observation:
    with store.read(maintenance_grant()) as reader:
        for part in reader.parts:
            if reader.object_bytes(part, object_id) is not None:
                obj = reader.object(part, object_id)
                assert isinstance(obj, Observation)
                return obj
    raise AssertionError("not kept")


def count(store: Store) -> int:
    with store.read(maintenance_grant()) as reader:
        return reader.txn.count("objects")


# -- the same evidence ----------------------------------------------------------------------------


def test_the_same_text_three_times_is_one_object(store: Store) -> None:
    """A4."""
    got = [W.add(store, "I keep bees") for _ in range(3)]
    assert [item.status for item in got] == ["new", "known", "known"]
    assert len({(item.id, item.ref) for item in got}) == 1
    assert count(store) == 1 and W.check_books(store) == 1


def test_the_same_text_in_one_transaction_is_one_object(store: Store) -> None:
    def act(tx: Tx) -> list[Admitted]:
        return [admit(tx, Incoming(text="twice")) for _ in range(2)]

    one, two = store.write(W.actor(), act)
    assert (one.status, two.status, one.id) == ("new", "known", two.id)
    assert W.check_books(store) == 1


def test_unrelated_texts_do_not_touch_each_other(store: Store) -> None:
    """A5."""
    texts = ["我有一辆红色的自行车", "办公室的打印机坏了"]
    got = [W.add(store, text) for text in texts]
    assert [item.status for item in got] == ["new", "new"]
    assert [kept(store, item.id).text for item in got] == texts
    with store.read(W.actor().grant) as reader:
        states = dict(reader.states(reader.parts[0]))
        assert {item.ref for item in got} == set(states)
        assert all(s.replaced_by is None and s.head == ref for ref, s in states.items())
        assert [refs.OPS[e.op] for e in reader.log(reader.parts[0])] == ["create", "create"]


def test_the_same_text_in_two_collections_is_two_objects(store: Store) -> None:
    """A20: what one scope does to its copy is nothing to the other."""
    here, there = W.add(store, "shared words"), W.add(store, "shared words", ELSEWHERE)
    assert here.status == there.status == "new" and here.id != there.id
    assert kept(store, here.id).salt != kept(store, there.id).salt
    W.change(store, "erase", here.ref, status="erased")
    assert W.add(store, "shared words", ELSEWHERE).status == "known"
    with store.read(maintenance_grant()) as reader:
        state = reader.state(reader.parts[1], there.ref)
        assert state is not None and refs.STATUSES[state.status] == "verified"


@pytest.mark.parametrize(
    "fields",
    [{"asserted": 5}, {"role": "user"}, {"speaker": "Anna"}, {"source_uri": "file:x"},
     {"tool": "zsh"}, {"kind": "turn"}, {"session": "other"}, {"agent": "bot"},
     {"origin": "untrusted"}, {"meta": {"exit": 1}}, {"text": "I keep bees."}],
)  # fmt: skip
def test_what_makes_other_evidence(store: Store, fields: dict[str, object]) -> None:
    plain: dict[str, object] = {"text": "I keep bees"}

    def add(values: dict[str, object]) -> Admitted:
        record = Incoming(**values)  # type: ignore[arg-type]
        return store.write(W.actor(), lambda tx: admit(tx, record))

    assert add(plain).status == "new"
    assert add(plain | fields).status == "new"
    assert add(plain | fields).status == "known"
    assert W.check_books(store) == 2


FORMS = ["caf\u00e9 au lait\nsecond line", "cafe\u0301 au lait\nsecond line",
         "caf\u00e9 au lait\r\nsecond line", "cafe\u0301 au lait\rsecond line"]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_text_are_stored_as_one_with_the_bytes_as_given(
    store: Store, form: str
) -> None:
    item = W.add(store, form)
    found = kept(store, item.id)
    assert found.text == FORMS[0]
    assert found.raw == (None if form == FORMS[0] else form.encode())
    assert W.add(store, form).status == "known"


def test_raw_bytes_are_kept_as_given_and_only_when_they_differ(store: Store) -> None:
    latin = W.add(store, "caf\u00e9", raw="caf\u00e9".encode("latin-1"))
    assert kept(store, latin.id).raw == b"caf\xe9"
    same = W.add(store, "caf\u00e9", raw="caf\u00e9".encode())
    assert kept(store, same.id).raw is None and same.id != latin.id


@given(st.text(max_size=60))
def test_normalising_twice_is_normalising_once(text: str) -> None:
    once = normalise(text)
    assert normalise(once) == once and "\r" not in once
    assert unicodedata.is_normalized("NFC", once)
    assert normalise(unicodedata.normalize("NFD", once)) == once
    assert normalise(once.replace("\n", "\r\n")) == once


# -- said again -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "fields"),
    [
        ("close", {"valid_to": 1}),
        ("supersede", {"replaced_by": bytes(32)}),
        ("revise", {"text": "I live in Basel"}),
    ],
)
def test_text_said_again_after_it_was_replaced_is_new_evidence_once(
    store: Store, op: str, fields: dict[str, object]
) -> None:
    first = W.add(store, "I live in Bern")
    assert W.add(store, "I live in Bern").status == "known"  # while it is current
    W.change(store, op, first.ref, **fields)
    again = W.add(store, "I live in Bern")
    assert again.status == "new" and again.ref != first.ref
    obj = kept(store, again.id)
    with store.read(W.actor().grant) as reader:
        state = reader.state(reader.parts[0], again.ref)
        entry = reader.entry(reader.parts[0], reader.last_seq(reader.parts[0]))
        assert state is not None and state.valid_from == obj.asserted == entry.time
    third = W.add(store, "I live in Bern")  # and that one is current now
    assert (third.status, third.id, third.ref) == ("known", again.id, again.ref)
    W.change(store, "close", again.ref, valid_to=2)
    fourth = W.add(store, "I live in Bern")
    assert fourth.status == "new" and fourth.ref not in (first.ref, again.ref)
    assert W.add(store, "I live in Bern").ref == fourth.ref
    W.check_books(store)


def test_text_said_twice_in_one_transaction_after_it_was_replaced(store: Store) -> None:
    first = W.add(store, "words")
    W.change(store, "close", first.ref)

    def act(tx: Tx) -> list[Admitted]:
        return [admit(tx, Incoming(text="words")) for _ in range(3)]

    got = store.write(W.actor(), act)
    assert [item.status for item in got] == ["new", "known", "known"]
    assert len({item.id for item in got}) == 1
    W.check_books(store)


@pytest.mark.parametrize("fields", [{"asserted": 77}, {"source_uri": "file:notes"}])
def test_evidence_with_a_time_or_a_source_stays_what_it_was(
    store: Store, fields: dict[str, object]
) -> None:
    """An import that runs again brings nothing back to life."""
    first = W.add(store, "words", **fields)
    W.change(store, "close", first.ref)
    again = W.add(store, "words", **fields)
    assert (again.status, again.ref) == ("known", first.ref)
    assert count(store) == 1


# -- ids of the source ----------------------------------------------------------------------------


def test_a_source_id_is_taken_once(store: Store) -> None:
    first = W.add(store, "version 1", source_uri="chat.json", source_id="m-1")
    edited = W.add(store, "version 2", source_uri="chat.json", source_id="m-1")
    assert (edited.status, edited.ref, edited.id) == ("known", first.ref, first.id)
    other_file = W.add(store, "version 1", source_uri="other.json", source_id="m-1")
    other_id = W.add(store, "version 1", source_uri="chat.json", source_id="m-2")
    elsewhere = W.add(store, "version 1", ELSEWHERE, source_uri="chat.json", source_id="m-1")
    assert [x.status for x in (other_file, other_id, elsewhere)] == ["new"] * 3
    assert len({x.id for x in (first, other_file, other_id, elsewhere)}) == 4


def test_a_known_source_id_names_the_head(store: Store) -> None:
    first = W.add(store, "version 1", source_id="m-1")
    head = W.change(store, "revise", first.ref, text="version 2").new
    again = W.add(store, "version 1", source_id="m-1")
    assert (again.status, again.ref, again.id) == ("known", first.ref, head)


def test_source_ids_do_not_run_into_each_other(store: Store) -> None:
    pairs = [("ab", "c"), ("a", "bc"), ("", "abc"), ("abc", "d")]
    for uri, name in pairs:
        assert W.add(store, "words", source_uri=uri, source_id=name).status == "new"
    assert count(store) == len(pairs)
    with store.read(maintenance_grant()) as reader:
        keys = b"".join(key for key, _ in reader.txn.scan("sources"))
        assert b"abc" not in keys


# -- what cannot be taken -------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", "\u00a0\u2003"])
def test_empty_text_is_refused(store: Store, text: str) -> None:
    with pytest.raises(BadInput, match="empty") as error:
        W.add(store, text)
    assert error.value.exit_code == 2
    assert count(store) == 0 and W.check_books(store) == 0


@pytest.mark.parametrize(
    "text", ["0", "\0", "a\0b", "\u200b", "\x1b[31m", "👩\u200d👩\u200d👧", "\U0010ffff", "\ufeffx"]
)
def test_odd_text_is_kept(store: Store, text: str) -> None:
    item = W.add(store, text)
    assert item.status == "new" and kept(store, item.id).text == text


@pytest.mark.parametrize("text", ["\ud800", "a \udcff", "\ude00\ud83d"])
def test_half_a_surrogate_pair_is_refused(store: Store, text: str) -> None:
    with pytest.raises(BadInput, match="surrogate"):
        W.add(store, text)
    assert count(store) == 0


@pytest.mark.parametrize("field", ["speaker", "source_uri", "source_id", "tool", "kind"])
def test_labels_are_bounded_in_bytes_and_must_be_text(store: Store, field: str) -> None:
    for bad in ("x" * 1025, "é" * 513, "\udcff"):
        with pytest.raises(UsageError, match=field):
            W.add(store, "words", **{field: bad})
    assert count(store) == 0
    assert W.add(store, "words", **{field: "é" * 512}).status == "new"


@pytest.mark.parametrize(
    "meta",
    [{"k": 2**64}, {"k": "\ud800"}, {"k": object()}, {"k": {1: {2: 3j}}}, {"\udcff": 1}],
)
def test_fields_that_cannot_be_encoded_are_refused(store: Store, meta: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        W.add(store, "words", meta=meta)
    assert count(store) == 0
    fits = {"k": 2**64 - 1, "n": None, "l": [1.5, "x"]}
    assert kept(store, W.add(store, "words", meta=fits).id).meta == fits


def test_meta_nested_without_end_is_refused(store: Store) -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"k": deep}
    with pytest.raises(BadInput):
        W.add(store, "words", meta=deep)
    while deep:  # taken apart by hand: freeing it at once would be deep too
        deep = deep["k"]  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("field", "value"), [("origin", "nobody"), ("origin", ""), ("role", "root"), ("role", "USER")]
)
def test_origin_and_role_are_closed_sets(store: Store, field: str, value: str) -> None:
    with pytest.raises(BadInput, match=r"is no (origin|role)") as error:
        W.add(store, "words", **{field: value})
    assert error.value.hint.startswith("one of")


def test_ten_megabytes_are_kept(store: Store) -> None:
    text = "".join(f"line {number}\n" for number in range(800_000))[: 10 * 2**20]
    item = W.add(store, text)
    assert kept(store, item.id).text == text
    assert W.add(store, text).status == "known"
    assert W.check_books(store) == 1


def test_the_limit_is_of_bytes_and_names_the_setting(store: Store) -> None:
    def add(record: Incoming) -> str:
        return store.write(W.actor(), lambda tx: admit(tx, record, limit_b=100)).status

    assert add(Incoming(text="x" * 100)) == "new"
    assert add(Incoming(text="é" * 50)) == "new"
    for record in (
        Incoming(text="x" * 101),
        Incoming(text="é" * 51),
        Incoming(text="short", raw=b"x" * 101),
        Incoming(text="short", meta={"k": "x" * 100_000}),
    ):
        with pytest.raises(BadInput) as error:
            add(record)
        assert "admission.max_mib" in error.value.hint
    assert count(store) == 2


def test_bytes_that_are_not_utf8_are_refused_with_the_place(store: Store) -> None:
    assert decode_text("\ufeffwords".encode(), "stdin") == "words"
    assert decode_text(b"", "stdin") == ""
    with pytest.raises(BadInput, match=r"stdin is not UTF-8 \(byte 3\)") as error:
        decode_text(b"caf\xe9", "stdin")
    assert "iconv" in error.value.hint


# -- what is recorded -----------------------------------------------------------------------------


def test_status_follows_the_origin(store: Store) -> None:
    with_origin = {o: W.add(store, "words", origin=o) for o in ("owner", "agent", "tool",
                                                                "untrusted")}  # fmt: skip
    with store.read(W.actor().grant) as reader:
        status = {
            origin: refs.STATUSES[reader.state(reader.parts[0], item.ref).status]  # type: ignore[union-attr]
            for origin, item in with_origin.items()
        }
    assert status == {"owner": "verified", "agent": "provisional", "tool": "provisional",
                      "untrusted": "provisional"}  # fmt: skip


def test_an_unknown_time_stays_unknown(store: Store) -> None:
    unknown, known = W.add(store, "no time"), W.add(store, "a time", asserted=-5, offset=60)
    assert kept(store, unknown.id).asserted is None
    assert (kept(store, known.id).asserted, kept(store, known.id).offset) == (-5, 60)
    with store.read(W.actor().grant) as reader:
        states = dict(reader.states(reader.parts[0]))
    assert states[unknown.ref].valid_from is None
    assert states[unknown.ref].starts == states[unknown.ref].created
    assert states[known.ref].valid_from == states[known.ref].starts == -5


def test_ids_are_those_of_the_bytes_and_tell_nothing_without_the_key(store: Store) -> None:
    item = W.add(store, "1234")
    with store.read(W.actor().grant) as reader:
        part = reader.parts[0]
        data = reader.object_bytes(part, item.id)
        assert data is not None and oid.digest(data) == item.id
    guess = W.observation("1234")
    assert encode.seal(guess, part.key)[0] == item.id  # who has the key can check a guess
    assert encode.seal(guess, bytes(32))[0] != item.id
    unsalted = data.replace(encode.decode(data).salt, encode.ZERO_SALT)
    assert unsalted != data and oid.digest(unsalted) != item.id
