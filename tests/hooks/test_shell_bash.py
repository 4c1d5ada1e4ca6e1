"""The hook of bash in a real bash: what it captures and leaves out, and that nobody sees it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hooks.terminal import PROMPT, Desk, Terminal, need


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    need("bash")
    return Desk(tmp_path)


@pytest.fixture
def bash(desk: Desk) -> Iterator[Terminal]:
    """A bash with the hook and nothing else."""
    with start(desk) as terminal:
        yield terminal


def start(desk: Desk, before: str = "", after: str = "", **env: str) -> Terminal:
    rc = f"PS1='{PROMPT}'\n{before}\n. {desk.hook('bash')}\n{after}\n"
    return Terminal(desk.rc("bash", rc), desk, env)


def plain(desk: Desk, text: str = "") -> Terminal:
    """A bash without the hook."""
    return Terminal(desk.rc("bash", f"PS1='{PROMPT}'\n{text}\n"), desk)


def one(desk: Desk) -> dict[str, object]:
    (line,) = desk.lines
    return line


# -- what is captured ---------------------------------------------------------------------------


def test_a_command_with_its_circumstances(desk: Desk, bash: Terminal) -> None:
    began = time.time()
    assert bash.run("sleep 0.2; false") == ""
    line = one(desk)
    assert line["cmd"] == "sleep 0.2; false"
    assert (line["remem"], line["seq"], line["exit"]) == (1, 0, 1)
    assert line["cwd"] == str(desk.work)
    assert str(line["tty"]).startswith("/dev/pts/")
    assert began * 1e6 < line["at"] < time.time() * 1e6  # type: ignore[operator]
    assert 200_000 < line["took"] < 5_000_000  # type: ignore[operator]


def test_exit_statuses_as_the_shell_has_them(desk: Desk, bash: Terminal) -> None:
    bash.run("false")
    bash.type("sleep 30\n")
    time.sleep(0.3)
    bash.interrupt()
    bash.run("no-such-command-here")
    bash.run("(exit 42)")
    bash.run("true")
    assert [line["exit"] for line in desk.lines] == [1, 130, 127, 42, 0]


def test_the_folder_and_branch_are_those_of_the_start(desk: Desk, bash: Terminal) -> None:
    git = desk.work / "repo" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/topic/one\n")
    (desk.work / "repo" / "deep").mkdir()
    bash.run("cd repo/deep")
    bash.run("echo 'ref: refs/heads/two' >../.git/HEAD")
    (desk.work / "linked").mkdir()
    (desk.work / "linked" / ".git").write_text("gitdir: ../repo/.git\n")
    bash.run("cd ../../linked")
    bash.run(":")
    found = [(Path(str(line["cwd"])).name, line["head"]) for line in desk.lines]
    assert found == [("work", ""), ("deep", "topic/one"), ("deep", "two"), ("linked", "two")]


def test_one_line_typed_is_one_line_kept(desk: Desk, bash: Terminal) -> None:
    assert bash.run("x=$(echo hi)") == ""
    assert bash.run('echo "[$x]"') == "[hi]\n"
    bash.run("( pwd ) &")
    bash.run("wait")
    bash.run("for f in $(ls /); do echo $f; done >/dev/null")
    bash.run("f() { echo in f; }; f | cat")
    assert desk.commands == [
        "x=$(echo hi)",
        'echo "[$x]"',
        "( pwd ) &",
        "wait",
        "for f in $(ls /); do echo $f; done >/dev/null",
        "f() { echo in f; }; f | cat",
    ]


def test_text_comes_back_as_it_was(desk: Desk) -> None:
    texts = [
        """echo 'a' "b" `echo c` \\\\ $(echo d) >/dev/null""",
        "printf '%s' \"tab\there\" >/dev/null",
        "echo \x1b[31m\x01\x7f >/dev/null",
        "echo é 漢字 \U0001f600",
        ": " + "x" * 5000 + " & y && z <>/dev/null || true # %s \\n $HOME",
    ]
    desk.feed("\n".join(texts) + "\n")
    assert desk.commands == texts


def test_bytes_that_are_no_text_are_kept(desk: Desk) -> None:
    desk.feed(": \udcff\udc80 x\n")
    (file,) = desk.files
    assert b": \xff\x80 x" in file.read_bytes()


def test_several_lines_are_one_command(desk: Desk, bash: Terminal) -> None:
    bash.type("cat <<X >/dev/null\n")
    bash.type('first "line"\n')
    bash.type("second\\n\n")
    bash.run("X")
    bash.type("for i in 1 2; do\n")
    bash.run("echo $i; done >/dev/null")
    assert desk.commands[0] == 'cat <<X >/dev/null\nfirst "line"\nsecond\\n\nX\n'
    assert desk.commands[1] == "for i in 1 2; do echo $i; done >/dev/null"


def test_a_command_of_a_megabyte(desk: Desk) -> None:
    words = "word 'q' \"p\" \\\\ " * 64000
    began = time.monotonic()
    desk.feed(f"set +o histexpand\n: {words}\ntrue\n")
    assert desk.commands[1] == f": {words}".rstrip(" ") or desk.commands[1] == f": {words}"
    assert time.monotonic() - began < 20


def test_a_syntax_error_is_no_command(desk: Desk, bash: Terminal) -> None:
    assert "syntax error" in bash.run("if then )")
    bash.run("true")
    assert desk.commands == ["true"]


def test_repeats_are_kept_although_the_history_drops_them(desk: Desk) -> None:
    with start(desk, "HISTCONTROL=ignoreboth") as bash:
        bash.run("true a")
        bash.run("true a")
        bash.run(" true hidden")
        bash.run("true a")
    assert desk.commands == ["true a"] * 3
    assert desk.skipped == ["history"]


@pytest.mark.parametrize("control", ["erasedups", "ignoredups:erasedups", "erasedups:ignorespace"])
def test_erasedups(desk: Desk, control: str) -> None:
    with start(desk, f"HISTCONTROL={control}") as bash:
        for line in ("true a", "true b", "true a", "true a", "true c", "true b"):
            bash.run(line)
    assert desk.commands == ["true a", "true b", "true a", "true a", "true c", "true b"]


# -- what is left out ---------------------------------------------------------------------------


def test_a_leading_blank_hides_a_command(desk: Desk) -> None:
    # A tab would complete at a terminal; from a pipe it comes through.
    desk.feed(" export MARKER=abc\n\ttrue marker\ntrue seen\n")
    assert desk.skipped == ["space", "space"]
    assert desk.commands == ["true seen"]
    assert "marker" not in desk.files[0].read_text().lower()


def test_a_leading_blank_can_be_kept(desk: Desk) -> None:
    desk.feed(" true pasted\n", REMEM_SPACED="1")
    assert desk.commands == [" true pasted"]


def test_what_the_history_leaves_out(desk: Desk) -> None:
    rc = f"HISTCONTROL=ignoreboth HISTIGNORE='secret*:ls'\n. {desk.hook('bash')}\n"
    desk.feed("true one\n true two\nsecret() { :; }\nls >/dev/null\nls\ntrue three\n", rc=rc)
    assert desk.commands == ["true one", "ls >/dev/null", "true three"]
    assert desk.skipped == ["history"] * 3


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("unset HISTFILE", "history-off"),
        ("HISTFILE=", "history-off"),
        ("HISTFILE=/dev/null", "history-off"),
        ("REMEM_OFF=1", "off"),
    ],
)
def test_off_switches(desk: Desk, line: str, why: str) -> None:
    desk.feed(f"true before\n{line}\ntrue marker-of-this\n")
    assert desk.commands == ["true before"]
    assert desk.skipped == [why, why]


def test_no_history_at_all(desk: Desk) -> None:
    desk.feed("set +o history\ntrue marker-of-this\nset -o history\ntrue after\n")
    assert desk.commands == ["set +o history", "true after"]
    assert desk.skipped == ["history"] * 2


def test_off_from_the_environment_and_on_again(desk: Desk) -> None:
    desk.feed("true one\nREMEM_OFF=0\ntrue two\n", REMEM_OFF="1")
    assert desk.commands == ["REMEM_OFF=0", "true two"]


@pytest.mark.parametrize(("text", "hides"), [("", True), ("*\n", True), ("build/\n", False)])
def test_an_ignore_marker(desk: Desk, text: str, hides: bool) -> None:
    below = desk.work / "private" / "deep"
    below.mkdir(parents=True)
    (desk.work / "private" / ".rememignore").write_text(text)
    desk.feed("cd private/deep\ntrue inside\ncd ../..\ntrue outside\n")
    kept = ["true inside", "cd ../.."]
    assert desk.commands == ["cd private/deep", *([] if hides else kept), "true outside"]


SECRETS = {
    "export AWS_KEY=AKIAIOSFODNN7EXAMPLQ": "AKIAIOSFODNN7EXAMPLQ",
    "git clone https://ghp_abcdefghijklmnop0123@example.org/x": "ghp_abcdefghijklmnop0123",
    "echo github_pat_11ABCDEFG0123456789_abc": "github_pat_11ABCDEFG0123456789_abc",
    "curl -H 'Authorization: Bearer abc.def-ghi' x": "abc.def-ghi",
    "slack xoxb-123456789-abcdef": "xoxb-123456789-abcdef",
    "ask sk-proj-abcdefghijklmnop": "sk-proj-abcdefghijklmnop",
    "lab glpat-abcdefghijklmnop12": "glpat-abcdefghijklmnop12",
    "git push https://me:hunter22@example.org/x.git": "hunter22",
    "MY_TOKEN=tok3nvalue make": "tok3nvalue",
    "PGPASSWORD='pass word' psql": "pass word",
    "tool --password hunter23 --port 22": "hunter23",
    "tool --api-key=hunter24": "hunter24",
    "mysql -u root -phunter25 db": "hunter25",
    "sshpass -p hunter26 ssh host": "hunter26",
    "docker login -u me -p hunter27 host": "hunter27",
    "curl -u me:hunter28 https://example.org": "hunter28",
    'curl -d \'{"password": "hunter29"}\' x': "hunter29",
    "aws configure set aws_secret_access_key hunter/30": "hunter/30",
    "curl -H 'X-Api-Key: hunter31' x": "hunter31",
    "curl -H 'Cookie: session=hunter32' x": "hunter32",
    "curl -H 'Authorization: Basic YWRtaW46aHVudGVyMzM=' x": "YWRtaW46aHVudGVyMzM",
    "curl 'https://example.org/?a=b&sig=hunter34'": "hunter34",
    "redis-cli -h x -a hunter35 ping": "hunter35",
    "mongosh -u a -p hunter36": "hunter36",
    "MYSQL_PWD=hunter37 mysql": "hunter37",
    "export SSHPASS=hunter38": "hunter38",
    "echo 'password: hunter39' > f.yml": "hunter39",
    "echo 'db_password = \"hunter40\"' >> f.toml": "hunter40",
    "openssl enc -aes-256-cbc -k hunter41 -in f": "hunter41",
    "openssl rsa -passin pass:hunter42 -in f": "hunter42",
    "zip -P hunter43 f.zip f": "hunter43",
    "7z x -phunter44 f.7z": "hunter44",
    "vault login hvs.abcdefghijklmnopqrstuvwx": "hvs.abcdefghijklmnopqrstuvwx",
    "curl https://hooks.slack.com/services/T0/B0/hunter45hunter45hunter45 -d x": "hunter45",
    "curl https://example.org/api/webhooks/123456/hunter46hunter46hunter46": "hunter46",
    "echo 'root:hunter47' | chpasswd": "hunter47",
    "sudo -S true <<< hunter48": "hunter48",
    "echo hunter49 | sudo -S true": "hunter49",
    "smbclient //h/s -U me%hunter50": "hunter50",
    "ldapsearch -D cn=a -w hunter51 -b x": "hunter51",
    "rabbitmqctl add_user me hunter52": "hunter52",
    "htpasswd -b f me hunter53": "hunter53",
    "read -r PASS <<< hunter54": "hunter54",
    "TOKEN=$'hunter55' make": "hunter55",
    "tool -password hunter56": "hunter56",
    "tool --secret-id=hunter57": "hunter57",
    "ssh-keygen -q -N 'hunter58' -f k": "hunter58",
    "nmcli dev wifi connect AP password hunter59": "hunter59",
    "wpa_passphrase AP hunter60": "hunter60",
    "git config user.password hunter61": "hunter61",
    "set -gx DB_PASSWORD hunter62": "hunter62",
    "echo hunter63 | docker login --password-stdin": "hunter63",
}
CLEAN = [
    "git commit -m 'rotate the token of the bot'",
    "mkdir -p keys/secret && ssh -p 2222 host",
    "max_tokens=4096 ./run --tokenizer fast",
    "grep -rn password= src",
    "TOKEN=$(cat file) make; echo $PASSWORD",
    "curl https://example.org:8080/path@2x.png",
    "task-queue-monitor-of-mine --basket-key",
    "git commit -m 'token: make the parser faster'",
    "echo basic training; zip -r f.zip f; unzip -p f.zip x",
    "sudo apt-get install 7zip && echo done | sort",
    "test token == pass || ssh-keygen -t ed25519 -f key",
    "cat <<< hello | tr a-z A-Z",
]


def test_secrets_do_not_reach_the_spool(desk: Desk) -> None:
    lines = [f": {line}" for line in (*SECRETS, *CLEAN)]
    desk.feed("set +o histexpand\n" + "\n".join(lines) + "\n")
    text = b"".join(file.read_bytes() for file in desk.files)
    assert [value for value in SECRETS.values() if value.encode() in text] == []
    assert desk.commands[1 : 1 + len(SECRETS)][8].startswith(": MY_TOKEN=[redacted:password] make")
    assert desk.commands[1 + len(SECRETS) :] == lines[len(SECRETS) :]


def test_a_private_key_is_cut_out(desk: Desk) -> None:
    begin, end = "-----BEGIN OPENSSH PRIVATE KEY-----", "-----END OPENSSH PRIVATE KEY-----"
    with start(desk) as bash:
        bash.type(f"cat >/dev/null <<X\n{begin}\nb3BlbnNzaC1r\n{end}\n")
        bash.run("X")
    assert desk.commands == ["cat >/dev/null <<X\n[redacted:private-key]\nX\n"]


def test_a_large_command_with_a_secret_is_left_out(desk: Desk) -> None:
    filler = "word " * 20000
    desk.feed(f": {filler} TOKEN=abcdefgh1\n: {filler} key\n")
    assert desk.skipped == ["secret"]
    assert desk.commands == [f": {filler} key"]


# -- nobody sees it -----------------------------------------------------------------------------

SESSION = [
    "false",
    'echo "$? $_"',
    "true one two",
    'echo "$?" "$_"',
    "false | true | (exit 3)",
    'echo "${PIPESTATUS[@]}"',
    "[[ abc =~ b(.) ]]",
    'echo "${BASH_REMATCH[@]}" "$?"',
    "export MY_TOKEN=abcdefgh; [[ abc =~ (a)b ]]",
    'echo "${BASH_REMATCH[1]}"',
    "set -- a b; REPLY=r; IFS=:",
    'echo "$1$2$#$REPLY$IFS"',
    "IFS=_re; set -u",
    "echo a_b_c",
    "echo $nothing",
    "set +u; unset IFS; set -C",
    "umask 0; umask",
    "umask 022; set -o posix; echo $-",
    "set +o posix; shopt -s extdebug; shopt -u extdebug; set +T; echo $-",
    "trap",
    "jobs; echo $!",
    "set -f; echo *; set +f",
    "shopt -s nocasematch nullglob failglob; echo ok; shopt -u nocasematch nullglob failglob",
    "cd /tmp; pwd; cd - >/dev/null",
    "history -c; history",
    "LC_ALL=C; echo ok; LC_ALL=C.UTF-8",
    "echo $HISTCONTROL.$HISTTIMEFORMAT.",
    "HISTTIMEFORMAT='%F '; echo x",
    "umask 777; true; umask 022",
    "alias printf=false local=false history=false; true",
    "unalias -a; RANDOM=3; echo $RANDOM",
]


def test_a_session_prints_the_same_with_and_without_the_hook(desk: Desk) -> None:
    told = []
    for begin in (plain, start):
        with begin(desk) as bash:
            told.append([bash.run(line) for line in SESSION])
    assert told[0] == told[1]
    assert told[0][1] == "1 false\n"  # the session says something
    kept = [line.replace("abcdefgh", "[redacted:password]") for line in SESSION]
    assert desk.commands == [line for line in kept if not line.startswith("history -c")]
    assert {oct(file.stat().st_mode & 0o777) for file in desk.files} == {"0o600"}


def test_set_e_does_not_end_the_shell(desk: Desk) -> None:
    told = desk.feed("set -e\n! true\ntrue\necho alive\n")
    assert "alive" in told
    assert desk.commands == ["set -e", "! true", "true", "echo alive"]


@pytest.mark.parametrize(
    "before",
    [
        "set -u",
        "readonly HISTTIMEFORMAT='%F '",
        "readonly PS0=",
        "readonly HISTFILE HISTSIZE IFS",
        "alias printf='echo A' local='echo B' if=echo case=echo builtin=echo history=echo",
        ":() { echo C; }; printf() { echo D; }; history() { echo E; }; set() { echo F; }",
    ],
)
def test_odd_start_up_files(desk: Desk, before: str) -> None:
    typed = ["echo one", "(exit 3)", 'echo "a\\b$?"']
    told = []
    for hook in (f". {desk.hook('bash')}", ""):
        rc = f"{before}\nPS1='{PROMPT}'\nHISTFILE=$HOME/h\n{hook}\n".replace(
            "HISTFILE=$HOME/h", "" if "HISTFILE" in before else "HISTFILE=$HOME/h"
        )
        desk.env["HISTFILE"] = str(desk.home / "h")
        with Terminal(desk.rc("bash", rc), desk) as bash:
            told.append([bash.run(line) for line in typed])
    assert told[0] == told[1]
    assert desk.commands == typed
    assert [line["exit"] for line in desk.lines] == [0, 3, 0]


def test_a_locked_prompt_command_is_left_alone(desk: Desk) -> None:
    rc = f"readonly PROMPT_COMMAND='PS1={PROMPT}'\n. {desk.hook('bash')}; echo \"<$?>\"\n"
    with Terminal(desk.rc("bash", rc), desk) as bash:
        assert bash.run("echo one") == "one\n"
    assert desk.feed("true\n", rc=rc).startswith("<0>")
    assert desk.lines == []


def test_a_trap_of_errors_fires_once(desk: Desk) -> None:
    rc = f". {desk.hook('bash')}\nPS1='{PROMPT}'\nHISTFILE=$HOME/h\ntrap 'echo ERR' ERR\n"
    with Terminal(desk.rc("bash", rc), desk) as bash:
        bash.run("true")
        assert bash.run("false") == "ERR\n"
        assert bash.run('echo "<$?>"') == "<1>\n"
    assert desk.commands == ["true", "false", 'echo "<$?>"']


@pytest.mark.parametrize("old", ["BASH_COMPAT=4.2", "shopt -s compat42"])
def test_an_older_bash_is_asked_for(desk: Desk, old: str) -> None:
    with start(desk) as bash:
        bash.run(old)
        assert bash.run("echo 'a\"b\\c'") == 'a"b\\c\n'
        assert "4" in bash.run("echo $BASH_COMPAT")
    assert desk.commands == [old, "echo 'a\"b\\c'", "echo $BASH_COMPAT"]


def test_xtrace_shows_only_the_command(desk: Desk, bash: Terminal) -> None:
    bash.run("set -x")
    assert bash.run("echo traced") == "+ echo traced\ntraced\n"


@pytest.mark.parametrize("first", [True, False])
def test_the_users_prompt_command_sees_what_it_saw(desk: Desk, first: bool) -> None:
    users = """
show() { echo "[$? ${PIPESTATUS[*]} $_]"; }
PROMPT_COMMAND='show;'"$PROMPT_COMMAND"
"""
    with start(desk, users if first else "", "" if first else users) as bash:
        bash.run("true")
        assert bash.run("false").endswith("[1 1 false]\n")
        bash.type("sleep 30\n")
        time.sleep(0.3)
        assert bash.interrupt().endswith("[130 130 30]\n")
        assert bash.run("false | true").splitlines()[-1].startswith("[0 1 0")
        assert "[127 127 " in bash.run("no-such-command-here")
    assert [line["exit"] for line in desk.lines] == [0, 1, 130, 0, 127]


@pytest.mark.parametrize("first", [True, False])
def test_an_array_of_prompt_commands_is_kept(desk: Desk, first: bool) -> None:
    users = "PROMPT_COMMAND+=('echo one:$?' 'echo two:$?')"
    with start(desk, users if first else "", "" if first else users) as bash:
        assert bash.run("(exit 7)") == "one:7\ntwo:7\n"
        bash.run("declare -p PROMPT_COMMAND")
    assert [line["exit"] for line in desk.lines] == [7, 0]


def test_other_histories_read_at_the_prompt_do_not_mix_in(desk: Desk) -> None:
    share = 'PROMPT_COMMAND="history -a; history -c; history -r; $PROMPT_COMMAND"'
    with start(desk, "", share) as one_shell, start(desk, "", share) as other:
        for number in range(3):
            one_shell.run(f"true one {number}")
            other.run(f"true other {number}")
    by_file = [
        [json.loads(line).get("cmd") for line in file.read_text().splitlines()]
        for file in desk.files
    ]
    assert sorted(by_file) == [
        [f"true {name} {number}" for number in range(3)] for name in ("one", "other")
    ]


def test_exported_recursive_and_nested(desk: Desk) -> None:
    hook = desk.hook("bash")
    rc = f"PS1='{PROMPT}'\n. {hook}\n. {hook}\n"
    rc += 'PROMPT_COMMAND="history -a; $PROMPT_COMMAND"; export PROMPT_COMMAND\n. ' + str(hook)
    with Terminal(desk.rc("bash", rc + "\n"), desk) as bash:
        assert bash.run("true outer") == ""
        assert bash.run(f"bash --noprofile --rcfile {desk.home}/rc -i") == ""
        assert bash.run("true inner") == ""
        bash.run("exit")
    by_file = [
        [json.loads(line).get("cmd") for line in file.read_text().splitlines()]
        for file in desk.files
    ]
    assert by_file == [
        ["true outer", f"bash --noprofile --rcfile {desk.home}/rc -i"],
        ["true inner"],
    ]


def test_a_child_without_the_hook_says_nothing(desk: Desk) -> None:
    told = desk.feed(
        "true\nPS1= bash --norc -i <<<'echo in child' 2>&1\n",
        rc="export PROMPT_COMMAND='true user'\n. " + str(desk.hook("bash")) + "\n",
    )
    assert "in child" in told and "not found" not in told
    assert desk.commands == ["true", "PS1= bash --norc -i <<<'echo in child' 2>&1"]


def test_debug_trap_stays(desk: Desk) -> None:
    users = "trap 'echo T' DEBUG; set -T"
    with start(desk, users) as bash:
        bash.run("true")
        told = bash.run("echo a; echo b")
        assert told.startswith("T\na\nT\nb\n")
        assert "trap -- 'echo T' DEBUG" in bash.run("trap -p DEBUG")
    assert desk.commands == ["true", "echo a; echo b", "trap -p DEBUG"]


# The way of the usual library: at the first prompt it puts itself around PROMPT_COMMAND, and its
# DEBUG trap takes what runs after the last line of that for a command of the user.
PREEXEC = r"""
pre_armed=
pre_arm() { pre_armed=1; }
pre_first() { local last=$?; echo "precmd:$last"; }
pre_debug() {
  [[ -t 1 && $pre_armed ]] || return 0
  pre_armed=
  local line
  while read -r line; do [[ $line == "$BASH_COMMAND" ]] && return 0; done <<<"${PROMPT_COMMAND[*]}"
  echo "preexec:$BASH_COMMAND"
}
pre_install() {
  trap pre_debug DEBUG
  local had=${PROMPT_COMMAND//pre_install/}
  PROMPT_COMMAND=$'pre_first\n'"$had"$'\npre_arm'
  pre_first
  pre_arm
}
PROMPT_COMMAND=${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}pre_install
"""


@pytest.mark.parametrize("first", [True, False])
def test_beside_a_preexec_library(desk: Desk, first: bool) -> None:
    with start(desk, PREEXEC if first else "", "" if first else PREEXEC) as bash:
        assert bash.run("false") == "preexec:false\nprecmd:1\n"
        assert bash.run("(exit 5)") in ("precmd:5\n", "preexec:(exit 5)\nprecmd:5\n")
        assert bash.run("echo hi") == "preexec:echo hi\nhi\nprecmd:0\n"
        assert bash.run("echo ho") == "preexec:echo ho\nho\nprecmd:0\n"
    assert desk.commands == ["false", "(exit 5)", "echo hi", "echo ho"]
    # The library came in between once: then the status is not known, rather than wrong.
    assert [line["exit"] for line in desk.lines] == [None, 5, 0, 0]


def test_the_start_time_survives_a_new_ps0(desk: Desk, bash: Terminal) -> None:
    bash.run("PS0='<run>'")
    assert bash.run("sleep 0.1") == "<run>"
    assert "_remem" not in bash.run("shopt -u promptvars")
    assert bash.run("true x") == "<run>"
    bash.run("shopt -s promptvars")
    bash.run("true y")
    assert desk.commands[1] == "sleep 0.1" and desk.commands[3:] == [
        "true x",
        "shopt -s promptvars",
        "true y",
    ]
    assert desk.lines[1]["took"] > 100_000
    assert desk.lines[3]["took"] is None


def test_no_process_is_started_at_a_prompt(desk: Desk) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    rc = f". {desk.hook('bash')}\n"
    words = [strace, "-f", "-o", str(desk.home / "trace"), "-e", "trace=process"]
    try:
        done = subprocess.run(
            [*words, *desk.rc("bash", rc)],
            input=b"true first\n" + b"true again\n" * 20 + b"(true control)\n",
            env=desk.env,
            cwd=desk.work,
            capture_output=True,
            timeout=60,
            check=False,
        )
    except OSError:
        pytest.skip("strace cannot trace here")
    trace = (desk.home / "trace").read_text()
    if "ptrace" in done.stderr.decode() or not trace:
        pytest.skip("strace cannot trace here")
    forks = re.findall(r"\b(?:clone3?|fork|vfork)\(", trace)
    # One for a file of the session's own, one for reading the history through; then the control.
    assert len(desk.commands) == 22
    assert len(forks) == 3, trace


# -- stores that are not there ------------------------------------------------------------------


def test_a_store_that_goes_away_and_comes_back(desk: Desk, bash: Terminal) -> None:
    bash.run("true one")
    shutil.rmtree(desk.store)
    assert bash.run("true two") == ""
    assert bash.run("echo x") == "x\n"
    (desk.store / "spool").mkdir(parents=True, mode=0o700)
    assert bash.run("true three") == ""
    assert desk.commands == ["true three"]
    assert oct(desk.files[0].stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize("state", ["missing", "read-only", "a file", "full of something else"])
def test_a_store_that_cannot_take_it(desk: Desk, state: str) -> None:
    spool = desk.store / "spool"
    if state == "missing":
        shutil.rmtree(desk.store)
    elif state == "read-only":
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        spool.chmod(0o500)
    elif state == "a file":
        spool.rmdir()
        spool.write_text("")
    else:
        spool.rmdir()
        spool.symlink_to("/proc")
    with start(desk) as bash:
        assert bash.run("false") == ""
        assert bash.run("echo $?") == "1\n"


def test_a_named_store(desk: Desk) -> None:
    other = desk.home / "other"
    (other / "spool").mkdir(parents=True, mode=0o700)
    desk.feed("true here\nREMEM_STORE=relative\ntrue nowhere\n", REMEM_STORE=str(other))
    (file,) = (other / "spool").glob("*.jsonl")
    assert [json.loads(line)["cmd"] for line in file.read_text().splitlines()] == ["true here"]
    assert desk.files == []


def test_scripts_and_subshells_are_left_alone(desk: Desk) -> None:
    hook = desk.hook("bash")
    script = desk.home / "x.sh"
    script.write_text(f". {hook}\necho ${{PROMPT_COMMAND-none}} ${{PS0-none}}\n")
    done = subprocess.run([need("bash"), script], env=desk.env, capture_output=True, check=True)
    assert done.stdout == b"none none\n" and done.stderr == b""
    assert desk.files == []


def test_many_shells_at_once_each_to_its_own_file(desk: Desk) -> None:
    rc = f"set +o histexpand\n. {desk.hook('bash')}\n"
    words = desk.rc("bash", rc)
    letters = "abcdefghijkl"
    running = [
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=-3, stderr=-3, env=desk.env, cwd=desk.work
        )
        for _ in letters
    ]
    for letter, process in zip(letters, running, strict=True):
        assert process.stdin is not None
        process.stdin.write(f": {letter * 200_000}\n".encode())
        process.stdin.close()
    assert [process.wait(60) for process in running] == [0] * len(running)
    assert sorted(desk.commands) == [f": {letter * 200_000}" for letter in letters]


def test_long_sessions_go_on_in_further_files(desk: Desk) -> None:
    desk.feed("true\n" * 1003)
    assert [len(file.read_bytes().splitlines()) for file in desk.files] == [1000, 3]
    assert [line["seq"] for line in desk.lines] == list(range(1003))
