"""remem owner: the owner's key, with which decisions are signed.

The passphrase is read from the terminal; the key is made and opened outside any transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from remem.cli import describe
from remem.cli.confirm import owner_only
from remem.cli.passphrase import Terminal, ask_new, unlock
from remem.cli.plain import one_line
from remem.objects import checkpoint, keys, signing
from remem.objects import format as fmt
from remem.objects.errors import IntegrityError, Refused, RememError, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.objects.reader import Reader
    from remem.objects.scope import Actor
    from remem.objects.store import Store
    from remem.objects.tx import Tx

ACTIONS = ("protect", "status", "passphrase", "unprotect")
PRESENT, MISSING, OTHER, DAMAGED = "present", "missing", "other key", "damaged"
LEFT_OVER = "left over"  # a key file of a store that is not protected


class Protection(msgspec.Struct):
    """How a store is protected.

    Attributes:
        protected: decisions need the owner's signature.
        since: record time from which.
        key: the public key, hex digits.
        verifier: the key as it is kept elsewhere.
        file: what the key file is.
        says: what is wrong, or empty.
    """

    protected: bool = False
    since: int | None = None
    key: str | None = None
    verifier: str | None = None
    file: str = MISSING
    says: str = ""


def run(context: Context, *, action: str) -> int:
    """Protect, show, give another passphrase, or unprotect."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    owner_only(context, "change how decisions are signed")
    if action == "status":
        return _status(context, context.store(readonly=True))
    store = context.store(create=action == "protect")
    if action == "protect":
        return protect(context, store)
    with store.read(context.actor().grant) as reader:
        if not signing.protected(reader):
            _refuse_lost(reader)
            raise Refused("the store is not protected", hint="'remem owner protect' protects it")
    return _passphrase(context, store) if action == "passphrase" else _unprotect(context, store)


def protect(context: Context, store: Store) -> int:
    """Make a key under a new passphrase, and let decisions need it from now on."""
    actor = context.actor()
    verifier = make_key(store, actor, new_passphrase(store, actor))
    if context.json:
        context.emit(_value(look(store, actor)))
    else:
        say_protected(context, verifier)
    return 0


def new_passphrase(store: Store | None, actor: Actor) -> str:
    """Ask for the passphrase of a store that is not protected yet (None: not even made).

    Raises:
        Refused: it is protected, or there is no terminal.
        IntegrityError: its audit chain says that it is protected, yet it is not.
    """
    if store is not None:
        with store.read(actor.grant) as reader:
            if signing.protected(reader):
                raise Refused(
                    "the store is protected already", hint="'remem owner status' shows how"
                )
            _refuse_lost(reader)
    with Terminal() as terminal:
        return ask_new(terminal)


def make_key(store: Store, actor: Actor, passphrase: str) -> str:
    """Protect a store with a new key; the key as it is to be kept elsewhere."""
    with store.read(actor.grant) as reader:
        identity = signing.new_store_id(reader.txn)
    signer = keys.generate()
    sealed = keys.seal(signer, passphrase, identity)

    def change(tx: Tx) -> None:
        signing.protect(tx, identity)
        # Within the transaction, so that no other process puts its key there meanwhile.  A crash
        # between the two leaves a key that protects nothing, never the reverse.
        keys.write(store.root, sealed)

    store.write(msgspec.structs.replace(actor, signer=signer), change)
    return checkpoint.verifier(checkpoint.Key(checkpoint.origin_of(identity), signer.public))


def say_protected(context: Context, verifier: str) -> None:
    """What a person has to know of a store that is protected from now on."""
    context.out("protected: approve, release, reject, purge and lift need the passphrase")
    context.out(f"verifier key  {verifier}")
    context.note("keep the verifier key elsewhere; 'remem verify --key' holds the store against it")
    context.note(f"without '{fmt.OWNER_KEY_FILE}' or the passphrase nobody can sign again")


def _refuse_lost(reader: Reader) -> None:
    """Raise when the chain says that the store is protected and ``meta`` says nothing.

    Raises:
        IntegrityError: so it is.
    """
    if signing.last_told(reader) is not None:
        raise IntegrityError(
            "the audit chain says that the store is protected, but its public key was taken out"
        )


def _with(context: Context, signer: keys.Signer) -> Actor:
    return msgspec.structs.replace(context.actor(), signer=signer)


def _passphrase(context: Context, store: Store) -> int:
    """Seal the same key under another passphrase."""
    with Terminal() as terminal:
        signer = unlock(context, store, terminal)
        passphrase = ask_new(terminal)
    with store.read(context.actor().grant) as reader:
        identity = signing.new_store_id(reader.txn)
    sealed = keys.seal(signer, passphrase, identity)

    def change(tx: Tx) -> None:
        signing.note_passphrase(tx)
        keys.write(store.root, sealed)

    store.write(_with(context, signer), change)
    _say(context, store, "the key has another passphrase now")
    context.note("copies of the old key file still open with the old one")
    return 0


def _unprotect(context: Context, store: Store) -> int:
    """Let decisions need no signature any more."""
    with Terminal() as terminal:
        terminal.say("to sign: decisions need no signature any more")
        signer = unlock(context, store, terminal)
    store.write(_with(context, signer), signing.unprotect)
    keys.remove(store.root)
    _say(context, store, "not protected any more; what was signed can still be checked")
    return 0


def _say(context: Context, store: Store, text: str) -> None:
    if context.json:
        context.emit(_value(look(store, context.actor())))
    else:
        context.out(text)


# -- status -------------------------------------------------------------------------------------


def look(store: Store, actor: Actor) -> Protection:
    """How a store is protected, and whether its key file is the right one."""
    found = Protection()
    with store.read(actor.grant) as reader:
        own = signing.owner_key(reader.txn)
        identity = signing.store_id(reader.txn)
    if own is not None:
        found.protected, found.since, found.key = True, own.since, own.public.hex()
        if identity is not None:
            key = checkpoint.Key(checkpoint.origin_of(identity), own.public)
            found.verifier = checkpoint.verifier(key)
    try:
        sealed = keys.read(store.root)
    except keys.KeyMissing:
        found.file = MISSING
        if own is not None:
            found.says = "the key file is missing: nobody can sign until it is put back"
    except RememError as error:
        found.file, found.says = DAMAGED, str(error)
    else:
        found.file = PRESENT if own is not None else LEFT_OVER
        if own is not None and sealed.public != found.key:
            found.file = OTHER
            found.says = "the key file holds another key: nobody can sign until it is put back"
    return found


def _status(context: Context, store: Store) -> int:
    found = look(store, context.actor())
    if context.json:
        context.emit(_value(found))
    elif not found.protected:
        context.out("not protected: decisions need no signature")
    else:
        context.out(f"protected since {describe.shown_second(found.since or 0)}")
        context.out(f"key file      {found.file}")
        context.out(f"verifier key  {found.verifier}")
    if found.says:
        context.note(one_line(found.says))
        context.note(f"'{fmt.OWNER_KEY_FILE}' lies in every backup made by 'remem backup'")
    return 0


def _value(found: Protection) -> dict[str, object]:
    return {
        "protected": found.protected,
        "since": describe.stamp(found.since),
        "key": found.key,
        "verifier": found.verifier,
        "key_file": found.file,
        "problem": found.says or None,
    }
