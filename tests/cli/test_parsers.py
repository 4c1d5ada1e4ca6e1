"""The two doors of the command line, the small parser and typer, read the same table alike."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.cli import app, table
from remem.cli.front import parse
from remem.cli.table import COMMANDS, FLAG, GLOBALS, INT, LIST, Command, Opt

Call = tuple[str, dict[str, Any], dict[str, Any]]
WORDS = st.text(max_size=12).filter(lambda text: "\0" not in text)
PLAIN_WORDS = WORDS.filter(lambda text: not text.startswith("-") or text == "-")


class TyperDoor:
    """Reads words through typer; nothing is run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.group = app.build()
        self.called: Call | None = None
        monkeypatch.setattr(app, "execute", self._note)

    def _note(self, command: Command, values: dict[str, Any], given: dict[str, Any]) -> int:
        self.called = command.name, values, given
        return 0

    def read(self, words: list[str]) -> Call | None:
        """What typer makes of the words, or None when it complains."""
        self.called = None
        try:
            self.group.main(args=list(words), prog_name="remem", standalone_mode=False)
        except Exception as error:
            assert hasattr(error, "format_message") or type(error).__name__ == "Exit", error
            return None
        return self.called


@pytest.fixture(scope="module")
def typer_door() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        yield TyperDoor(patch)


def small_door(words: list[str]) -> Call | None:
    parsed = parse(words)
    return None if parsed is None else (parsed.command.name, parsed.values, parsed.given)


@st.composite
def options(draw: st.DrawFn, opts: tuple[Opt, ...]) -> list[list[str]]:
    """Some of the options, each as the words that give it."""
    found = []
    for opt in draw(st.lists(st.sampled_from(opts), max_size=4)) if opts else []:
        flag = draw(st.sampled_from(opt.flags))
        if opt.kind == FLAG:
            found.append([flag])
            continue
        value = str(draw(st.integers(-99, 10**6))) if opt.kind == INT else draw(WORDS)
        if flag.startswith("--"):
            found.append(draw(st.sampled_from(([flag, value], [f"{flag}={value}"]))))
        elif value:
            found.append(draw(st.sampled_from(([flag, value], [flag + value]))))
    return found


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    """A well-formed command line: options and arguments in any order, global ones anywhere."""
    command = draw(st.sampled_from(COMMANDS))
    words: list[list[str]] = []
    for arg in command.args:
        count = {"1": 1, "?": draw(st.integers(0, 1)), "*": None, "+": None}[arg.nargs]
        if count is None:
            count = draw(st.integers(arg.nargs == "+", 3))
        words += [[draw(PLAIN_WORDS)] for _ in range(count)]
        if arg.nargs == "?" and not count:
            break
    for option in draw(options((*command.opts, *GLOBALS))):
        words.insert(draw(st.integers(0, len(words))), option)
    before = [word for option in draw(options(GLOBALS)) for word in option]
    return [*before, command.name, *(word for some in words for word in some)]


@given(words=lines())
def test_both_doors_give_the_same_values(typer_door: TyperDoor, words: list[str]) -> None:
    small = small_door(words)
    assert small is not None
    assert small == typer_door.read(words)


SCRAPS = st.sampled_from(
    [f for c in COMMANDS for o in c.opts for f in o.flags]
    + [f for o in GLOBALS for f in o.flags]
    + [c.name for c in COMMANDS]
    + ["--", "-", "--limit=", "-n", "-nv", "-qv", "--jso", "--help", "-h", "--no-such", "x", ""]
)


@given(words=st.lists(st.one_of(SCRAPS, WORDS), max_size=6))
def test_the_small_parser_never_takes_what_typer_reads_otherwise(
    typer_door: TyperDoor, words: list[str]
) -> None:
    small = small_door(words)
    if small is not None:
        assert small == typer_door.read(words)


def test_the_small_parser_takes_everyday_lines() -> None:
    for line in ("add a b", "--json recall -n 3 what", "show abcdef1 --rev=2", "log -- -x"):
        assert parse(line.split()) is not None, line
    for line in ("", "add --no-such", "recall -n x", "help a b", "nonsense", "--help", "add -h"):
        assert parse(line.split()) is None, line


# -- the table ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_each_command_has_a_function_with_the_parameters_of_the_table(command: Command) -> None:
    module, _, name = command.target.partition(":")
    function = getattr(import_module(f"remem.cli.commands.{module}"), name)
    own = dict(inspect.signature(function).parameters)
    assert next(iter(own)) == "context"
    del own["context"]
    assert set(own) == {o.name for o in command.opts} | {a.name for a in command.args}
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in own.values())
    for opt in command.opts:
        kind = own[opt.name].annotation.replace(" | None", "")
        assert kind == {FLAG: "bool", INT: "int", LIST: "list[str]"}.get(opt.kind, "str"), opt.name
    for arg in command.args:
        kind = own[arg.name].annotation
        assert kind == {"*": "list[str]", "+": "list[str]", "1": "str"}.get(arg.nargs, "str | None")
    assert inspect.getdoc(function)


def test_names_and_flags_are_given_once() -> None:
    names = [command.name for command in COMMANDS]
    assert len(names) == len(set(names))
    for command in COMMANDS:
        flags = [f for o in (*command.opts, *GLOBALS) for f in o.flags]
        params = [o.name for o in (*command.opts, *GLOBALS)] + [a.name for a in command.args]
        assert len(flags) == len(set(flags)), command.name
        assert len(params) == len(set(params)), command.name
        assert not {"--help", "-h", "--version"} & set(flags)


def test_exit_codes_are_those_of_the_contract() -> None:
    for command in COMMANDS:
        assert set(command.exits) <= {0, 1, 2, 3, 4, 5}, command.name
        assert {0, 2} <= set(command.exits), command.name
        assert list(command.exits) == sorted(set(command.exits))


def test_every_class_of_error_has_an_exit_code_that_commands_name() -> None:
    from remem.index import errors as index_errors
    from remem.objects import errors

    named = {code for command in table.COMMANDS for code in command.exits}
    found = [
        kind
        for module in (errors, index_errors)
        for kind in vars(module).values()
        if inspect.isclass(kind) and issubclass(kind, errors.RememError)
    ]
    assert len(found) > 15
    for kind in found:
        assert kind.exit_code in named - {0}, kind
