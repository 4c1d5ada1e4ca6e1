"""Runs command lines of an installed program in one process; the peer's own interpreter runs it.

Usage: ``PYTHON -I peer_driver.py PROGRAM``.  Each line read is a JSON object with ``words`` and
maybe ``stdin``; for each a JSON object is written: ``code``, ``seconds``, ``out`` and ``err``.  The
program is imported once, so that what is timed is its work and not the start of an interpreter.
It uses nothing but the standard library.
"""

import contextlib
import importlib.metadata
import io
import json
import sys
import time
import traceback


def main():
    """Read command lines until there are no more."""
    name = sys.argv[1]
    answers = sys.stdout
    (found,) = importlib.metadata.entry_points(group="console_scripts", name=name)
    program = found.load()
    for line in sys.stdin:
        asked = json.loads(line)
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        given = sys.stdin
        sys.argv = [name, *asked["words"]]
        sys.stdin = io.TextIOWrapper(io.BytesIO(asked.get("stdin", "").encode()), "utf-8")
        code = 0
        began = time.perf_counter()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = program() or 0
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            except Exception:
                code = 70
                traceback.print_exc()
        seconds = time.perf_counter() - began
        sys.stdin = given
        text = [stream.flush() or stream.buffer.getvalue().decode() for stream in (out, err)]
        said = {"code": code, "seconds": seconds, "out": text[0], "err": text[1]}
        print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main()
