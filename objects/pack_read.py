"""Reading a pack: one line at a time, each checked by itself, what is wrong named by its line.

Nothing here touches a store.  An object is taken only when its bytes have the id that its line
gives; the closing line tells whether the pack came whole.

Source: remem-pack(5), READING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from blake3 import blake3

from remem.objects import encode, oid, pack, refs
from remem.objects.errors import BadInput, IntegrityError, NewerFormat
from remem.objects.model import Memory, Observation, Rejected
from remem.objects.pack_facts import MODES
from remem.objects.scope import check_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

CREATE = refs.OP_CODE["create"]
ERASE = refs.OP_CODE["erase"]
ERASED = refs.STATUS_CODE["erased"]
PURGE = refs.OP_CODE["purge"]
ROLLBACK = refs.OP_CODE["rollback"]
MAX_LABEL_B = 1024
IdEdit = tuple[bytes | None, bytes | None] | None
CodeEdit = tuple[int | None, int | None] | None

_read_change = msgspec.json.Decoder(pack.ChangeLine).decode
_read_scope = msgspec.json.Decoder(pack.ScopeLine).decode
_read_alias = msgspec.json.Decoder(pack.AliasLine).decode
_read_end = msgspec.json.Decoder(pack.EndLine).decode


class Alias(msgspec.Struct, frozen=True):
    """A name of a partition and the name that it stands for."""

    where: str
    scope: tuple[str, str, str]
    name: str
    stands: str


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one ref, checked; an edit is (before, after), or None where nothing changed.

    Attributes:
        where: place in the pack, for messages.
        size_b: length of its line.
        scope: tenant, profile, collection.
        type: index into refs.TYPES at create, else -1.
        chain: how the chain of a fact takes values, at create only: "single", "multi" or "".
        n: which of several changes that are otherwise told apart by nothing.
        data: bytes of the object that it brought, or None; obj: the same, decoded.
        gone: it brought an object, and the ref was forgotten since.
        back: it forgot the ref, and that was taken back since.
    """

    where: str
    size_b: int
    scope: tuple[str, str, str]
    op: int
    ref: bytes
    type: int
    agent: str
    session: str
    chain: str
    head: IdEdit
    status: CodeEdit
    valid_from: CodeEdit
    valid_to: CodeEdit
    replaced_by: IdEdit
    time: int
    n: int
    principal: str
    surface: str
    reason: str
    data: bytes | None
    obj: Observation | Memory | None
    receipt: tuple[str, list[str]] | None
    gone: bool
    back: bool

    @property
    def erases(self) -> bool:
        """True for a change that forgets its ref, and was not taken back."""
        states = self.status is not None and self.status[1] == ERASED
        return not self.back and (states or self.op == ERASE)

    @property
    def ends(self) -> bool:
        """True for a change that tells that its ref was forgotten."""
        return self.gone or self.erases or (self.op == PURGE and not self.back)

    @property
    def identity(self) -> tuple[int, int, str, str, str]:
        """What tells it from the other changes of its ref (see pack_write.identity)."""
        return (self.op, self.time, self.principal, self.surface, self.reason)


Record = Change | Alias | Rejected


def read_pack(stream: BinaryIO) -> Iterator[Record]:
    """Changes and aliases of a pack in its order, and the lines that cannot be taken.

    Args:
        stream: the bytes of the pack; read once, from here to its end.

    Raises:
        BadInput: it is no pack.
        NewerFormat: it was written in a later version of the format.
    """
    first = stream.readline(4096)
    _check_header(first)
    hasher = blake3(first)
    scope: tuple[str, str, str] | None = None
    number, scopes, changes = 1, 0, 0
    closed = False
    while raw := stream.readline(pack.MAX_LINE_B):
        number += 1
        where = f"line {number}"
        if closed:
            yield Rejected(where, "it comes after the closing line")
            continue
        try:
            if raw.startswith(b'{"op":'):
                changes += 1
                if scope is None:
                    raise ValueError("no scope is known for it")
                yield _change(raw, where, scope)
            elif raw.startswith(b'{"alias":'):
                if scope is None:
                    raise ValueError("no scope is known for it")
                name, stands = _read_alias(raw).alias
                for word in (name, stands):
                    if not word.strip() or not word.isprintable() or len(word) > MAX_LABEL_B:
                        raise ValueError("a name of the alias is blank, not printable or too long")
                yield Alias(where, scope, name, stands)
            elif raw.startswith(b'{"end":'):
                closed = True
                end = _read_end(raw).end
                if (end.scopes, end.changes, end.blake3) != (scopes, changes, hasher.hexdigest()):
                    raise ValueError("counts or digest do not fit: the pack was changed or damaged")
            else:
                scope = None
                scopes += 1
                scope = _scope(raw)
        except (ValueError, RecursionError) as error:
            yield Rejected(where, str(error))
        hasher.update(raw)
        while not raw.endswith(b"\n") and len(raw) == pack.MAX_LINE_B:
            raw = stream.readline(pack.MAX_LINE_B)
            hasher.update(raw)
    if not closed:
        yield Rejected(f"line {number + 1}", "the pack is cut short: it has no closing line")


def _check_header(line: bytes) -> None:
    if line.rstrip() == pack.HEADER.rstrip():
        return
    try:
        found = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        found = None
    version = found.get("remem-pack") if isinstance(found, dict) else None
    if isinstance(version, int) and version > pack.VERSION:
        raise NewerFormat(
            f"the pack has format {version}, this version reads {pack.VERSION}",
            hint="read it with the version of remem that wrote it, or a later one",
        )
    raise BadInput("this is not a pack", hint="a pack is what 'remem export' writes")


def _scope(raw: bytes) -> tuple[str, str, str]:
    scope = _read_scope(raw).scope
    for part, name in zip(("tenant", "profile", "collection"), scope, strict=True):
        _check_name(part, name)
    return scope


def _check_name(part: str, name: str) -> None:
    try:
        clean = check_name(part, name)
    except Exception as error:
        raise ValueError(str(error)) from error
    if clean != name:
        raise ValueError(f"the name of the {part} is not in normal form")


def _change(raw: bytes, where: str, scope: tuple[str, str, str]) -> Change:
    line = _read_change(raw)
    edits = line.edits
    op = refs.OP_CODE.get(line.op)
    if op is None:
        raise ValueError(f"the operation '{line.op[:80]}' is not known")
    ref = pack.id_bytes(line.ref) or b""
    head = _ids(edits.head)
    _check_labels(line)
    kind = -1
    if op == CREATE:
        if head != (None, ref) or line.type not in pack.TYPES or edits.status is msgspec.UNSET:
            raise ValueError("a ref begins with its type, its status and the object that names it")
        _check_name("agent", line.agent)
        _check_name("session", line.session)
        kind = refs.TYPES.index(line.type)
    elif line.type or line.agent or line.session or line.chain:
        raise ValueError("only a beginning names type, agent, session and chain")
    for edit in (edits.valid_from, edits.valid_to, (None, line.time)):
        if edit is not msgspec.UNSET:
            pack.check_time(edit[0])
            pack.check_time(edit[1])
    brings = head is not None and head[1] is not None and op != ROLLBACK
    if brings != (line.object is not None or line.gone):
        raise ValueError("the object is missing, or there is one that the change did not bring")
    data = obj = None
    if line.object is not None:
        if line.gone or head is None:
            raise ValueError("an object that is gone cannot come with the change")
        data, obj = _object(line.object, head[1], scope)
        if op == CREATE:
            fits = (obj.scope.agent, obj.scope.session) == (line.agent, line.session)
            if not fits or encode.type_name(data) != line.type:
                raise ValueError("type, agent or session are not those of the object")
    elif line.receipt is not None or line.chain:
        raise ValueError("a receipt or a chain comes with its object only")
    fact = isinstance(obj, Memory) and obj.triple is not None
    status = _statuses(edits.status)
    if line.back and (status or (0, 0))[1] != ERASED and op not in (ERASE, PURGE):
        raise ValueError("only a forgetting can have been taken back")
    if line.chain and not (fact and line.chain in MODES):
        raise ValueError("only a fact is in a chain, a single or a multi one")
    return Change(
        where=where,
        size_b=len(raw),
        scope=scope,
        op=op,
        ref=ref,
        type=kind,
        agent=line.agent,
        session=line.session,
        chain=line.chain,
        head=head,
        status=status,
        valid_from=None if edits.valid_from is msgspec.UNSET else edits.valid_from,
        valid_to=None if edits.valid_to is msgspec.UNSET else edits.valid_to,
        replaced_by=_ids(edits.replaced_by),
        time=line.time,
        n=line.n,
        principal=line.principal,
        surface=line.surface,
        reason=line.reason,
        data=data,
        obj=obj,
        receipt=line.receipt,
        gone=line.gone,
        back=line.back,
    )


def _check_labels(line: pack.ChangeLine) -> None:
    for label in (line.principal, line.surface, line.reason):
        if not label.isprintable() or len(label.encode()) > MAX_LABEL_B:
            raise ValueError("principal, surface or reason is not printable or too long")
    if not line.principal or line.n < 1:
        raise ValueError("it names no principal, or its number is below 1")


def _object(
    form: pack.ObjectForm, expected: bytes | None, scope: tuple[str, str, str]
) -> tuple[bytes, Observation | Memory]:
    data = pack.object_bytes(form)
    found = oid.digest(data)
    if found != expected:
        wanted = "none" if expected is None else oid.short(expected)
        raise ValueError(
            f"the object has the id '{oid.short(found)}' and not '{wanted}': it was changed"
        )
    try:
        obj = encode.decode(data)
    except (IntegrityError, NewerFormat) as error:
        raise ValueError(str(error)) from error
    pack.check_object(obj, scope)
    return data, obj


def _ids(edit: pack.HexEdit) -> IdEdit:
    if edit is msgspec.UNSET:
        return None
    return (pack.id_bytes(edit[0]), pack.id_bytes(edit[1]))


def _statuses(edit: pack.WordEdit) -> CodeEdit:
    if edit is msgspec.UNSET:
        return None
    before, after = edit
    if after not in refs.STATUS_CODE or (before is not None and before not in refs.STATUS_CODE):
        raise ValueError("the status is not known")
    return (None if before is None else refs.STATUS_CODE[before], refs.STATUS_CODE[after])
