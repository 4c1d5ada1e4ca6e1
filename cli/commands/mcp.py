"""remem mcp: tools for an agent, over standard input and output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from remem.cli import draining, opening
from remem.objects.errors import PartMissing, Refused, StoreError

if TYPE_CHECKING:
    from remem.cli.context import Context
    from remem.hooks.api import Store
    from remem.hooks.mcp.service import Service

SDK = ("mcp", "mcp_types", "anyio")  # modules of the SDK, from version 2 on


def run(context: Context, *, principal: str | None, read_only: bool) -> int:
    """Serve one client until its input ends."""
    _need_sdk()
    from remem.hooks.mcp.wire import Wire

    wire = Wire()
    try:
        service = _service(context, principal, read_only=read_only)
    except Exception:
        sys.stdout = wire.stdout  # nothing was said on it, so the error may be
        raise
    context.wrote = True  # the protocol has standard output for itself
    _log_of_sdk(context)
    from remem import __version__
    from remem.hooks.mcp.server import serve

    return serve(wire, service, __version__, context.note)


def _service(context: Context, principal: str | None, *, read_only: bool) -> Service:
    """The tools over the store.

    Raises:
        Refused: there is no such principal, or it may use none of them.
    """
    opened: list[Store] = []
    try:
        opened.append(opening.agent(context, principal, readonly=read_only))
    except StoreError as error:
        # It may be there, whole or free later: the client is told at each call until then.
        context.note(f"{error}; the server starts all the same")

    def opener() -> Store:
        return opened.pop() if opened else opening.agent(context, principal, readonly=read_only)

    from remem.hooks.beside import Beside
    from remem.hooks.mcp.service import Service

    grant = opened[0].grant if opened else None
    beside = Beside(lambda: draining.how(context), context.detail)
    service = Service(opener, grant, readonly=read_only, beside=beside)
    if not service.listed:
        raise Refused(
            f"'{context.principal()}' may use no tool",
            hint="'remem principal add NAME --can read,write,propose' makes one that may",
        )
    if opened:
        at = opened[0].actor.scope
        context.detail(
            f"'{context.principal()}' in {at.tenant}/{at.profile}/{at.collection}, {at.session}"
        )
    return service


def _need_sdk() -> None:
    """Raise without the SDK, before anything is opened."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in SDK):
        raise PartMissing(
            "the SDK of the Model Context Protocol is missing, or older than version 2",
            hint="pip install 'remem[mcp]'",
        )


def _log_of_sdk(context: Context) -> None:
    """Send what the SDK logs to standard error: warnings, with REMEM_DEBUG everything."""
    import logging

    debug = bool(context.environ.get("REMEM_DEBUG"))
    level = logging.DEBUG if debug else logging.ERROR
    if context.settings.flag("verbose"):
        level = min(level, logging.INFO)
    logging.basicConfig(stream=sys.stderr, level=level, format="remem: %(name)s: %(message)s")
