"""remem owner and the commands that sign, with the person at a terminal of his own."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Runner
from .typed import PASSPHRASE, protect, typed

OTHER = "another phrase altogether"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A protected store with one observation, made once; its verifier key."""
    run = Runner(tmp_path_factory.mktemp("protected") / "home")
    run.add("tea at four")
    return run.store, protect(run)


@pytest.fixture
def store(run: Runner, made: tuple[Path, str]) -> Runner:
    """A runner with a copy of that store."""
    shutil.copytree(made[0], run.store)
    return run


def actions(run: Runner) -> list[tuple[str, str]]:
    return [(r["action"], r["outcome"]) for r in run("audit", "--json", "-n", "99").json]


# -- protecting ---------------------------------------------------------------------------------


def test_a_store_is_protected_once(store: Runner, made: tuple[Path, str]) -> None:
    status = store("owner", "status", "--json", code=0).json
    assert status["protected"] and status["key_file"] == "present" and status["problem"] is None
    assert status["verifier"] == made[1]
    assert stat.S_IMODE(os.stat(store.store / "owner.key").st_mode) == 0o600
    assert PASSPHRASE not in (store.store / "owner.key").read_text()
    again = typed(store, "owner", "protect", answers=[], code=3)
    assert "protected already" in again.err
    assert store("verify", "--key", made[1], code=0).out.count("signed   1 good, 0 bad") == 1


def test_the_passphrase_is_not_shown(run: Runner) -> None:
    run.add("tea")
    done = typed(run, "owner", "protect", answers=[PASSPHRASE, PASSPHRASE])
    assert PASSPHRASE not in done.screen + done.out + done.err
    assert done.screen == "New passphrase of the owner: \nThe same again: \n"


@pytest.mark.parametrize(
    ("answers", "code", "says"),
    [
        (["short", "short"], 2, "fewer than 8"),
        ([PASSPHRASE, OTHER], 2, "not the same"),
        (["\x04"], 3, "no passphrase was given"),
    ],
)
def test_nothing_is_protected_without_a_good_passphrase(
    run: Runner, answers: list[str], code: int, says: str
) -> None:
    run.add("tea")
    end = b"" if answers == ["\x04"] else b"\r"
    done = typed(run, "owner", "protect", answers=answers, code=None, end=end)
    assert done.code == code and says in done.err, done.shown
    assert not (run.store / "owner.key").exists()
    assert run("owner", "status", code=0).out == "not protected: decisions need no signature\n"


def test_an_interrupt_leaves_the_echo_on_and_nothing_done(run: Runner) -> None:
    run.add("tea")
    done = typed(run, "owner", "protect", answers=["half\x03"], code=None, end=b"")
    assert done.code == 130 and not (run.store / "owner.key").exists()


@pytest.mark.parametrize("way", ["stdin", "environment", "argument"])
def test_the_passphrase_comes_from_the_terminal_only(store: Runner, way: str) -> None:
    """No terminal: whatever else holds the passphrase is not looked at."""
    store("forget", "@{last}", "--yes", code=0)
    env = {"REMEM_PASSPHRASE": PASSPHRASE, "PASSPHRASE": PASSPHRASE}
    words = ["purge", "--yes", *([PASSPHRASE] if way == "argument" else [])]
    done = store(
        *words,
        stdin=f"{PASSPHRASE}\n{PASSPHRASE}\n" if way == "stdin" else None,
        env=env if way == "environment" else None,
    )
    assert done.code != 0 and "removed" not in done.out
    assert store("status", code=0)
    assert ("purge", "done") not in actions(store)
    typed(store, "purge", "--yes")  # the control
    assert ("purge", "done") in actions(store)


def test_init_protects(run: Runner) -> None:
    refused = run("init", "--key-passphrase", code=3)
    assert "no terminal" in refused.err and not run.store.exists()
    done = typed(run, "init", "--key-passphrase", "--json", answers=[PASSPHRASE, PASSPHRASE])
    assert done.json["created"] and done.json["verifier"].startswith("remem/audit-chain/")
    assert run("owner", "status", "--json").json["verifier"] == done.json["verifier"]
    assert "already" in typed(run, "init", "--key-passphrase", answers=[], code=3).err
    assert run("init", code=0)


# -- deciding -----------------------------------------------------------------------------------


def test_purge_lift_and_restore_ask(store: Runner) -> None:
    kept = store.add("milk first")
    store("forget", "--yes", kept, code=0)
    for words in (
        ["purge", "--yes"],
        ["tombstones", "restore", kept],
        ["tombstones", "lift", kept],
    ):
        refused = store(*words, code=3)
        assert "no terminal" in refused.err and "hint:" in refused.err
    assert actions(store)[-3:] == [("unlock", "no_terminal")] * 3
    assert "there again" in typed(store, "tombstones", "restore", kept).out
    store("forget", "--yes", kept, code=0)
    done = typed(store, "purge", "--yes")
    assert "removed 1 object" in done.out and "to sign: a purge" in done.screen
    assert "nothing waits" in store("purge", "--yes", code=0).out  # nothing to sign
    assert "lifted" in typed(store, "tombstones", "lift", kept).out
    assert "signed   4 good, 0 bad, 0 unsigned" in store("verify", code=0).out


def test_forgetting_at_once_is_refused_before_anything_is_forgotten(store: Runner) -> None:
    kept = store.add("milk first")
    store("forget", "--now", kept, code=3)
    assert "milk first" in store("show", kept, code=0).out
    done = typed(store, "forget", "--now", kept)
    assert "forgot 1 observation" in done.out and "removed 1 object" in done.out
    assert store("verify", code=0)


def test_undo_asks_only_for_what_is_a_decision(store: Runner) -> None:
    store.add("said by mistake")
    store("undo", code=0)
    store("undo", code=0)  # and back
    assert store("verify", code=0)


def test_a_trusted_pack_asks(store: Runner, tmp_path: Path) -> None:
    other = Runner(tmp_path / "other")
    other.add("said there")
    other("export", tmp_path / "pack", code=0)
    store("import", "pack", "--trust", tmp_path / "pack", code=3)
    store("import", "pack", tmp_path / "pack", code=0)
    typed(store, "import", "pack", "--trust", tmp_path / "pack")
    assert store("verify", code=0)


def test_a_wrong_passphrase_is_asked_again_and_then_noted(store: Runner) -> None:
    kept = store.add("milk first")
    store("forget", "--yes", kept, code=0)
    done = typed(store, "purge", "--yes", answers=["wrong wrong", PASSPHRASE])
    assert "does not open" in done.screen and "removed 1 object" in done.out
    done = typed(store, "owner", "unprotect", answers=["no no no no"] * 3, code=3)
    assert "does not open the owner's key" in done.err
    assert actions(store)[-1] == ("unlock", "passphrase")
    assert store("owner", "status", "--json").json["protected"]


# -- the key file -------------------------------------------------------------------------------


def test_another_passphrase(store: Runner, made: tuple[Path, str]) -> None:
    old = (store.store / "owner.key").read_text()
    typed(store, "owner", "passphrase", answers=[PASSPHRASE, OTHER, OTHER])
    assert (store.store / "owner.key").read_text() != old
    assert store("owner", "status", "--json").json["verifier"] == made[1]
    typed(store, "owner", "unprotect", answers=[PASSPHRASE] * 3, code=3)
    typed(store, "owner", "unprotect", answers=[OTHER])
    assert not (store.store / "owner.key").exists()
    assert actions(store)[-3:] == [
        ("passphrase", "done"), ("unlock", "passphrase"), ("unprotect", "done"),
    ]  # fmt: skip
    assert "signed   3 good, 0 bad, 0 unsigned (not protected now)" in store("verify", code=0).out
    assert "not protected" in typed(store, "owner", "passphrase", answers=[], code=3).err


def test_a_lost_key_file_unprotects_nothing(store: Runner, tmp_path: Path) -> None:
    store("backup", tmp_path / "copy", code=0)
    assert store("doctor").out.count("decisions are signed, and the key file is there") == 1
    (store.store / "owner.key").unlink()
    status = store("owner", "status", code=0)
    assert "missing" in status.out and "nobody can sign until it is put back" in status.err
    assert "missing" in store("doctor", code=5).out
    store("forget", "--yes", "@{last}", code=0)
    refused = typed(store, "purge", "--yes", answers=[], code=3)
    assert "owner.key" in refused.err and "is missing" in refused.err
    typed(store, "owner", "unprotect", answers=[], code=3)
    shutil.copy(tmp_path / "copy" / "owner.key", store.store)  # the backup has it
    typed(store, "purge", "--yes")
    assert store("verify", code=0)


def test_the_key_of_another_store_does_not_do(store: Runner, tmp_path: Path) -> None:
    other = Runner(tmp_path / "other")
    other.add("tea")
    protect(other)
    shutil.copy(other.store / "owner.key", store.store)
    assert store("owner", "status", "--json").json["key_file"] == "other key"
    done = typed(store, "owner", "unprotect", answers=[], code=3)
    assert "another key" in done.err


def test_adding_and_recalling_import_no_library_of_signatures(store: Runner) -> None:
    code = (
        "import sys\n"
        "from remem.cli.entry import main\n"
        "status = main(sys.argv[1:])\n"
        "print(status, 'cryptography' in sys.modules, file=sys.stderr)\n"
    )
    for words, heavy in (
        (["add", "one more"], False),
        (["recall", "tea", "--mode", "lexical"], False),
        (["verify", "--objects"], True),  # the control
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            env=store.environment(),
            cwd=store.cwd,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr.splitlines()[-1] == f"0 {heavy}", words
