"""The MCP server: start to the first answer, recall of a live one, memory over many calls.

The client speaks the protocol itself, so that what is measured is the server.  Each client has a
server of its own, as clients over standard input have; eight calls at a time on one server are
shown beside them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.data import DEFAULT_DATA
from tests.bench.metrics import median
from tests.bench.process import LEXICAL_ONLY, samples
from tests.bench.report import note, table, title
from tests.bench.stand import Stand

FEW, MANY = 100, 10_000  # calls before memory is looked at
MOST_GROWTH_KIB = 12 * 1024  # of private memory between the two, numpy among it
CLIENTS = 8
STARTS = 5


class Client:
    """A client with a server of its own."""

    def __init__(self, stand: Stand, store: Path) -> None:
        """Start the server and shake hands."""
        self.process = subprocess.Popen(
            stand.words(store, "mcp"),
            env=stand.env(LEXICAL_ONLY),
            cwd=stand.home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._number = 0
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self.ask("initialize", hello)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, *said: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in said))
        self.process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """One request and its answer."""
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self._read()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One call of a tool that must succeed."""
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})
        result: dict[str, Any] = answer["result"]
        assert not result.get("isError"), result
        return result

    def together(self, queries: Sequence[str]) -> float:
        """Several recalls at a time: seconds until the last is answered."""
        began = time.perf_counter()
        said = []
        for query in queries:
            self._number += 1
            params = {"name": "recall", "arguments": {"query": query}}
            said.append({"jsonrpc": "2.0", "id": self._number, "method": "tools/call",
                         "params": params})  # fmt: skip
        self._write(*said)
        for _ in queries:
            assert not self._read()["result"].get("isError")
        return time.perf_counter() - began

    def private_kib(self) -> int:
        """Memory that only the server has, without the pages of files."""
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        return next(int(row.split()[1]) for row in text.splitlines() if "Private_Dirty" in row)

    def end(self) -> None:
        """Close the input and wait."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 with ``--check`` where memory grew.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench mcp", description="Measure the MCP server."
    )
    parser.add_argument("--turns", type=int, default=100_000, help="of the large store")
    parser.add_argument("--small", type=int, default=1_000, help="of the store of the memory")
    parser.add_argument("--calls", type=int, default=200, help="recalls of each client")
    parser.add_argument("--many", type=int, default=MANY, help="calls before memory is looked at")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    parser.add_argument("--check", action="store_true", help="exit 1 where memory grew")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="remem-bench-") as work:
        stand = Stand(Path(work), args.data, big=args.turns, small=args.small, rounds=STARTS)
        store = stand.copy(stand.indexed(args.turns), "served")
        _start(stand, store)
        _recall(stand, store, args.calls)
        grew = _memory(stand, stand.copy(stand.indexed(args.small), "small"), args.many)
    return int(args.check and grew > MOST_GROWTH_KIB)


def _start(stand: Stand, store: Path) -> None:
    title(f"start to the first answer, {stand.big} turns")
    shaken, answered = [], []
    for number in range(STARTS):
        began = time.perf_counter()
        client = Client(stand, store)
        shaken.append(time.perf_counter() - began)
        client.call("recall", query=stand.pool.questions[number])
        answered.append(time.perf_counter() - began)
        client.end()
    sdk = [stand.words(store, "--version")[0].replace("remem", "python"), "-c",
           "import mcp.server.lowlevel"]  # fmt: skip
    base = samples({"sdk": sdk}, stand.env(LEXICAL_ONLY), cwd=stand.home, n=STARTS)["sdk"]
    rows = [
        ("import of the SDK alone", f"{median([one.wall for one in base]):.3f}"),
        ("handshake", f"{median(shaken):.3f}"),
        ("first recall answered", f"{median(answered):.3f}"),
    ]
    print(table(("", "seconds"), rows))


def _recall(stand: Stand, store: Path, calls: int) -> None:
    title(f"recall of a live server, lexical, {stand.big} turns")
    asked = stand.pool.questions
    rows = []
    for count in (1, CLIENTS):
        clients = [Client(stand, store) for _ in range(count)]
        for client in clients:
            client.call("recall", query=asked[0])
        times: list[float] = []
        own = max(1, calls // count)

        def work(client: Client, first: int, own: int = own, times: list[float] = times) -> None:
            for number in range(first, first + own):
                began = time.perf_counter()
                client.call("recall", query=asked[number % len(asked)])
                times.append(time.perf_counter() - began)

        threads = [
            threading.Thread(target=work, args=(client, at * own))
            for at, client in enumerate(clients)
        ]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - began
        name = f"{count} client{'' if count == 1 else 's'}"
        rows.append(_row(name, times, len(times) / took))
        for client in clients:
            client.end()
    client = Client(stand, store)
    client.call("recall", query=asked[0])
    batches = [
        client.together([asked[(at + n) % len(asked)] for n in range(CLIENTS)])
        for at in range(0, calls, CLIENTS)
    ]
    rows.append(_row(f"{CLIENTS} calls at a time", batches, CLIENTS * len(batches) / sum(batches)))
    client.end()
    print(table(("", "p50 ms", "p99 ms", "calls/s"), rows))
    note("of the last row p50 and p99 are those of all eight answers together")


def _row(name: str, times: Sequence[float], rate: float) -> tuple[str, str, str, str]:
    return (
        name,
        f"{1000 * percentile(times, 0.5):.1f}",
        f"{1000 * percentile(times, 0.99):.1f}",
        f"{rate:.1f}",
    )


def _memory(stand: Stand, store: Path, many: int) -> int:
    title(f"memory of a server over {many} calls, {stand.small} turns")
    client = Client(stand, store)
    asked = stand.pool.questions
    known = client.call("recall", query=asked[0])["structuredContent"]["hits"][0]["id"]
    held: dict[int, int] = {}
    for number in range(1, many + 1):
        query = asked[number % len(asked)]
        if number % 5 == 0:
            client.call("show", id=known)
        elif number % 7 == 0:
            client.call("context", query=query)
        elif number % 11 == 0:
            client.call("observe", text=f"note number {number % 50}", source_id=str(number % 50))
        elif number % 13 == 0:
            client.ask("tools/call", {"name": "nothing", "arguments": {}})
        else:
            client.call("recall", query=query)
        if number in (FEW, many // 10, many // 2, many):
            held[number] = client.private_kib()
    client.end()
    first = held[min(held)]
    note("the first merge of segments, after some hundred calls, loads numpy: about 7 MiB once")
    rows = [(f"{at:,}", f"{kib:,}", f"{kib - first:+,}") for at, kib in sorted(held.items())]
    print(table(("calls", "private KiB", "since"), rows))
    return held[many] - first
