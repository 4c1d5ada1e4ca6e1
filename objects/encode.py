"""Canonical bytes of objects and their salted addresses.

An object is a short header (``kind version NUL``) and a MessagePack array whose second element is
the salt.  The salt is keyed BLAKE3 of the same bytes with a zero salt, under the key of the scope
partition; the id is BLAKE3-256 of the final bytes.

Source: remem-store(5), OBJECTS.
"""

from __future__ import annotations

import msgspec
from blake3 import blake3

from remem.objects.errors import IntegrityError, NewerFormat
from remem.objects.model import SALT_BYTES, Draft, Memory, Observation, Run

VERSION = 1
ZERO_SALT = bytes(SALT_BYTES)
Obj = Observation | Memory
Stored = Obj | Draft | Run

_OBSERVATION = b"observation 1\0"
_MEMORY = b"memory 1\0"
_DRAFT = b"draft 1\0"
_RUN = b"run 1\0"
# header, array header (1 byte up to 15 elements, else 3), tag (1 byte + text), bin header (2)
_SALT_AT = {
    Observation: len(_OBSERVATION) + 1 + 1 + len("observation") + 2,
    Memory: len(_MEMORY) + 3 + 1 + len("memory") + 2,
    Draft: len(_DRAFT) + 1 + 1 + len("draft") + 2,
    Run: len(_RUN) + 1 + 1 + len("run") + 2,
}
_HEADER = {Observation: _OBSERVATION, Memory: _MEMORY, Draft: _DRAFT, Run: _RUN}

_NAMES = ("observation", "memory", "draft", "run")

_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decode_observation = msgspec.msgpack.Decoder(Observation).decode
_decode_memory = msgspec.msgpack.Decoder(Memory).decode
_decode_draft = msgspec.msgpack.Decoder(Draft).decode
_decode_run = msgspec.msgpack.Decoder(Run).decode


def seal(obj: Stored, key: bytes) -> tuple[bytes, bytes]:
    """Give an object its salt and its address.

    Args:
        obj: an object with the zero salt.
        key: 32-byte key of its scope partition.

    Returns:
        (id, bytes): what is stored under the id.
    """
    kind = type(obj)
    at = _SALT_AT[kind]
    plain = _HEADER[kind] + _encoder.encode(obj)
    salt = blake3(plain, key=key).digest(SALT_BYTES)
    data = plain[:at] + salt + plain[at + SALT_BYTES :]
    return blake3(data).digest(), data


def salted_by(data: bytes, key: bytes) -> bool:
    """True when the salt inside these bytes was made with this key."""
    kind = next((k for k, header in _HEADER.items() if data.startswith(header)), Memory)
    at = _SALT_AT[kind]
    plain = data[:at] + ZERO_SALT + data[at + SALT_BYTES :]
    return blake3(plain, key=key).digest(SALT_BYTES) == data[at : at + SALT_BYTES]


def decode(data: bytes) -> Obj:
    """Evidence or a memory from its stored bytes.

    Raises:
        NewerFormat: the header names a later version.
        IntegrityError: the bytes are not an object, or one of the store's bookkeeping.
    """
    obj = read(data)
    if not isinstance(obj, Obj):
        raise IntegrityError(f"an object is a {type_name(data)}, no evidence and no memory")
    return obj


def is_bookkeeping(data: bytes) -> bool:
    """True for a draft or a run."""
    return data.startswith((_DRAFT, _RUN))


def read(data: bytes) -> Stored:
    """Any object from its stored bytes.

    Raises:
        NewerFormat: the header names a later version.
        IntegrityError: the bytes are not an object.
    """
    try:
        if data.startswith(_OBSERVATION):
            return _decode_observation(memoryview(data)[len(_OBSERVATION) :])
        if data.startswith(_MEMORY):
            return _decode_memory(memoryview(data)[len(_MEMORY) :])
        if data.startswith(_DRAFT):
            return _decode_draft(memoryview(data)[len(_DRAFT) :])
        if data.startswith(_RUN):
            return _decode_run(memoryview(data)[len(_RUN) :])
    except msgspec.MsgspecError as error:
        raise IntegrityError(f"an object does not decode: {error}") from error
    head = data[:32].split(b"\0", 1)[0].decode("ascii", "replace")
    words = head.split(" ")
    if len(words) == 2 and words[0] in _NAMES and words[1].isdigit():
        raise NewerFormat(f"an object has the format '{head}', which this version cannot read")
    raise IntegrityError("an object has no known header")


def type_name(data: bytes) -> str:
    """Type of an object from its header: one of refs.TYPES."""
    return data[:32].split(b" ", 1)[0].decode("ascii", "replace")
