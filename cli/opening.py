"""Opening a store for programs, agents and commands: the same settings, principal and scope.

`remem.open` and ``remem mcp`` find store, settings, principal and scope exactly as every command
does; what a command decides from its options they take as arguments.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli.context import TOKEN, TOKEN_FILE, Context
from remem.cli.options import Command
from remem.hooks.options import Options

if TYPE_CHECKING:
    from remem.hooks.api import Store
    from remem.objects.scope import Grant
    from remem.objects.store import Store as Objects

AGENTS = "mcp"  # principal of agents in general
API = Command("api", "", "the Python interface")


def options(context: Context) -> Options:
    """The settings in force, for `remem.hooks.api`."""
    from remem.cli import deriving
    from remem.cli.reading import cache_dir

    _ = context.root  # the store's own settings take part
    settings = context.settings
    return Options(
        limit_b=context.limit_b,
        mode=settings.text("recall.mode"),
        limit=settings.number("recall.limit"),
        budget=settings.number("context.budget"),
        short_days=settings.number("tiers.short_days"),
        attempts=settings.number("review.attempts"),
        embedder=settings.text("embedder"),
        embedder_key=settings.text("embedder_key"),
        reranker=settings.text("reranker"),
        cache_dir=cache_dir(context),
        derivers=deriving.derivers(context),
        single=deriving.one_value(context),
    )


def memory(
    context: Context,
    *,
    surface: str = "cli",
    all_collections: bool = False,
    create: bool = False,
    readonly: bool = False,
    warm: bool = False,
) -> Store:
    """The store of a command, bound to its principal and scope.

    Args:
        context: of the command; it owns the store and closes it.
        surface: through which door.
        all_collections: read every collection of the tenant and profile.
        create: make the store when it is missing.
        readonly: open it for reading.
        warm: many questions follow.
    """
    from remem.hooks.api import Store

    actor = context.actor(surface)
    grant = context.grant(all_collections=all_collections)
    objects = context.store(create=create, readonly=readonly)
    return Store(objects, actor, grant, options(context), warm=warm)


def open(
    store: str | os.PathLike[str] | None = None,
    *,
    tenant: str | None = None,
    profile: str | None = None,
    collection: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    principal: str | None = None,
    token: str | None = None,
    all_collections: bool = False,
    create: bool = True,
    readonly: bool = False,
) -> Store:
    """Open a store.

    What is not given is found as the command line finds it: in the environment, the settings
    files, the present folder.

    Args:
        store: its folder.
        tenant: of the scope.
        profile: of the scope.
        collection: of the scope; by default that of the project in the present folder.
        agent: of the scope; when given, only what this agent said is read.
        session: of the scope; when given, only this session is read.
        principal: who acts; by default the owner, or whose token the environment holds.
        token: proves it.
        all_collections: read every collection of the tenant and profile.
        create: make the store when it is missing.
        readonly: open it for reading; nothing is written, not even a projection.

    Raises:
        ScopeRefused: the token is none, or a part of the scope is not the principal's.
        StoreMissing: there is none, and it was not to be made.
        StoreError: it cannot be opened.
    """
    from remem.cli import here

    given: dict[str, object] = {"quiet": True}
    named = {
        "store": None if store is None else os.fspath(store),
        "tenant": tenant,
        "profile": profile,
        "collection": collection,
        "agent": agent,
        "session": session,
        "principal_name": principal,
    }
    given |= {name: value for name, value in named.items() if value is not None}
    context = Context(API, given)
    if token is not None:
        kept = {k: v for k, v in os.environ.items() if k != TOKEN_FILE}
        context.use_environ({**kept, TOKEN: token})
    opened = memory(
        context,
        surface="api",
        all_collections=all_collections,
        create=create and not readonly,
        readonly=readonly,
        warm=True,
    )
    opened.here = here.here(context)
    return opened


def agent(context: Context, name: str | None, *, readonly: bool) -> Store:
    """The store of an agent: never the owner's grant, in one collection, fixed from now on.

    Args:
        context: of the command that starts the agent's process.
        name: a principal of the store for which the owner answers; None for the one whose token
            was given, else for a principal of agents in general, which reads, writes and proposes.
        readonly: it only reads.

    Raises:
        Refused: the name is the owner's.
        ScopeRefused: there is no such principal, it was revoked, or a part of the scope that was
            given is not its own.
        StoreError: the store cannot be opened.
    """
    import msgspec

    from remem.cli import here
    from remem.hooks.api import Store
    from remem.objects.scope import Actor

    bound = context.bound
    if bound is not None and name not in (None, bound.principal):
        raise context.refused("the token is not that of the principal", "other_principal")
    # The owner opens the store and answers for the principal.
    objects = context.store(create=not readonly)
    if bound is None:
        context.act_as(_answered_for(context, objects, name, readonly=readonly))
    scope = context.scope()
    grant = msgspec.structs.replace(context.grant(), collections=(scope.collection,), reviews=False)
    if readonly:
        grant = msgspec.structs.replace(grant, writes=False, proposes=False)
    if grant.session is None and context.settings.origin("session")[1] == "default":
        scope = msgspec.structs.replace(scope, session=_new_session())
    opened = Store(objects, Actor(grant, "mcp", scope), grant, options(context), warm=True)
    opened.here = here.here(context)
    return opened


def _new_session() -> str:
    """A name for a session of a client that gives none."""
    import time

    return f"mcp-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"


def _answered_for(context: Context, objects: Objects, name: str | None, *, readonly: bool) -> Grant:
    """The grant of a principal that the owner starts, made when it is that of agents in general."""
    from remem.objects import principals
    from remem.objects.errors import Refused
    from remem.objects.patterns import Pattern
    from remem.objects.scope import DEFAULT_PROFILE, DEFAULT_TENANT, OWNER, Grant

    if name == OWNER:
        raise Refused(
            "an agent does not act as the owner",
            hint="leave --principal out, or make one with 'remem principal add'",
        )
    if name is not None:
        return principals.bind(objects, name, by_owner=True, surface="mcp")
    where = context.scope()
    own = (where.tenant, where.profile) == (DEFAULT_TENANT, DEFAULT_PROFILE)
    label = AGENTS if own else f"{AGENTS} of {where.tenant}/{where.profile}"
    with objects.read(context.actor().grant) as reader:
        found = principals.get(reader, label)
    if found is None:
        if readonly:
            return Grant(label, where.tenant, where.profile, None, writes=False)
        pattern = Pattern(where.tenant, where.profile, None, None, None)
        actor = context.actor("mcp")
        can = ("read", "write", "propose")
        try:
            objects.write(actor, lambda tx: principals.add(tx, label, pattern, can))
        except Refused:
            pass  # another server that starts made it meanwhile
    return principals.bind(objects, label, by_owner=True, surface="mcp")
