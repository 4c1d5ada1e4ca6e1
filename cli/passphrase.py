"""The owner's passphrase: read from the terminal that the process belongs to, and nothing else.

Not from standard input, arguments or the environment: what runs commands for a person can fill
those, and what is there stays in histories and logs.  Without a terminal it is refused.
"""

from __future__ import annotations

import os
import termios
from typing import TYPE_CHECKING

from remem.objects.errors import Refused, UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.objects.keys import Signer
    from remem.objects.scope import Actor
    from remem.objects.store import Store

TTY = "/dev/tty"
TRIES = 3
_LINE_B = 4096
_NO_TERMINAL = "run it yourself, in a terminal; a passphrase is taken from nowhere else"


class Terminal:
    """The controlling terminal; a context manager."""

    def __init__(self) -> None:
        """Begin without one."""
        self._handle = -1

    def open(self) -> Terminal:
        """Open it.

        Raises:
            Refused: the process has none.
        """
        try:
            self._handle = os.open(TTY, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError as error:
            raise Refused(
                "this needs the owner's passphrase, and there is no terminal to ask on",
                hint=_NO_TERMINAL,
            ) from error
        return self

    def __enter__(self) -> Terminal:
        """Open it, unless it is open already (see `open`)."""
        return self if self._handle >= 0 else self.open()

    def __exit__(self, *error: object) -> None:
        """Close it."""
        os.close(self._handle)
        self._handle = -1

    def say(self, text: str) -> None:
        """Write a line."""
        os.write(self._handle, f"remem: {text}\n".encode())

    def ask(self, prompt: str) -> str:
        """Read one line with the echo off.

        Raises:
            Refused: the input ended.
            UsageError: what was typed is no text.
        """
        before = termios.tcgetattr(self._handle)
        hidden = [*before]
        hidden[3] = before[3] & ~(termios.ECHO | termios.ECHONL) | termios.ICANON
        try:
            # What was typed before the question was asked is no answer to it.
            termios.tcsetattr(self._handle, termios.TCSAFLUSH, hidden)
            os.write(self._handle, f"{prompt}: ".encode())
            data = os.read(self._handle, _LINE_B)
        finally:
            termios.tcsetattr(self._handle, termios.TCSAFLUSH, before)
            os.write(self._handle, b"\n")
        if not data:
            raise Refused("no passphrase was given, nothing was changed")
        try:
            return data.rstrip(b"\r\n").decode()
        except UnicodeDecodeError as error:
            raise UsageError("the passphrase is no text in UTF-8") from error


def ask_new(terminal: Terminal) -> str:
    """A new passphrase, typed twice.

    Raises:
        UsageError: it is too short, or the two are not the same.
    """
    from remem.objects.keys import check_passphrase

    first = terminal.ask("New passphrase of the owner")
    check_passphrase(first)
    if terminal.ask("The same again") != first:
        raise UsageError("the two passphrases are not the same, nothing was changed")
    return first


def unlock(context: Context, store: Store, terminal: Terminal) -> Signer:
    """Ask for the passphrase and open the owner's key with it; three tries.

    Raises:
        WrongPassphrase: none of them opened it; that has a row of the audit chain.
        Refused: the key file is missing or holds another key.
    """
    from remem.objects import keys, signing

    sealed = keys.read(store.root)
    with store.read(context.actor().grant) as reader:
        own = signing.owner_key(reader.txn)
    if own is not None and own.public.hex() != sealed.public:
        raise keys.KeyMissing(
            f"'{keys.path_of(store.root)}' holds another key than the one that is in force"
        )
    for left in reversed(range(TRIES)):
        try:
            return keys.unlock(sealed, terminal.ask("Passphrase of the owner"))
        except keys.WrongPassphrase as error:
            if not left:
                if not store.readonly:
                    store.write(
                        context.actor(), lambda tx: tx.refuse("unlock", "passphrase", 0, None)
                    )
                raise
            terminal.say(str(error))
    raise AssertionError("a loop of three tries ends within it")


def asks(context: Context, store: Store) -> bool:
    """True when decisions need the owner's signature in this store."""
    from remem.objects import signing

    with store.read(context.actor().grant) as reader:
        return signing.protected(reader)


def signed(context: Context, store: Store, what: str) -> Actor:
    """Who writes, with the unlocked key where the store asks for signatures.

    Args:
        context: of the command.
        store: the store.
        what: what is about to be signed, shown above the question.

    Raises:
        Refused: there is no terminal, no key, or no right passphrase; nothing was changed.
    """
    import msgspec

    actor = context.actor()
    if not asks(context, store):
        return actor
    try:
        terminal = Terminal().open()
    except Refused:
        if not store.readonly:  # somebody who is no person at a terminal tried to decide
            store.write(actor, lambda tx: tx.refuse("unlock", "no_terminal", 0, None))
        raise
    with terminal:
        terminal.say(f"to sign: {what}")
        return msgspec.structs.replace(actor, signer=unlock(context, store, terminal))
