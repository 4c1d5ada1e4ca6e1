"""Commands that capture, schedule and serve."""

from __future__ import annotations

from remem.cli.options import DRY_RUN, INT, PLUMBING, TEXT, Arg, Command, Opt

COMMANDS: tuple[Command, ...] = (
    Command(
        "consolidate",
        "consolidate:run",
        "look after the store: drain, derive, expire, purge, deduplicate, draft",
        opts=(
            DRY_RUN,
            Opt("--drain-only", "take in what hooks left, and nothing else"),
            Opt("--budget-seconds", "stop after about N seconds", INT, "N"),
            Opt("--cron", "as a job of cron: log it, print only what a person must do"),
        ),
        exits=(0, 2, 3, 4, 5),
    ),
    Command(
        "hook",
        "hook:run",
        "install, remove, show or print what captures by itself",
        args=(
            Arg("action", "ACTION", "1", "install, uninstall, status or print"),
            Arg("target", "TARGET", "?", "shell, git, claude, cron; of print: also a shell, codex"),
        ),
        opts=(
            Opt("--bash", "the hook of bash"),
            Opt("--zsh", "the hook of zsh"),
            Opt("--fish", "the hook of fish"),
            Opt("--global", "git: for all repositories of this user", name="everywhere"),
            Opt("--project", "claude: for this project instead of this user"),
            Opt("--with-context", "claude: cited context for each prompt, too"),
            DRY_RUN,
        ),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "hook-event",
        "hook_event:run",
        "take an event that a hook of another program hands over",
        args=(
            Arg("program", "PROGRAM", "1", "whose hook calls: claude"),
            Arg("event", "EVENT", "1", "what happened, such as session-start"),
        ),
        exits=(0, 2),
        kind=PLUMBING,
    ),
    Command(
        "mcp",
        "mcp:run",
        "serve tools to an agent over standard input and output (MCP)",
        opts=(
            Opt("--principal", "act as this principal of the store (mcp)", TEXT, "NAME"),
            Opt("--read-only", "only tools that change nothing"),
        ),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "warm",
        "warm:run",
        "keep program, model and indexes loaded for faster questions",
        opts=(
            Opt("--idle", "minutes without a question after which it ends (warm.idle)", INT, "N"),
            Opt("--stop", "end it"),
            Opt("--status", "say how it is; start nothing"),
            Opt("--foreground", "be it, instead of starting it in the background"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
)
