"""The MCP server driven by a second implementation of the protocol, from the npm registry."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from remem.hooks.mcp.service import RESOURCES
from remem.hooks.mcp.tools import TOOLS
from tests.cli.conftest import REMEM, Runner, run  # noqa: F401

pytest.importorskip("mcp", reason="the extra remem[mcp] is not installed")
HERE = Path(__file__).parent / "mcp_npm"
INSTALL_S = 60


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script with its packages, installed into a folder of its own."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("node and npm are not installed")
    folder = tmp_path_factory.mktemp("npm")
    for name in ("package.json", "drive.mjs"):
        shutil.copy(HERE / name, folder)
    words = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=INSTALL_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("the npm registry does not answer")
    if done.returncode:
        pytest.skip(f"the packages cannot be installed: {done.stderr.strip()[-200:]}")
    return folder


def test_the_typescript_sdk_drives_every_tool(run: Runner, checkout: Path) -> None:  # noqa: F811
    words = ["node", str(checkout / "drive.mjs"), *REMEM, "mcp"]
    env = {**run.environment(), "REMEM_COLLECTION": "notes"}
    done = subprocess.run(
        words, cwd=run.cwd, env=env, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["server"]["name"] == "remem"
    assert told["tools"] == list(TOOLS) and told["untried"] == []
    assert "beta-3" in told["first"] and told["agent"] == "typescript-client"
    assert told["errors"] == {
        "unknown_argument": "protocol",
        "wrong_type": "protocol",
        "no_such_tool": "protocol",
        "no_such_id": "tool",
    }
    assert told["resources"] == list(RESOURCES)
    assert told["closed_ms"] < 2000
    found = run("recall", "deploy host", "--collection", "notes", "--json", code=0).json["hits"]
    assert found[0]["scope"]["agent"] == "typescript-client"
    run("verify", code=0)
