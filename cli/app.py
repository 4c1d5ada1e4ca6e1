"""The full parser: typer over the command table, for help, mistakes and completion."""

from __future__ import annotations

import sys
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from remem.cli import table
from remem.cli.run import execute
from remem.objects.errors import UsageError

_SETTINGS = {"help_option_names": ["--help", "-h"], "max_content_width": 80}
_NAMES = {opt.name for opt in table.GLOBALS}


def _option(opt: table.Opt) -> TyperOption:
    flag = opt.kind == table.FLAG
    return TyperOption(
        param_decls=[opt.name, *opt.flags],
        type=bool if flag else int if opt.kind == table.INT else str,
        default=None if opt.kind != table.FLAG else False,
        is_flag=flag,
        multiple=opt.kind == table.LIST,
        metavar=opt.metavar or None,
        help=opt.help,
        show_default=False,
    )


def _argument(arg: table.Arg) -> TyperArgument:
    many = arg.nargs in "*+"
    return TyperArgument(
        param_decls=[arg.name],
        type=str,
        required=arg.nargs in "1+",
        nargs=-1 if many else 1,
        metavar=arg.metavar + ("..." if many else ""),
        help=arg.help,
        show_default=False,
        show_envvar=False,
    )


def _command(command: table.Command) -> TyperCommand:
    def call(**params: Any) -> int:
        given = {n: v for n, v in params.items() if n in _NAMES and v not in (None, False)}
        values: dict[str, object] = {}
        for opt in command.opts:
            value = params[opt.name]
            if opt.kind == table.LIST:
                value = list(value or ())
            values[opt.name] = opt.default if value is None else value
        for arg in command.args:
            value = params[arg.name]
            values[arg.name] = list(value or ()) if arg.nargs in "*+" else value
        return execute(command, values, {**_group_given, **given})

    sentence = command.summary[:1].upper() + command.summary[1:] + "."
    return TyperCommand(
        command.name,
        context_settings=dict(_SETTINGS),
        callback=call,
        params=[
            *(_argument(a) for a in command.args),
            *(_option(o) for o in command.opts),
            *(_option(o) for o in table.GLOBALS),
        ],
        help=sentence,
        short_help=command.summary,
        epilog=f"See remem-{command.name}(1).",
        rich_markup_mode=None,
    )


_group_given: dict[str, object] = {}


def _remember(**params: Any) -> None:
    _group_given.clear()
    version = params.pop("version", False)
    if version:
        from remem import __version__

        sys.stdout.write(f"remem {__version__}\n")
        raise SystemExit(0)
    _group_given.update({n: v for n, v in params.items() if v not in (None, False)})


def build() -> TyperGroup:
    """The whole command line as a typer group."""
    version = TyperOption(
        param_decls=["version", "--version"],
        type=bool,
        is_flag=True,
        default=False,
        is_eager=True,
        help="print the version",
    )
    return TyperGroup(
        name="remem",
        commands={c.name: _command(c) for c in table.COMMANDS},
        params=[*(_option(o) for o in table.GLOBALS), version],
        callback=_remember,
        help="A memory you can correct: evidence in, cited recall out, everything verifiable.",
        epilog="See remem(1). 'remem help COMMAND' shows a command's page.",
        context_settings=dict(_SETTINGS),
        no_args_is_help=False,
        rich_markup_mode=None,
    )


def run_full(words: list[str]) -> int:
    """Run a command line through typer; its complaints become ours."""
    group = build()
    if not words:
        words = ["--help"]
    try:
        code = group.main(args=list(words), prog_name="remem", standalone_mode=False)
    except Exception as error:
        explain = getattr(error, "format_message", None)
        if explain is None:
            if type(error).__name__ == "Abort":
                raise KeyboardInterrupt from error
            if type(error).__name__ == "Exit":
                return int(getattr(error, "exit_code", 0))
            raise
        message = " ".join(str(explain()).split()).rstrip(".")
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "remem"
        raise UsageError(
            message[:1].lower() + message[1:], hint=f"'{path} --help' shows the options"
        ) from error
    return int(code) if isinstance(code, int) else 0
