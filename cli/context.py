"""What a command runs in: settings, store, scope, grant, output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from remem.cli.settings import Settings, home
from remem.objects.errors import Refused, ScopeRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from remem.cli.table import Command
    from remem.objects.model import Scope
    from remem.objects.scope import Actor, Grant
    from remem.objects.store import Store

MIB = 1 << 20
HERE = ".remem"  # folder of a store for a folder and those below it


class Context:
    """Bound when the command starts; nothing in it changes afterwards."""

    def __init__(self, command: Command, given: Mapping[str, object]) -> None:
        """Take the command and the global options that were given."""
        self.command = command
        self.environ = os.environ
        self.settings = Settings(given, os.environ)
        self._root: str | None = None
        self._store: Store | None = None

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
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def emit(self, value: object) -> None:
        """Print one JSON value."""
        import msgspec

        sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")

    def note(self, text: str) -> None:
        """Say something on stderr, unless quiet."""
        if not self.settings.flag("quiet") and sys.stderr is not None:
            from remem.cli.plain import visible

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
        """Folder of the store: option, environment, nearest .remem, settings, data folder."""
        if self._root is None:
            self._root, found = self._find_root()
            self.settings.use_store(self._root, found=found)
        return self._root

    def _find_root(self) -> tuple[str, bool]:
        """The folder, and whether it was found above the present one rather than named."""
        value, origin = self.settings.origin("store")
        if origin == "option" and not value:
            raise UsageError("--store names no folder")
        if value and (origin == "option" or origin.startswith("$")):
            return os.path.abspath(os.path.expanduser(str(value))), False
        here = self.folder
        while True:
            candidate = os.path.join(here, HERE)
            if os.path.exists(os.path.join(candidate, "FORMAT")):
                self._accept(candidate)
                return candidate, True
            parent = os.path.dirname(here)
            if parent == here:
                break
            here = parent
        if value:
            return os.path.abspath(os.path.expanduser(str(value))), False
        base = self.environ.get("XDG_DATA_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(home(self.environ), ".local", "share")
        return os.path.join(base, "remem"), False

    def _accept(self, candidate: str) -> None:
        """Take a store that was found above the present folder only if init --here made it known.

        A cloned repository can bring a store of its own; it would take your notes and answer with
        its author's.

        Raises:
            Refused: this user never accepted it.
        """
        try:
            with open(here_file(self.settings), encoding="utf-8", errors="surrogateescape") as file:
                known = file.read().split("\n")
        except OSError:
            known = []
        if os.path.realpath(candidate) not in known and self.command.name != "init":
            raise Refused(
                f"the store '{candidate}' was not made or accepted by you",
                hint="'remem init --here' in its folder accepts it; --store names another",
            )

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
            from remem.objects.store import Store

            root = self.root
            map_mib = self.settings.number("disk.map_mib")
            map_b = map_mib * MIB if map_mib else None
            max_map_b = self.settings.number("disk.max_map_gib") << 30
            network = self.settings.flag("disk.allow_network_fs")
            if create and not os.path.exists(os.path.join(root, "FORMAT")):
                self._store = Store.create(
                    root, map_b=map_b, max_map_b=max_map_b, allow_network=network
                )
                self.note(f"made the store '{root}'")
            else:
                self._store = Store(
                    root,
                    readonly=readonly,
                    map_b=map_b,
                    max_map_b=max_map_b,
                    allow_network=network,
                )
        return self._store

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()

    # -- scope --------------------------------------------------------------------------------

    def collection(self) -> tuple[str, str]:
        """Name of the collection and where it comes from."""
        _ = self.root  # the store's own settings take part
        value, origin = self.settings.origin("collection")
        if value:
            return str(value), origin
        from remem.hooks.identity import collection_of

        return collection_of(self.folder)

    def scope(self) -> Scope:
        """The scope that this command writes to and reads by default."""
        from remem.objects.model import Scope
        from remem.objects.scope import check_name

        collection = self.collection()[0]
        names = {p: self.settings.text(p) for p in ("tenant", "profile", "agent", "session")}
        return Scope(
            check_name("tenant", names["tenant"]),
            check_name("profile", names["profile"]),
            check_name("collection", collection),
            check_name("agent", names["agent"]),
            check_name("session", names["session"]),
        )

    def principal(self) -> str:
        """Who acts.

        Raises:
            ScopeRefused: the store has no such principal.
        """
        from remem.objects.scope import OWNER

        _ = self.root  # the store's own settings take part
        name = self.settings.text("as")
        if name != OWNER:
            raise ScopeRefused(
                f"'{name}' is no principal of this store", hint="leave out --as to act as the owner"
            )
        return name

    def grant(self, *, all_collections: bool = False) -> Grant:
        """The grant of the principal who acts, for reading."""
        from remem.objects.scope import Grant, owner_grant

        self.principal()
        scope = self.scope()
        narrow = {
            part: self.settings.text(part) if self.settings.origin(part)[1] == "option" else None
            for part in ("agent", "session")
        }
        grant = owner_grant(scope, agent=narrow["agent"], session=narrow["session"])
        if not all_collections:
            return grant
        return Grant(
            grant.principal,
            grant.tenant,
            grant.profile,
            None,
            agent=grant.agent,
            session=grant.session,
            owner=True,
        )

    def actor(self, surface: str = "cli") -> Actor:
        """Who writes: the principal with a grant over the whole tenant and profile."""
        from remem.objects.scope import Actor, Grant

        grant = self.grant(all_collections=True)
        return Actor(
            Grant(grant.principal, grant.tenant, grant.profile, None, owner=True),
            surface,
            self.scope(),
        )


def here_file(settings: Settings) -> str:
    """Path of the list of stores that init --here made known to this user, one a line."""
    return os.path.join(os.path.dirname(settings.user_file), "here")
