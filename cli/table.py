"""Every command of remem in one table: name, arguments, options, exit codes, one-line help.

The fast parser, the full parser (typer), help, completion, the manual's test and the index of
commands all read this table.  It imports nothing, since every start reads it.
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
        exits: tuple[int, ...] = (0, 2, 5),
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
    "pack",
)

COMMANDS = (
    Command(
        "init",
        "init:run",
        "make a store",
        opts=(Opt("--here", "in .remem of this folder, for this folder and those below it"),),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "add",
        "add:run",
        "keep one piece of evidence; print its id",
        args=(Arg("text", "TEXT", "*", "what to keep, or - for standard input"),),
        opts=(
            Opt("--at", "when it was said", TEXT, "T"),
            ROLE,
            Opt("--speaker", "name of who said it", TEXT, "NAME"),
            ORIGIN,
            Opt("--source", "where it comes from", TEXT, "URI"),
            Opt("--source-id", "the source's own id of it; a repeat is known", TEXT, "ID"),
            Opt("--tool", "the tool that produced it", TEXT, "NAME"),
            Opt("--kind", "what sort of evidence it is", TEXT, "KIND"),
            Opt("--corrects", "what this corrects; it ends where this begins", TEXT, "ID"),
            Opt("--lines", "one piece a line of standard input"),
            Opt("--jsonl", "JSON lines from standard input, as 'import jsonl' takes them"),
            Opt("--file", "the whole of this file", TEXT, "PATH"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "fact",
        "fact:run",
        "state that something holds; what held before is replaced",
        args=(
            Arg("subject", "SUBJECT", "1", "who or what"),
            Arg("predicate", "PREDICATE", "1", "what of it, such as lives_in"),
            Arg("object", "OBJECT", "1", "the value"),
        ),
        opts=(
            Opt("--from", "when it began to hold (now)", TEXT, "T", name="start"),
            Opt("--to", "when it ceased to hold", TEXT, "T", name="end"),
            Opt("--text", "the sentence (default: the three parts)", TEXT, "TEXT"),
            Opt("--kind", "fact, preference, relation, ... (fact)", TEXT, "KIND"),
            Opt("--source-obs", "rests on this observation", TEXT, "ID"),
            Opt("--single", "one value at a time"),
            Opt("--multi", "many values at a time"),
            REASON,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "revise",
        "correcting:revise",
        "give something another text; the old one stays in its history",
        args=(
            Arg("id", "ID", "1", "id of the ref"),
            Arg("text", "TEXT", "+", "the new text, or - for standard input"),
        ),
        opts=(
            Opt("--at", "when the new text began to hold (now)", TEXT, "T"),
            IF_HEAD,
            REASON,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "rollback",
        "correcting:rollback",
        "make an earlier revision the head again",
        args=(Arg("id", "ID", "1", "id of the ref"),),
        opts=(
            Opt("--to", "this revision: an id, or a number of 'remem show'", TEXT, "REV"),
            IF_HEAD,
            REASON,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "close",
        "correcting:close",
        "end the validity of something at a date",
        args=(Arg("id", "ID", "1", "id of the ref"),),
        opts=(Opt("--at", "when it ceased to hold (now)", TEXT, "T"), IF_HEAD, REASON),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "reopen",
        "correcting:reopen",
        "take back a close",
        args=(Arg("id", "ID", "1", "id of the ref"),),
        opts=(IF_HEAD, REASON),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "undo",
        "correcting:undo",
        "reverse the last operation, or the one of an entry, by new entries",
        args=(Arg("seq", "SEQ", "?", "number of an entry of the log"),),
        opts=(DRY_RUN,),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "diff",
        "diff:run",
        "print what changed between two revisions or two instants",
        args=(
            Arg("a", "A", "?", "a ref or a revision"),
            Arg("b", "B", "?", "another (default: the head of A, or what came before it)"),
        ),
        opts=(
            Opt("--known-at", "two instants of what the store believed", TEXT, "K1..K2"),
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 5),
    ),
    Command(
        "about",
        "about:run",
        "print all facts on somebody or something, current ones first",
        args=(Arg("name", "NAME", "+", "a subject or object, or another name of it"),),
        opts=(VIEW, AS_OF, KNOWN_AT, ALL_COLLECTIONS),
        exits=(0, 1, 2, 5),
    ),
    Command(
        "alias",
        "alias:run",
        "list, add and remove other names of things",
        args=(
            Arg("action", "ACTION", "1", "list, add or rm"),
            Arg("name", "NAME", "?", "the other name"),
            Arg("canonical", "CANONICAL", "?", "add: the name that it stands for"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "derive",
        "derive_:run",
        "derive memories from evidence that waits",
        opts=(
            Opt("--rebuild", "look at all evidence again"),
            Opt("--deriver", "only this one (may be repeated)", LIST, "NAME"),
        ),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "jobs",
        "jobs:run",
        "list what waits to be derived, failed or was given up",
        args=(
            Arg("action", "ACTION", "?", "list (the default) or retry"),
            Arg("id", "ID", "?", "retry: the observation"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "eval",
        "eval_:run",
        "check questions against the answers that they must get",
        args=(Arg("file", "FILE", "1", "cases in TOML"),),
        opts=(MODE,),
        exits=(0, 1, 2, 5),
    ),
    Command(
        "import",
        "import_:run",
        "take in evidence in bulk; print a sum that adds up",
        args=(
            Arg("format", "FORMAT", "1", "one of " + ", ".join(IMPORT_FORMATS)),
            Arg("paths", "PATH", "+", "files, folders (git), or - for standard input"),
        ),
        opts=(
            DRY_RUN,
            SINCE,
            Opt("--no-index", "leave projecting to the next reader"),
            Opt("--trust", "pack: believe its verdicts, as when restoring your own"),
            Opt("--apply-tombstones", "pack: forget here what was forgotten there"),
        ),
        exits=(0, 1, 2, 3, 4, 5),
    ),
    Command(
        "recall",
        "recall:run",
        "find what bears on a question; print ranked, cited hits",
        args=(Arg("query", "QUERY", "*", "the question, in any words"),),
        opts=(
            Opt("--limit -n", "at most N hits (recall.limit, 10)", INT, "N"),
            MODE,
            VIEW,
            AS_OF,
            KNOWN_AT,
            KIND,
            ROLE,
            SINCE,
            UNTIL,
            ALL_COLLECTIONS,
            Opt("--why", "show the parts of each score"),
            Opt("--full", "whole texts instead of the best lines"),
            Opt("--batch", "JSON lines of queries from this file, or -", TEXT, "FILE"),
        ),
        exits=(0, 1, 2, 5),
    ),
    Command(
        "context",
        "context:run",
        "print a cited block for a prompt, inside a budget",
        args=(Arg("query", "QUERY", "+", "what the prompt is about"),),
        opts=(
            Opt("--budget", "at most N characters (4000)", INT, "N", None),
            Opt("--tokens", "at most N tokens (4 bytes each)", INT, "N", None),
            Opt("--no-evidence", "memories only"),
            Opt(
                "--format",
                "text, markdown or json (markdown)",
                CHOICE,
                "FORMAT",
                None,
                ("text", "markdown", "json"),
            ),
            MODE,
            VIEW,
            AS_OF,
            KNOWN_AT,
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 5),
    ),
    Command(
        "show",
        "show:run",
        "print an object with its head, status, times and citations",
        args=(Arg("ids", "ID", "+", "ids or unique prefixes"),),
        opts=(
            Opt("--rev", "its Nth revision, from 1", INT, "N"),
            Opt("--raw", "the bytes as they came in, nothing else"),
            AS_OF,
            KNOWN_AT,
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "log",
        "log:run",
        "print the life of one ref, or the latest operations",
        args=(Arg("id", "ID", "?", "id of the ref"),),
        opts=(
            Opt("--limit -n", "at most N (20; with an ID: all)", INT, "N"),
            SINCE,
            Opt("--op", "only this operation", TEXT, "OP"),
            AS_OF,
            KNOWN_AT,
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 5),
    ),
    Command(
        "why",
        "why:run",
        "print where something comes from and what was derived from it",
        args=(Arg("id", "ID", "1", "id of an observation or a memory"),),
        opts=(ALL_COLLECTIONS,),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "forget",
        "forget:run",
        "forget: gone from every view at once, its bytes at the next purge",
        args=(Arg("ids", "ID", "*", "ids or unique prefixes"),),
        opts=(
            Opt("--query", "all that holds every word of Q", TEXT, "Q"),
            Opt("--scope-all", "all of this scope"),
            Opt("--yes", "do not ask"),
            Opt("--reason", "reason code, kept in the tombstone", TEXT, "CODE"),
            Opt("--allow-return", "the same value may be stored again"),
            Opt("--now", "purge at once"),
            DRY_RUN,
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 3, 4, 5),
    ),
    Command(
        "purge",
        "purge:run",
        "remove the bytes of what was forgotten; prove that they are gone",
        args=(Arg("ids", "ID", "*", "only these, and what was derived from them"),),
        opts=(DRY_RUN, Opt("--yes", "do not ask"), ALL_COLLECTIONS),
        exits=(0, 1, 2, 3, 4, 5),
    ),
    Command(
        "tombstones",
        "tombstones:run",
        "print what was forgotten; lift: let its value come back",
        args=(
            Arg("action", "ACTION", "?", "list (default), lift or restore"),
            Arg("ids", "ID", "*", "ids of tombstones"),
        ),
        opts=(ALL_COLLECTIONS,),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "hold",
        "hold:run",
        "keep things from being forgotten and purged",
        args=(
            Arg("action", "ACTION", "1", "add, list or release"),
            Arg("ids", "ID", "*", "ids or unique prefixes"),
        ),
        opts=(
            Opt("--query", "all that holds every word of Q", TEXT, "Q"),
            Opt("--reason", "reason code", TEXT, "CODE"),
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "retain",
        "retain:run",
        "rules by which what is old expires or is forgotten",
        args=(
            Arg("action", "ACTION", "1", "set, list, run or unset"),
            Arg("number", "NUMBER", "?", "unset: number of the rule"),
        ),
        opts=(
            Opt("--type", "observation or memory", CHOICE, "TYPE", None, ("observation", "memory")),
            Opt("--kind", "of this kind", TEXT, "KIND"),
            Opt("--tier", "of this tier", TEXT, "TIER"),
            ROLE,
            Opt(
                "--origin",
                "whose word it is",
                CHOICE,
                "ORIGIN",
                None,
                ("owner", "agent", "tool", "untrusted"),
            ),
            Opt("--status", "of this status", TEXT, "STATUS"),
            Opt("--older-than", "at least so old: 90d, 12h, 2w, 1y", TEXT, "AGE"),
            Opt(
                "--action",
                "expire or forget",
                CHOICE,
                "ACTION",
                None,
                ("expire", "forget"),
                name="then",
            ),
            DRY_RUN,
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command("status", "status:run", "print counts, queues, lags and sizes", (), (ALL_COLLECTIONS,)),
    Command(
        "audit",
        "audit:run",
        "print rows of the audit chain, newest last",
        opts=(
            LIMIT_20,
            SINCE,
            Opt("--principal", "only rows of this principal", TEXT, "NAME"),
            Opt("--action", "only this action", TEXT, "ACTION"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "verify",
        "verify:run",
        "check chain, objects, refs and indexes; name all that does not match",
        opts=(
            Opt("--fast", "the audit chain only"),
            Opt("--objects", "chain, objects and refs, not the indexes"),
            Opt("--index", "the indexes only, every posting of them"),
        ),
        exits=(0, 2, 4, 5),
    ),
    Command("doctor", "doctor:run", "look for trouble around the store; print remedies"),
    Command(
        "reindex",
        "reindex:run",
        "build the indexes anew from the objects",
        opts=(
            Opt("--lexical", "the inverted index only"),
            Opt("--vectors", "the vectors only"),
        ),
    ),
    Command(
        "export",
        "export:run",
        "write a text pack of what is visible",
        args=(Arg("path", "PATH", "1", "file to make, or - for standard output"),),
        opts=(
            Opt("--all-scopes", "every scope of the store (owner)"),
            ALL_COLLECTIONS,
            Opt("--force", "replace an existing file"),
        ),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "backup",
        "backup:run",
        "copy the whole store while it is in use",
        args=(Arg("path", "PATH", "1", "folder to make"),),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "config",
        "config:run",
        "read and change settings",
        args=(
            Arg("action", "ACTION", "1", "list, get, set, unset or path"),
            Arg("key", "KEY", "?", "a setting"),
            Arg("value", "VALUE", "?", "its new value"),
        ),
        opts=(
            Opt("--origin", "say where each value comes from"),
            Opt("--user", "the user's file instead of the store's"),
        ),
        exits=(0, 1, 2, 5),
    ),
    Command(
        "demo",
        "demo:run",
        "show the tour on a real agent session, in a folder of its own",
        opts=(Opt("--keep", "keep the folder"),),
        exits=(0, 2, 4, 5),
    ),
    Command(
        "completion",
        "completion:run",
        "print the completion script of a shell",
        args=(
            Arg("shell", "SHELL", "1", "bash, zsh or fish"),
            Arg("word", "WORD", "?", "with --candidates: what they begin with"),
        ),
        opts=(
            Opt(
                "--candidates",
                "print what WORD may become (the scripts ask for it)",
                CHOICE,
                "WHAT",
                None,
                ("ids", "collections", "agents", "sessions"),
            ),
        ),
        exits=(0, 2),
    ),
    Command(
        "help",
        "help_:run",
        "show the manual page of a command",
        args=(Arg("command", "COMMAND", "?", "a command, or a topic of the manual"),),
        exits=(0, 1, 2),
    ),
    Command(
        "hash-object",
        "plumbing:hash_object",
        "print the id that a text has here; -w stores it",
        args=(Arg("path", "PATH", "1", "a file, or -"),),
        opts=(Opt("-w", "store it", name="write"), NUL),
        kind=PLUMBING,
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "cat-object",
        "plumbing:cat_object",
        "print one object",
        args=(Arg("id", "ID", "1", "id of the object"),),
        opts=(
            Opt("--raw", "its text as it came in"),
            Opt("--type", "its type"),
            Opt("--size", "its size as stored, in bytes"),
            Opt("--bytes", "its stored bytes, whose BLAKE3-256 is the id"),
            ALL_COLLECTIONS,
        ),
        kind=PLUMBING,
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "ls-refs",
        "plumbing:ls_refs",
        "print every current ref: id, type, status, head",
        opts=(
            Opt("--all", "closed, superseded and withheld ones too", name="everything"),
            NUL,
            ALL_COLLECTIONS,
        ),
        kind=PLUMBING,
    ),
    Command(
        "rev-parse",
        "plumbing:rev_parse",
        "print the full id of a name",
        args=(Arg("name", "NAME", "1", "an id, a prefix or @{last}"),),
        opts=(NUL, ALL_COLLECTIONS),
        kind=PLUMBING,
        exits=(0, 1, 2, 5),
    ),
    Command(
        "project",
        "plumbing:project",
        "bring the indexes up to the ref log",
        kind=PLUMBING,
    ),
    Command(
        "count-objects",
        "plumbing:count_objects",
        "print how many objects there are and their size",
        opts=(NUL, ALL_COLLECTIONS),
        kind=PLUMBING,
    ),
)


def find(name: str) -> Command | None:
    """The command of this name, or None."""
    for command in COMMANDS:
        if command.name == name:
            return command
    return None
