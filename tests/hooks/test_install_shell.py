"""Putting the shells' hooks into start-up files and taking them out again, byte for byte."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.hooks import install_shell, targets
from remem.hooks.shell.scripts import SHELLS, script
from remem.hooks.targets import Change, Place
from remem.objects.errors import Refused, UsageError
from tests.hooks.terminal import need


def place(home: Path, *shells: str, **environ: str) -> Place:
    home.mkdir(exist_ok=True)
    return Place(
        home=str(home),
        config=str(home / ".config" / "remem"),
        store=str(home / "my store's"),
        folder=str(home),
        environ=environ,
        shells=shells,
    )


@given(st.one_of(st.none(), st.binary(max_size=200), st.text(max_size=80).map(str.encode)))
def test_removal_restores_every_byte(data: bytes | None) -> None:
    if data is not None and b"remem hook" in data:
        return
    notes: list[str] = []
    with_block = install_shell.installed(data, "/x/hook.bash")
    assert b"/x/hook.bash" in with_block
    assert install_shell.installed(with_block, "/x/hook.bash") == with_block
    assert install_shell.removed(with_block, "rc", notes) == data
    assert notes == []


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_what_is_written_around_the_block_stays(before: bytes, after: bytes) -> None:
    if b"remem hook" in before + after:
        return
    with_block = install_shell.installed(before, "/x/hook.zsh")
    whole = install_shell.removed(with_block + after, "rc", [])
    gap = b"\n" if before and not before.endswith(b"\n") and after else b""
    assert whole == before + gap + after


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "data", [None, b"", b"x", b"x\n", b"x\r\ny\r\n", b"\xff\x00\n", b"a\n\n\n"], ids=repr
)
def test_a_round(tmp_path: Path, shell: str, data: bytes | None) -> None:
    where = place(tmp_path / "home", shell)
    start = install_shell.start_path(where, shell) if shell != "fish" else ""
    if start and data is not None:
        Path(start).write_bytes(data)
        os.chmod(start, 0o640)
    before = {p for p in tmp_path.rglob("*") if p.is_file()}
    for _ in range(10):
        install_shell.carry_out(where, install=True)
    assert install_shell.plan(where, install=True).changes == []
    states = {state.name: state.state for state in install_shell.status(where)}
    assert states == {name: "installed" if name == shell else "missing" for name in SHELLS}
    if start:
        assert Path(start).read_bytes().count(b">>> remem hook") == 1
        if data is not None:
            assert os.stat(start).st_mode & 0o777 == 0o640
    install_shell.carry_out(where, install=False)
    assert {p for p in tmp_path.rglob("*") if p.is_file()} == before
    if start and data is not None:
        assert Path(start).read_bytes() == data
        assert os.stat(start).st_mode & 0o777 == 0o640
    assert install_shell.carry_out(where, install=False).changes == []


def test_the_installed_line_works_in_a_shell(tmp_path: Path) -> None:
    where = place(tmp_path / "it's home", "bash")
    (tmp_path / "it's home" / "my store's" / "spool").mkdir(parents=True, mode=0o700)
    install_shell.carry_out(where, install=True)
    done = subprocess.run(
        [need("bash"), "--noprofile", "-i"],
        input=b"set -u\ntrue marker\n",
        env={"HOME": where.home, "PATH": os.environ["PATH"], "TERM": "dumb"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    (file,) = (Path(where.store) / "spool").glob("*.jsonl")
    assert '"cmd":"true marker"' in file.read_text()


def test_a_start_file_that_is_a_link(tmp_path: Path) -> None:
    where = place(tmp_path / "home", "bash")
    real = tmp_path / "dotfiles"
    real.write_text("alias x=y")
    rc = tmp_path / "home" / ".bashrc"
    rc.symlink_to("../dotfiles")
    install_shell.carry_out(where, install=True)
    assert rc.is_symlink() and "remem hook" in real.read_text()
    install_shell.carry_out(where, install=False)
    assert rc.is_symlink() and real.read_text() == "alias x=y"


def test_a_block_that_was_edited(tmp_path: Path) -> None:
    where = place(tmp_path / "home", "zsh", ZDOTDIR=str(tmp_path))
    rc = tmp_path / ".zshrc"
    rc.write_text("a\n")
    install_shell.carry_out(where, install=True)
    text = rc.read_text()
    rc.write_text(text.replace("# <<< remem", "export MINE=1\n# <<< remem"))
    assert install_shell.status(where)[1].state == "edited"
    again = install_shell.carry_out(where, install=True)
    assert again.changes == [] and "MINE" in rc.read_text()
    done = install_shell.carry_out(where, install=False)
    assert rc.read_text() == "a\nexport MINE=1\n"
    assert any("left a line" in note and str(rc) in note for note in done.notes)


@pytest.mark.parametrize("mark", ["# >>> remem hook >>>\n", "# <<< remem hook <<<\n"])
def test_a_block_without_one_of_its_marks(tmp_path: Path, mark: str) -> None:
    where = place(tmp_path / "home", "bash")
    rc = tmp_path / "home" / ".bashrc"
    rc.write_text("a\n")
    install_shell.carry_out(where, install=True)
    rc.write_text(rc.read_text().replace(mark, ""))
    done = install_shell.carry_out(where, install=False)
    assert rc.read_text() == "a\n"
    assert any("a mark of the block" in note for note in done.notes)


def test_another_store_updates_the_hook(tmp_path: Path) -> None:
    where = place(tmp_path / "home", "bash")
    install_shell.carry_out(where, install=True)
    hook = Path(install_shell.hook_path(where, "bash"))
    hook.write_text("# remem: capture of commands for bash, of an older version\n")
    assert install_shell.status(where)[0].state == "outdated"
    changed = install_shell.carry_out(where, install=True).changes
    assert [change.path for change in changed] == [str(hook)]
    assert hook.read_text() == script("bash", where.store)


def test_a_file_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    where = place(tmp_path / "home", "fish")
    path = Path(install_shell.hook_path(where, "fish"))
    path.parent.mkdir(parents=True)
    path.write_text("mine\n")
    for install in (True, False):
        with pytest.raises(Refused):
            install_shell.carry_out(where, install=install)
    assert path.read_text() == "mine\n"


def test_the_users_shell_is_taken(tmp_path: Path) -> None:
    assert install_shell.chosen(place(tmp_path, SHELL="/usr/bin/zsh")) == ("zsh",)
    assert install_shell.chosen(place(tmp_path, "fish", "bash")) == ("fish", "bash")
    for shell in ("/bin/dash", ""):
        with pytest.raises(UsageError):
            install_shell.chosen(place(tmp_path, SHELL=shell))


def test_a_file_that_changes_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "rc"
    path.write_bytes(b"now")
    with pytest.raises(Refused):
        targets.write(Change(str(path), b"before", b"after"))
    assert path.read_bytes() == b"now"
    targets.write(Change(str(path), b"now", b"after"))
    assert path.read_bytes() == b"after"
    assert [p.name for p in tmp_path.iterdir()] == ["rc"]


def test_every_target_has_what_a_target_has() -> None:
    for name in targets.TARGETS:
        module = targets.load(name)
        assert all(callable(getattr(module, part)) for part in ("plan", "carry_out", "status"))
