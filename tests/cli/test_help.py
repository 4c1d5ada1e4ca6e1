"""What the program says about itself: version, help of every command, manual pages."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import remem
from remem.cli.commands import help_
from remem.cli.table import COMMANDS

from .conftest import Runner

MAX_WIDTH = 80


@pytest.fixture(scope="module")
def helps() -> dict[str, str]:
    """Output of --help of every command, "" for that of remem itself."""
    import contextlib
    import io

    from remem.cli.app import run_full

    found = {}
    for name in ("", *(command.name for command in COMMANDS)):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            assert run_full([*([name] if name else []), "--help"]) == 0
        found[name] = out.getvalue()
    return found


def test_version(run: Runner) -> None:
    done = run("--version", code=0)
    assert done.out == f"remem {remem.__version__}\n"
    assert done.err == ""


def test_the_help_of_every_command(helps: dict[str, str], snapshot: SnapshotAssertion) -> None:
    rule = "=" * MAX_WIDTH
    assert "\n".join(f"{rule}\nremem {n}\n{rule}\n{text}" for n, text in helps.items()) == snapshot


def test_help_fits_a_terminal(helps: dict[str, str]) -> None:
    for name, text in helps.items():
        assert max(map(len, text.splitlines())) <= MAX_WIDTH, name
        assert f"See remem{'-' + name if name else ''}(1)" in text


def test_help_comes_from_a_process_as_well(run: Runner, helps: dict[str, str]) -> None:
    for words in (["show", "--help"], ["show", "-h"], ["--json", "show", "--help"]):
        done = run(*words, code=0)
        assert (done.out, done.err) == (helps["show"], "")
    assert run(code=0).out == run("--help", code=0).out == helps[""]


@pytest.mark.parametrize(
    "line",
    [
        "no-such-command",
        "shwo x",
        "show",
        "show a --no-such",
        "recall -n many x",
        "recall --role nobody x",
        "add --role",
        "config set recall.limit",
        "completion tcsh",
        "verify --fast --index",
        "log --op nothing",
        "log -n -1",
        "cat-object --raw --size aaaaaaa",
    ],
)
def test_a_wrong_line_ends_with_2_and_a_hint(filled: Runner, line: str) -> None:
    done = filled(*line.split(), code=2)
    assert done.out == ""
    first, *rest = done.err.splitlines()
    assert first.startswith("remem: ") and not first.endswith(".")
    assert first[7].islower() or first[7] in "'-"
    if rest:
        assert rest[0].startswith("hint: ")


def test_a_mistyped_command_names_the_near_ones(run: Runner) -> None:
    assert "'recall'" in run("recal", "x", code=2).err


# -- manual pages -------------------------------------------------------------------------------


def test_help_prints_the_page_of_a_command(run: Runner) -> None:
    done = run("help", "init", code=0)
    assert "REMEM-INIT(1)" in done.out and "EXIT STATUS" in done.out
    assert "\b" not in done.out and "\x1b" not in done.out
    value = run("help", "init", "--json", code=0).json
    assert value["page"] == "remem-init.1" and value["text"].rstrip("\n") == done.out.rstrip("\n")


def test_help_knows_the_page_of_remem_itself(run: Runner) -> None:
    assert run("help", code=0).out == run("help", "remem", code=0).out


def test_help_knows_the_page_of_the_model(run: Runner) -> None:
    page = run("help", "model", code=0).out
    assert page != run("help", code=0).out and "Miscellaneous" in page


@pytest.mark.parametrize("name", ["nope", "../../etc/passwd", "-", "remem-", "init/../init"])
def test_a_page_that_is_not_there(run: Runner, name: str) -> None:
    done = run("help", "--", name, code=1)
    assert "no page" in done.err and "hint:" in done.err


def test_a_page_is_read_without_man_and_mandoc(run: Runner, tmp_path: Path) -> None:
    nowhere = tmp_path / "bin"
    nowhere.mkdir()
    plain = run("help", "init", env={"PATH": str(nowhere)}, code=0).out
    words = set(run("help", "init", code=0).out.split())
    assert "make a store" in plain and "\n  --here\n" in plain
    assert not any(line.startswith((".", "\\")) for line in plain.splitlines())
    assert len(words & set(plain.split())) > 0.7 * len(words)


def test_reading_a_page_keeps_the_words_and_drops_the_macros() -> None:
    source = """.\\" a comment
.Dd November 30, 2026
.Dt X 1
.Os
.Sh NAME
.Nm x
.Nd do it
.Sh SYNOPSIS
.Nm
.Op Fl -all | Fl q
.Ar FILE ...
.Sh DESCRIPTION
Words
.Pq Ql \\&- ,
and
.Xr y 1 ,
done.
.Bl -tag -width Ds
.It Fl -to Ar T , Fl t Ar T
When.
.El
.Bd -literal
  as   is \\e
.Ed
"""
    lines = [line for line in help_.read_mdoc(source) if line]
    assert lines == [
        "NAME",
        "     x - do it",
        "SYNOPSIS",
        "     x [--all | -q] FILE ...",
        "DESCRIPTION",
        "     Words ('-'), and y(1), done.",
        "  --to T, -t T",
        "     When.",
        "       as   is \\",
    ]


def test_every_page_is_readable_in_plain_text() -> None:
    pages = sorted((Path(help_.folders()[0])).glob("man?/*"))
    if not pages:
        pytest.skip("no manual pages in this tree")
    for page in pages:
        lines = list(help_.read_mdoc(page.read_text(encoding="utf-8")))
        assert len(lines) > 10, page
        assert not any(line.startswith(".") for line in lines), page
