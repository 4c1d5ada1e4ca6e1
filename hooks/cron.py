"""The schedule as a target: a marked block of the user's crontab, or a systemd user timer.

Which of them works here is found out by asking: a crontab that can be read, on a machine where a
cron daemon runs, comes first; then the systemd manager of the user; then a crontab alone, with a
note.  Where there is neither, ``remem hook print cron`` prints the line for whatever else starts
programs.

The job names the interpreter, the search path and the store in full, for cron gives it none of
them.  A block is marked with the store that it looks after, so several stores have several.

Source: crontab(5); systemd.timer(5), systemd.service(5); remem-hook(1), CRON.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from hashlib import blake2b
from shutil import which
from typing import TYPE_CHECKING

import msgspec

from remem.hooks import targets
from remem.hooks.sleep.stamp import read_stamp, write_stamp
from remem.hooks.targets import Change, Plan, State
from remem.objects import format as fmt
from remem.objects.errors import Refused

if TYPE_CHECKING:
    from remem.hooks.targets import Place

PERIOD_S = 3600  # between two runs
BUDGET_S = 900  # that one run may take
NEW_TABLE = ", in a new table"
NO_LINE_FEED = ", after a line without its end"
CRONTAB, TIMER = "crontab", "systemd timer"
MAX_LINE_B = 990  # of a command, crontab(5)
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
_WAIT_S = 20.0
_DAEMONS = frozenset(("cron", "crond", "fcron", "cronie", "dcron", "anacron", "systemd-cron"))
_HANDED = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
_NO_TABLE = re.compile(rb"no crontab for", re.IGNORECASE)


class _Way(msgspec.Struct, frozen=True):
    """How jobs are scheduled here: CRONTAB, TIMER or nothing, and what to know about it."""

    name: str
    note: str = ""


# -- the target ---------------------------------------------------------------------------------


def plan(place: Place, *, install: bool) -> Plan:
    """What would be done; changes nothing.

    Raises:
        Refused: nothing here schedules jobs, or a path cannot stand in a crontab.
    """
    found = Plan()
    way = _way(place)
    if install and not way.name:
        raise Refused(
            "neither a crontab nor a systemd user manager works here",
            hint="'remem hook print cron' prints the line for what does",
        )
    # What stands in the other place is moved rather than doubled.
    for change in (
        _table(place, install and way.name == CRONTAB),
        *_units(place, install and way.name == TIMER),
    ):
        if change is not None and change.before != change.after:
            found.changes.append(change)
    if install and way.note:
        found.notes.append(way.note)
    return found


def carry_out(place: Place, *, install: bool) -> Plan:
    """Do it, and say what was done.

    Raises:
        Refused: as `plan`, or a table or a file cannot be written.
    """
    found = plan(place, install=install)
    units = [change for change in found.changes if change.path != CRONTAB]
    if units and any(change.after is None for change in units):
        _systemctl(place, "disable", "--now", f"{_name(place)}.timer")
    for change in found.changes:
        if change.path == CRONTAB:
            _write_table(place, change)
        else:
            targets.write(change)
    if units:
        _systemctl(place, "daemon-reload")
        if any(change.after is not None for change in units):
            done = _systemctl(place, "enable", "--now", f"{_name(place)}.timer")
            if done is None or done.returncode:
                why = "" if done is None else _last_line(done.stderr)
                raise Refused(f"systemd did not take the timer: {why}")
    if install and found.changes and os.path.isdir(os.path.join(place.store, fmt.LOCKS)):
        noted = read_stamp(os.path.join(place.store, fmt.LOCKS))
        noted.scheduled = time.time_ns() // 1000
        write_stamp(os.path.join(place.store, fmt.LOCKS), noted)
    return found


def status(place: Place) -> list[State]:
    """What is there: the block of the crontab, or the timer."""
    table = _read_table(place)
    wanted = _block(place, "")
    found = None if table is None else _find(place, table)
    if found is not None:
        inside = wanted.split(b"\n", 1)[1].rsplit(b"# <<<", 1)[0]
        state = "installed" if found["inside"] == inside else "outdated"
        return [State(CRONTAB, state, CRONTAB)]
    path = _unit_paths(place)[1]
    timer = targets.read(path)
    if timer is None:
        return [State(CRONTAB, "missing", CRONTAB)]
    same = timer == _timer(place) and targets.read(_unit_paths(place)[0]) == _service(place)
    return [State(TIMER, "installed" if same else "outdated", path)]


def text(place: Place) -> str:
    """The block of a crontab, for whatever reads such lines."""
    return _block(place, "").decode("utf-8", "backslashreplace")


# -- the job ------------------------------------------------------------------------------------


def _name(place: Place) -> str:
    """Name of the job of a store, the same for ever."""
    digest = blake2b(os.fsencode(os.path.realpath(place.store)), digest_size=4).hexdigest()
    return f"remem-{digest}"


def _minute(place: Place) -> int:
    """The minute of the hour: one of its own for each store, not the full hour of everybody."""
    digest = blake2b(os.fsencode(place.store), digest_size=2, person=b"minute").digest()
    return 1 + int.from_bytes(digest, "big") % 58


def _variables(place: Place) -> dict[str, str]:
    # No more of the search path than it takes: a line of cron has a limit.
    git = which("git", path=place.environ.get("PATH") or os.defpath)
    folders = [os.path.dirname(os.path.abspath(git))] if git is not None else []
    found = {"PATH": ":".join(dict.fromkeys([*folders, *_SYSTEM_PATH]))}
    found |= {name: place.environ[name] for name in _HANDED if place.environ.get(name)}
    return found


def _words(place: Place) -> list[str]:
    python = os.path.abspath(sys.executable)
    budget = str(BUDGET_S)
    rest = ["consolidate", "--cron", "--budget-seconds", budget]
    return [python, "-P", "-m", "remem", "--store", os.path.abspath(place.store), *rest]


def _checked(value: str) -> str:
    """A value that can stand on one line.

    Raises:
        Refused: it cannot.
    """
    if any(c in value for c in "\n\r\0"):
        raise Refused(f"'{value!r}' cannot stand in a line of a schedule")
    return value


# -- the crontab --------------------------------------------------------------------------------


def _block(place: Place, how: str) -> bytes:
    """The marked block: what cron runs, with its percent signs escaped."""
    given = " ".join(f"{k}={shlex.quote(_checked(v))}" for k, v in _variables(place).items())
    words = " ".join(shlex.quote(_checked(word)) for word in _words(place))
    line = f"{_minute(place)} * * * * {given} {words}"
    line = line.replace("%", "\\%")
    if len(os.fsencode(line)) > MAX_LINE_B:
        raise Refused("the paths are too long for a line of cron")
    name = _name(place)
    block = f"# >>> {name} consolidate{how} >>>\n{line}\n# <<< {name} consolidate <<<\n"
    return os.fsencode(block)


def _find(place: Place, table: bytes) -> re.Match[bytes] | None:
    name = re.escape(_name(place).encode())
    return re.search(
        rb"^# >>> " + name + rb" consolidate(?P<how>[^\n]*?) >>>\n(?P<inside>.*?)"
        rb"^# <<< " + name + rb" consolidate <<<(?:\n|\Z)",
        table,
        re.MULTILINE | re.DOTALL,
    )


def _table(place: Place, install: bool) -> Change | None:
    """What becomes of the crontab; None where there is no program for it."""
    table = _read_table(place)
    if table is None and not install:
        return None
    found = None if table is None else _find(place, table)
    if install:
        return Change(CRONTAB, table, _with(place, table, found))
    return Change(CRONTAB, table, _without(table, found))


def _with(place: Place, table: bytes | None, found: re.Match[bytes] | None) -> bytes:
    if table is not None and found is not None:
        how = found["how"].decode("utf-8", "replace")
        return table[: found.start()] + _block(place, how) + table[found.end() :]
    if table is None:
        return _block(place, NEW_TABLE)
    if table and not table.endswith(b"\n"):
        return table + b"\n" + _block(place, NO_LINE_FEED)
    return table + _block(place, "")


def _without(table: bytes | None, found: re.Match[bytes] | None) -> bytes | None:
    """The table without the block, byte for byte as it was before."""
    if table is None or found is None:
        return table
    how = found["how"].decode("utf-8", "replace")
    before, after = table[: found.start()], table[found.end() :]
    if how == NO_LINE_FEED and not after and before.endswith(b"\n"):
        before = before[:-1]
    whole = before + after
    return None if how == NEW_TABLE and not whole else whole


def _read_table(place: Place) -> bytes | None:
    """The user's crontab; None where there is none, or no program to read it."""
    done = _run(place, ["crontab", "-l"])
    return None if done is None or done.returncode else done.stdout


def _write_table(place: Place, change: Change) -> None:
    if _read_table(place) != change.before:
        raise Refused("the crontab was changed meanwhile", hint="run it again")
    words = ["crontab", "-r"] if change.after is None else ["crontab", "-"]
    done = _run(place, words, change.after or b"")
    if done is None or done.returncode:
        why = "" if done is None else f": {_last_line(done.stderr)}"
        raise Refused(f"the crontab could not be written{why}")


# -- the timer ----------------------------------------------------------------------------------


def _unit_paths(place: Place) -> tuple[str, str]:
    """Paths of the service and of the timer."""
    base = place.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(place.home, ".config")
    folder = os.path.join(base, "systemd", "user")
    name = _name(place)
    return os.path.join(folder, f"{name}.service"), os.path.join(folder, f"{name}.timer")


def _units(place: Place, install: bool) -> list[Change]:
    service, timer = _unit_paths(place)
    return [
        Change(service, targets.read(service), _service(place) if install else None),
        Change(timer, targets.read(timer), _timer(place) if install else None),
    ]


def _service(place: Place) -> bytes:
    """The service: one consolidation, out of the way of everything else."""
    lines = [
        "[Unit]",
        f"Description=consolidate the remem store {_escaped(place.store)}",
        "",
        "[Service]",
        "Type=oneshot",
        "Nice=10",
        "IOSchedulingClass=idle",
        *(f'Environment="{name}={_quoted(v)}"' for name, v in _variables(place).items()),
        "ExecStart=" + " ".join(f'"{_quoted(word, command=True)}"' for word in _words(place)),
    ]
    return os.fsencode("\n".join(lines) + "\n")


def _timer(place: Place) -> bytes:
    lines = [
        "[Unit]",
        f"Description=consolidate the remem store {_escaped(place.store)} every hour",
        "",
        "[Timer]",
        f"OnCalendar=*-*-* *:{_minute(place):02}:00",
        "Persistent=true",
        "",
        "[Install]",
        "WantedBy=timers.target",
    ]
    return os.fsencode("\n".join(lines) + "\n")


def _escaped(value: str) -> str:
    return _checked(value).replace("%", "%%")


def _quoted(value: str, *, command: bool = False) -> str:
    """A value inside double quotes of a unit."""
    found = _escaped(value).replace("\\", "\\\\").replace('"', '\\"')
    return found.replace("$", "$$") if command else found


# -- asking what works --------------------------------------------------------------------------


def _way(place: Place) -> _Way:
    """What schedules jobs here."""
    done = _run(place, ["crontab", "-l"])
    works = done is not None and (not done.returncode or bool(_NO_TABLE.search(done.stderr)))
    if works and _daemon_runs():
        return _Way(CRONTAB)
    manager = _systemctl(place, "show-environment")
    if manager is not None and not manager.returncode:
        return _Way(TIMER)
    if works:
        return _Way(CRONTAB, "no cron daemon seems to run, so nothing may start the job")
    return _Way("")


def _daemon_runs() -> bool:
    """Whether some process has the name of a cron daemon."""
    try:
        names = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return True  # no way to tell
    for name in names:
        try:
            with open(f"/proc/{name}/comm", encoding="utf-8", errors="replace") as file:
                if file.read(64).strip() in _DAEMONS:
                    return True
        except OSError:
            continue
    return False


def _systemctl(place: Place, *words: str) -> subprocess.CompletedProcess[bytes] | None:
    return _run(place, ["systemctl", "--user", *words])


def _run(
    place: Place, words: list[str], given: bytes = b""
) -> subprocess.CompletedProcess[bytes] | None:
    """Run a program of the user's search path; None where it is missing or does not end."""
    environ = {**place.environ, "LC_ALL": "C"}
    path = place.environ.get("PATH") or os.defpath
    program = which(words[0], path=path)
    if program is None:
        return None
    try:
        return subprocess.run(
            [program, *words[1:]],
            input=given,
            capture_output=True,
            env=environ,
            timeout=_WAIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None


def _last_line(data: bytes) -> str:
    lines = data.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else "it says nothing"
