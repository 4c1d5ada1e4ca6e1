"""Rebuild the golden vectors and the golden store: ``python -m tests.formats.build``.

``golden.json`` holds small records with the bytes that format 1 gives them; ``golden/`` a whole
store made with fixed keys and times.  Both are part of the format: a change of either means that
stores written before are read otherwise.  So they are rebuilt only to add to them, and a diff of
the file that changes a line is a mistake (or a new version of the format).
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from remem.objects import (
    attests,
    audit,
    checkpoint,
    draft_rows,
    encode,
    keys,
    oid,
    receipts,
    refs,
    signing,
    tombs,
)
from remem.objects import format as fmt
from remem.objects.admit import Receipt
from remem.objects.kv import Txn
from remem.objects.model import (
    Deriver,
    Draft,
    Memory,
    Observation,
    Operation,
    Run,
    Scope,
    Source,
    Span,
)
from remem.objects.reader import Part, encode_part
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store
from remem.objects.tx import Tx

HERE = Path(__file__).resolve().parent
VECTORS = HERE / "golden.json"
STORE = HERE / "golden"

T0 = 1_700_000_000_000_000  # 2023-11-14T22:13:20Z
SCOPE = Scope("local", "default", "home", "none", "main")
HOME = Part(1, "local", "default", "home", bytes(range(32)), T0)
WORK = Part(2, "local", "default", "work", bytes(range(32, 64)), T0)
ABROAD = bytes(range(64, 96))  # key of another store, whose pack came in
OWNER = Actor(Grant("owner", "local", "default", None, owner=True), "cli", SCOPE)


def observation(text: str, **fields: object) -> Observation:
    """An observation of the owner with no time and no source, unless fields say otherwise."""
    plain = Observation(
        salt=encode.ZERO_SALT,
        scope=SCOPE,
        raw=None,
        text=text,
        role="",
        speaker="",
        origin="owner",
        source=None,
        asserted=None,
        offset=None,
        corrects=None,
        kind="",
        meta={},
    )
    return msgspec.structs.replace(plain, **fields)


def memory(text: str, cites: list[bytes], **fields: object) -> Memory:
    """A fact without more than it needs, unless fields say otherwise."""
    plain = Memory(
        salt=encode.ZERO_SALT,
        scope=SCOPE,
        kind="fact",
        text=text,
        triple=None,
        cites=cites,
        span=None,
        deriver=Deriver("stated"),
        confidence=1000,
        valid_from=None,
        valid_to=None,
        offset=None,
        cues=[],
        trigger="",
        anchors=[],
        meta={},
    )
    return msgspec.structs.replace(plain, **fields)


MINIMAL = observation("tea at four")
FULL = observation(
    "caf\u00e9 \U0001f375 at\nfour",
    raw="cafe\u0301 \U0001f375 at\r\nfour".encode(),
    role="user",
    speaker="Ann",
    origin="tool",
    source=Source("file:notes.txt", "7", "editor"),
    asserted=-1,
    offset=-210,
    corrects=bytes(range(100, 132)),
    kind="turn",
    meta={
        "\uff5e": 1.5,
        "\U0001f375": None,
        "a": [True, False, -(2**63), 2**64 - 1, 128, -33],
        "b": {"y": "x" * 32, "x": b"\0\xff"},
    },
)
OBJECTS: dict[str, encode.Stored] = {
    "observation-minimal": MINIMAL,
    "observation-full": FULL,
    "memory-minimal": memory("tea is at four", [bytes(range(32))]),
    "memory-full": memory(
        "tea is at four",
        [bytes(range(32)), bytes(range(1, 33))],
        kind="loop",
        triple=("tea", "is at", "four"),
        span=Span(1, 0, 11),
        deriver=Deriver("rules", 3, "model-a", "p1"),
        confidence=250,
        valid_from=T0,
        valid_to=T0 + 1,
        offset=840,
        cues=["cup"],
        trigger="tomorrow",
        anchors=["a.py", "main"],
        meta={"seen": 2},
    ),
    "draft-full": Draft(
        encode.ZERO_SALT,
        SCOPE,
        Deriver("consolidate", 1),
        T0,
        "two of them",
        [
            Operation(
                1, "supersede", bytes(range(1, 33)), bytes(range(2, 34)), bytes(range(3, 35)),
                None, None, None, [], "newer", "consolidation", 1, "", "",
            ),
            Operation(
                3, "close", None, bytes(range(4, 36)), bytes(range(5, 37)),
                None, None, T0 + 1, [], "", "consolidation", 2, "denied", "it goes on",
            ),
            Operation(
                4, "retire-duplicate", None, bytes(range(6, 38)), bytes(range(7, 39)),
                bytes(range(8, 40)), bytes(range(9, 41)), None, [bytes(range(10, 42))], "", "bot",
                1, "approved", "",
            ),
        ],
        {"from": "00"},
    ),
    "run-full": Run(
        encode.ZERO_SALT, SCOPE, T0, T0 + 5, {"drafted": 2, "expired": 0}, ["a note"], {}
    ),
}  # fmt: skip
VALUE = "\u00ab Tea\u00a0 at FOUR\u2026 \u00bb!"
REF = encode.seal(MINIMAL, HOME.key)[0]
LATER = encode.seal(observation("tea at five"), HOME.key)[0]


def entry(seq: int, op: str, old: bytes | None, new: bytes | None, **fields: object) -> refs.Entry:
    """An entry of the ref of the minimal observation, whose entries are 1, 2, 3 and so on."""
    plain = refs.Entry(
        seq, refs.OP_CODE[op], REF, old, new, 0, None, None, None, T0 + seq, "owner", "cli", "", 1,
        refs.OBSERVATION, seq - 1,
    )  # fmt: skip
    return msgspec.structs.replace(plain, **fields)


ENTRIES = {
    "create": entry(1, "create", None, REF),
    "revise": entry(2, "revise", REF, LATER, valid_from=T0, reason="asked"),
    "pin": entry(3, "pin", LATER, LATER, valid_from=T0),
    "close": entry(4, "close", LATER, LATER, valid_from=T0, valid_to=T0 + 9, status=3),
    "supersede": entry(
        5, "supersede", LATER, LATER, replaced_by=bytes(range(32)), origin=refs.Origin(T0 - 1, 10)
    ),
    "erase": entry(6, "erase", LATER, None, status=10, principal="bot", surface="mcp"),
}


# What begins a fact of a chain with one value, and has a receipt; and what says that names changed.
ATTESTS = {attests.RECEIPT: bytes(range(32)), attests.SINGLE: True}
ATTESTING_ENTRY = refs.attesting(ENTRIES["create"], ATTESTS)


def attesting_row() -> audit.Row:
    """A third row of the chain, which attests a row of another table."""
    before = audit.row_hash(audit.encode_row(rows()["row-refused"]))
    row = audit.Row(3, T0 + 3, "owner", "cli", "alias", 1, None, "done", 0, None, before)
    return audit.attesting(row, {attests.ALIASES: bytes(range(1, 33))})


def rows() -> dict[str, audit.Row]:
    """Two rows of a chain: a change and a refusal."""
    made = ENTRIES["create"]
    digest = oid.digest(refs.encode_entry(made))
    first = audit.Row(1, made.time, "owner", "cli", "create", 1, REF, "done", 1, digest, audit.ROOT)
    before = audit.row_hash(audit.encode_row(first))
    refused = audit.Row(2, T0 + 2, "bot", "mcp", "release", 1, REF, "self_release", 0, None, before)
    return {"row-create": first, "row-refused": refused}


def vectors() -> dict[str, object]:
    """Every golden record with its bytes."""
    state: refs.RefState | None = None
    objects, entries, chain = {}, {}, {}
    for name, obj in OBJECTS.items():
        object_id, data = encode.seal(obj, HOME.key)
        objects[name] = {"fields": plain(obj), "bytes": data.hex(), "id": object_id.hex()}
    for name, one in ENTRIES.items():
        state = refs.step(state, one)
        data = refs.encode_entry(one)
        entries[name] = {
            "fields": plain(one),
            "bytes": data.hex(),
            "digest": oid.digest(data).hex(),
            "state": refs.encode_state(state).hex(),
        }
    head = audit.Head(0, audit.ROOT)
    for name, row in rows().items():
        data = audit.encode_row(row)
        head = audit.Head(row.seq, audit.row_hash(data))
        chain[name] = {"fields": plain(row), "bytes": data.hex(), "hash": head.hash.hex()}
    entry_bytes = refs.encode_entry(ATTESTING_ENTRY)
    row_bytes = audit.encode_row(attesting_row())
    return {
        "format": fmt.FORMAT_VERSION,
        "key": HOME.key.hex(),
        "objects": objects,
        "entries": entries,
        "rows": chain,
        "head": audit.encode_head(head).hex(),
        "part": encode_part(HOME).hex(),
        "source": {"digest": oid.keyed(HOME.key, b"file:notes.txt", b"7").hex()},
        "signing": signatures(),
        "value": {"digest": tombs.value_key(HOME, VALUE)[4:].hex(), "text": VALUE},
        "attesting": {
            "entry": {
                "fields": plain(ATTESTING_ENTRY),
                "bytes": entry_bytes.hex(),
                "digest": oid.digest(entry_bytes).hex(),
            },
            "row": {
                "fields": plain(attesting_row()),
                "bytes": row_bytes.hex(),
                "hash": audit.row_hash(row_bytes).hex(),
            },
            "receipt": attests.of_receipt(HOME, REF, b"\x92\xa0\x90").hex(),
            "values": attests.of_values([bytes(32), bytes(range(32))]).hex(),
        },
    }


SEED = bytes(range(32))
STORE_ID = bytes(range(16))
PASSPHRASE = "caf\u00e9 au lait"


def signatures() -> dict[str, object]:
    """What an owner's key makes: a key file, a signature, a checkpoint."""
    signer = keys.Signer.from_seed(SEED)
    created = ENTRIES["create"]
    message = signing.entry_message(
        STORE_ID, HOME.number, created, oid.digest(refs.encode_entry(created))
    )
    made = signing.Signature(keys.key_id(signer.public), signer.sign(message))
    last = rows()["row-refused"]
    head = audit.row_hash(audit.encode_row(last))
    note = checkpoint.Checkpoint(checkpoint.origin_of(STORE_ID), 2, head, last.time, 1)
    return {
        "seed": SEED.hex(),
        "store": STORE_ID.hex(),
        "passphrase": PASSPHRASE,
        "owner": signing.encode_owner(signing.OwnerKey(signer.public, T0)).hex(),
        "file": keys.seal(
            signer, PASSPHRASE, STORE_ID, cost=1 << 10, salt=SEED[:16], nonce=SEED[:12]
        ),
        "sign-create": {"message": message.hex(), "bytes": signing.encode_signature(made).hex()},
        "checkpoint": checkpoint.sign(note, signer),
        "verifier": checkpoint.verifier(checkpoint.Key(note.origin, signer.public)),
    }


def plain(record: msgspec.Struct) -> dict[str, object]:
    """Fields of a record as JSON carries them: bytes as hex digits."""

    def value(of: object) -> object:
        if isinstance(of, bytes):
            return {"hex": of.hex()}
        if isinstance(of, msgspec.Struct):
            return [value(getattr(of, name)) for name in of.__struct_fields__]
        if isinstance(of, (list, tuple)):
            return [value(item) for item in of]
        if isinstance(of, dict):
            return {key: value(item) for key, item in of.items()}
        return of

    return {name: value(getattr(record, name)) for name in record.__struct_fields__}


# -- the store --------------------------------------------------------------------------------


def make_store(root: Path) -> None:
    """Make the golden store in a new folder."""
    store = Store.create(str(root), map_b=1 << 20)
    env = store.env()
    env.write(_parts)
    steps = (_evidence, _memories, _changes, _ends, _pack, _waits, _attested)
    for number, step in enumerate(steps, start=1):

        def change(txn: Txn, number: int = number) -> None:
            tx = Tx(txn, OWNER, T0 + number * 60_000_000)
            step(tx)  # noqa: B023
            tx.finish()

        env.write(change)
    store.close()


def _parts(txn: Txn) -> None:
    for part in (HOME, WORK):
        names = "\0".join((part.tenant, part.profile, part.collection)).encode()
        txn.put("parts", b"n" + part.prefix, encode_part(part))
        txn.put("parts", b"k" + names, part.prefix)


def _observe(tx: Tx, obj: Observation, part: Part = HOME, status: str = "verified") -> bytes:
    ref = tx.put_object(part, obj)
    tx.create(
        part,
        ref,
        kind=refs.OBSERVATION,
        lane=tx.lane(part, obj.scope),
        status=status,
        valid_from=obj.asserted,
    )
    if obj.source is not None:
        key = oid.keyed(part.key, obj.source.uri.encode(), obj.source.id.encode())
        tx.txn.put("sources", part.prefix + key, ref)
    return ref


def _evidence(tx: Tx) -> None:
    full = _observe(tx, msgspec.structs.replace(FULL, corrects=None), status="provisional")
    receipt = msgspec.msgpack.encode(Receipt("provisional", ["from_tool"]))
    tx.txn.put("receipts", HOME.prefix + full, receipt)
    _observe(tx, MINIMAL)
    _observe(tx, observation("milk first"))
    elsewhere = msgspec.structs.replace(SCOPE, session="evening")
    _observe(tx, observation("tea at four", scope=elsewhere))
    work = msgspec.structs.replace(SCOPE, collection="work")
    _observe(tx, observation("tea at four", scope=work), WORK)


def _remember(tx: Tx, obj: Memory) -> bytes:
    ref = tx.put_object(HOME, obj)
    for cited in obj.cites:
        tx.txn.put("cites", HOME.prefix + cited + ref, b"")
    tx.create(
        HOME, ref, kind=refs.MEMORY, lane=tx.lane(HOME, SCOPE), status="model_claim",
        valid_from=obj.valid_from,
    )  # fmt: skip
    return ref


def _claims() -> tuple[Memory, Memory]:
    milk = encode.seal(observation("milk first"), HOME.key)[0]
    return (
        memory("tea is at four", [REF], triple=("tea", "is at", "four"), valid_from=T0),
        memory("milk goes in first", [REF, milk], kind="procedure", deriver=Deriver("rules", 2)),
    )


def _memories(tx: Tx) -> None:
    for claim in _claims():
        _remember(tx, claim)
    tx.refuse("release", "self_release", HOME.number, REF)


def _change(tx: Tx, op: str, ref: bytes, **fields: object) -> None:
    state = tx.reader.state(HOME, ref)
    assert state is not None
    tx.record(HOME, op, ref, state, **fields)  # type: ignore[arg-type]


def _changes(tx: Tx) -> None:
    five = tx.put_object(HOME, observation("tea at five"))
    _change(tx, "revise", REF, new=five, reason="asked", valid_from=T0 + 1)
    _change(tx, "rollback", REF, new=REF, valid_from=T0 + 2)
    _change(tx, "revise", REF, new=five, valid_from=T0 + 3)
    _change(tx, "pin", REF)
    _change(tx, "hold", REF)
    one, two = (encode.seal(claim, HOME.key)[0] for claim in _claims())
    _change(tx, "supersede", one, replaced_by=two, valid_to=T0 + 4)
    _change(tx, "close", two, valid_to=T0 + 5, status="user_belief")


def _ends(tx: Tx) -> None:
    milk = encode.seal(observation("milk first"), HOME.key)[0]
    two = _claims()[1]
    ref = encode.seal(two, HOME.key)[0]
    left = tx.put_object(HOME, msgspec.structs.replace(two, cites=[REF]))
    tx.txn.delete("cites", HOME.prefix + milk + ref)
    _change(tx, "revise", ref, new=left, reason="forgotten")
    _change(tx, "erase", milk, status="erased", reason="asked")
    tx.txn.delete("objects", HOME.prefix + milk)
    _change(tx, "purge", milk, reason="asked")
    tombs.bury(tx, HOME, milk, tombs.digests(HOME, ["milk first"]), "asked")
    buried = tombs.get(tx.reader, HOME, milk)
    assert buried is not None
    tombs.put(tx, HOME, milk, msgspec.structs.replace(buried, purged=tx.now))
    _change(tx, "unhold", REF)


def _pack(tx: Tx) -> None:
    """An observation that another store made, with a salt of its own."""
    obj = observation("scones on sunday")
    ref, data = encode.seal(obj, ABROAD)
    tx.txn.put("objects", HOME.prefix + ref, data)
    lane = tx.lane(HOME, SCOPE)
    tx.adopt(
        HOME,
        None,
        refs.Entry(
            0, 0, ref, None, ref, refs.STATUS_CODE["legacy_unverified"], None, None, None,
            tx.now - 1, "ann", "cli", "", lane, refs.OBSERVATION, 0, refs.Origin(T0 - 5, 0),
        ),
    )  # fmt: skip
    tx.add_twin(HOME, encode.seal(obj, HOME.key)[0], ref)


def _waits(tx: Tx) -> None:
    """A draft with a pending claim, and an observation that is held back."""
    held = observation("remember this rule", origin="tool")
    _observe(tx, held, status="quarantined")
    claim = memory("scones come on sunday", [REF], deriver=Deriver("consolidate"))
    claimed = tx.put_object(HOME, claim)
    tx.txn.put("cites", HOME.prefix + REF + claimed, b"")
    lane = tx.lane(HOME, SCOPE)
    tx.create(HOME, claimed, kind=refs.MEMORY, lane=lane, status="pending")
    op = Operation(1, "new", claimed, None, None, None, None, None, [], "", "owner", 1, "", "")
    draft_rows.begin(
        tx, HOME, Draft(encode.ZERO_SALT, SCOPE, Deriver("consolidate"), T0, "", [op], {})
    )


def _attested(tx: Tx) -> None:
    """What follows from nothing else: a receipt, a fact of a chain, a name, a rule, a tombstone."""
    receipts.stamp(tx, 1, ["build/1"])
    said = observation("the tea is Assam")
    ref = tx.put_object(HOME, said)
    kept = receipts.put(tx, HOME, ref, Receipt("verified", ["redacted:1"], 1, ["build/1"]))
    lane = tx.lane(HOME, SCOPE)
    tx.create(HOME, ref, kind=refs.OBSERVATION, lane=lane, status="verified", attests=kept)
    triple = ("tea", "name", "Assam")
    claim = memory("tea is called Assam", [ref], triple=triple, valid_from=T0)
    fact = tx.put_object(HOME, claim)
    tx.txn.put("cites", HOME.prefix + ref + fact, b"")
    tx.create(
        HOME, fact, kind=refs.MEMORY, lane=lane, status="verified", valid_from=T0,
        attests={attests.SINGLE: True},
    )  # fmt: skip
    key = oid.keyed(HOME.key, b"chain", b"tea", b"name")
    tx.txn.put("chains", HOME.prefix + key + fact, b"")
    name = oid.keyed(HOME.key, b"alias", b"cuppa")
    tx.txn.put("aliases", HOME.prefix + name, msgspec.msgpack.encode(["cuppa", "tea"]))
    tx.done("alias", 1, attests={attests.ALIASES: attests.of_aliases(tx.txn, HOME)})
    rule = [
        1, "local", "default", "", "observation", "shell", "", "", "", "", 1, "expire", tx.now,
        "owner",
    ]  # fmt: skip
    data = msgspec.msgpack.encode([1, [rule], bytes(range(16))])
    tx.txn.put("meta", b"retain", data)
    tx.done("retain", 0, outcome="set-1", attests={attests.RETAIN: oid.digest(data)})
    gone = _observe(tx, observation("no sugar"))
    values = tombs.digests(HOME, ["no sugar"])
    _change(tx, "erase", gone, status="erased", reason="asked", attests=tombs.said(values))
    tombs.bury(tx, HOME, gone, values, "asked")


def main() -> int:
    """Write both."""
    VECTORS.write_text(json.dumps(vectors(), indent=1, ensure_ascii=True) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "store"
        make_store(root)
        shutil.rmtree(STORE, ignore_errors=True)
        canon = STORE / "canon" / "g1"
        canon.mkdir(parents=True)
        for name in (fmt.FORMAT_FILE, fmt.GENERATION_FILE):
            shutil.copyfile(root / name, STORE / name)
        store = Store(str(root), readonly=True)
        store.env().copy(str(canon))
        store.close()
    sys.stdout.write(f"{VECTORS}\n{STORE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
