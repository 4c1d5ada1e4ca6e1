"""The schedule: a marked block of a crontab or a systemd timer, and back byte for byte."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from remem.hooks import cron, targets
from remem.hooks.sleep.stamp import read_stamp
from remem.hooks.targets import Place
from remem.objects.errors import Refused
from remem.objects.store import Store

# A crontab program: the table is a file, and one that is not there is none.
CRONTAB = """#!/bin/sh
table="$FAKE/table"
case "$1" in
-l) if [ -f "$table" ]; then cat "$table"; else echo "no crontab for me" >&2; exit 1; fi ;;
-r) rm "$table" ;;
-) cat > "$table.new" && mv "$table.new" "$table" ;;
*) exit 2 ;;
esac
"""
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$FAKE/calls"
[ "$2" = show-environment ] && [ -f "$FAKE/broken" ] && exit 1
exit 0
"""


class Machine:
    """A home with programs of its own."""

    def __init__(self, root: Path, *programs: str) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        for name, text in (("crontab", CRONTAB), ("systemctl", SYSTEMCTL)):
            if name in programs:
                (self.bin / name).write_text(text)
                (self.bin / name).chmod(0o755)
        self.store = root / "a store with 100% room"
        Store.create(str(self.store)).close()
        self.environ = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(root), "FAKE": str(root)}
        self.table = root / "table"

    @property
    def place(self) -> Place:
        return Place(
            home=str(self.root),
            config=str(self.root / ".config" / "remem"),
            store=str(self.store),
            folder=str(self.root),
            environ=self.environ,
        )

    @property
    def calls(self) -> list[str]:
        path = self.root / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def state(self) -> str:
        return cron.status(self.place)[0].state


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(cron, "_daemon_runs", lambda: True)
    return Machine(tmp_path / "home", "crontab")


TABLES = [
    None,
    b"",
    b"# mine\nMAILTO=me\n5 4 * * * backup --all\n",
    b"5 4 * * * no line feed at the end",
    b"\xff\xfe not a text \n",
]


@pytest.mark.parametrize("table", TABLES)
def test_install_and_back_byte_for_byte(machine: Machine, table: bytes | None) -> None:
    if table is not None:
        machine.table.write_bytes(table)
    assert machine.state() == "missing"
    planned = cron.plan(machine.place, install=True)
    assert (machine.table.read_bytes() if machine.table.exists() else None) == table
    done = cron.carry_out(machine.place, install=True)
    assert [c.after for c in planned.changes] == [c.after for c in done.changes]
    text = machine.table.read_bytes()
    assert text.startswith(table or b"") and text.count(b"# >>> remem-") == 1
    assert machine.state() == "installed"
    assert not cron.carry_out(machine.place, install=True).changes  # once is enough
    cron.carry_out(machine.place, install=False)
    assert (machine.table.read_bytes() if machine.table.exists() else None) == table
    assert not cron.carry_out(machine.place, install=False).changes


def test_what_others_wrote_meanwhile_stays(machine: Machine) -> None:
    machine.table.write_bytes(b"1 1 * * * mine\n")
    cron.carry_out(machine.place, install=True)
    machine.table.write_bytes(
        b"0 0 * * * before\n" + machine.table.read_bytes() + b"2 2 * * * after\n"
    )
    cron.carry_out(machine.place, install=False)
    assert machine.table.read_bytes() == b"0 0 * * * before\n1 1 * * * mine\n2 2 * * * after\n"


def test_an_edited_block_is_outdated_and_put_right(machine: Machine) -> None:
    cron.carry_out(machine.place, install=True)
    machine.table.write_bytes(machine.table.read_bytes().replace(b"--cron", b"--json"))
    assert machine.state() == "outdated"
    cron.carry_out(machine.place, install=True)
    assert machine.state() == "installed"


def test_two_stores_have_two_blocks(machine: Machine) -> None:
    cron.carry_out(machine.place, install=True)
    one = machine.table.read_bytes()
    machine.store = machine.root / "other"
    Store.create(str(machine.store)).close()
    assert machine.state() == "missing"
    cron.carry_out(machine.place, install=True)
    assert machine.table.read_bytes().count(b"# >>> remem-") == 2
    cron.carry_out(machine.place, install=False)
    assert machine.table.read_bytes() == one


def test_the_line_runs_as_cron_runs_it(machine: Machine) -> None:
    """cron unescapes percent signs and hands the rest to sh, with no environment to speak of."""
    cron.carry_out(machine.place, install=True)
    line = next(x for x in machine.table.read_text().splitlines() if "consolidate --cron" in x)
    minute, _, command = line.split(" ", 5)[0], None, line.split(" ", 5)[5]
    assert 0 < int(minute) < 60 and len(line) < 1000
    done = subprocess.run(
        ["/bin/sh", "-c", command.replace("\\%", "%")],
        env={"HOME": str(machine.root), "LOGNAME": "me", "SHELL": "/bin/sh"},
        cwd=machine.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    log = machine.root / ".local" / "state" / "remem" / "consolidate.log"
    assert "done" in log.read_text() and log.stat().st_mode & 0o077 == 0
    assert read_stamp(str(machine.store / "locks")).surface == "cron"


def test_a_folder_named_like_the_program_is_not_run(machine: Machine) -> None:
    cron.carry_out(machine.place, install=True)
    trap = machine.root / "remem"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise SystemExit('trapped')")
    test = next(x for x in machine.table.read_text().splitlines() if "consolidate --cron" in x)
    done = subprocess.run(
        ["/bin/sh", "-c", test.split(" ", 5)[5].replace("\\%", "%")],
        env={"HOME": str(machine.root)},
        cwd=machine.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "trapped" not in done.stderr


# -- systemd ------------------------------------------------------------------------------------


def test_a_timer_where_there_is_no_crontab(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", "systemctl")
    cron.carry_out(machine.place, install=True)
    folder = machine.root / ".config" / "systemd" / "user"
    service, timer = sorted(folder.iterdir())
    assert "Persistent=true" in timer.read_text() and "OnCalendar=" in timer.read_text()
    assert "100%% room" in service.read_text() and '"--cron"' in service.read_text()
    assert machine.calls[-1].startswith("--user enable --now remem-")
    assert cron.status(machine.place)[0].state == "installed"
    assert not cron.carry_out(machine.place, install=True).changes
    cron.carry_out(machine.place, install=False)
    assert list(folder.iterdir()) == []
    assert any(call.startswith("--user disable --now remem-") for call in machine.calls)
    assert machine.state() == "missing"


def test_the_units_are_what_systemd_takes(tmp_path: Path) -> None:
    from shutil import which

    if which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    machine = Machine(tmp_path / "home", "systemctl")
    cron.carry_out(machine.place, install=True)
    units = sorted(str(p) for p in (machine.root / ".config" / "systemd" / "user").iterdir())

    def faults() -> list[str]:
        done = subprocess.run(
            ["systemd-analyze", "verify", "--user", "--man=no", *units],
            env={**os.environ, "HOME": str(machine.root), "XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        return [line for line in done.stderr.splitlines() if "remem-" in line]

    assert not faults()
    timer = Path(units[1])
    timer.write_text(timer.read_text().replace("OnCalendar=*", "OnCalendar=nonsense*"))
    assert faults()  # control


def test_without_either_it_says_how_else(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "home", "systemctl")
    (machine.root / "broken").touch()
    with pytest.raises(Refused) as refused:
        cron.plan(machine.place, install=True)
    assert "hook print cron" in (refused.value.hint or "")
    assert "consolidate --cron" in cron.text(machine.place)
    assert cron.plan(machine.place, install=False).changes == []


def test_a_crontab_without_a_daemon_is_the_last_choice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cron, "_daemon_runs", lambda: False)
    both = Machine(tmp_path / "both", "crontab", "systemctl")
    assert all(c.path != cron.CRONTAB for c in cron.plan(both.place, install=True).changes)
    alone = Machine(tmp_path / "alone", "crontab")
    planned = cron.plan(alone.place, install=True)
    assert planned.changes[0].path == cron.CRONTAB and "daemon" in planned.notes[0]


def test_a_line_that_cron_cannot_hold_is_refused(machine: Machine) -> None:
    machine.store = Path("/tmp/a\nb")
    with pytest.raises(Refused):
        cron.plan(machine.place, install=True)
    machine.store = Path("/tmp/" + "/".join(["long" * 20] * 14))
    with pytest.raises(Refused):
        cron.plan(machine.place, install=True)


def test_it_is_a_target() -> None:
    assert targets.load("cron") is cron
