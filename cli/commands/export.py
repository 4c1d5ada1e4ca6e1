"""remem export: write a pack of what is visible, to a new file or to standard output."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from remem.cli.commands.status import human
from remem.cli.plain import one_line
from remem.cli.reading import known_scope
from remem.objects.errors import UsageError
from remem.objects.format import sync_folder

if TYPE_CHECKING:
    from typing import BinaryIO

    from remem.cli.context import Context
    from remem.objects.pack_write import Exported


def run(
    context: Context, *, path: str, all_scopes: bool, all_collections: bool, force: bool
) -> int:
    """Write the pack and say on the other channel what it holds."""
    if path == "-":
        if context.json:
            raise UsageError("the pack goes to standard output, so there is no --json")
        done = _write(context, context.stdout, all_scopes, all_collections)
        context.detail(_said(done))
        return 0
    if os.path.isdir(path):
        raise UsageError(f"'{path}' is a folder")
    if os.path.islink(path):  # it may lead anywhere, whoever put it there
        raise UsageError(f"'{path}' is a symbolic link", hint="name the file itself")
    if os.path.lexists(path) and not force:
        raise UsageError(f"'{path}' exists", hint="--force replaces it")
    done = _to_file(context, path, all_scopes, all_collections, force)
    if context.json:
        context.emit({"path": os.path.abspath(path), **msgspec.structs.asdict(done)})
    else:
        context.out(f"wrote {one_line(path)}: {_said(done)}")
    return 0


def _to_file(
    context: Context, path: str, all_scopes: bool, all_collections: bool, force: bool
) -> Exported:
    """Write beside the file (0600) and give it its name when it is whole."""
    folder, name = os.path.split(os.path.abspath(path))
    path = os.path.join(os.path.realpath(folder), name)
    if os.path.lexists(path) and not os.path.isfile(path):
        raise UsageError(f"'{path}' is not a regular file", hint="write to '-' and redirect it")
    building = f"{path}.{os.getpid()}.part"
    handle = os.open(building, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            done = _write(context, file, all_scopes, all_collections)
            file.flush()
            os.fsync(file.fileno())
        if force:
            os.replace(building, path)
        else:
            try:
                os.link(building, path)  # unlike a rename it never replaces
            except FileExistsError as error:
                raise UsageError(f"'{path}' exists", hint="--force replaces it") from error
        sync_folder(os.path.dirname(path))
    finally:
        if os.path.exists(building):
            os.unlink(building)
    return done


def _write(context: Context, out: BinaryIO, all_scopes: bool, all_collections: bool) -> Exported:
    from remem.objects.pack_write import export

    store = context.store(readonly=True)
    grant = context.grant(all_collections=all_collections)
    if not all_scopes:
        known_scope(context, store, all_collections=all_collections)
    return export(store, grant, out, all_scopes=all_scopes)


def _said(done: Exported) -> str:
    gone = f", {done.gone:,} forgotten" if done.gone else ""
    return (
        f"{done.objects:,} objects and {done.changes:,} changes of {done.scopes:,} scopes{gone}, "
        f"{human(done.bytes)}"
    )
