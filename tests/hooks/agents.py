"""A client of ``remem mcp`` for tests: the SDK's own session over a real process."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
import pytest

from tests.cli.conftest import REMEM, Runner

mcp = pytest.importorskip("mcp", reason="the extra remem[mcp] is not installed")

from mcp.client.session import ClientSession  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402
from mcp.shared.exceptions import MCPError  # noqa: E402
from mcp_types import Implementation  # noqa: E402

CLIENT = "test-client"


class Reply:
    """What a call gave: text and value, or the error of the tool or of the protocol."""

    def __init__(self, text: str, value: Any = None, failed: str = "") -> None:
        self.text = text
        self.value = value
        self.failed = failed  # "", "tool" or "protocol"


class Agent:
    """An open session."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def __call__(self, name: str, **arguments: Any) -> Reply:
        """Call a tool; whatever comes of it is a reply."""
        try:
            done = await self.session.call_tool(name, arguments)
        except MCPError as error:
            return Reply(str(error), error.code, "protocol")
        text = "".join(getattr(block, "text", "") for block in done.content)
        return Reply(text, done.structured_content, "tool" if done.is_error else "")

    async def ok(self, name: str, **arguments: Any) -> Any:
        """Call a tool that must succeed; its value."""
        reply = await self(name, **arguments)
        assert not reply.failed, (name, arguments, reply.text)
        return reply.value

    async def tools(self) -> list[str]:
        """Names of the tools."""
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def read(self, uri: str) -> str:
        """Text of a resource."""
        found = await self.session.read_resource(uri)
        return "".join(getattr(one, "text", "") for one in found.contents)


def talk(run: Runner, script: Callable[[Agent], Awaitable[None]], *words: str) -> None:
    """Start a server, run a script against it, and see that it ends by itself in time."""

    async def whole() -> None:
        server = StdioServerParameters(
            command=REMEM[0], args=[*REMEM[1:], "mcp", *words], env=run.environment(), cwd=run.cwd
        )
        async with stdio_client(server) as (incoming, outgoing):
            info = Implementation(name=CLIENT, version="1")
            async with ClientSession(incoming, outgoing, client_info=info) as session:
                await session.initialize()
                await script(Agent(session))

    try:
        anyio.run(whole)
    except BaseExceptionGroup as group:
        raise _leaf(group) from None


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def message(number: int, method: str, **params: Any) -> bytes:
    """A request as it stands on the wire."""
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(request).encode() + b"\n"


HELLO = message(
    0,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": CLIENT, "version": "1"},
) + (b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')


class Wire:
    """A server of which every byte is seen."""

    def __init__(self, run: Runner, *words: str) -> None:
        self.process = subprocess.Popen(
            [*REMEM, "mcp", *words],
            env=run.environment(),
            cwd=run.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: list[bytes] = []
        self._answers: dict[object, dict[str, Any]] = {}

    def send(self, *requests: bytes) -> None:
        """Write requests."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(requests))
        self.process.stdin.flush()

    def answer(self, number: int) -> dict[str, Any]:
        """Read until the answer to a request."""
        assert self.process.stdout is not None
        while number not in self._answers:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read() if self.process.stderr else b""
            self.lines.append(line)
            found: dict[str, Any] = json.loads(line)
            self._answers[found.get("id")] = found
        return self._answers.pop(number)

    def end(self) -> tuple[int, float, str]:
        """Close the input: exit status, seconds until it ended, stderr."""
        assert self.process.stdin is not None and self.process.stdout is not None
        began = time.monotonic()
        self.process.stdin.close()
        self.lines += self.process.stdout.readlines()
        code = self.process.wait(10)
        took = time.monotonic() - began
        assert self.process.stderr is not None
        return code, took, self.process.stderr.read().decode()


def pure(lines: Sequence[bytes]) -> bool:
    """True when every line is a message of the protocol."""
    return all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
