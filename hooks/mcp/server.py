"""Speaking the Model Context Protocol over standard input and output.

The one module that imports the SDK (``remem[mcp]``).  Standard output carries the protocol and
nothing else: its descriptor is kept apart, and whatever prints lands on standard error.  The store
is asked in worker threads, so that a client that waits for one answer is heard all the same.

Errors: a call that does not fit the protocol (no such tool or resource, arguments that the schema
does not allow) is a JSON-RPC error; what the store refuses or cannot do is a result with
``isError``, so that a model reads why.

Source: Model Context Protocol, 2025-11-25 and 2026-07-28: lifecycle, tools, resources.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, cast

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from remem.hooks.mcp import schema
from remem.hooks.mcp.service import INSTRUCTIONS, RESOURCES, BadCall, Service
from remem.objects.errors import RememError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp.server.context import ServerRequestContext

    from remem.hooks.mcp.tools import Tool
    from remem.hooks.mcp.wire import Wire

GRACE_S = 1.0  # for calls that are still answered when the input ends
SETTLE_S = 0.5  # for a write that is under way when the process ends
FOLLOW_S = 2.0  # between two looks whether a purge removed what is open
THREADS = 16  # calls that are worked on at a time

_HALF = re.compile("[\ud800-\udfff]")


def serve(wire: Wire, service: Service, version: str, log: Callable[[str], None]) -> int:
    """Serve until the input ends or the process is told to end; the exit status.

    Args:
        wire: the streams of the protocol.
        service: tools and resources.
        version: of this program, for the client.
        log: takes what went wrong inside; never standard output.
    """
    busy = _Busy()
    anyio.run(_run, service, version, log, wire, busy)
    service.settle(0.0)  # nothing new is begun
    deadline = time.monotonic() + SETTLE_S
    settled = busy.settle(SETTLE_S)
    ended = service.settle(max(0.0, deadline - time.monotonic()))
    if settled and ended:
        service.close()
    elif not (wire.open or settled):
        log("a call was still at work when the input ended; what it had not written is not kept")
    if wire.open or busy.calls or not ended:
        # A thread still reads, or waits for another process: the store survives that.
        sys.stderr.flush()
        os._exit(0)
    return 0


async def _run(
    service: Service, version: str, log: Callable[[str], None], wire: Wire, busy: _Busy
) -> None:
    server = _server(service, version, log, busy)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_end_on_signal, tasks.cancel_scope)
        tasks.start_soon(_follow, service)
        stdin = cast("anyio.AsyncFile[str]", _Input(wire, busy))
        async with stdio_server(stdin, anyio.wrap_file(wire.stdout)) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _end_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        async for _ in received:
            scope.cancel()
            return


async def _follow(service: Service) -> None:
    """Let go of what is purged while nobody calls."""
    own = anyio.CapacityLimiter(1)
    while True:
        await anyio.sleep(FOLLOW_S)
        await to_thread.run_sync(service.follow, abandon_on_cancel=True, limiter=own)


class _Busy:
    """The calls that are worked on.

    Attributes:
        calls: in threads.
        asked: whose answer is waited for.
    """

    def __init__(self) -> None:
        self.calls = self.asked = 0
        self._lock = threading.Lock()

    def run(self, job: Callable[[], Any]) -> Any:
        """Do something in a thread, counted."""
        with self._lock:
            self.calls += 1
        try:
            return job()
        finally:
            with self._lock:
                self.calls -= 1

    def settle(self, most_s: float) -> bool:
        """Wait until nothing is worked on any more, for a while; True when it came to that."""
        deadline = time.monotonic() + most_s
        while self.calls and time.monotonic() < deadline:
            time.sleep(0.01)
        return not self.calls


class _Input:
    """Lines of the input; its end waits a moment for the answers to what was asked before."""

    def __init__(self, wire: Wire, busy: _Busy) -> None:
        self._wire = wire
        self._busy = busy

    async def __aiter__(self) -> AsyncIterator[str]:
        own = anyio.CapacityLimiter(1)
        read = self._wire.stdin.readline
        while line := await to_thread.run_sync(read, limiter=own, abandon_on_cancel=True):
            if line.strip():
                yield mended(line)
        self._wire.open = False
        with anyio.move_on_after(GRACE_S):
            await anyio.sleep(0.02)
            while self._busy.asked:
                await anyio.sleep(0.01)
            await anyio.sleep(0.02)


def mended(line: str) -> str:
    """A line with U+FFFD for each half of a surrogate pair.

    Clients that cut a text in the middle of an emoji write it, and the SDK drops the whole message
    without an answer.
    """
    if "\\u" not in line:
        return line
    try:
        value = json.loads(line)
    except ValueError:
        return line
    return _HALF.sub("\ufffd", json.dumps(value, ensure_ascii=False))


def _server(service: Service, version: str, log: Callable[[str], None], busy: _Busy) -> Server[Any]:
    limiter = anyio.CapacityLimiter(THREADS)

    async def work(job: Callable[[], Any]) -> Any:
        """Do something in a thread; what is given up here goes on by itself."""
        busy.asked += 1
        try:
            return await to_thread.run_sync(busy.run, job, limiter=limiter, abandon_on_cancel=True)
        finally:
            busy.asked -= 1

    async def list_tools(
        ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[described(one) for one in service.listed.values()])

    async def call_tool(
        ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        service.greet(_client(ctx))
        given = params.arguments or {}
        try:
            text, value = await work(lambda: service.call(params.name, given))
        except BadCall as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except RememError as error:
            return types.CallToolResult(content=[_text(_told(error))], is_error=True)
        except Exception as error:
            log(f"the tool '{params.name[:60]}' failed: {type(error).__name__}: {error}")
            raise MCPError(types.INTERNAL_ERROR, "the tool failed; the log says why") from error
        return types.CallToolResult(content=[_text(text)], structured_content=value)

    async def list_resources(
        ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=name, description=about, mime_type="text/markdown")
                for uri, (name, about) in RESOURCES.items()
            ]
        )

    async def read_resource(
        ctx: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        service.greet(_client(ctx))
        uri = str(params.uri)
        try:
            text = await work(lambda: service.read(uri))
        except BadCall as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        except RememError as error:
            raise MCPError(types.INTERNAL_ERROR, _told(error)) from error
        found = types.TextResourceContents(uri=uri, mime_type="text/markdown", text=text)
        return types.ReadResourceResult(contents=[found])

    return Server(
        "remem",
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
    )


def described(tool: Tool) -> types.Tool:
    """A tool as a client lists it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.about,
        input_schema=schema.of(tool.takes, described=False),
        output_schema=schema.of(tool.gives, described=False),
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=not tool.changes,
            destructive_hint=False,
            idempotent_hint=not tool.changes,
            open_world_hint=False,
        ),
    )


def _told(error: RememError) -> str:
    """An error and its hint; what it quotes of what was given may be a secret."""
    from remem.objects.redact import clean

    hint = f"\nhint: {error.hint}" if error.hint else ""
    return clean(f"{error}{hint}")[0]


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _client(ctx: ServerRequestContext[Any]) -> str:
    """What the client calls itself."""
    params = ctx.session.client_params
    return "" if params is None else params.client_info.name
