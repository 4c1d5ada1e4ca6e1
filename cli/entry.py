"""Front door: the fastest answer that is right.

``--version`` needs nothing.  A question goes to the resident process, where there is one.  A
well-formed command line is read by the small parser of the command table; every other one (help,
mistakes, completion) goes to typer, which reads the same table.
"""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if "--version" in words[: words.index("--") if "--" in words else None]:
        from remem import __version__

        try:
            if sys.stdout is not None:
                sys.stdout.write(f"remem {__version__}\n")
                sys.stdout.flush()
            return 0
        except OSError:
            from remem.cli.run import guarded, print_version

            return guarded(print_version, words)
    if "recall" in words or "context" in words:
        from remem.cli.warmed import try_run

        code = try_run(words)
        if code is not None:
            return code
    from remem.cli.run import guarded, run_parsed

    return guarded(run_parsed, words)


def script() -> None:
    """Console script: leave with the exit status, without the interpreter's own farewell."""
    sys.exit(main())


if __name__ == "__main__":
    script()
