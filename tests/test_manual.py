"""The manual against the program: pages, options, exit codes, settings, examples, installation."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from remem.cli import context, settings, table, warmed
from remem.cli.commands.help_ import read_mdoc

ROOT = Path(__file__).resolve().parent.parent
MAN = ROOT / "man"
PAGES = sorted(MAN.glob("man?/*.?"))
MACROS = frozenset("Ar Cm Ev Fl Li No Ns Op Pa Pq Ql Va Xr".split())
READABLE = MACROS | frozenset("Bd Bl Dd Dt Ed El Em It Nd Nm Os Pp Sh Ss Sx".split())
PUNCTUATION = frozenset("| , . ; : ( ) [ ]".split())
HOME = "/home/you"  # stands for the reader's home folder in the examples

commands = pytest.mark.parametrize("command", table.COMMANDS, ids=lambda c: c.name)


# -- reading mdoc -----------------------------------------------------------------------------


class Page:
    """A page: its sections by title, each a list of source lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sections: dict[str, list[str]] = {}
        self.subsections: dict[str, list[str]] = {}
        section: list[str] = []
        subsection: list[str] = []
        for line in text.splitlines():
            if line.startswith(".Sh "):
                section = self.sections.setdefault(line[4:].strip('"'), [])
                subsection = []
            elif line.startswith(".Ss "):
                subsection = self.subsections.setdefault(line[4:].strip('"'), [])
            else:
                section.append(line)
                subsection.append(line)

    def items(self, lines: list[str], macro: str = "") -> list[tuple[list[str], list[str]]]:
        """Entries of the outermost lists: words behind ``.It`` and the lines of the body."""
        found: list[tuple[list[str], list[str]]] = []
        depth = 0
        for line in lines:
            if line.startswith(".Bl "):
                depth += 1
            elif line == ".El":
                depth -= 1
            if depth == 1 and line.startswith(".It"):
                found.append((line.split()[1:], []))
            elif found and depth:
                found[-1][1].append(line)
        return [item for item in found if not macro or item[0][:1] == [macro]]


def read(name: str) -> Page:
    path = MAN / f"man{name.rpartition('.')[2]}" / name
    assert path.is_file(), f"the manual has no page {name}"
    return Page(path.read_text(encoding="ascii"))


def page_of(command: table.Command) -> Page:
    return read(f"remem-{command.name}.1")


def flags(words: list[str]) -> list[tuple[str, str]]:
    """(flag, argument) of each option named in the words of a macro line."""
    found: list[tuple[str, str]] = []
    macro = ""
    for word in words:
        if word in MACROS:
            macro = word
        elif word in PUNCTUATION:
            continue
        elif macro == "Fl":
            found.append(("-" + word, ""))
        elif macro == "Ar" and found and not found[-1][1]:
            found[-1] = (found[-1][0], word)
    return found


def spelled(opt: table.Opt) -> list[tuple[str, str]]:
    """What a page must say of an option: each flag with its argument."""
    return [(flag, "" if opt.kind == table.FLAG else opt.metavar) for flag in opt.flags]


def option_entries(page: Page, section: str) -> list[list[tuple[str, str]]]:
    return [flags(words) for words, _ in page.items(page.sections[section], "Fl")]


def codes(page: Page) -> list[int]:
    return [int(words[0]) for words, _ in page.items(page.sections["EXIT STATUS"])]


def test_the_reader_of_pages_sees_options_lists_and_sections() -> None:
    page = Page(
        ".Sh DESCRIPTION\n.Bl -tag -width Ds\n.It Fl -limit Ar N , Fl n Ar N\nText.\n"
        ".Bl -tag -width Ds\n.It Cm inner\n.El\n.It Fl -all\n.El\n.Ss Part\nmore\n"
        ".Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0\nDone.\n.It 5\nNot.\n.El\n"
    )
    assert option_entries(page, "DESCRIPTION") == [[("--limit", "N"), ("-n", "N")], [("--all", "")]]
    assert codes(page) == [0, 5]
    assert page.subsections["Part"] == ["more"]


# -- pages of commands ------------------------------------------------------------------------


def test_every_command_has_a_page_and_every_page_a_command() -> None:
    wanted = {"remem.1"} | {f"remem-{command.name}.1" for command in table.COMMANDS}
    assert {path.name for path in (MAN / "man1").iterdir()} == wanted


@commands
def test_the_head_of_a_page_names_the_command(command: table.Command) -> None:
    page = page_of(command)
    lines = page.text.splitlines()
    assert re.fullmatch(r"\.Dd [A-Z][a-z]+ \d{1,2}, \d{4}", lines[0])
    assert lines[1:3] == [f".Dt REMEM-{command.name.upper()} 1", ".Os"]
    assert page.sections["NAME"] == [f".Nm remem-{command.name}", f".Nd {command.summary}"]


@commands
def test_options_of_the_page_are_those_of_the_table(command: table.Command) -> None:
    page = page_of(command)
    documented = option_entries(page, "DESCRIPTION")
    assert sorted(documented) == sorted(spelled(opt) for opt in command.opts)
    # and nowhere else is there an entry that the comparison above would not see
    assert page.text.count("\n.It Fl ") == len(command.opts)


@commands
def test_choices_of_an_option_are_named_in_its_entry(command: table.Command) -> None:
    page = page_of(command)
    entries = {
        flags(words)[0][0]: body for words, body in page.items(page.sections["DESCRIPTION"], "Fl")
    }
    for opt in command.opts:
        words = {w for line in entries[opt.flags[0]] if line[:3] == ".Cm" for w in line.split()}
        missing = set(opt.choices) - words
        assert not missing, f"{opt.flags[0]} does not name {missing}"


@commands
def test_the_synopsis_has_every_argument_and_option(command: table.Command) -> None:
    lines = page_of(command).sections["SYNOPSIS"]
    assert lines[:2] == [".Nm remem", f".Cm {command.name}"]
    shown = {flag for line in lines for flag, _ in flags(line.lstrip(".").split())}
    assert shown == {opt.flags[0] for opt in command.opts}
    text = "\n".join(lines)
    for arg in command.args:
        many = r" \.\.\." if arg.nargs in "*+" else r"(?! \.\.\.)"
        where = r"Op (?:Ar \w+ )?Ar " if arg.nargs in "?*" else r"^\.Ar "
        assert re.search(where + arg.metavar + many, text, re.MULTILINE), arg.metavar
    known = {arg.metavar for arg in command.args} | {opt.metavar for opt in command.opts}
    assert set(re.findall(r"Ar ([A-Z]+)", text)) <= known


@commands
def test_a_page_points_to_the_global_options(command: table.Command) -> None:
    text = " ".join(page_of(command).sections["DESCRIPTION"])
    assert re.search(r"global options of \.Xr remem 1", text)


@commands
def test_exit_status_is_that_of_the_table(command: table.Command) -> None:
    page = page_of(command)
    assert codes(page) == sorted(command.exits)
    for words, body in page.items(page.sections["EXIT STATUS"]):
        assert body, f"status {words[0]} is not explained"


@commands
def test_a_page_has_examples_and_see_also(command: table.Command) -> None:
    page = page_of(command)
    assert examples(page), "no example"
    assert any(f"remem {command.name}" in given for given, _ in examples(page))
    assert page.sections["SEE ALSO"]


# -- remem(1) ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [table.PORCELAIN, table.PLUMBING])
def test_the_index_lists_the_commands_by_kind(kind: str) -> None:
    page = read("remem.1")
    listed = [
        (words[1], " ".join(body)) for words, body in page.items(page.subsections[kind.title()])
    ]
    assert listed == [(f"remem-{c.name}", c.summary) for c in table.COMMANDS if c.kind == kind]


def test_the_index_has_every_global_option() -> None:
    page = read("remem.1")
    assert option_entries(page, "GLOBAL OPTIONS") == [spelled(opt) for opt in table.GLOBALS]


def test_the_index_has_every_variable_of_the_environment() -> None:
    page = read("remem.1")
    listed = [
        word
        for words, _ in page.items(page.sections["ENVIRONMENT"], "Ev")
        for word in words
        if word not in MACROS and word not in PUNCTUATION
    ]
    assert len(listed) == len(set(listed))
    ours = {word for word in listed if word.startswith("REMEM_")}
    assert ours == {setting.env for setting in settings.SETTINGS} | {
        "REMEM_DEBUG",
        warmed.COLD,
        "REMEM_OFF",
        context.TOKEN,
        context.TOKEN_FILE,
    }
    read_by_the_program = {
        name
        for path in (ROOT / "cli").rglob("*.py")
        for name in re.findall(r'environ\.get\(\s*"([A-Z_]+)"', path.read_text())
    }
    assert "REMEM_DEBUG" in read_by_the_program  # the search finds what is there
    assert read_by_the_program <= set(listed)


def test_the_index_explains_every_exit_code() -> None:
    used = {code for command in table.COMMANDS for code in command.exits}
    assert used == {0, 1, 2, 3, 4, 5}
    assert codes(read("remem.1")) == [*sorted(used), 130]


# -- remem-config(5) --------------------------------------------------------------------------


def test_every_setting_is_documented_with_its_default() -> None:
    page = read("remem-config.5")
    entries = {
        words[1]: body
        for lines in page.subsections.values()
        for words, body in page.items(lines, "Va")
    }
    assert sorted(entries) == sorted(settings.BY_KEY)
    for key, body in entries.items():
        setting = settings.BY_KEY[key]
        default = "not set" if setting.default is None else json.dumps(setting.default)
        said = [line for line in body if line.startswith("Default: ")]
        assert len(said) == 1, key
        assert re.match(rf"Default: {re.escape(default)}(?:\.|, )", said[0]), key
        words = {w for line in body if line[:3] == ".Cm" for w in line.split()}
        assert set(setting.choices) <= words, key


def test_every_setting_has_an_effect() -> None:
    """A documented setting that nothing reads would be a promise that is not kept."""
    program = "".join(
        path.read_text() for path in (ROOT / "cli").rglob("*.py") if path.name != "settings.py"
    )
    options = {"as" if opt.name == "principal_name" else opt.name for opt in table.GLOBALS}
    unread = [key for key in settings.BY_KEY if key not in options and f'"{key}"' not in program]
    assert unread == []


def test_the_sample_of_settings_is_one(tmp_path: Path) -> None:
    blocks = literal_blocks(read("remem-config.5").sections["EXAMPLES"])
    assert blocks
    for block in blocks:
        path = tmp_path / "config.toml"
        path.write_text("\n".join(block) + "\n")
        found = settings.read_file(str(path))
        assert len(found) == sum("=" in line for line in block) > 1


# -- all pages --------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_mandoc_has_no_complaint(tmp_path: Path) -> None:
    bad = tmp_path / "bad.1"
    bad.write_text(".Dd November 30, 2026\n.Dt BAD 1\n.Os\n.Sh NAME\n.Nm bad\n.Xyz\n")
    assert "bad.1" in lint([bad])  # the control: a bad page is found out
    assert lint(PAGES) == ""


def lint(paths: list[Path]) -> str:
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_plain_and_refers_to_pages_that_exist(path: Path) -> None:
    text = path.read_text(encoding="ascii")
    assert text.endswith("\n")
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert "\t" not in text
    name, _, section = path.name.rpartition(".")
    assert f".Dt {name.upper()} {section}\n" in text
    there = {(p.name.rpartition(".")[0], p.name.rpartition(".")[2]) for p in PAGES}
    named = set(re.findall(r"\bXr (remem[a-z-]*) (\d)", text))
    assert named <= there
    assert (name, section) not in set(re.findall(r"^\.Xr (\S+) (\d)", text, re.MULTILINE)) - {
        ("remem", section)
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_can_be_read_without_man(path: Path) -> None:
    """``remem help`` must do without mandoc: its own reader knows few macros."""
    text = path.read_text()
    if path.name not in ("remem-store.5", "remem-pack.5"):  # tables there need a typesetter
        assert set(re.findall(r"^\.([A-Za-z]+)", text, re.MULTILINE)) <= READABLE
        assert "\\(" not in text  # named characters would be left out
    plain = "\n".join(read_mdoc(text))
    for title, lines in Page(text).sections.items():
        assert re.search(rf"^{re.escape(title)}$", plain, re.MULTILINE)
        for words, _ in Page(text).items(lines, "Fl"):
            for flag, argument in flags(words):
                assert f"{flag} {argument}".rstrip() in plain
    assert not re.search(r"^\s*\.[A-Z][a-z]\b", plain, re.MULTILINE)


def test_see_also_is_sorted() -> None:
    for path in PAGES:
        for lines in [Page(path.read_text()).sections.get("SEE ALSO", [])]:
            named = [tuple(line.split()[1:3]) for line in lines if line.startswith(".Xr")]
            assert named == sorted(named, key=lambda n: (n[1], n[0])), path.name


# -- examples ---------------------------------------------------------------------------------


def literal_blocks(lines: list[str]) -> list[list[str]]:
    """Contents of the literal displays among these lines."""
    found: list[list[str]] = []
    inside = False
    for line in lines:
        if line.startswith(".Bd -literal"):
            found.append([])
            inside = True
        elif line == ".Ed":
            inside = False
        elif inside:
            found[-1].append(line.replace("\\e", "\\").removeprefix("\\&"))
    return found


def examples(page: Page) -> list[tuple[str, list[str]]]:
    """Commands of the section EXAMPLES, each with the lines that it is said to print."""
    found: list[tuple[str, list[str]]] = []
    for block in literal_blocks(page.sections.get("EXAMPLES", [])):
        for line in block:
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.startswith("> "):
                found[-1] = (found[-1][0] + "\n" + line[2:], found[-1][1])
            elif found:
                found[-1][1].append(line)
    return found


@pytest.fixture(scope="module")
def shell_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A search path with a ``remem`` that runs this tree."""
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "remem"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m remem "$@"\n')
    script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def run_examples(given: list[str], home: Path, path: str) -> list[list[str]]:
    """Type these commands into one shell; the lines that each printed, stderr among them."""
    mark = "\x1e"
    script = "exec 2>&1\n" + "".join(f"{line}\nprintf '{mark}'\n" for line in given)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=home,
        env={
            **os.environ,
            "HOME": str(home),
            "PATH": path,
            "TZ": "UTC",
            "LC_ALL": "C.UTF-8",
            "REMEM_EMBEDDER": "none",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    printed = done.stdout.decode().split(mark)
    assert len(printed) == len(given) + 1, done.stdout
    return [part.splitlines() for part in printed[:-1]]


class Same:
    """Compares what a page says with what was printed; what differs from run to run may differ."""

    _VARIES = re.compile(
        r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)"
        r"|(?P<id>\b[0-9a-f]{7,64}\b)"
        r"|(?P<size>\b\d[\d,.]*(?= ?(?:B|KB|MB|GB|KiB|MiB|GiB|bytes|s|ms)\b))"
        r"|(?P<score>\b\d+\.\d{2,}\b)"
    )

    def __init__(self) -> None:
        self.ids: dict[str, str] = {}  # the first 7 digits in the page -> those that were printed

    def lines(self, said: list[str], printed: list[str]) -> bool:
        """True when they agree; ``[...]`` stands for any lines."""
        if not said:
            return not printed
        if said[0].strip() == "[...]":
            return any(self.lines(said[1:], printed[n:]) for n in range(len(printed) + 1))
        return (
            bool(printed) and self.line(said[0], printed[0]) and self.lines(said[1:], printed[1:])
        )

    def line(self, said: str, printed: str) -> bool:
        """True when two lines agree; an id of the page is the same id wherever it stands."""
        if self._VARIES.sub(self._kind, said) != self._VARIES.sub(self._kind, printed):
            return False
        pairs = zip(self._of("id", said), self._of("id", printed), strict=True)
        return all(
            len(mine) == len(theirs) and self.ids.setdefault(mine[:7], theirs[:7]) == theirs[:7]
            for mine, theirs in pairs
        )

    def _kind(self, match: re.Match[str]) -> str:
        return f"<{match.lastgroup}>"

    def _of(self, kind: str, text: str) -> Iterator[str]:
        return (m.group() for m in self._VARIES.finditer(text) if m.lastgroup == kind)


def test_the_comparison_of_examples_tells_apart() -> None:
    same = Same()
    assert same.line("1a2b3c4d5e of 2026-03-01T09:30:00Z", "9f8e7d6c5b of 2030-01-01T00:00:00Z")
    assert same.line("again 1a2b3c4d5e", "again 9f8e7d6c5b")
    assert not same.line("again 1a2b3c4d5e", "again 0000000001")
    assert not same.line("1 hit", "2 hits")
    assert Same().lines(["a", "[...]", "c"], ["a", "b", "b", "c"])
    assert not Same().lines(["a", "[...]", "c"], ["a", "b"])
    assert not Same().lines(["a"], [])


@pytest.mark.parametrize(
    "path", [p for p in PAGES if examples(Page(p.read_text()))], ids=lambda path: path.name
)
def test_examples_print_what_the_page_says(path: Path, shell_path: str, tmp_path: Path) -> None:
    shown = examples(Page(path.read_text()))
    home = tmp_path / "home"
    home.mkdir()
    printed = run_examples([given for given, _ in shown], home, shell_path)
    same = Same()
    for (given, said), lines in zip(shown, printed, strict=True):
        while said and not said[-1].strip():
            said.pop()
        got = [line.replace(str(home), HOME) for line in lines]
        assert same.lines(said, got), f"$ {given}\n" + "\n".join(got)


# -- installation -----------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling is not installed")
@pytest.mark.skipif(find_spec("pip") is None, reason="pip is not installed")
def test_a_wheel_installs_the_pages(tmp_path: Path) -> None:
    options = "--quiet --no-deps --no-build-isolation --no-index --disable-pip-version-check"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options.split(), "-w", str(tmp_path), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("remem-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    installed = {name.partition(".data/data/share/man/")[2] for name in names} - {""}
    assert installed == {f"{path.parent.name}/{path.name}" for path in PAGES}
    assert "remem/cli/table.py" in names  # the control: it is the program's wheel
