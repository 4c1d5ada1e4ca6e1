"""Completion, asked of the real shells."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from remem.cli import table
from remem.cli.commands import completion

from .conftest import REMEM, Runner

Ids = dict[str, str]


@pytest.fixture
def shell(filled: Runner, tmp_path: Path) -> Runner:
    """A runner with names that are hard to complete, and remem in PATH."""
    filled.add("one", "--collection", "my project", "--session", "sitzung \u00df")
    filled.add("two", "--collection", "\u65e5\u672c\u8a9e", "--agent", "o'brien")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "remem").write_text(f'#!/bin/sh\nexec {" ".join(REMEM)} "$@"\n')
    (bin_folder / "remem").chmod(0o755)
    filled.env["PATH"] = f"{bin_folder}:{filled.env['PATH']}"
    for name in completion.SHELLS:
        done = filled("completion", name, code=0)
        assert done.err == "" and "@@" not in done.out
        (filled.home / f"script.{name}").write_text(done.out)
    return filled


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


# -- bash ---------------------------------------------------------------------------------------


def bash(run: Runner, *words: str) -> list[str]:
    """What the function of the script offers for the last word."""
    needs("bash")
    code = (
        'source "$HOME/script.bash"; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); '
        '_remem; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code, "_", "remem", *words],
        env=run.environment(),
        cwd=run.cwd,
        capture_output=True,
        check=True,
        text=True,
    )
    return [line for line in done.stdout.splitlines() if line]


def test_bash_completes_commands_options_and_choices(shell: Runner) -> None:
    assert set(bash(shell, "")) == {c.name for c in table.COMMANDS}
    assert bash(shell, "sh") == ["show"]
    assert bash(shell, "--json", "lo") == [c.name for c in table.COMMANDS if c.name[:2] == "lo"]
    assert bash(shell, "recall", "--ro") == ["--role"]
    assert bash(shell, "recall", "--role", "") == ["user", "assistant", "tool", "system"]
    assert bash(shell, "recall", "--role", "=", "u") == ["user"]
    assert bash(shell, "recall", "--role=u") == ["--role=user"]
    assert bash(shell, "import", "js") == ["jsonl"]
    assert bash(shell, "import", "jsonl", "js") == []
    assert bash(shell, "config", "get", "recall.l") == ["recall.limit"]
    assert bash(shell, "add", "--at", "") == []


def test_bash_completes_ids_and_scopes(shell: Runner, ids: Ids) -> None:
    name = ids["api"]
    assert bash(shell, "show", name[:4]) == [name[: completion.DIGITS]]
    assert bash(shell, "show", name[:20]) == [name]
    assert name[: completion.DIGITS] in bash(shell, "show", "")
    assert bash(shell, "--collection", "my") == [r"my\ project"]
    assert bash(shell, "--collection", '"my') == ["my project"]
    assert bash(shell, "--collection", r"my\ p") == [r"my\ project"]
    assert bash(shell, "--collection", "\u65e5") == ["\u65e5\u672c\u8a9e"]
    assert bash(shell, "--session", "l") == ["later"]
    inside = bash(shell, "--collection", r"my\ project", "--session", "s")
    assert inside == [r"sitzung\ " + "\u00df"]
    other = bash(shell, "--collection", "other", "show", ids["other"][:5])
    assert other == [ids["other"][: completion.DIGITS]]
    assert bash(shell, "show", ids["other"][:8]) == []


def test_bash_runs_nothing_that_was_typed(shell: Runner) -> None:
    for word in ("$(touch gone)", "`touch gone`", "';touch gone;'", '"$(touch gone)'):
        bash(shell, "show", word)
        bash(shell, "--collection", word)
        bash(shell, "--store", word, "show", "a")
    assert not (shell.cwd / "gone").exists()


def test_bash_is_quiet_without_a_store(shell: Runner) -> None:
    assert bash(shell, "--store", "/no/such", "show", "ab") == []


# -- interactive shells -------------------------------------------------------------------------

SETUP = {
    "bash": """
        source "$HOME/script.bash"
        keep() { printf %s "$READLINE_LINE" > $HOME/line.new; mv $HOME/line.new $HOME/line; }
        bind -x '"\\C-t": keep'
        touch "$HOME/ready"
    """,
    "zsh": """
        bindkey -e; unsetopt beep; LISTMAX=1000
        autoload -U compinit; compinit -u -D
        source "$HOME/script.zsh"
        keep() { print -rn -- "$BUFFER" > $HOME/line.new; mv $HOME/line.new $HOME/line }
        zle -N keep; bindkey '^T' keep
        touch "$HOME/ready"
    """,
}
ARGV = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


class Interactive:
    """A shell on a terminal of its own, in which keys are pressed."""

    def __init__(self, run: Runner, name: str) -> None:
        needs(name)
        self.home = run.home
        self.child, self.master = pty.fork()
        if self.child == 0:
            try:
                os.chdir(run.cwd)
                os.execvpe(name, ARGV[name], run.environment({"TERM": "vt100"}))
            finally:
                os._exit(127)
        os.write(self.master, "\n".join(map(str.strip, SETUP[name].split("\n"))).encode() + b"\n")
        self._wait("ready")

    def _wait(self, name: str) -> Path:
        path = self.home / name
        deadline = time.monotonic() + 20
        while not path.exists():
            assert time.monotonic() < deadline, f"the shell did not answer ({name})"
            if select.select([self.master], [], [], 0.02)[0]:
                os.read(self.master, 65536)
        return path

    def line(self, typed: str) -> str:
        """The line after something was typed and the completion key was pressed."""
        os.write(self.master, b"\x15" + typed.encode() + b"\t\x14")
        path = self._wait("line")
        found = path.read_text()
        path.unlink()
        return found

    def close(self) -> None:
        os.close(self.master)
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_a_shell_completes_as_one_types(shell: Runner, ids: Ids, name: str) -> None:
    at = Interactive(shell, name)
    known = ids["api"]
    try:
        for typed, wanted in [
            ("remem sho", "remem show "),
            ("remem recall --rol", "remem recall --role"),
            ("remem recall --role us", "remem recall --role user "),
            ("remem import js", "remem import jsonl "),
            (f"remem show {known[:5]}", f"remem show {known[: completion.DIGITS]} "),
            ("remem --collection my", r"remem --collection my\ project "),
            (r"remem --collection my\ project --session si", None),
            ("remem --collection \u65e5", "remem --collection \u65e5\u672c\u8a9e "),
            ("remem --json conf", "remem --json config "),
            ("remem config get recall.l", "remem config get recall.limit "),
            ("remem add --file scr", "remem add --file script.txt "),
        ]:
            (shell.cwd / "script.txt").touch()
            wanted = wanted or "remem --collection my\\ project --session sitzung\\ \u00df "
            assert at.line(typed).rstrip(" =") == wanted.rstrip(), typed
    finally:
        at.close()


def test_zsh_offers_commands_with_their_help(shell: Runner) -> None:
    script = (shell.home / "script.zsh").read_text()
    for command in table.COMMANDS:
        assert f"'{command.name}:{command.summary}'" in script


# -- fish ---------------------------------------------------------------------------------------


def fish(run: Runner, line: str) -> dict[str, str]:
    """What fish offers at the end of a line: word and description."""
    needs("fish")
    code = 'source "$HOME/script.fish"; complete -C "$argv[1]"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", code, line],
        env=run.environment(),
        cwd=run.cwd,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stderr == ""
    return dict((*row.split("\t"), "")[:2] for row in done.stdout.splitlines())  # type: ignore[misc]


def test_fish_completes(shell: Runner, ids: Ids) -> None:
    name = ids["api"]
    offered = fish(shell, "remem ")
    assert {c.name: c.summary for c in table.COMMANDS}.items() <= offered.items()
    assert list(fish(shell, "remem sho")) == ["show"]
    assert list(fish(shell, "remem recall --role u")) == ["user"]
    assert fish(shell, "remem recall --ro") == {"--role": "who said it"}
    assert list(fish(shell, "remem import js")) == ["jsonl"]
    found = fish(shell, f"remem show {name[:6]}")
    assert found == {name[: completion.DIGITS]: "the staging API answers on port 8443"}
    assert "my project" in fish(shell, "remem --collection m")
    assert "sitzung \u00df" in fish(shell, "remem --collection 'my project' --session s")
    assert "\u65e5\u672c\u8a9e" in fish(shell, "remem --collection=\u65e5") or (
        "--collection=\u65e5\u672c\u8a9e" in fish(shell, "remem --collection=\u65e5")
    )
    assert list(fish(shell, f"remem --collection other show {ids['other'][:6]}"))


# -- what the scripts ask -----------------------------------------------------------------------


def test_candidates(filled: Runner, ids: Ids) -> None:
    def found(what: str, word: str = "", *words: str) -> list[str]:
        done = filled("completion", "bash", "--candidates", what, "--json", *words, "--", word)
        return [value["value"] for value in done.json]

    name = ids["api"]
    assert found("ids", name[:1].upper())[0][0] == name[0]
    assert found("ids", name[:12]) == [name]
    assert found("ids", "0" * 64) == found("ids", "f" * 65) == found("ids", "xyz") == []
    assert found("ids", "@") == ["@{last}"]
    latest = [ids[k][: completion.DIGITS] for k in ("moved", "hostile", "deploys", "api")]
    assert found("ids") == ["@{last}", *latest]
    assert found("collections") == ["home", "other"] and found("collections", "o") == ["other"]
    assert found("sessions") == ["later", "main"] and found("agents", "n") == ["none"]
    assert found("sessions", "", "--collection", "other") == ["main"]
    shown = filled("completion", "zsh", "--candidates", "ids", ids["hostile"][:8], code=0).out
    assert "\x1b" not in shown and "\\x1b[31mred" in shown


def test_there_are_never_more_than_fifty(run: Runner) -> None:
    run("add", "--lines", stdin="\n".join(f"line {n}" for n in range(2000)), code=0)
    offered = run("completion", "fish", "--candidates", "ids", "a", code=0).out.splitlines()
    assert len(offered) == completion.MOST
    assert all(line.startswith("a") for line in offered)


def test_wrong_uses(run: Runner) -> None:
    assert "no shell" in run("completion", "tcsh", code=2).err
    assert run("completion", "bash", "word", code=2).out == ""
    assert run("completion", "bash", "--candidates", "secrets", code=2).out == ""
    assert run("completion", "bash", "--candidates", "ids", code=5).out == ""
    value = run("completion", "fish", "--json", code=0).json
    assert value["shell"] == "fish" and value["script"].startswith("# Completion of remem")


def test_every_option_of_the_table_is_in_every_script(shell: Runner) -> None:
    scripts = {name: (shell.home / f"script.{name}").read_text() for name in completion.SHELLS}
    for command in table.COMMANDS:
        for opt in (*command.opts, *table.GLOBALS):
            for flag in opt.flags:
                assert flag in scripts["bash"] and flag in scripts["zsh"], flag
                short = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                assert short in scripts["fish"], flag
