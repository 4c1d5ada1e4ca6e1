"""The small parser: reads well-formed command lines by the command table, without typer.

It answers None for anything it is not sure of; typer then reads the same words and explains.
"""

from __future__ import annotations

from remem.cli.table import FLAG, GLOBALS, INT, LIST, Command, Opt, find

Values = dict[str, object]


class Parsed:
    """A command with the values of its parameters and of the global options."""

    __slots__ = ("command", "given", "values")

    def __init__(self, command: Command, values: Values, given: Values) -> None:
        """Command, its parameters by name, the global options that were given."""
        self.command = command
        self.values = values
        self.given = given


def defaults(command: Command) -> Values:
    """Values of a command's parameters when nothing is given."""
    values: Values = {o.name: [] if o.kind == LIST else o.default for o in command.opts}
    for arg in command.args:
        values[arg.name] = [] if arg.nargs in "*+" else None
    return values


def parse(words: list[str]) -> Parsed | None:
    """Read a command line, or None when typer should."""
    given: Values = {}
    shared = {flag: opt for opt in GLOBALS for flag in opt.flags}
    at = _options(words, 0, shared, given)
    if at is None or at >= len(words) or words[at].startswith("-"):
        return None
    command = find(words[at])
    if command is None:
        return None
    values = defaults(command)
    flags = shared | {flag: opt for opt in command.opts for flag in opt.flags}
    names = {opt.name for opt in GLOBALS}
    taken: Values = {}
    rest: list[str] = []
    at += 1
    while at < len(words):
        word = words[at]
        if word == "--":
            rest += words[at + 1 :]
            break
        if word.startswith("-") and word != "-":
            after = _option(words, at, flags, taken)
            if after is None:
                return None
            at = after
            continue
        rest.append(word)
        at += 1
    for name, value in taken.items():
        if name in names:
            given[name] = value
        else:
            values[name] = value
    return Parsed(command, values, given) if _positionals(command, rest, values) else None


def _options(words: list[str], at: int, flags: dict[str, Opt], out: Values) -> int | None:
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        after = _option(words, at, flags, out)
        if after is None:
            return None
        at = after
    return at


def _option(words: list[str], at: int, flags: dict[str, Opt], out: Values) -> int | None:
    """Read one option into out; the next position, or None when it is not well formed."""
    word = words[at]
    value: str | None = None
    if word.startswith("--"):
        name, sign, tail = word.partition("=")
        value = tail if sign else None
    else:
        name, value = word[:2], word[2:] or None
    opt = flags.get(name)
    if opt is None:
        return None
    if opt.kind == FLAG:
        if value is not None:
            return None
        out[opt.name] = True
        return at + 1
    at += 1
    if value is None:
        if at >= len(words):
            return None
        value = words[at]
        at += 1
    if opt.kind == INT:
        digits = value[1:] if value.startswith("-") else value
        if not digits.isascii() or not digits.isdigit():
            return None
        out[opt.name] = int(value)
    elif opt.kind == LIST:
        found = out.setdefault(opt.name, [])
        assert isinstance(found, list)
        found.append(value)
    else:
        out[opt.name] = value
    return at


def _positionals(command: Command, rest: list[str], values: Values) -> bool:
    at = 0
    for arg in command.args:
        if arg.nargs in "*+":
            values[arg.name] = rest[at:]
            if arg.nargs == "+" and at >= len(rest):
                return False
            at = len(rest)
        elif at < len(rest):
            values[arg.name] = rest[at]
            at += 1
        elif arg.nargs == "1":
            return False
    return at == len(rest)
