"""A process that does one step after the other on a store and notes how long each takes.

Run as ``python poller.py KIND STORE PAUSE_S``.  KIND is ``state`` (open a snapshot and look a ref
up), ``recall`` (answer a question by its words) or ``write`` (add a turn).  It prints a line when
it has begun; for each line that it reads it prints what it saw since the last one.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

from remem.index.recall import Question, Searcher
from remem.objects.admit import admit
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store
from remem.objects.views import Lens

HOME = Scope("local", "default", "home", "none", "poller")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)


def step_of(kind: str, store: Store) -> Callable[[int], object]:
    """The step that is repeated; it is given its number."""
    if kind == "write":
        return lambda n: store.write(ME, lambda tx: admit(tx, Incoming(text=f"polled {n}")))
    if kind == "recall":
        searcher = Searcher(store, ME.grant, None)
        return lambda n: searcher.ask(
            Question("what did they say", Lens(time.time_ns() // 1000), mode="lexical")
        )

    def look(n: int) -> object:
        with store.read(ME.grant) as reader:
            part = reader.parts[0]
            return reader.state(part, reader.entry(part, 1 + n % reader.last_seq(part)).ref)

    return look


def main() -> None:
    """Step without end; report when asked."""
    kind, root, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
    store = Store(root)
    step = step_of(kind, store)
    step(0)
    took: list[float] = []
    print("begun", flush=True)

    def answer() -> None:
        for _ in sys.stdin:
            seen = took.copy()
            del took[: len(seen)]
            ordered = sorted(seen) or [0.0]
            report = {
                "steps": len(seen),
                "median": ordered[len(ordered) // 2],
                "longest": ordered[-1],
            }
            print(json.dumps(report), flush=True)

    threading.Thread(target=answer, daemon=True).start()
    number = 0
    while True:
        number += 1
        began = time.perf_counter()
        step(number)
        took.append(time.perf_counter() - began)
        time.sleep(pause)


if __name__ == "__main__":
    main()
