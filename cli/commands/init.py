"""remem init: make a store, and say where it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli.plain import one_line
from remem.objects import format as fmt
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from remem.cli.context import Context

IGNORE_FILE = ".gitignore"
IGNORE_ALL = "*\n"
_ACCEPTED = {
    "nothing": "a store that was there is accepted now",
    "other": "it is another store than the one that you accepted there, and is accepted now",
}


def run(context: Context, *, here: bool, key_passphrase: bool) -> int:
    """Make the store, or say that it is there already; protect it where that was asked for."""
    from remem.cli import places
    from remem.cli.context import MIB, here_file
    from remem.objects.store import Store

    root = context.root
    brought: list[str] = []
    if here:
        if context.settings.origin("store")[1] == "option":
            raise UsageError("give either --store or --here, not both")
        root, brought = places.place(context.folder, here_file(context.settings))
        for path in brought:
            context.note(f"git tracks '{path}': it is left alone")
    existed = os.path.exists(os.path.join(root, fmt.FORMAT_FILE))
    map_mib = context.settings.number("disk.map_mib")
    passphrase = None
    if key_passphrase:  # asked for first: where nobody can answer, nothing is made
        from remem.cli.commands import owner

        passphrase = owner.new_passphrase(Store(root) if existed else None, context.actor())
    store = Store.create(
        root,
        map_b=map_mib * MIB if map_mib else None,
        max_map_b=context.settings.number("disk.max_map_gib") << 30,
        allow_network=context.settings.flag("disk.allow_network_fs"),
    )
    verifier = None
    try:
        store.env().info()  # a store that is there must also open
        if passphrase is not None:
            verifier = owner.make_key(store, context.actor(), passphrase)
        if here:
            said = places.accept(store, here_file(context.settings), instead_of=brought)
            if existed and said in _ACCEPTED:
                context.note(_ACCEPTED[said])
    finally:
        store.close()
    if here:
        if os.path.basename(root) == places.HERE:
            _keep_out_of_git(root)
        if origin_of(context) and os.path.realpath(context.root) != os.path.realpath(root):
            origin = origin_of(context)
            context.note(f"commands here use '{context.root}' instead, as {origin} says")
    if context.json:
        value = {"store": root, "created": not existed, "format": fmt.FORMAT_VERSION}
        context.emit({**value, "verifier": verifier} if key_passphrase else value)
    else:
        said = "the store is there already" if existed else "made the store"
        context.out(f"{said}: {one_line(root)}")
        if verifier is not None:
            owner.say_protected(context, verifier)
    return 0


def origin_of(context: Context) -> str:
    """What stands above the nearest .remem: the variable that names another store, or nothing."""
    origin = context.settings.origin("store")[1]
    return origin if origin.startswith("$") else ""


def _keep_out_of_git(root: str) -> None:
    """Let git see nothing of the folder, without touching the repository's own files."""
    path = os.path.join(root, IGNORE_FILE)
    if not os.path.exists(path):
        fmt.write_file(path, IGNORE_ALL)
