"""The owner's key: an Ed25519 pair whose private half lies encrypted under a passphrase.

The file ``owner.key`` holds the seed of the key, sealed with ChaCha20-Poly1305 under a key that
scrypt makes of the passphrase; everything else in the file is authenticated with it.  The public
half is in the store itself, so that a lost file takes nothing back.

The library of the algorithms is imported by the functions that need it: neither adding nor
recalling does.

Source: remem-store(5), OWNER KEY; RFC 7914 (scrypt), RFC 8032 (Ed25519), RFC 8439 (the cipher).
"""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import format as fmt
from remem.objects.errors import Refused, StoreCorrupt, StoreError, UsageError

if TYPE_CHECKING:
    from typing import Self

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORMAT = "remem owner key 1"
COST = 1 << 17  # scrypt's N: 128 MiB, some tenths of a second
BLOCK = 8  # its r
LANES = 1  # its p
MIN_CHARACTERS = 8
PUBLIC_B = 32
SIGNATURE_B = 64
KEY_ID_B = 16
_KDF = "scrypt"
_CIPHER = "chacha20-poly1305"
_SALT_B = 16
_NONCE_B = 12
_SEALED_B = 32 + 16  # the seed and the tag of the cipher
_MAX_MEMORY_B = 1 << 30
_MAX_FILE_B = 4096


class WrongPassphrase(Refused):
    """The passphrase does not open the key."""

    kind = "passphrase"
    default_hint = "the passphrase is the one that was given to 'remem owner protect'"


class KeyMissing(Refused):
    """The store is protected, and its key file is not there."""

    kind = "no_key"
    default_hint = f"put back '{fmt.OWNER_KEY_FILE}' from a backup of the store"


class Signer:
    """An unlocked key; it lives as long as the command that asked for the passphrase."""

    __slots__ = ("_key", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        """Take a private key."""
        self._key = key
        self.public = key.public_key().public_bytes_raw()

    @classmethod
    def from_seed(cls, seed: bytes) -> Self:
        """The signer of a seed of 32 bytes."""
        try:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        except ImportError as error:
            raise missing_library() from error
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    def sign(self, message: bytes) -> bytes:
        """The signature of a message, 64 bytes."""
        return self._key.sign(message)

    def seed(self) -> bytes:
        """The seed, for sealing it anew."""
        return self._key.private_bytes_raw()


class Sealed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the key file says; bytes are hex digits.

    Attributes:
        format: always ``remem owner key 1``.
        store: id of the store, 16 bytes.
        public: the public key, 32 bytes.
        kdf: always ``scrypt``.
        n: its cost, a power of two.
        r: its block size.
        p: its parallelism.
        salt: its salt, 16 bytes.
        cipher: always ``chacha20-poly1305``.
        nonce: of the cipher, 12 bytes.
        sealed: the seed and the tag, 48 bytes.
    """

    format: str
    store: str
    public: str
    kdf: str
    n: int
    r: int
    p: int
    salt: str
    cipher: str
    nonce: str
    sealed: str


def missing_library() -> StoreError:
    """The error for an installation without the library of the algorithms."""
    return StoreError(
        "the package 'cryptography' cannot be imported", hint="pip install cryptography"
    )


def key_id(public: bytes) -> bytes:
    """Name of a public key beside a signature: 16 bytes."""
    return blake3(b"remem owner key 1\0" + public).digest(length=KEY_ID_B)


def verify(public: bytes, signature: bytes, message: bytes) -> bool:
    """True when a signature of a message was made with the private half of a public key."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise missing_library() from error
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


# -- the passphrase -----------------------------------------------------------------------------


def generate() -> Signer:
    """A new key."""
    return Signer.from_seed(os.urandom(32))


def check_passphrase(passphrase: str) -> None:
    """Raise when a new passphrase is too short to protect anything.

    Raises:
        UsageError: it is.
    """
    if len(unicodedata.normalize("NFC", passphrase).strip()) < MIN_CHARACTERS:
        raise UsageError(
            f"the passphrase has fewer than {MIN_CHARACTERS} characters",
            hint="several words that nobody else would put together are easy to keep in mind",
        )


def seal(
    signer: Signer,
    passphrase: str,
    store: bytes,
    *,
    cost: int = COST,
    salt: bytes | None = None,
    nonce: bytes | None = None,
) -> str:
    """The content of a key file.

    Args:
        signer: the key.
        passphrase: what opens it.
        store: id of the store, 16 bytes.
        cost: scrypt's N, a power of two.
        salt: 16 bytes, random unless given.
        nonce: 12 bytes, random unless given.
    """
    plain = Sealed(
        FORMAT,
        store.hex(),
        signer.public.hex(),
        _KDF,
        cost,
        BLOCK,
        LANES,
        (os.urandom(_SALT_B) if salt is None else salt).hex(),
        _CIPHER,
        (os.urandom(_NONCE_B) if nonce is None else nonce).hex(),
        "",
    )
    cipher = _cipher(plain, passphrase)
    sealed = cipher.encrypt(bytes.fromhex(plain.nonce), signer.seed(), _context(plain))
    made = msgspec.structs.replace(plain, sealed=sealed.hex())
    return msgspec.json.format(msgspec.json.encode(made), indent=1).decode() + "\n"


def parse(text: str | bytes) -> Sealed:
    """What a key file says.

    Raises:
        StoreCorrupt: it is no key file of a known format, or asks for more than 1 GiB of memory.
    """
    what = f"'{fmt.OWNER_KEY_FILE}' is no key file"
    hint = KeyMissing.default_hint
    try:
        found = msgspec.json.decode(text, type=Sealed)
        sizes = {
            found.store: 16,
            found.public: PUBLIC_B,
            found.salt: _SALT_B,
            found.nonce: _NONCE_B,
            found.sealed: _SEALED_B,
        }
        whole = all(len(bytes.fromhex(digits)) == size for digits, size in sizes.items())
    except ValueError as error:
        raise StoreCorrupt(what, hint=hint) from error
    known = (found.format, found.kdf, found.cipher) == (FORMAT, _KDF, _CIPHER)
    power = found.n > 1 and not found.n & (found.n - 1)
    small = found.r > 0 and 0 < found.p <= 16 and 128 * found.n * found.r <= _MAX_MEMORY_B
    if not (whole and known and power and small):
        raise StoreCorrupt(f"{what} that this version can open", hint=hint)
    return found


def unlock(sealed: Sealed, passphrase: str) -> Signer:
    """Open a key; it takes some tenths of a second, so never within a transaction.

    Raises:
        WrongPassphrase: it does not open it.
        StoreCorrupt: what it opens is another key than the file says.
    """
    try:
        from cryptography.exceptions import InvalidTag
    except ImportError as error:
        raise missing_library() from error
    cipher = _cipher(sealed, passphrase)
    try:
        seed = cipher.decrypt(
            bytes.fromhex(sealed.nonce), bytes.fromhex(sealed.sealed), _context(sealed)
        )
    except InvalidTag as error:
        raise WrongPassphrase("the passphrase does not open the owner's key") from error
    signer = Signer.from_seed(seed)
    if signer.public.hex() != sealed.public:
        raise StoreCorrupt(f"'{fmt.OWNER_KEY_FILE}' names another key than it holds")
    return signer


class _Cipher:
    """The cipher under the key that scrypt makes of a passphrase."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        self._cipher = ChaCha20Poly1305(key)

    def encrypt(self, nonce: bytes, plain: bytes, context: bytes) -> bytes:
        return self._cipher.encrypt(nonce, plain, context)

    def decrypt(self, nonce: bytes, sealed: bytes, context: bytes) -> bytes:
        return self._cipher.decrypt(nonce, sealed, context)


def _cipher(sealed: Sealed, passphrase: str) -> _Cipher:
    try:
        from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
    except ImportError as error:
        raise missing_library() from error
    secret = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    made = Scrypt(bytes.fromhex(sealed.salt), 32, sealed.n, sealed.r, sealed.p).derive(secret)
    return _Cipher(made)


def _context(sealed: Sealed) -> bytes:
    """Everything that the file says of the key, bound to it by the tag of the cipher."""
    return b"remem owner key 1\0" + msgspec.msgpack.encode(
        [
            sealed.store,
            sealed.public,
            sealed.kdf,
            sealed.n,
            sealed.r,
            sealed.p,
            sealed.salt,
            sealed.cipher,
            sealed.nonce,
        ]
    )


# -- the file -----------------------------------------------------------------------------------


def path_of(root: str) -> str:
    """Where the key file of a store lies."""
    return os.path.join(root, fmt.OWNER_KEY_FILE)


def read(root: str) -> Sealed:
    """The key file of a store.

    Raises:
        KeyMissing: it is not there.
        StoreCorrupt: it is no key file.
        StoreError: it cannot be read.
    """
    path = path_of(root)
    try:
        with open(path, "rb") as file:
            return parse(file.read(_MAX_FILE_B))
    except FileNotFoundError as error:
        raise KeyMissing(f"the key file '{path}' is missing") from error
    except OSError as error:
        raise StoreError(f"cannot read '{path}': {error.strerror}") from error


def write(root: str, text: str) -> None:
    """Put a key file in its place, 0600; a crash leaves the old one or the new one."""
    path = path_of(root)
    try:
        fmt.write_file(path, text)
    except OSError as error:
        raise StoreError(f"cannot write '{path}': {error.strerror}") from error


def remove(root: str) -> None:
    """Remove the key file, if it is there."""
    try:
        os.unlink(path_of(root))
    except FileNotFoundError:
        return
    fmt.sync_folder(root)
