"""Commands that say who may do what, and decide on what waits."""

from __future__ import annotations

from remem.cli.options import ALL_COLLECTIONS, LIST, REASON, TEXT, Arg, Command, Opt

COMMANDS: tuple[Command, ...] = (
    Command(
        "principal",
        "principal:run",
        "let others read and write here: make, list and end them",
        args=(
            Arg("action", "ACTION", "1", "add, list, revoke or token"),
            Arg("name", "NAME", "?", "the principal"),
        ),
        opts=(
            Opt("--scope", "where it may act (the present collection)", TEXT, "PATTERN"),
            Opt("--can", "read, write, propose, review (read)", LIST, "WHAT"),
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "review",
        "review:run",
        "decide on what waits, one thing at a time",
        opts=(ALL_COLLECTIONS,),
        exits=(0, 2, 3, 5),
    ),
    Command(
        "draft",
        "draft:run",
        "list and show drafts; approve, deny or propose again an operation",
        args=(
            Arg("action", "ACTION", "1", "list, show, approve, deny or resubmit"),
            Arg("id", "ID", "?", "the draft"),
            Arg("numbers", "OP", "*", "numbers of its operations (all that wait)"),
        ),
        opts=(
            Opt("--critique", "deny: why", TEXT, "TEXT"),
            Opt("--text", "approve, resubmit: the claim in these words", TEXT, "TEXT"),
            Opt("--all", "list: those that were decided on, too", name="everything"),
            ALL_COLLECTIONS,
        ),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "quarantine",
        "quarantine:run",
        "list what is held back; release or reject it",
        args=(
            Arg("action", "ACTION", "1", "list, release or reject"),
            Arg("ids", "ID", "*", "ids or unique prefixes"),
        ),
        opts=(REASON, ALL_COLLECTIONS),
        exits=(0, 1, 2, 3, 5),
    ),
    Command(
        "owner",
        "owner:run",
        "protect decisions with a passphrase that signs them",
        args=(Arg("action", "ACTION", "1", "protect, status, passphrase or unprotect"),),
        exits=(0, 2, 3, 4, 5),
    ),
)
