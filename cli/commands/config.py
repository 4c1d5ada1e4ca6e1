"""remem config: read and change settings.

The store's config.toml stands above the user's.  A change keeps comments and order, is checked
before it is written, and replaces the file as a whole.
"""

from __future__ import annotations

import os
import tomllib
from typing import TYPE_CHECKING

from remem.cli.plain import one_line
from remem.cli.render import table
from remem.cli.settings import BY_KEY, SECRETS, SETTINGS, Setting, convert
from remem.objects import format as fmt
from remem.objects.errors import BadConfig, NotFound, UsageError
from remem.objects.lock import hold
from remem.objects.scope import check_name

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

    from remem.cli.context import Context
    from remem.cli.settings import Value

ACTIONS = ("list", "get", "set", "unset", "path")
NAMES = frozenset(("tenant", "profile", "collection", "agent", "session"))
_LOCK_WAIT_S = 10.0


def run(
    context: Context, *, action: str, key: str | None, value: str | None, origin: bool, user: bool
) -> int:
    """Carry out one of list, get, set, unset, path."""
    if action not in ACTIONS:
        raise UsageError(f"'{action}' is no action", hint="one of " + ", ".join(ACTIONS))
    wanted = {"list": 0, "path": 0, "get": 1, "unset": 1, "set": 2}[action]
    if wanted != (key is not None) + (value is not None):
        raise UsageError(f"'config {action}' takes {('nothing', 'KEY', 'KEY VALUE')[wanted]}")
    if action == "list":
        return _list(context, origin)
    if action == "path":
        return _path(context, user)
    assert key is not None
    if action == "get":
        return _get(context, key, origin)
    return _change(context, key, value, user=user)


# -- reading ------------------------------------------------------------------------------------


def in_force(context: Context, setting: Setting) -> tuple[Value | None, str]:
    """Value of a setting as this command sees it, and where it comes from."""
    root = context.own_root  # the store's own file takes part
    value, origin = context.settings.origin(setting.key)
    if setting.key == "collection":
        return context.collection()
    if setting.key == "store":
        return root, origin if value else "default"
    return value, origin


def _known(key: str) -> Setting:
    setting = BY_KEY.get(key)
    if setting is None:
        raise UsageError(
            f"'{key}' is no setting", hint="'remem config list' shows the settings that there are"
        )
    return setting


def _list(context: Context, origin: bool) -> int:
    found = [(setting, *in_force(context, setting)) for setting in SETTINGS]
    hidden = {s.key: "(set)" for s, value, _ in found if s.key in SECRETS and value}
    if context.json:
        context.emit(
            [
                {"key": s.key, "value": hidden.get(s.key, value), "origin": place, "help": s.help}
                for s, value, place in found
            ]
        )
        return 0
    rows = []
    for setting, value, place in found:
        row = [setting.key, hidden.get(setting.key) or shown(value)]
        rows.append([*row, one_line(place)] if origin else row)
    table(context, ("setting", "value", "origin")[: 3 if origin else 2], rows, fold=True)
    return 0


def _get(context: Context, key: str, origin: bool) -> int:
    value, place = in_force(context, _known(key))
    if key in SECRETS and context.bound is not None:
        raise context.refused(f"'{context.principal()}' may not see '{key}'", "not_owner")
    if context.json:
        context.emit({"key": key, "value": value, "origin": place})
    elif value is not None:
        context.out(shown(value) + (f"  {one_line(place)}" if origin else ""))
    return 0 if value is not None else NotFound.exit_code


def shown(value: Value | None) -> str:
    """A value as people and configuration files write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else one_line(str(value))


def _path(context: Context, user: bool) -> int:
    path = _file(context, user=user)
    if context.json:
        context.emit({"path": path, "exists": os.path.exists(path)})
    else:
        context.out(one_line(path))
    return 0


# -- changing -----------------------------------------------------------------------------------


def _file(context: Context, *, user: bool) -> str:
    """The file to change; one that does not parse is no hindrance to naming it."""
    for _ in range(2):
        try:
            return context.settings.user_file if user else os.path.join(context.root, "config.toml")
        except BadConfig:
            continue  # each file is read once; what it says was not taken
    raise AssertionError("the settings are read twice at most")


def _change(context: Context, key: str, value: str | None, *, user: bool) -> int:
    path = _file(context, user=user)
    if value is not None:
        setting = _known(key)
        if key == "store" and not user:
            raise UsageError(
                "the store's own file cannot say where the store is",
                hint=f"remem config set --user store {value}",
            )
        kept: Value | None = convert(setting, value, "cannot set it")
        if key in NAMES:
            kept = check_name(key, value)
    else:
        kept = None
    if user:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        changed = _rewrite(path, key, kept)
    else:
        fmt.check_format(root := context.own_root)
        with hold(os.path.join(root, fmt.LOCKS), "config", wait_s=_LOCK_WAIT_S):
            changed = _rewrite(path, key, kept)
    if not changed and kept is None:
        raise NotFound(f"'{path}' does not set '{key}'")
    _say(context, key, kept, path)
    return 0


def _say(context: Context, key: str, kept: Value | None, path: str) -> None:
    try:
        as_json = context.json
    except BadConfig:
        as_json = context.json  # a file is read once: the second time it counts as absent
    if as_json:
        context.emit({"key": key, "value": kept, "path": path})
        return
    above = os.environ.get(BY_KEY[key].env) if key in BY_KEY else None
    if above:
        context.note(f"${BY_KEY[key].env} is set and stands above '{path}'")


def _rewrite(path: str, key: str, value: Value | None) -> bool:
    """Set (or with None: take out) one key of a file; True when the file was changed.

    Raises:
        BadConfig: the file does not parse, or would not afterwards.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    path = os.path.realpath(path)  # a linked file stays one
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        text = ""
    except UnicodeDecodeError as error:
        raise BadConfig(f"'{path}' is not UTF-8 (byte {error.start})") from error
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise BadConfig(f"'{path}' does not parse: {error}", hint="mend that line") from error
    changed = _remove(document, key) if value is None else _put(document, key, value, path)
    if not changed:
        return False
    written = tomlkit.dumps(document)
    try:
        tomllib.loads(written)
    except tomllib.TOMLDecodeError as error:
        raise BadConfig(f"'{key}' cannot be set in '{path}': {error}") from error
    fmt.write_file(path, written)
    return True


def _put(document: TOMLDocument, key: str, value: Value, path: str) -> bool:
    import tomlkit

    if key in document and not isinstance(document[key], dict):
        document[key] = value
        return True
    head, _, tail = key.partition(".")
    if not tail:
        if key in document:
            raise BadConfig(
                f"'{path}' has a table '{key}', so it cannot set '{key}' itself",
                hint=f'write the settings of that table as "{key}.NAME" = ... instead',
            )
        document[key] = value
        return True
    if head not in document:
        document[head] = tomlkit.table()
    section = document.get(head)
    if not isinstance(section, dict):
        raise BadConfig(f"'{path}' has a value '{head}', so it cannot hold '{key}'")
    section[tail] = value
    return True


def _remove(document: TOMLDocument, key: str) -> bool:
    if key in document and not isinstance(document[key], dict):
        del document[key]
        return True
    head, _, tail = key.partition(".")
    section = document.get(head)
    if tail and isinstance(section, dict) and tail in section:
        del section[tail]
        return True
    return False
