"""The hook of fish in a real fish."""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.hooks.terminal import Desk, Terminal, need
from tests.hooks.test_shell_bash import CLEAN, SECRETS


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    need("fish")
    return Desk(tmp_path)


class Fish(Terminal):
    """A fish: it draws its prompt again at every key, so a line ends with silence."""

    def __init__(self, desk: Desk, **env: str) -> None:
        rc = f"function fish_prompt; echo '@=@'; end\nsource {desk.hook('fish')}\n"
        super().__init__(desk.rc("fish", rc), desk, env)
        self.rest()

    def rest(self) -> str:
        """What is printed until nothing comes for a while."""
        last = time.monotonic()
        while time.monotonic() - last < 0.4:
            if select.select([self.fd], [], [], 0.05)[0]:
                self.seen += os.read(self.fd, 1 << 16).decode("utf-8", "replace")
                last = time.monotonic()
        told, self.seen = self.seen, ""
        return told.replace("\r", "")

    def say(self, line: str) -> str:
        """Type a line and wait for silence."""
        self.type(line + "\n")
        return self.rest()


def test_commands_with_their_circumstances(desk: Desk) -> None:
    git = desk.work / "repo" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/topic/one\n")
    began = time.time()
    with Fish(desk) as fish:
        fish.say("cd repo")
        fish.say("sleep 0.2; false")
        assert "<1>" in fish.say('echo "<$status>"')
        fish.type("sleep 30\n")
        time.sleep(0.5)
        fish.type("\x03")
        fish.rest()
        fish.say("no-such-command-here")
        assert "<127>" in fish.say('echo "<$status>"')
    lines = desk.lines
    assert [line["exit"] for line in lines] == [0, 1, 0, 130, 127, 0]
    assert (lines[0]["cwd"], lines[0]["head"]) == (str(desk.work), "")
    assert (lines[1]["cwd"], lines[1]["head"]) == (str(desk.work / "repo"), "topic/one")
    assert lines[1]["tty"].startswith("/dev/pts/")
    assert began * 1e6 - 1e6 < lines[1]["at"] < time.time() * 1e6 + 1e6
    assert 200_000 <= lines[1]["took"] < 5_000_000
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert {oct(file.stat().st_mode & 0o777) for file in desk.files} == {"0o600"}


def test_text_comes_back_as_it_was(desk: Desk) -> None:
    texts = [
        "echo 'a' \"b\" \\\\ (echo d) >/dev/null",
        "echo é 漢字 \U0001f600 >/dev/null",
        'echo "two\nlines" >/dev/null',
        ": " + "x" * 2000,
    ]
    with Fish(desk) as fish:
        for text in texts:
            fish.say(text)
    assert desk.commands == texts


def test_what_is_left_out(desk: Desk) -> None:
    (desk.work / "private").mkdir()
    (desk.work / "private" / ".rememignore").touch()
    with Fish(desk) as fish:
        fish.say(" true hidden")
        fish.say("cd private")
        fish.say("true inside")
        fish.say("cd ..")
        fish.say("set -g REMEM_OFF 1")
        fish.say("set -e REMEM_OFF")
        fish.say("set -g fish_private_mode 1")
        fish.say("true private")
    assert desk.commands == ["cd private", "set -e REMEM_OFF"]
    assert desk.skipped == ["space", "ignored", "ignored", "off", "private", "private"]


def test_secrets_do_not_reach_the_spool(desk: Desk) -> None:
    """The redaction alone: each line through the hook's own function."""
    lines = [
        *SECRETS,
        *CLEAN,
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----x",
    ]
    hook = desk.hook("fish").read_text().replace("status is-interactive; and not", "not")
    (desk.home / "all.fish").write_text(
        f"{hook}\nfor line in $argv; __remem_redact $line; echo @; end\n"
    )
    done = subprocess.run(
        [need("fish"), desk.home / "all.fish", *lines],
        env=desk.env,
        capture_output=True,
        check=True,
        text=True,
    )
    told = done.stdout.removesuffix("\n@\n").split("\n@\n")
    assert len(told) == len(lines)
    assert [secret for secret in SECRETS.values() if secret in done.stdout] == []
    assert told[len(SECRETS) : -1] == CLEAN
    assert told[-1] == "[redacted:private-key]x"


def test_functions_with_the_names_of_builtins(desk: Desk) -> None:
    typed = [f"function {name}; builtin echo OWN; end" for name in ("math", "printf", "echo")]
    typed += ["true 'a\"b'", "false"]
    with Fish(desk) as fish:
        for line in typed:
            fish.say(line)
    assert desk.commands == typed
    assert [line["exit"] for line in desk.lines][-2:] == [0, 1]


def test_control_characters(desk: Desk) -> None:
    hook = desk.hook("fish").read_text().replace("status is-interactive; and not", "not")
    (desk.home / "all.fish").write_text(f"{hook}\n__remem_json $argv[1]\n")
    text = 'a\tb\x1b\x01\\"\r\nend\n\n'
    done = subprocess.run(
        [need("fish"), desk.home / "all.fish", text], env=desk.env, capture_output=True, check=True
    )
    assert done.stdout == b'a\\u0009b\\u001b\\u0001\\\\\\"\\u000d\\nend\\n\\n\n'


def test_no_process_is_started_at_a_prompt(desk: Desk) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = desk.home / "trace"
    hook = desk.hook("fish").read_text().replace("status is-interactive; and not", "not")
    lines = "emit fish_preexec 'true x'\nemit fish_postexec 'true x'\n"
    counts = []
    for times in (1, 21):
        (desk.home / "all.fish").write_text(hook + lines * times)
        subprocess.run(
            [
                strace,
                "-f",
                "-o",
                trace,
                "-e",
                "trace=process",
                need("fish"),
                desk.home / "all.fish",
            ],
            env=desk.env,
            cwd=desk.work,
            capture_output=True,
            check=False,
        )
        if not trace.exists() or not trace.read_text():
            pytest.skip("strace cannot trace here")
        counts.append(len(re.findall(r"\bexecve\(|\b(?:fork|vfork)\(|SIGCHLD", trace.read_text())))
    assert len(desk.commands) == 22
    assert counts[0] == counts[1] > 1


def test_a_store_that_goes_away_and_comes_back(desk: Desk) -> None:
    with Fish(desk) as fish:
        fish.say("true one")
        shutil.rmtree(desk.store)
        told = fish.say("true two")
        assert "rror" not in told and "arning" not in told
        (desk.store / "spool").mkdir(parents=True, mode=0o700)
        fish.say("true three")
    assert desk.commands == ["true three"]
