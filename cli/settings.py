"""Settings: option, environment, the store's config.toml, the user's config.toml, default.

A file that does not parse, or holds a key or a value that is not known, is an error that names the
place: nothing falls back in silence.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.objects.errors import BadConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Value = str | int | float | bool


class Setting:
    """One setting: dotted key, default, help; a number lies between two others."""

    __slots__ = ("choices", "default", "help", "key", "least", "most", "prefixes")

    def __init__(
        self,
        key: str,
        default: Value | None,
        help: str,
        choices: tuple[str, ...] = (),
        prefixes: tuple[str, ...] = (),
        *,
        least: int = 0,
        most: int = 1 << 31,
    ) -> None:
        """The type is that of the default; a None default means text."""
        self.least = least
        self.most = most
        self.prefixes = prefixes
        self.key = key
        self.default = default
        self.help = help
        self.choices = choices

    @property
    def env(self) -> str:
        """Environment variable of the setting."""
        return "REMEM_" + self.key.upper().replace(".", "_").replace("-", "_")


SETTINGS = (
    Setting("store", None, "folder of the store"),
    Setting("tenant", "local", "tenant of the scope"),
    Setting("profile", "default", "profile of the scope"),
    Setting("collection", None, "collection of the scope; default: the project"),
    Setting("agent", "none", "agent of the scope"),
    Setting("session", "main", "session of the scope"),
    Setting("as", "owner", "principal who acts"),
    Setting("json", False, "print JSON"),
    Setting("quiet", False, "print results only"),
    Setting("verbose", False, "say more on stderr"),
    Setting("no_color", False, "never colour"),
    Setting("admission.max_mib", 16, "largest text taken, MiB", least=1, most=1 << 20),
    Setting(
        "embedder",
        "auto",
        "auto, none, hash, minilm, onnx:FOLDER or openai:URL#MODEL",
        ("auto", "none", "hash", "minilm"),
        ("onnx:", "openai:"),
    ),
    Setting(
        "reranker",
        "none",
        "none, msmarco or onnx:FOLDER: reads the best finds again",
        ("none", "msmarco"),
        ("onnx:",),
    ),
    Setting("embedder_key", "", "key of the embedding endpoint"),
    Setting(
        "recall.mode", "hybrid", "how recall ranks by default", ("hybrid", "lexical", "vector")
    ),
    Setting("recall.limit", 10, "hits of a recall", least=1, most=10_000),
    Setting("context.budget", 4000, "characters of a context", least=1),
    Setting("tiers.short_days", 8, "days that a short note is kept", least=1, most=36_500),
    Setting("review.attempts", 3, "how often an operation of a draft may be proposed", least=1),
    Setting("derive.deriver", "ledger,rules", "derivers that run, in order; none: no deriver"),
    Setting("facts.single", "", "predicates with one value at a time, or COLLECTION:PREDICATE"),
    Setting("facts.multi", "", "predicates with many values at a time, or COLLECTION:PREDICATE"),
    Setting("warm.auto", False, "start the resident process with the first question"),
    Setting("warm.idle", 30, "idle minutes after which it ends"),
    Setting("disk.map_mib", 0, "first size of the memory map, MiB; 0: chosen"),
    Setting(
        "disk.max_map_gib",
        4096,
        "the memory map never grows beyond this, GiB",
        least=1,
        most=1 << 16,
    ),
    Setting("disk.allow_network_fs", False, "use a store on a network file system all the same"),
)
BY_KEY = {s.key: s for s in SETTINGS}
SECRETS = frozenset(("embedder_key",))  # never printed


class Settings:
    """The settings in force and where each comes from."""

    def __init__(self, given: Mapping[str, object], environ: Mapping[str, str]) -> None:
        """Take the options given on the command line and the environment."""
        self._given = {("as" if k == "principal_name" else k): v for k, v in given.items()}
        self._environ = environ
        self._files: list[tuple[str, dict[str, Value]]] = []
        self._user_read = False
        self._store_file: str | None = None

    @property
    def user_file(self) -> str:
        """Path of the user's settings file."""
        base = self._environ.get("XDG_CONFIG_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(home(self._environ), ".config")
        return os.path.join(base, "remem", "config.toml")

    def use_store(self, root: str, *, found: bool = False) -> None:
        """Read the store's own settings file, which stands above the user's.

        Args:
            root: folder of the store.
            found: it was found in a folder above, not named by the user; a cloned repository can
                bring such a store, so it may not send anything anywhere or loosen a guard.

        Raises:
            BadConfig: the file does not parse, or sets what it may not.
        """
        path = os.path.join(root, "config.toml")
        if self._store_file != path:
            self._store_file = path
            self._files = [f for f in self._files if f[0] == self.user_file]
            values = read_file(path)
            barred = sorted(key for key in values if found and is_guarded(key))
            if barred:
                raise BadConfig(
                    f"'{path}' may not set '{barred[0]}': the store was found, not named",
                    hint="set it in your own settings (--user), or name the store with --store",
                )
            if values:
                self._files.insert(0, (path, values))

    def get(self, key: str) -> Value | None:
        """Value of a setting."""
        return self.origin(key)[0]

    def text(self, key: str) -> str:
        """Value of a setting as text ("" when there is none)."""
        value = self.get(key)
        return "" if value is None else str(value)

    def number(self, key: str) -> int:
        """Value of a setting as a whole number."""
        return int(self.get(key) or 0)

    def flag(self, key: str) -> bool:
        """Value of a setting as yes or no."""
        return bool(self.get(key))

    def origin(self, key: str) -> tuple[Value | None, str]:
        """Value of a setting and where it comes from."""
        setting = BY_KEY[key]
        if key in self._given:
            value = self._given[key]
            assert isinstance(value, (str, int, bool))
            return value, "option"
        text = self._environ.get(setting.env)
        if text is not None and text != "":
            return convert(setting, text, f"${setting.env}"), f"${setting.env}"
        if key == "no_color" and self._environ.get("NO_COLOR"):
            return True, "$NO_COLOR"
        if not self._user_read:
            self._user_read = True
            values = read_file(self.user_file)
            if values:
                self._files.append((self.user_file, values))
        for path, values in self._files:
            if key in values:
                return values[key], path
        return setting.default, "default"


def is_guarded(key: str) -> bool:
    """Whether a setting decides where data goes or which guard holds."""
    return key in ("store", "as", "embedder", "embedder_key", "reranker") or key.startswith(
        ("disk.", "warm.")
    )


def home(environ: Mapping[str, str]) -> str:
    """The user's home folder, from the environment or the user database."""
    return environ.get("HOME") or os.path.expanduser("~")


def convert(setting: Setting, value: object, where: str) -> Value:
    """A value as the setting's type.

    Raises:
        BadConfig: it does not fit; the message names where it stands.
    """
    kind = type(setting.default) if setting.default is not None else str
    if kind is bool and isinstance(value, str):
        low = value.lower()
        if low in ("1", "true", "yes", "on", "0", "false", "no", "off"):
            return low in ("1", "true", "yes", "on")
    elif kind is bool and isinstance(value, bool):
        return value
    elif kind is int and not isinstance(value, bool):
        try:
            number = int(str(value))
        except ValueError:
            number = -1
        if setting.least <= number <= setting.most:
            return number
    elif kind is str and isinstance(value, (str, int, float)):
        text = str(value)
        named = text in setting.choices or text.startswith(setting.prefixes or ("\0",))
        if named or not (setting.choices or setting.prefixes):
            return text
    forms = [*setting.choices, *(f"{prefix}..." for prefix in setting.prefixes)]
    between = f"a whole number from {setting.least:,} to {setting.most:,}"
    wanted = {"bool": "true or false", "int": between}.get(
        kind.__name__, "one of " + ", ".join(forms) if forms else "text"
    )
    shown = "what it is" if setting.key in SECRETS else f"'{value}'"
    raise BadConfig(f"{where}: '{setting.key}' must be {wanted}, not {shown}")


def read_file(path: str) -> dict[str, Value]:
    """Settings of a file by dotted key; an absent file has none.

    Raises:
        BadConfig: it does not parse, or holds what is not known.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise BadConfig(f"cannot read '{path}': {error.strerror}") from error
    import tomllib

    try:
        tree = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(f"'{path}' does not parse: {error}", hint="mend that line") from error
    found: dict[str, Value] = {}
    for key, value in _flatten(tree, ""):
        setting = BY_KEY.get(key)
        if setting is None:
            raise BadConfig(
                f"'{path}' has the unknown setting '{key}'",
                hint="'remem config list' shows the settings that there are",
            )
        found[key] = convert(setting, value, f"'{path}'")
    return found


def _flatten(tree: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in tree.items():
        key = prefix + name
        if isinstance(value, dict) and key not in BY_KEY:
            yield from _flatten(value, key + ".")
        else:
            yield key, value
