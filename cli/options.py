"""What the rows of the command table are made of: commands, arguments, options.

It imports nothing, since every start reads it.
"""

from __future__ import annotations

FLAG, TEXT, INT, LIST, CHOICE = "flag", "text", "int", "list", "choice"
PORCELAIN, PLUMBING = "porcelain", "plumbing"


class Opt:
    """One option: flags ("--limit", "-n"), type, default, help and, where it is one, choices."""

    __slots__ = ("choices", "default", "flags", "help", "kind", "metavar", "name")

    def __init__(
        self,
        flags: str,
        help: str,
        kind: str = FLAG,
        metavar: str = "",
        default: object = None,
        choices: tuple[str, ...] = (),
        name: str = "",
    ) -> None:
        """Take the flags as one string separated by spaces; the first long one names it."""
        self.flags = tuple(flags.split())
        self.help = help
        self.kind = kind
        self.metavar = metavar
        self.default = False if kind == FLAG else default
        self.choices = choices
        self.name = name or self.flags[0].lstrip("-").replace("-", "_")


class Arg:
    """One positional argument; nargs is "1", "?", "*" or "+"."""

    __slots__ = ("help", "metavar", "name", "nargs")

    def __init__(self, name: str, metavar: str, nargs: str, help: str) -> None:
        """Name (of the parameter), shown name, how many, help."""
        self.name = name
        self.metavar = metavar
        self.nargs = nargs
        self.help = help


class Command:
    """One command; target is "module:function" under remem.cli.commands."""

    __slots__ = ("args", "exits", "kind", "name", "opts", "summary", "target")

    def __init__(
        self,
        name: str,
        target: str,
        summary: str,
        args: tuple[Arg, ...] = (),
        opts: tuple[Opt, ...] = (),
        exits: tuple[int, ...] = (0, 2, 3, 5),
        kind: str = PORCELAIN,
    ) -> None:
        """See the class and remem(1)."""
        self.name = name
        self.target = target
        self.summary = summary
        self.args = args
        self.opts = opts
        self.exits = exits
        self.kind = kind


GLOBALS = (
    Opt("--store", "folder of the store", TEXT, "DIR"),
    Opt("--tenant", "tenant of the scope", TEXT, "NAME"),
    Opt("--profile", "profile of the scope", TEXT, "NAME"),
    Opt("--collection", "collection of the scope (default: this project)", TEXT, "NAME"),
    Opt("--agent", "agent of the scope", TEXT, "NAME"),
    Opt("--session", "session of the scope", TEXT, "NAME"),
    Opt("--as", "act as this principal", TEXT, "PRINCIPAL", name="principal_name"),
    Opt("--json", "print one JSON value"),
    Opt("--quiet -q", "print results only, no notes"),
    Opt("--verbose -v", "say more on stderr"),
    Opt("--no-color", "never colour"),
)

ALL_COLLECTIONS = Opt("--all-collections", "every collection of this tenant and profile")
NUL = Opt("-z", "end each record with NUL instead of a line feed", name="nul")
LIMIT_20 = Opt("--limit -n", "at most N (20)", INT, "N", 20)
SINCE = Opt("--since", "not before T", TEXT, "T")
UNTIL = Opt("--until", "before T", TEXT, "T")
DRY_RUN = Opt("--dry-run", "say what would be done, change nothing")
AS_OF = Opt("--as-of", "what was true at T", TEXT, "T")
KNOWN_AT = Opt("--known-at", "what the store believed at T", TEXT, "T")
VIEW = Opt(
    "--view", "now, history or changes (now)", CHOICE, "VIEW", None, ("now", "history", "changes")
)
MODE = Opt(
    "--mode",
    "hybrid, lexical or vector (recall.mode)",
    CHOICE,
    "MODE",
    None,
    ("hybrid", "lexical", "vector"),
)
INCLUDE = Opt(
    "--include", "show what is held back with this STATUS too (may be repeated)", LIST, "STATUS"
)
KIND = Opt("--kind", "only this kind (may be repeated)", LIST, "KIND")
ROLE = Opt("--role", "who said it", CHOICE, "ROLE", None, ("user", "assistant", "tool", "system"))
ORIGIN = Opt(
    "--origin",
    "whose word it is (owner)",
    CHOICE,
    "ORIGIN",
    None,
    ("owner", "agent", "tool", "untrusted"),
)

IF_HEAD = Opt("--if-head", "only while its head is this one", TEXT, "ID")
REASON = Opt("--reason", "why, in one word", TEXT, "CODE")

IMPORT_FORMATS = (
    "jsonl",
    "text",
    "markdown",
    "git",
    "claude-code",
    "codex",
    "gemini",
    "chatgpt",
    "bash-history",
    "zsh-history",
    "fish-history",
    "atuin",
    "pack",
)
