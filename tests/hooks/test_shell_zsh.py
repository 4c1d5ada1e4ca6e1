"""The hook of zsh in a real zsh."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.terminal import PROMPT, Desk, Terminal, need
from tests.hooks.test_shell_bash import CLEAN, SECRETS


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    need("zsh")
    return Desk(tmp_path)


@pytest.fixture
def zsh(desk: Desk) -> Iterator[Terminal]:
    """A zsh with the hook and nothing else."""
    with start(desk) as terminal:
        yield terminal


PLAIN = f"PS1='{PROMPT}'\nunsetopt prompt_sp prompt_cr zle beep\nsetopt interactive_comments\n"


def start(desk: Desk, before: str = "", after: str = "", **env: str) -> Terminal:
    rc = f"{PLAIN}{before}\n. {desk.hook('zsh')}\n{after}\n"
    return Terminal(desk.rc("zsh", rc), desk, env)


def feed(desk: Desk, lines: str, rc: str = "", **env: str) -> str:
    """Feed an interactive zsh from a pipe."""
    done = subprocess.run(
        desk.rc("zsh", f"unsetopt zle\n{rc}\n. {desk.hook('zsh')}\n"),
        input=lines.encode("utf-8", "surrogateescape"),
        capture_output=True,
        env={**desk.env, **env},
        cwd=desk.work,
        timeout=60,
        check=False,
    )
    return done.stdout.decode("utf-8", "surrogateescape")


def test_a_command_with_its_circumstances(desk: Desk, zsh: Terminal) -> None:
    git = desk.work / "repo" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/topic/one\n")
    began = time.time()
    zsh.run("cd repo")
    zsh.run("sleep 0.2; (exit 4)")
    first, second = desk.lines
    assert (first["cwd"], first["head"]) == (str(desk.work), "")
    assert (second["cwd"], second["head"]) == (str(desk.work / "repo"), "topic/one")
    assert (second["remem"], second["seq"], second["exit"]) == (1, 1, 4)
    assert second["tty"].startswith("/dev/pts/")
    assert began * 1e6 < second["at"] < time.time() * 1e6
    assert 200_000 < second["took"] < 5_000_000


def test_exit_statuses_and_inner_commands(desk: Desk, zsh: Terminal) -> None:
    zsh.run("false")
    zsh.type("sleep 30\n")
    time.sleep(0.3)
    zsh.interrupt()
    zsh.run("no-such-command-here")
    zsh.run("x=$(echo hi)")
    assert zsh.run('echo "<$x>"') == "<hi>\n"
    zsh.run("( pwd ) &")
    zsh.run("wait")
    zsh.run("for f in $(ls /); do echo $f; done >/dev/null")
    assert [line["exit"] for line in desk.lines] == [1, 130, 127, 0, 0, 0, 0, 0]


def test_text_comes_back_as_it_was(desk: Desk) -> None:
    texts = [
        """echo 'a' "b" `echo c` \\\\ $(echo d) >/dev/null""",
        'print -r "tab\there" >/dev/null',
        "echo $'\\e' \x1b\x01\x7f >/dev/null",
        "echo é 漢字 \U0001f600 >/dev/null",
        "for i in 1 2; do\n  echo $i\ndone >/dev/null",
        "cat >/dev/null <<X\none\n\ntwo \\n %s\nX",
        ": " + "x" * 5000,
    ]
    feed(desk, "\n".join(texts) + "\n")
    assert desk.commands == texts


def test_bytes_that_are_no_text_are_kept(desk: Desk) -> None:
    feed(desk, ": \udcff\udc80 x\n")
    (file,) = desk.files
    assert b": \xff\x80 x" in file.read_bytes()


def test_a_command_of_a_megabyte(desk: Desk) -> None:
    word = "word'q'\"p\"\\\\" * 64000  # one: zsh itself falls over some 100,000 words in a line
    feed(desk, f": {word}\ntrue\n")
    assert desk.commands == [f": {word}", "true"]


def test_blanks_histories_and_switches(desk: Desk) -> None:
    lines = [
        "true one",
        " true hidden",
        "setopt hist_ignore_space",
        " true hidden",
        "HISTORY_IGNORE='true secret*'",
        "true secret thing",
        "setopt hist_no_store",
        "history >/dev/null",
        "REMEM_OFF=1",
        "true off",
        "unset REMEM_OFF",
        "HISTFILE=/dev/null",
        "true off",
    ]
    feed(desk, "\n".join(lines) + "\n")
    hidden = {lines[n] for n in (1, 3, 5, 7, 8, 9, 11, 12)}
    assert desk.commands == [line for line in lines if line not in hidden]
    why = ["space", "space", "history", "history", "off", "off", "history-off", "history-off"]
    assert desk.skipped == why


def test_what_zshaddhistory_refuses(desk: Desk) -> None:
    rc = "zshaddhistory() { [[ $1 != *private* ]] }"
    feed(desk, "true one\ntrue private\ntrue two\ntrue two\ntrue private last\n", rc)
    assert desk.commands[:3] == ["true one", "true two", "true two"]
    assert desk.skipped == ["history"]


def test_a_leading_blank_can_be_kept(desk: Desk) -> None:
    feed(desk, " true pasted\n", REMEM_SPACED="1")
    assert desk.commands == [" true pasted"]


@pytest.mark.parametrize(("text", "hides"), [("", True), ("*\n", True), ("build/\n", False)])
def test_an_ignore_marker(desk: Desk, text: str, hides: bool) -> None:
    (desk.work / "private" / "deep").mkdir(parents=True)
    (desk.work / "private" / ".rememignore").write_text(text)
    feed(desk, "cd private/deep\ntrue inside\ncd ../..\ntrue outside\n")
    kept = [] if hides else ["true inside", "cd ../.."]
    assert desk.commands == ["cd private/deep", *kept, "true outside"]


def test_secrets_do_not_reach_the_spool(desk: Desk) -> None:
    lines = [f": {line}" for line in (*SECRETS, *CLEAN)]
    feed(desk, "\n".join(lines) + "\n", "unsetopt bang_hist")
    text = b"".join(file.read_bytes() for file in desk.files)
    assert [value for value in SECRETS.values() if value.encode() in text] == []
    assert desk.commands[len(SECRETS) :] == lines[len(SECRETS) :]
    filler = "word " * 20000
    feed(desk, f": {filler} TOKEN=abcdefgh1\n")
    assert desk.skipped == ["secret"]


SESSION = [
    "false",
    'echo "$? $_"',
    "true one two",
    'echo "$?" "$_"',
    "false | true | (exit 3)",
    'echo "${pipestatus[@]}"',
    "[[ abc =~ b(.) ]]",
    'echo "$MATCH $match $?"',
    "export MY_TOKEN=abcdefgh; [[ abc =~ a(b) ]]",
    'echo "$match"',
    "set -- a b; REPLY=r; IFS=:",
    'echo "$1$2$#$REPLY$IFS"',
    "IFS=_re; set -u",
    "echo $nothing",
    "set +u; IFS=$' \\t\\n'; setopt no_clobber err_return ksh_arrays",
    "true; echo ok",
    "unsetopt ksh_arrays err_return; setopt sh_word_split glob_subst no_unset",
    "echo ok",
    "unsetopt sh_word_split glob_subst no_unset; setopt no_match",
    "umask 0; umask",
    "umask 022; print -l $precmd_functions | grep -v remem",
    "setopt xtrace; echo traced; unsetopt xtrace",
    "alias print=false local=false; true",
    "LC_ALL=C; echo ok; LC_ALL=C.UTF-8",
]


def test_a_session_prints_the_same_with_and_without_the_hook(desk: Desk) -> None:
    told = []
    for hooked in (False, True):
        users = 'show() { echo "[$? $pipestatus]" }\nprecmd_functions+=(show)'
        rc = desk.rc("zsh", PLAIN + users + (f"\n. {desk.hook('zsh')}" if hooked else "") + "\n")
        with Terminal(rc, desk) as zsh:
            told.append([zsh.run(line) for line in SESSION])
    assert told[0] == told[1]
    assert "1 false\n" in told[0][1]
    assert "[3 1 0 3]\n" in told[0][4]
    kept = [line.replace("abcdefgh", "[redacted:password]") for line in SESSION]
    assert desk.commands == kept
    assert {oct(file.stat().st_mode & 0o777) for file in desk.files} == {"0o600"}


def test_err_exit_does_not_end_the_shell(desk: Desk) -> None:
    assert "alive" in feed(desk, "setopt err_exit\ntrue\necho alive\n")
    assert desk.commands == ["setopt err_exit", "true", "echo alive"]


@pytest.mark.parametrize(
    "before",
    [
        "emulate ksh",
        "emulate sh",
        "setopt ksh_arrays sh_word_split no_glob no_unset err_return",
        "setopt posix_identifiers csh_junkie_loops csh_junkie_quotes rc_expand_param",
        "alias builtin=echo local=echo; alias -g print=echo",
        "print() { echo C }; printf() { echo D }; :() { echo E }",
    ],
)
def test_odd_start_up_files(desk: Desk, before: str) -> None:
    rc = (
        f"HISTFILE=$HOME/h\nPS1='{PROMPT}'\nunsetopt prompt_sp prompt_cr\n"
        f"own() {{ echo own }}\nprecmd_functions=(own)\n{before}\n"
        f"before=$(setopt)\n. {desk.hook('zsh')}\n[[ $(setopt) == $before ]] || echo CHANGED\n"
    )
    with Terminal(desk.rc("zsh", rc), desk) as zsh:
        assert zsh.run("echo one") == "one\nown\n"
        zsh.run("(exit 3)")
        assert zsh.run('echo "<$?>"') == "<3>\nown\n"
        assert "CHANGED" not in zsh.seen
    assert desk.commands == ["echo one", "(exit 3)", 'echo "<$?>"']


def test_locked_arrays_are_left_alone(desk: Desk) -> None:
    rc = (
        f"PS1='{PROMPT}'\nunsetopt prompt_sp prompt_cr\ntypeset -ra precmd_functions\n"
        f". {desk.hook('zsh')} 2>$HOME/errors\n"
    )
    with Terminal(desk.rc("zsh", rc), desk) as zsh:
        assert zsh.run("echo one") == "one\n"
    assert (desk.home / "errors").read_text() == ""
    assert desk.lines == []


def test_a_debug_trap_sees_little_of_the_hook(desk: Desk) -> None:
    rc = (
        f"HISTFILE=$HOME/h\nPS1='{PROMPT}'\nunsetopt prompt_sp prompt_cr\n. {desk.hook('zsh')}\n"
        "TRAPDEBUG() { print -n D; }\n"
    )
    with Terminal(desk.rc("zsh", rc), desk) as zsh:
        zsh.run("true")
        told = zsh.run("echo one")
        assert "one" in told and told.count("D") < 20
        assert "TRAPDEBUG" in zsh.run("functions TRAPDEBUG")
    assert desk.commands == ["true", "echo one", "functions TRAPDEBUG"]


def test_nested_and_sourced_twice(desk: Desk) -> None:
    with start(desk, after=f". {desk.home}/hook.zsh") as zsh:
        zsh.run("true outer")
        zsh.run("zsh -d -i")
        zsh.run("true inner")
        zsh.run("exit")
        zsh.run("true again")
    by_file = [file.read_text().count('"cmd"') for file in desk.files]
    assert by_file == [3, 1]


def test_no_process_is_started_at_a_prompt(desk: Desk) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = desk.home / "trace"
    subprocess.run(
        [
            *(strace, "-f", "-o", str(trace), "-e", "trace=process"),
            *desk.rc("zsh", f"unsetopt zle\n. {desk.hook('zsh')}\n"),
        ],
        input=b"true again\n" * 20 + b"(true control)\n",
        env=desk.env,
        cwd=desk.work,
        capture_output=True,
        timeout=60,
        check=False,
    )
    if not trace.exists() or not trace.read_text():
        pytest.skip("strace cannot trace here")
    forks = re.findall(r"\b(?:clone3?|fork|vfork)\(", trace.read_text())
    assert len(desk.commands) == 21
    assert len(forks) == 2  # one for the file of the session's own, and the control


def test_a_store_that_goes_away_and_comes_back(desk: Desk, zsh: Terminal) -> None:
    zsh.run("true one")
    shutil.rmtree(desk.store)
    assert zsh.run("true two") == ""
    assert zsh.run("echo x") == "x\n"
    (desk.store / "spool").mkdir(parents=True, mode=0o700)
    assert zsh.run("true three") == ""
    assert desk.commands == ["true three"]
    assert oct(desk.files[0].stat().st_mode & 0o777) == "0o600"


def test_scripts_are_left_alone(desk: Desk) -> None:
    script = desk.home / "x.zsh"
    script.write_text(f". {desk.hook('zsh')}\necho <$precmd_functions>$options[aliases]\n")
    done = subprocess.run(
        [need("zsh"), "-f", script], env=desk.env, capture_output=True, check=False
    )
    assert done.stdout.endswith(b"off\n") or done.stdout.endswith(b"on\n") or done.stderr
    assert desk.files == []
