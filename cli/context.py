"""What a command runs in: settings, store, scope, grant, output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from remem.cli.settings import Settings, home
from remem.objects.errors import Refused, ScopeRefused, StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from remem.cli.table import Command
    from remem.objects.model import Scope
    from remem.objects.scope import Actor, Grant
    from remem.objects.store import Store

MIB = 1 << 20
TOKEN, TOKEN_FILE = "REMEM_TOKEN", "REMEM_TOKEN_FILE"  # of the environment; no setting holds one
MAX_TOKEN_B = 4096


class Context:
    """Bound when the command starts; nothing in it changes afterwards.

    Attributes:
        wrote: something went to standard output, or it is somebody else's.
    """

    def __init__(self, command: Command, given: Mapping[str, object]) -> None:
        """Take the command and the global options that were given."""
        self.command = command
        self._given = given
        self.environ: Mapping[str, str] = os.environ
        self.settings = Settings(given, os.environ)
        self._root: str | None = None
        self._found = False
        self._store: Store | None = None
        self._said = given.get("principal_name")
        self._grant: Grant | None = None
        self._bound = False
        self.wrote = False

    # -- output -------------------------------------------------------------------------------

    @property
    def json(self) -> bool:
        """Print JSON."""
        return self.settings.flag("json")

    @property
    def terminal(self) -> bool:
        """Standard output is a terminal and colour is not forbidden."""
        return sys.stdout.isatty() and not self.settings.flag("no_color")

    def out(self, text: str) -> None:
        """Print a result."""
        self.stdout.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def emit(self, value: object) -> None:
        """Print one JSON value."""
        import msgspec

        self.stdout.write(msgspec.json.encode(value) + b"\n")

    @property
    def stdout(self) -> BinaryIO:
        """Standard output, about to be written to; what fails from now on prints nothing on it."""
        self.wrote = True
        return sys.stdout.buffer

    def note(self, text: str) -> None:
        """Say something on stderr, unless quiet."""
        if not self.settings.flag("quiet") and sys.stderr is not None:
            from remem.cli.plain import visible

            if self.wrote:  # in one pipe, both stand in the order in which they were said
                sys.stdout.flush()
            sys.stderr.write(f"remem: {visible(text)}\n")

    def detail(self, text: str) -> None:
        """Say something on stderr when verbose."""
        if self.settings.flag("verbose"):
            self.note(text)

    @property
    def progress(self) -> bool:
        """Progress may be shown: stderr is a terminal and quiet is not set."""
        return sys.stderr is not None and sys.stderr.isatty() and not self.settings.flag("quiet")

    # -- the store ----------------------------------------------------------------------------

    @property
    def root(self) -> str:
        """Folder of the store: option, environment, nearest folder's, settings, data folder."""
        if self._root is None:
            self._root, self._found = self._find_root()
            self.settings.use_store(self._root, found=self._found)
        return self._root

    @property
    def found(self) -> bool:
        """The store was found in a folder above the present one, or in its repository."""
        _ = self.root
        return self._found

    @property
    def own_root(self) -> str:
        """Folder of the store, for whoever writes to it or reads in it without opening the store.

        Raises:
            Refused: it was found, and is not the one that was accepted at its path.
        """
        root = self.root
        if self._found and self._store is None:
            from remem.cli import places
            from remem.objects.store import Store

            # Its own settings are not asked: what they say may be what has to be mended.
            store = Store(root, readonly=True, allow_network=True)
            try:
                places.check(store, here_file(self.settings))
            finally:
                store.close()
        return root

    @property
    def limit_b(self) -> int:
        """Bytes of the largest text that is taken; the store's own settings take part."""
        _ = self.root
        return self.settings.number("admission.max_mib") * MIB

    def _find_root(self) -> tuple[str, bool]:
        """The folder, and whether it was found by where the command runs rather than named."""
        value, origin = self.settings.origin("store")
        if origin == "option" and not value:
            raise UsageError("--store names no folder")
        if value and (origin == "option" or origin.startswith("$")):
            return os.path.abspath(os.path.expanduser(str(value))), False
        from remem.cli import places

        try:
            found = places.find(self.folder, here_file(self.settings))
        except Refused:
            if self.command.name != "init":
                raise
            found = None
        if found is not None:
            return found, True
        if value:
            return os.path.abspath(os.path.expanduser(str(value))), False
        base = self.environ.get("XDG_DATA_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(home(self.environ), ".local", "share")
        return os.path.join(base, "remem"), False

    @property
    def folder(self) -> str:
        """The folder in which the command was started."""
        try:
            return os.getcwd()
        except OSError:
            return home(self.environ)

    def store(self, *, create: bool = False, readonly: bool = False) -> Store:
        """The store; made when it is missing and create is set."""
        self.principal()
        if self._store is None:
            self._store = self._open(create=create, readonly=readonly)
            from remem.cli import draining

            draining.before(self, self._store)
        return self._store

    def open_again(self) -> Store:
        """Another handle of the store, for writing; whoever asks closes it."""
        return self._open()

    def _open(self, *, create: bool = False, readonly: bool = False) -> Store:
        from remem.objects.store import Store

        root = self.root
        map_mib = self.settings.number("disk.map_mib")
        map_b = map_mib * MIB if map_mib else None
        max_map_b = self.settings.number("disk.max_map_gib") << 30
        network = self.settings.flag("disk.allow_network_fs")
        if create and not os.path.exists(os.path.join(root, "FORMAT")):
            made = Store.create(root, map_b=map_b, max_map_b=max_map_b, allow_network=network)
            self.note(f"made the store '{root}'")
            return made
        store = Store(
            root, readonly=readonly, map_b=map_b, max_map_b=max_map_b, allow_network=network
        )
        if self.found:
            from remem.cli import places

            try:
                places.check(store, here_file(self.settings))
            except BaseException:
                store.close()
                raise
        return store

    @property
    def opened(self) -> Store | None:
        """The store, when the command has opened it."""
        return self._store

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()

    # -- scope --------------------------------------------------------------------------------

    def collection(self) -> tuple[str, str]:
        """Name of the collection and where it comes from."""
        grant = self.bound
        if grant is not None and grant.collections is not None:
            return self._pinned("collection", grant.collections[0]), "principal"
        value, origin = self.settings.origin("collection")
        if value:
            return str(value), origin
        from remem.hooks.identity import collection_of

        return collection_of(self.folder)

    def scope(self) -> Scope:
        """The scope that this command writes to and reads by default.

        Raises:
            ScopeRefused: an option or the environment names a part outside the principal's scope.
        """
        from remem.objects.model import Scope
        from remem.objects.scope import check_name

        grant = self.bound
        names = {"collection": self.collection()[0]}
        for part in ("tenant", "profile", "agent", "session"):
            pin = None if grant is None else getattr(grant, part)
            names[part] = self.settings.text(part) if pin is None else self._pinned(part, pin)
        return Scope(
            check_name("tenant", names["tenant"]),
            check_name("profile", names["profile"]),
            check_name("collection", names["collection"]),
            check_name("agent", names["agent"]),
            check_name("session", names["session"]),
        )

    def _pinned(self, part: str, pin: str) -> str:
        """A part of the scope that the principal cannot choose."""
        value, origin = self.settings.origin(part)
        if (origin == "option" or origin.startswith("$")) and value != pin:
            where = f"--{part}" if origin == "option" else origin
            raise self.refused(
                f"{where} names a scope that '{self.principal()}' may not use", "scope_refused"
            )
        return pin

    def grant(self, *, all_collections: bool = False) -> Grant:
        """The grant of the principal who acts, for reading."""
        import msgspec

        from remem.objects.scope import owner_grant

        bound = self.bound
        scope = self.scope()
        narrow = {
            part: self.settings.text(part) if self.settings.origin(part)[1] == "option" else None
            for part in ("agent", "session")
        }
        if bound is not None:
            return msgspec.structs.replace(
                bound,
                collections=bound.collections if all_collections else (scope.collection,),
                agent=bound.agent or narrow["agent"],
                session=bound.session or narrow["session"],
            )
        grant = owner_grant(scope, agent=narrow["agent"], session=narrow["session"])
        return msgspec.structs.replace(grant, collections=None) if all_collections else grant

    def actor(self, surface: str = "cli") -> Actor:
        """Who writes: the owner with a grant over the tenant and profile, else the principal."""
        import msgspec

        from remem.objects.scope import Actor, owner_grant

        scope = self.scope()
        grant = self.bound
        if grant is None:
            grant = msgspec.structs.replace(owner_grant(scope), collections=None)
        return Actor(grant, surface, scope)

    # -- the principal ------------------------------------------------------------------------

    def principal(self) -> str:
        """Who acts.

        Raises:
            ScopeRefused: it could not say who it is.
        """
        from remem.objects.scope import OWNER

        return OWNER if self.bound is None else self.bound.principal

    @property
    def claims(self) -> bool:
        """Somebody is named by an option or the environment; no file is read to find out."""
        said = self._said is not None or self.environ.get("REMEM_AS", "") not in ("", "owner")
        return said or TOKEN in self.environ or TOKEN_FILE in self.environ

    @property
    def bound(self) -> Grant | None:
        """The grant of the principal whose token was given, or None: the owner acts.

        Raises:
            ScopeRefused: the token is none, or does not belong to the name that was given.
        """
        if not self._bound:
            _ = self.root  # the store's own settings take part
            name, origin = self.settings.origin("as")
            token = self._token()
            if token is not None or name != "owner":
                stated = None if name == "owner" and origin != "option" else str(name)
                self._grant = self._bind(stated, token)
            self._bound = True
        return self._grant

    def act_as(self, grant: Grant) -> None:
        """Become a principal for which the owner, who starts the process, answers."""
        self._grant, self._bound = grant, True

    def use_environ(self, environ: Mapping[str, str]) -> None:
        """Take another environment than that of the process, before anything was asked."""
        self.environ = environ
        self.settings = Settings(self._given, environ)

    def _bind(self, name: str | None, token: str | None) -> Grant:
        from remem.objects import principals

        if not os.path.exists(os.path.join(self.root, "FORMAT")):
            raise ScopeRefused(
                f"there is no store in '{self.root}', so it has no principals",
                hint="its owner makes it, without a token",
            )
        store = self._writable()
        try:
            return principals.bind(store, name, token)
        finally:
            store.close()

    def _writable(self) -> Store:
        """A handle of its own, for writing where that can be: a refusal leaves a row."""
        try:
            return self._open()
        except (Refused, StoreError):
            return self._open(readonly=True)

    def _token(self) -> str | None:
        """The token that was given, or None.

        Raises:
            ScopeRefused: there is a place for one, but none in it.
        """
        token = self.environ.get(TOKEN)
        where = f"${TOKEN}"
        if token is None and TOKEN_FILE in self.environ:
            where = f"the file of ${TOKEN_FILE}"
            token = _from_file(os.path.expanduser(self.environ[TOKEN_FILE]))
        if token is not None and not token.strip():
            raise ScopeRefused(
                f"{where} holds no token", hint="unset it to act as the owner of the store"
            )
        return token

    def check(self, values: Mapping[str, object]) -> None:
        """Refuse a command that the principal may not run, before anything of it is done.

        Raises:
            ScopeRefused: it may not, or it could not say who it is.
        """
        from remem.cli import allowed

        needs = allowed.needs(self.command.name, values)
        if needs is None or not self.claims:
            return
        grant = self.bound
        if grant is None:
            return
        self.scope()
        has = {
            allowed.READ: grant.reads,
            allowed.WRITE: grant.writes,
            allowed.PROPOSE: grant.proposes,
            allowed.REVIEW: grant.reviews,
        }
        lacks = [need for need in needs if not has.get(need, False)]
        if lacks == list(allowed.OWNER):
            raise self.refused(
                f"'{grant.principal}' may not do this: '{self.command.name}' is the owner's",
                "not_owner",
            )
        if lacks:
            raise self.refused(f"'{grant.principal}' may not {lacks[0]}", f"may_not_{lacks[0]}")

    def refused(self, message: str, outcome: str) -> ScopeRefused:
        """The error for what this principal may not do, once its row is in the audit chain."""
        from remem.objects import principals

        if self._grant is not None:
            store = self._writable()
            try:
                principals.refuse(store, self._grant, "cli", self.command.name, outcome)
            finally:
                store.close()
        return ScopeRefused(message, hint="'remem principal list' shows what it may do")


def _from_file(path: str) -> str:
    """The token in a file that nobody else can read.

    Raises:
        ScopeRefused: it cannot be read, or others can read it.
    """
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise ScopeRefused(
                    f"others can read the token file '{path}'", hint=f"chmod 600 '{path}'"
                )
            return file.read(MAX_TOKEN_B).decode("utf-8", "replace")
    except OSError as error:
        raise ScopeRefused(f"cannot read the token file '{path}': {error.strerror}") from error


def here_file(settings: Settings) -> str:
    """Path of the list of stores that init --here made known to this user."""
    return os.path.join(os.path.dirname(settings.user_file), "here")
