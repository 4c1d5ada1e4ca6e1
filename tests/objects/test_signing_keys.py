"""The owner's key file: what a passphrase opens, and what nothing opens."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remem.objects import keys, signing
from remem.objects.errors import StoreCorrupt, UsageError

from .protected import SIGNER

STORE = bytes(range(16))
PHRASE = "correct horse battery"
CHEAP = 1 << 4  # scrypt's cost in tests
SEALED = keys.seal(SIGNER, PHRASE, STORE, cost=CHEAP)


@given(phrase=st.text(min_size=1, max_size=40), seed=st.binary(min_size=32, max_size=32))
@settings(max_examples=30)
def test_a_key_opens_with_its_passphrase_and_no_other(phrase: str, seed: bytes) -> None:
    signer = keys.Signer.from_seed(seed)
    sealed = keys.parse(keys.seal(signer, phrase, STORE, cost=CHEAP))
    assert keys.unlock(sealed, phrase).seed() == seed
    with pytest.raises(keys.WrongPassphrase):
        keys.unlock(sealed, phrase + "x")


def test_composed_and_decomposed_letters_are_the_same_passphrase() -> None:
    sealed = keys.parse(keys.seal(SIGNER, "caf\u00e9 au lait", STORE, cost=CHEAP))
    assert keys.unlock(sealed, "cafe\u0301 au lait").public == SIGNER.public


@pytest.mark.parametrize("field", ["store", "salt", "nonce", "sealed", "n"])
def test_every_field_is_bound_to_the_key(field: str) -> None:
    fields = json.loads(SEALED)
    value = fields[field]
    fields[field] = (
        value * 2 if isinstance(value, int) else f"{int(value[:2], 16) ^ 1:02x}" + value[2:]
    )
    changed = keys.parse(json.dumps(fields))
    with pytest.raises(keys.WrongPassphrase):
        keys.unlock(changed, PHRASE)
    assert keys.unlock(keys.parse(SEALED), PHRASE).public == SIGNER.public


@pytest.mark.parametrize(
    "change",
    [
        {"n": 1 << 24},  # 16 GiB
        {"n": 3},
        {"n": 0},
        {"r": 0},
        {"p": 1000},
        {"kdf": "none"},
        {"cipher": "none"},
        {"format": "remem owner key 2"},
        {"public": "00"},
        {"more": 1},
    ],
)
def test_a_file_of_another_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(StoreCorrupt):
        keys.parse(json.dumps({**json.loads(SEALED), **change}))
    assert keys.parse(SEALED).n == CHEAP


def test_the_file_holds_nothing_of_the_key_and_is_for_its_owner_only(tmp_path: Path) -> None:
    keys.write(str(tmp_path), SEALED)
    path = tmp_path / "owner.key"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert SIGNER.seed().hex() not in path.read_text()
    assert keys.read(str(tmp_path)) == keys.parse(SEALED)
    keys.remove(str(tmp_path))
    keys.remove(str(tmp_path))
    with pytest.raises(keys.KeyMissing) as missing:
        keys.read(str(tmp_path))
    assert missing.value.exit_code == 3


@pytest.mark.parametrize("short", ["", "1234567", "       x       "])
def test_a_short_passphrase_is_refused(short: str) -> None:
    with pytest.raises(UsageError):
        keys.check_passphrase(short)
    keys.check_passphrase("12345678")


def test_two_seals_of_one_key_have_nothing_in_common() -> None:
    one, two = json.loads(SEALED), json.loads(keys.seal(SIGNER, PHRASE, STORE, cost=CHEAP))
    assert one["public"] == two["public"]
    assert all(one[name] != two[name] for name in ("salt", "nonce", "sealed"))


@given(
    st.lists(
        st.tuples(
            st.binary(min_size=16, max_size=16),
            st.integers(0, 2**32 - 1),
            st.integers(0, 2**64 - 1),
            st.binary(min_size=32, max_size=32),
            st.binary(min_size=32, max_size=32),
            st.binary(min_size=32, max_size=32),
        ),
        min_size=2,
        max_size=2,
        unique=True,
    )
)
def test_no_two_acts_are_signed_with_the_same_bytes(
    acts: list[tuple[bytes, int, int, bytes, bytes, bytes]],
) -> None:
    one, two = (signing.message(*act) for act in acts)
    assert one != two and len(one) == len(two)


def test_a_signer_does_not_show_its_key() -> None:
    assert SIGNER.seed().hex() not in repr(SIGNER) + repr(
        msgspec.structs.astuple(keys.parse(SEALED))
    )
