"""Settings by which other clients start the MCP server, to be pasted into their files."""

from __future__ import annotations

import json
import os
import sys

import msgspec

NAME = "remem"


class Told(msgspec.Struct, frozen=True):
    """Settings of a client: the file that they belong into, and their text."""

    file: str
    text: str


def settings(client: str, store: str) -> Told:
    """Settings of one of CLIENTS for a server over a store.

    The server is started in the folder of the project, which decides the collection.
    """
    script = os.path.join(os.path.dirname(sys.executable), "remem")
    command = [script] if os.access(script, os.X_OK) else [sys.executable, "-m", "remem"]
    args = [*command[1:], "--store", store, "mcp"]
    file = CLIENTS[client]
    if file.endswith(".toml"):
        quoted = json.dumps(args, ensure_ascii=False)
        text = (
            f"[mcp_servers.{NAME}]\n"
            f"command = {json.dumps(command[0], ensure_ascii=False)}\n"
            f"args = {quoted}\n"
        )
        return Told(file, text)
    server = {"command": command[0], "args": args}
    return Told(file, json.dumps({"mcpServers": {NAME: server}}, indent=2, ensure_ascii=False))


# Client -> the file that its settings belong into.
CLIENTS = {
    "claude": ".mcp.json",
    "codex": "~/.codex/config.toml",
    "cursor": "~/.cursor/mcp.json",
    "gemini": "~/.gemini/settings.json",
}
