"""remem completion: the script by which a shell completes commands, options and their values.

All of it comes from the table of commands.  Only ids and names of scopes are asked of the program
when the key is pressed (``--candidates``): the ids that begin with what was typed, found by a range
scan, so the time does not grow with the store.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from remem.cli import table
from remem.cli.settings import SETTINGS
from remem.objects.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remem.cli.context import Context
    from remem.cli.table import Arg, Command, Opt
    from remem.objects.reader import Part, Reader

SHELLS = ("bash", "zsh", "fish")
TEMPLATES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "data", "completion")
DIGITS = 12  # of an id that is offered
MOST = 50  # candidates
LATEST = 20  # ids that are offered when nothing was typed
ASKED = ("ids", "collections", "agents", "sessions")
FILES, FOLDERS, TEXT = "files", "folders", "text"
EVERYWHERE = 99  # a place that no argument reaches

_BY_METAVAR = {"ID": "ids", "PATH": FILES, "FILE": FILES, "DIR": FOLDERS}
_BY_OPTION = {"--collection": "collections", "--agent": "agents", "--session": "sessions"}
_FREE = frozenset(("--source-id",))  # an id of something else


def run(context: Context, *, shell: str, word: str | None, candidates: str | None) -> int:
    """Print the script of a shell, or what a word may become."""
    if shell not in SHELLS:
        raise UsageError(f"'{shell}' is no shell", hint="one of " + ", ".join(SHELLS))
    if candidates is not None:
        return _answer(context, candidates, word or "")
    if word is not None:
        raise UsageError("WORD belongs to --candidates")
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()
    if context.json:
        context.emit({"shell": shell, "script": script})
    else:
        context.out(script.rstrip("\n"))
    return 0


# -- what the table says ------------------------------------------------------------------------


def value_of(opt: Opt) -> str:
    """What the value of an option is: "" for none, a name of ASKED, FILES, ... or its choices."""
    if opt.kind == table.FLAG:
        return ""
    if opt.choices:
        return " ".join(opt.choices)
    if opt.flags[0] in _FREE:
        return TEXT
    return _BY_OPTION.get(opt.flags[0]) or _BY_METAVAR.get(opt.metavar, TEXT)


def place_of(command: Command, arg: Arg) -> str:
    """What an argument is, as for `value_of`."""
    choices = {
        ("import", "format"): " ".join(table.IMPORT_FORMATS),
        ("completion", "shell"): " ".join(SHELLS),
        ("config", "action"): "list get set unset path",
        ("hook", "action"): "install uninstall status print",
        ("hook", "target"): "shell bash zsh fish",
        ("config", "key"): " ".join(s.key for s in SETTINGS),
        ("help", "command"): " ".join(c.name for c in table.COMMANDS),
        ("rev-parse", "name"): "ids",
    }.get((command.name, arg.name))
    return choices or _BY_METAVAR.get(arg.metavar, TEXT)


def places(command: Command) -> Iterator[tuple[int, int, Arg]]:
    """(first, last) place of each argument, from 0; one that may be repeated reaches EVERYWHERE."""
    for number, arg in enumerate(command.args):
        yield number, EVERYWHERE if arg.nargs in "*+" else number, arg


# -- bash ---------------------------------------------------------------------------------------


def _bash() -> str:
    options = [(f"*:{flag}", value_of(o)) for o in table.GLOBALS for flag in o.flags]
    options += [
        (f"{c.name}:{flag}", value_of(o))
        for c in table.COMMANDS
        for o in c.opts
        for flag in o.flags
    ]
    arguments = [
        (f"{c.name}:{'*' if last == EVERYWHERE else first}", place_of(c, arg))
        for c in table.COMMANDS
        for first, last, arg in places(c)
    ]
    return _filled(
        "bash",
        OPTIONS=_bash_case("want", [(p, w) for p, w in options if w]),
        ARGUMENTS=_bash_case("want", [(p, w) for p, w in arguments if w != TEXT]),
        OPTIONS_OF=_bash_case(
            "words", [(c.name, _flags(c.opts)) for c in table.COMMANDS if c.opts]
        ),
        GLOBALS=_flags(table.GLOBALS) + " --help --version",
        COMMANDS=" ".join(c.name for c in table.COMMANDS),
    )


def _bash_case(name: str, pairs: list[tuple[str, str]]) -> str:
    """Lines of a case statement; patterns with the same value share one.

    The first that fits counts, so those that take any place (``import:*``) come last.
    """
    together: dict[tuple[bool, str], list[str]] = {}
    for pattern, value in pairs:
        together.setdefault((pattern.endswith(":*"), value), []).append(pattern)
    return "\n".join(
        f"    {' | '.join(patterns)}) {name}={_quoted(value)} ;;"
        for (_, value), patterns in sorted(together.items(), key=lambda item: item[0][0])
    )


def _flags(opts: tuple[Opt, ...]) -> str:
    return " ".join(flag for opt in opts for flag in opt.flags)


def _quoted(text: str) -> str:
    """A text as bash and zsh take it in single quotes."""
    return "'" + text.replace("'", "'\\''") + "'"


# -- zsh ----------------------------------------------------------------------------------------


def _zsh() -> str:
    commands = "\n".join(f"        {_quoted(f'{c.name}:{c.summary}')}" for c in table.COMMANDS)
    own = "\n".join(f"        {spec}" for opt in table.GLOBALS for spec in _zsh_specs(opt))
    cases = []
    for command in table.COMMANDS:
        specs = [spec for opt in command.opts for spec in _zsh_specs(opt)]
        for first, last, arg in places(command):
            kind = place_of(command, arg)
            action = "_remem_nothing" if kind == TEXT else _zsh_value(kind)
            place = "*" if last == EVERYWHERE else f"{first + 1}"
            optional = ":" if arg.nargs == "?" else ""
            specs.append(_quoted(f"{place}:{optional}{arg.metavar}:{action}"))
        lines = " \\\n            ".join(["_arguments -s $globals", *specs])
        cases.append(f"    ({command.name})\n        {lines}\n        ;;")
    return _filled("zsh", COMMANDS=commands, GLOBALS=own, CASES="\n".join(cases))


def _zsh_specs(opt: Opt) -> Iterator[str]:
    """Arguments of _arguments for an option, one for each of its flags."""
    told = "".join("\\" + c if c in "[]:\\" else c for c in opt.help)
    others = f"({' '.join(opt.flags)})" if opt.kind != table.LIST else "*"
    for flag in opt.flags:
        if opt.kind == table.FLAG:
            yield _quoted(f"{others}{flag}[{told}]")
        else:
            joined = "=" if flag.startswith("--") else "+"
            action = _zsh_value(value_of(opt))
            yield _quoted(f"{others}{flag}{joined}[{told}]:{opt.metavar or 'value'}:{action}")


def _zsh_value(kind: str) -> str:
    actions = {TEXT: " ", FILES: "_files", FOLDERS: "_files -/"}
    if kind in ASKED:
        return f"_remem_ask {kind}"
    return actions.get(kind) or f"({kind})"


# -- fish ---------------------------------------------------------------------------------------


def _fish() -> str:
    every = [*table.GLOBALS, *(o for c in table.COMMANDS for o in c.opts)]
    flags = {flag for o in every if o.kind == table.FLAG for flag in o.flags}
    takes = {flag: None for o in every if o.kind != table.FLAG for flag in o.flags}
    lines = [_fish_option(opt, "") for opt in table.GLOBALS]
    for command in table.COMMANDS:
        lines.append(
            "complete -c remem -n __remem_no_command "
            f"-a {command.name} -d {_fish_quoted(command.summary)}"
        )
    for command in table.COMMANDS:
        lines += [_fish_option(opt, f"__remem_in {command.name}") for opt in command.opts]
        for first, last, arg in places(command):
            kind = place_of(command, arg)
            if kind != TEXT:
                where = _fish_quoted(f"__remem_in {command.name} {first} {last}")
                lines.append(f"complete -c remem -n {where} {_fish_value(kind)}")
    return _filled(
        "fish",
        TAKES=" ".join(flag for flag in takes if flag not in flags),
        COMPLETE="\n".join(lines),
    )


def _fish_option(opt: Opt, where: str) -> str:
    words = ["complete -c remem"]
    if where:
        words.append(f"-n {_fish_quoted(where)}")
    for flag in opt.flags:
        words.append(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}")
    kind = value_of(opt)
    if kind:
        words.append("-r" if kind in (FILES, FOLDERS) else "-x")
        if kind != TEXT:
            words.append(_fish_value(kind))
    return " ".join([*words, f"-d {_fish_quoted(opt.help)}"])


def _fish_value(kind: str) -> str:
    if kind == FILES:
        return "-F"
    if kind == FOLDERS:
        return "-a '(__fish_complete_directories)'"
    if kind in ASKED:
        return f"-k -a '(__remem_ask {kind})'"
    return f"-a {_fish_quoted(kind)}"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _filled(shell: str, **parts: str) -> str:
    """The script of a shell with its @@NAME@@ places filled."""
    with open(os.path.join(TEMPLATES, f"remem.{shell}"), encoding="utf-8") as file:
        text = file.read()
    for name, part in parts.items():
        text = text.replace(f"@@{name}@@", part)
    return text


# -- what the scripts ask -----------------------------------------------------------------------


def _answer(context: Context, what: str, word: str) -> int:
    """Print the candidates, one a line: the word and, behind a tab, what it stands for."""
    from remem.cli.names import snapshot
    from remem.cli.plain import one_line

    wide = what == "collections"
    with snapshot(context, all_collections=wide) as reader:
        found = _ids(reader, word) if what == "ids" else _names(reader, what, word)
    if context.json:
        context.emit([{"value": value, "description": told} for value, told in found])
        return 0
    for value, told in found:
        context.out(value + (f"\t{one_line(told, 60)}" if told else ""))
    return 0


def _ids(reader: Reader, word: str) -> list[tuple[str, str]]:
    """Ids that begin with a word, with their first words; without a word the latest."""
    from remem.cli import describe
    from remem.hooks.naming import LAST

    typed = word.lower()
    if typed.strip("0123456789abcdef"):
        return [(LAST, "what this session wrote last")] if LAST.startswith(word) else []
    refs = list(_beginning(reader, typed)) if typed else list(_latest(reader))
    digits = DIGITS if len(typed) < DIGITS else None
    found = [
        (ref.hex()[:digits], describe.text_line(reader, part, ref, head))
        for part, ref, head in refs
    ]
    return found if typed else [(LAST, "what this session wrote last"), *found]


def _beginning(reader: Reader, typed: str) -> Iterator[tuple[Part, bytes, bytes | None]]:
    from remem.objects.oid import ID_BYTES

    if len(typed) > 2 * ID_BYTES:
        return
    start = bytes.fromhex(typed.ljust(2 * ID_BYTES, "0"))
    stop = bytes.fromhex(typed.ljust(2 * ID_BYTES, "f"))
    left = MOST
    for part in reader.parts:
        for key, _ in reader.txn.scan("refs", part.prefix + start, part.prefix + stop + b"\0"):
            state = reader.state(part, key[4:])
            if state is not None:
                yield part, key[4:], state.head
                left -= 1
            if not left:
                return


def _latest(reader: Reader) -> Iterator[tuple[Part, bytes, bytes | None]]:
    seen: set[bytes] = set()
    for part in reader.parts:
        for entry in reader.log(part, reverse=True):
            if entry.ref not in seen:
                seen.add(entry.ref)
                yield part, entry.ref, entry.new
            if len(seen) >= LATEST:
                return


def _names(reader: Reader, what: str, word: str) -> list[tuple[str, str]]:
    """Names of collections, agents or sessions that begin with a word."""
    names: dict[str, None] = {}
    for part in reader.parts:
        if what == "collections":
            names[part.collection] = None
            continue
        for lane in reader.lanes(part):
            names[reader.lane(part, lane)[0 if what == "agents" else 1]] = None
    return [(name, "") for name in sorted(names) if name.startswith(word)][:MOST]
