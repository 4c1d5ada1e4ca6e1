"""The commands hook and drain, and what other commands see of the spool."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from remem.hooks import drain
from remem.objects.store import Store

AT = 1_790_000_000_000_000


def spool(run: Any, *commands: str, cwd: str = "/", **more: Any) -> Path:
    """Append commands to the spool as a shell of this process would."""
    path = Path(run.store) / "spool" / f"bash-{AT}-{os.getpid()}-0.jsonl"
    seq = path.read_bytes().count(b"\n") if path.exists() else 0
    with open(path, "a") as stream:
        for number, command in enumerate(commands, seq):
            line = {"remem": 1, "seq": number, "at": AT + number, "exit": 0, "cwd": cwd}
            stream.write(json.dumps(line | {"cmd": command} | more, separators=(",", ":")) + "\n")
    path.chmod(0o600)
    return path


def test_install_and_uninstall(run: Any) -> None:
    rc = run.home / ".bashrc"
    rc.write_bytes(b"alias x=y")
    run.env["SHELL"] = "/bin/bash"
    dry = run("hook", "install", "shell", "--dry-run", code=0)
    assert "+# >>> remem hook" in dry.out and f"+++ {rc}" in dry.out
    assert rc.read_bytes() == b"alias x=y"
    done = run("hook", "install", "shell", code=0)
    assert done.out == f"changed {rc}\ncreated {run.home}/.config/remem/hook.bash\n"
    assert run("hook", "install", "shell", code=0).out == "nothing to do: installed already\n"
    states = {row["name"]: row["state"] for row in run("hook", "status", "--json", code=0).json}
    assert states["bash"] == "installed" and states["zsh"] == "missing"
    assert run("hook", "status", "shell", code=0).out.startswith("shell  bash  installed")
    run("hook", "uninstall", "shell", code=0)
    assert rc.read_bytes() == b"alias x=y"
    told = run("hook", "uninstall", "shell", "--json", code=0).json
    assert told == {"target": "shell", "dry_run": False, "changes": [], "notes": []}


def test_several_shells_by_name(run: Any) -> None:
    told = run("hook", "install", "shell", "--zsh", "--fish", "--json", code=0).json
    paths = [Path(change["path"]).name for change in told["changes"]]
    assert sorted(paths) == [".zshrc", "hook.zsh", "remem.fish"]
    run("hook", "uninstall", "shell", "--zsh", "--fish", code=0)
    assert not (run.home / ".zshrc").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_print(run: Any, shell: str) -> None:
    text = run("hook", "print", shell, code=0).out
    assert str(run.store) in text and "@" + "STORE@" not in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text.encode(), check=True)


def test_print_git(run: Any, tmp_path: Path) -> None:
    told = run("hook", "print", "git", "--json", code=0).json
    assert run("hook", "print", "git", code=0).out == told["script"]
    run("init", code=0)
    # Put in place by hand, it does what an installation does.
    script = Path(told["file"])
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(told["script"])
    repo = tmp_path / "repo"
    env = {"PATH": os.environ["PATH"], "HOME": str(run.home), "GIT_CONFIG_NOSYSTEM": "1"}
    git = ["git", "-C", str(repo), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run(["git", "init", "-q", str(repo)], env=env, check=True)
    for line in told["lines"]:
        (event,) = [word for word in line.split() if word.startswith("post-")]
        hook = repo / ".git" / "hooks" / event
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{line}\n")
        hook.chmod(0o755)
    words = [*git, "commit", "-q", "--allow-empty", "-m", "by hand"]
    subprocess.run(words, env=env, check=True)
    assert run("drain", "--json", code=0).json["new"] == 1


def test_without_git_the_lines_of_shells_come_in(filled: Any) -> None:
    noted = Path(filled.store) / "spool" / "git-1790000000-1"
    fields = ("post-commit", "1790000000", "/", "/.git", "a" * 40, *("",) * 6)
    noted.write_bytes(b"\0".join(f.encode() for f in ("remem-git-1", *fields, "end")) + b"\0")
    spool(filled, "echo of a shell")
    filled.env["PATH"] = "/nonexistent"
    done = filled("drain", "--json", code=0).json
    assert done["new"] == 1 and done["left"] and "cannot run git" in done["troubles"][0]
    told = filled("drain", code=0)
    assert "what the hooks of git noted waits" in told.err
    assert noted.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["frobnicate"],
        ["install"],
        ["install", "nowhere"],
        ["print"],
        ["print", "tcsh"],
        ["print", "bash", "--bash"],
        ["status", "--dry-run"],
        ["install", "shell"],  # no shell named, none known
    ],
)
def test_wrong_words(run: Any, words: list[str]) -> None:
    result = run("hook", *words, code=2)
    assert result.err.startswith("remem: ")
    assert "hint: " in result.err or "takes no" in result.err


def test_what_was_just_run_is_recalled(filled: Any) -> None:
    path = spool(filled, "terraform apply zone-north")
    found = filled("recall", "terraform", "--json", code=0).json["hits"]
    assert [hit["text"] for hit in found] == ["terraform apply zone-north"]
    assert found[0]["kind"] == "command" and found[0]["source"]["uri"].startswith("shell:bash-")
    assert b"terraform" not in path.read_bytes()
    assert filled("drain", code=0).out.startswith("read 0: ")
    rows = filled("audit", "--json", code=0).json
    assert [row["surface"] for row in rows if row["surface"] == "hook"]


def test_drain_and_status(filled: Any) -> None:
    spool(filled, "one", "two")
    path = spool(filled)
    with open(path, "a") as stream:
        stream.write(f'{{"remem":1,"seq":2,"at":{AT},"skip":"space"}}\n')
    before = filled("status", "--json", code=0).json["spool"]
    assert before["waiting_b"] == path.stat().st_size and before["skipped"] == {"space": 1}
    assert before["oldest_at"].endswith("Z")
    shown = filled("status", code=0).out
    assert "wait to be taken in since" in shown and "1: it began with a blank" in shown
    assert filled("drain", code=0).out == (
        "read 3: new 2, known 0, skipped 1, blocked 0, rejected 0\n"
    )
    after = filled("status", "--json", code=0).json["spool"]
    assert (after["waiting_b"], after["oldest_at"]) == (0, None)
    assert after["skipped"] == {"space": 1}
    told = filled("drain", "--json", code=0).json
    assert told["read"] == 0 and told["left"] is False


def test_damage_is_a_note(filled: Any) -> None:
    path = spool(filled, "sound")
    with open(path, "ab") as stream:
        stream.write(b"\x00 marker of damage\n")
    done = filled("drain", code=0)
    assert "dropped 1 line of the spool that could not be read" in done.err
    assert "marker" not in done.err
    assert "could not be read" in filled("status", code=0).out


def test_where_commands_go_does_not_depend_on_who_drains(filled: Any) -> None:
    spool(filled, "one command")
    filled("recall", "x", "--tenant", "other", "--collection", "other", "--profile", "p")
    spool(filled, "two command")
    filled("drain", "--tenant", "other", code=0, env={"REMEM_COLLECTION": "third"})
    hits = filled("recall", "command", "--json", code=0).json["hits"]
    assert sorted(hit["text"] for hit in hits) == ["one command", "two command"]
    scope = hits[0]["scope"]
    assert (scope["tenant"], scope["collection"], scope["agent"]) == ("local", "home", "shell")
    (filled.store / "config.toml").write_text('collection = "pinned"\n')
    spool(filled, "three command")
    filled("drain", code=0)
    found = filled("recall", "three", "--json", code=0).json["hits"]
    assert found[0]["scope"]["collection"] == "pinned"


def test_what_was_forgotten_does_not_come_back(filled: Any) -> None:
    spool(filled, "echo launchcode")
    (hit,) = filled("recall", "launchcode", "--json", code=0).json["hits"]
    filled("forget", hit["id"], "--now", "--yes", code=0)
    spool(filled, "echo launchcode")
    assert filled("drain", "--json", code=0).json["blocked"] == 1
    for file in filled.store.rglob("*"):
        assert not file.is_file() or b"launchcode" not in file.read_bytes(), file
    filled("verify", code=0)


def test_verify_and_backup_with_a_drained_spool(filled: Any) -> None:
    spool(filled, "one", "two")
    filled("drain", code=0)
    filled("verify", code=0)
    filled("backup", filled.home / "copy", code=0)
    done = filled("--store", filled.home / "copy", "drain", "--json", code=0).json
    assert (done["new"], done["known"]) == (0, 0)


def _hold(root: str, ready: Any, over: Any) -> None:
    def change(_: object) -> None:
        ready.set()
        over.wait(30)

    Store(root).write(drain.actor_for("local", "default"), change)


def test_a_locked_store_does_not_stop_reading(filled: Any) -> None:
    filled("recall", "staging", code=0)
    spool(filled, "waits meanwhile")
    context = multiprocessing.get_context("spawn")
    ready, over = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(str(filled.store), ready, over))
    holder.start()
    try:
        assert ready.wait(30)
        began = time.monotonic()
        done = filled("show", "--verbose", filled("rev-parse", "@{last}", code=0).out.strip())
        assert time.monotonic() - began < 15  # two processes, each with its patience
        assert done.code == 0 and "the spool waits" in done.err
    finally:
        over.set()
        holder.join()
    assert filled("recall", "meanwhile", code=0).out


def test_nothing_heavy_is_imported_for_an_empty_spool(filled: Any) -> None:
    program = (
        "import sys; from remem.cli.entry import main; main(sys.argv[1:]);"
        "print([m for m in ('remem.hooks.drain', 'remem.hooks.spool', 'difflib', 'threading')"
        " if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [*filled.prefix, sys.executable, "-c", program, "log"],
        env=filled.environment(),
        cwd=filled.cwd,
        capture_output=True,
        check=True,
    )
    assert b"remem.hooks" not in done.stderr


def test_a_captured_session_end_to_end(run: Any) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    run("init", code=0)
    run("hook", "install", "shell", "--bash", code=0)
    script = b"false\necho 'a \"quoted\" word'\n echo hidden\ncurl -u me:hunter22 localhost:1\n"
    for _ in range(2):
        subprocess.run(
            [bash, "--noprofile", "-i"],
            input=script,
            env=run.environment(),
            cwd=run.cwd,
            capture_output=True,
            check=False,
        )
    assert run("drain", code=0).out.startswith("read 8: new 6, known 0, skipped 2")
    entries = run("log", "--json", "--limit", "50", code=0).json
    assert len([entry for entry in entries if entry["op"] == "create"]) >= 6
    for file in run.store.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert b"hunter22" not in data and b"hidden" not in data, file
    run("verify", code=0)
