"""Key file, signature and checkpoint of the golden vectors, read from remem-store(5) alone."""

from __future__ import annotations

import base64
import hashlib
import json
import struct

from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from remem.objects import keys
from tests.formats import build
from tests.formats.decoder import unpack

GOLDEN = json.loads(build.VECTORS.read_text())
SIGNING = GOLDEN["signing"]
KEY = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(SIGNING["seed"])).public_key()


def pack(values: list[str | int]) -> bytes:
    """A MessagePack array of fewer than 16 short strings and numbers."""
    data = bytes([0x90 | len(values)])
    for value in values:
        if isinstance(value, str):
            text = value.encode()
            head = bytes([0xA0 | len(text)]) if len(text) < 32 else b"\xd9" + bytes([len(text)])
            data += head + text
        else:
            data += bytes([value]) if value < 128 else b"\xcd" + struct.pack(">H", value)
    return data


def test_the_key_file_opens_by_the_page() -> None:
    file = json.loads(SIGNING["file"])
    said = [file[name] for name in "store public kdf n r p salt cipher nonce".split()]
    kdf = Scrypt(bytes.fromhex(file["salt"]), 32, file["n"], file["r"], file["p"])
    cipher = ChaCha20Poly1305(kdf.derive(SIGNING["passphrase"].encode()))
    context = b"remem owner key 1\0" + pack(said)
    seed = cipher.decrypt(bytes.fromhex(file["nonce"]), bytes.fromhex(file["sealed"]), context)
    assert seed.hex() == SIGNING["seed"]
    assert file["public"] == KEY.public_bytes_raw().hex()
    assert keys.unlock(keys.parse(SIGNING["file"]), SIGNING["passphrase"]).seed() == seed


def test_the_signature_is_that_of_the_page() -> None:
    created = GOLDEN["entries"]["create"]
    entry = unpack(bytes.fromhex(created["bytes"]))
    said = (
        b"remem sign 1\0"
        + bytes.fromhex(SIGNING["store"])
        + struct.pack(">IQ", 1, entry[0])
        + entry[2]
        + entry[4]
        + blake3(bytes.fromhex(created["bytes"])).digest()
    )
    assert said.hex() == SIGNING["sign-create"]["message"] and len(said) == 137
    key_id, signature = unpack(bytes.fromhex(SIGNING["sign-create"]["bytes"]))
    public = KEY.public_bytes_raw()
    assert key_id == blake3(b"remem owner key 1\0" + public).digest()[:16]
    KEY.verify(signature, said)
    assert unpack(bytes.fromhex(SIGNING["owner"])) == [public, build.T0]


def test_the_checkpoint_is_that_of_the_page() -> None:
    text, _, line = SIGNING["checkpoint"].rpartition("\n\n")
    text += "\n"
    origin, rows, head = text.split("\n")[:3]
    assert origin == "remem/audit-chain/" + SIGNING["store"] and rows == "2"
    assert base64.b64decode(head).hex() == GOLDEN["rows"]["row-refused"]["hash"]
    dash, name, encoded = line.rstrip("\n").split(" ")
    data = base64.b64decode(encoded)
    public = KEY.public_bytes_raw()
    key_id = hashlib.sha256(name.encode() + b"\n\x01" + public).digest()[:4]
    assert (dash, name, data[:4]) == ("\u2014", origin, key_id)
    KEY.verify(data[4:], text.encode())
    words = (name, key_id.hex(), base64.b64encode(b"\x01" + public).decode())
    assert SIGNING["verifier"] == "+".join(words)
