"""Histories of bash, zsh and fish: exact words, times and order; a second reading adds nothing."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remem.hooks.ingest import Sum, ingest
from remem.hooks.sources import read, read_stream
from remem.hooks.sources._history import UNFINISHED, command_id
from remem.hooks.sources._record import Record
from remem.hooks.sources.bash_history import MAX_JOINED
from remem.objects.model import Incoming, Observation, Rejected, Scope, Skipped
from remem.objects.scope import Actor, owner_grant
from remem.objects.store import Store

T = 1_700_000_000
US = 1_000_000


def parse(fmt: str, data: bytes | str, **options: int) -> list[Record]:
    raw = data.encode() if isinstance(data, str) else data
    return list(read_stream(fmt, io.BytesIO(raw), "h", **options))


def words(records: list[Record]) -> list[tuple[str, int | None]]:
    """Commands and their seconds."""
    found = [record for record in records if isinstance(record, Incoming)]
    return [(r.text, None if r.asserted is None else r.asserted // US) for r in found]


def texts(fmt: str, data: bytes | str, **options: int) -> list[str]:
    return [text for text, _ in words(parse(fmt, data, **options))]


class Memory:
    def __init__(self, path: Path) -> None:
        scope = Scope("local", "default", "home", "none", "main")
        self.store = Store.create(str(path))
        self.actor = Actor(owner_grant(scope), "cli", scope)

    def take(self, fmt: str, data: bytes | str) -> Sum:
        return ingest(self.store, self.actor, iter(parse(fmt, data)))

    def kept(self) -> list[str]:
        with self.store.read(self.actor.grant) as reader:
            found = []
            for part in reader.parts:
                for entry in reader.log(part):
                    assert entry.new is not None
                    obj = reader.object(part, entry.new)
                    assert isinstance(obj, Observation)
                    found.append(obj.text)
            return found


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(tmp_path / "store")


# -- bash ---------------------------------------------------------------------------------------


def test_a_record_of_bash() -> None:
    (record,) = parse("bash-history", f"#{T}\nmake test\n")
    assert record == Incoming(
        text="make test",
        asserted=T * US,
        offset=0,
        role="user",
        origin="owner",
        source_uri="shell:",
        source_id=command_id(T * US, "make test"),
        tool="bash",
        kind="command",
        where="h:2",
    )


BASH_PLAIN = """ls -l
cat <<EOF > note
it's "open
EOF
echo "two
lines"
echo it\\'s fine # don't care
cat <<-'END' <<< "$x"
\tone
\tEND
for i in 1 2; do echo $i; done
echo \\
  more
x=$((1 << 2))
echo $'it\\'s'
git commit -m 'first

second'
"""


def test_commands_of_many_lines_without_stamps() -> None:
    assert texts("bash-history", BASH_PLAIN) == [
        "ls -l",
        "cat <<EOF > note\nit's \"open\nEOF",
        'echo "two\nlines"',
        "echo it\\'s fine # don't care",
        "cat <<-'END' <<< \"$x\"\n\tone\n\tEND",
        "for i in 1 2; do echo $i; done",
        "echo \\\n  more",
        "x=$((1 << 2))",
        "echo $'it\\'s'",
        "git commit -m 'first\n\nsecond'",
    ]


def test_what_nothing_closes_stands_by_itself() -> None:
    lines = ["it's open", *(f"echo {number}" for number in range(MAX_JOINED + 20))]
    assert texts("bash-history", "\n".join(lines) + "\n") == lines
    assert texts("bash-history", "cat <<NEVER\nls\npwd\n") == ["cat <<NEVER", "ls", "pwd"]


def test_stamps_hold_commands_of_many_lines_together() -> None:
    loop = "for i in 1 2\ndo\necho $i\ndone"
    data = f"before\nit\n#{T}\n{loop}\n#{T + 5}\nls\n#{T + 5}\nls\n#{T + 6}\n#{T + 7}\npwd\n"
    assert words(parse("bash-history", data)) == [
        ("before", None), ("it", None), (loop, T), ("ls", T + 5), ("ls", T + 5), ("pwd", T + 7),
    ]  # fmt: skip


def test_lines_of_a_shell_without_stamps_are_no_part_of_the_last_command() -> None:
    rest = [f"echo {number}" for number in range(MAX_JOINED + 5)]
    found = words(parse("bash-history", f"#{T}\nmake\n" + "\n".join(rest) + "\n"))
    assert found == [("make", T), *((text, None) for text in rest)]


def test_what_looks_like_a_stamp_and_is_no_time() -> None:
    assert words(parse("bash-history", "#99999999999999999\nls\n")) == [("ls", None)]
    assert texts("bash-history", "# 1700000000\n#note\n") == ["# 1700000000", "#note"]


def test_bash_itself(tmp_path: Path) -> None:
    if shutil.which("bash") is None:
        pytest.skip("there is no bash")
    commands = ["echo 'a\nb'", "cat <<E\n  x\nE", "if true\nthen\necho y\nfi", 'echo "q" \\# \\\\']
    for stamps in ("HISTTIMEFORMAT=%s", ":"):
        path = tmp_path / "history"
        script = [f"printf -v c{i} %s {_quoted(c)}" for i, c in enumerate(commands)]
        script += [f'history -s "$c{i}"' for i in range(len(commands))]
        script = ["set +o history", stamps, *script, f"history -w {path}"]
        path.unlink(missing_ok=True)
        subprocess.run(
            ["bash", "--norc", "-c", "\n".join(script)],
            check=True,
            env={"PATH": os.environ["PATH"]},
        )
        found = words(list(read("bash-history", str(path))))
        if stamps == ":":
            assert [text for text, _ in found] == [
                commands[0], commands[1], *commands[2].split("\n"), commands[3],
            ]  # fmt: skip
        else:
            assert [text for text, _ in found] == commands
            assert all(at is not None for _, at in found)


def _quoted(text: str) -> str:
    return "$'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


# -- zsh ----------------------------------------------------------------------------------------


def metafied(data: bytes) -> bytes:
    """As zsh writes the bytes that it uses itself."""
    out = bytearray()
    for byte in data:
        if byte == 0 or 0x83 <= byte <= 0xA2:
            out += bytes((0x83, byte ^ 0x20))
        else:
            out.append(byte)
    return bytes(out)


def zsh_line(command: str, *, extended: bool) -> bytes:
    data = command.encode()
    if data.rstrip(b" ").endswith(b"\\"):
        data += b" "
    data = metafied(data).replace(b"\n", b"\\\n")
    if extended:
        return f": {T}:3;".encode() + data + b"\n"
    return (b"\\" if data.startswith(b":") else b"") + data + b"\n"


def test_a_record_of_zsh() -> None:
    (record,) = parse("zsh-history", f": {T}:12;make test\n")
    assert isinstance(record, Incoming)
    assert (record.text, record.asserted, record.meta) == (
        "make test", T * US, {"duration": 12.0},
    )  # fmt: skip
    assert (record.tool, record.kind, record.source_id) == (
        "zsh", "command", command_id(T * US, "make test"),
    )  # fmt: skip
    (unknown,) = parse("zsh-history", f": {T}:0;ls\n")
    assert isinstance(unknown, Incoming) and unknown.meta == {}


_COMMAND = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30
).filter(lambda text: text.strip() and text == text.rstrip("\n"))


@given(st.lists(_COMMAND, min_size=1, max_size=4), st.booleans())
@example(["echo \\", "echo \\  ", "a\\\n\\\nb", ": 1:2;x", "łódź é \x83"], False)
def test_whatever_zsh_writes_is_read(commands: list[str], extended: bool) -> None:
    data = b"".join(zsh_line(command, extended=extended) for command in commands)
    assert texts("zsh-history", data) == commands


def test_zsh_itself(tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("there is no zsh")
    commands = [
        "echo łódź é",
        "a \\\nb",
        "for i in 1\ndo\necho\ndone",
        "end\\",
        "end\\ ",
        ": 1:2;x",
    ]
    for option in ("extendedhistory", "noextendedhistory"):
        path = tmp_path / option
        script = [f"HISTFILE={path} HISTSIZE=99 SAVEHIST=99", f"setopt {option}"]
        script += [f"print -sr -- {_quoted(command)}" for command in commands]
        source = "\n".join([*script, "fc -W", "exit"]) + "\n"
        subprocess.run(
            ["zsh", "-f", "-i"], input=source.encode(), capture_output=True, check=False,
            env={"PATH": os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        found = texts("zsh-history", path.read_bytes())
        assert [text for text in found if text in commands] == commands


# -- fish ---------------------------------------------------------------------------------------


def test_a_record_of_fish() -> None:
    data = (
        f"- cmd: cat a\\\\b '\\\\n'\\necho: x # y\n  when: {T}\n  paths:\n    - a\\\\b\n    - c\n"
    )
    (record,) = parse("fish-history", data)
    assert isinstance(record, Incoming)
    assert record.text == "cat a\\b '\\n'\necho: x # y"
    assert record.asserted == T * US and record.meta == {"paths": ["a\\b", "c"]}
    assert (record.tool, record.kind) == ("fish", "command")


@given(st.lists(_COMMAND.filter(lambda text: "\r" not in text), min_size=1, max_size=4))
@example(["\\n", "\\\\n", "a\nb", "- cmd: x", "  when: 5"])
def test_whatever_fish_writes_is_read(commands: list[str]) -> None:
    lines = ""
    for number, command in enumerate(commands):
        escaped = command.replace("\\", "\\\\").replace("\n", "\\n")
        lines += f"- cmd: {escaped}\n  when: {T + number}\n"
    assert words(parse("fish-history", lines)) == [
        (command, T + number) for number, command in enumerate(commands)
    ]


def test_lines_that_belong_to_no_entry_of_fish_are_named() -> None:
    records = parse("fish-history", f"what\n- cmd: ls\n  when: {T}\n  new: 1\nodd\n- cmd: x\n")
    assert [type(record) for record in records] == [Rejected, Rejected, Incoming, Incoming]
    assert [r.where for r in records if isinstance(r, Rejected)] == ["h:1", "h:5"]
    assert words(records) == [("ls", T), ("x", None)]


# -- all of them --------------------------------------------------------------------------------

TIMED = {
    "bash-history": "#{at}\n{text}\n",
    "zsh-history": ": {at}:1;{text}\n",
    "fish-history": "- cmd: {text}\n  when: {at}\n",
}


@pytest.mark.parametrize("fmt", TIMED)
def test_the_same_command_is_one_in_every_history(memory: Memory, fmt: str) -> None:
    for other, form in TIMED.items():
        data = "".join(form.format(at=T + n // 2, text=f"echo {n % 3}") for n in range(12))
        if other == fmt:
            found = memory.take(fmt, data)
            assert (found.read, found.new) == (12, 12)
    for other, form in TIMED.items():
        data = "".join(form.format(at=T + n // 2, text=f"echo {n % 3}") for n in range(12))
        found = memory.take(other, data)
        assert (found.read, found.known) == (12, 12), other


@pytest.mark.parametrize("fmt", TIMED)
def test_reading_again_after_the_top_was_cut_and_more_came(memory: Memory, fmt: str) -> None:
    form = TIMED[fmt]
    entries = [form.format(at=T + n, text=f"echo {n % 5}") for n in range(40)]
    assert memory.take(fmt, "".join(entries[:30])).new == 30
    found = memory.take(fmt, "".join(entries[10:]))
    assert (found.read, found.new, found.known) == (30, 10, 20)
    assert memory.kept() == [f"echo {n % 5}" for n in range(40)]


def test_commands_without_time_are_kept_once(memory: Memory) -> None:
    lines = [f"echo {n % 7}" for n in range(20)]
    found = memory.take("bash-history", "\n".join(lines) + "\n")
    assert (found.read, found.new, found.known) == (20, 7, 13)
    found = memory.take("bash-history", "\n".join([*lines[5:], "new one"]) + "\n")
    assert (found.read, found.new, found.known) == (16, 1, 15)
    assert memory.kept() == [*(f"echo {n}" for n in range(7)), "new one"]


def test_equal_commands_of_one_second_are_two(memory: Memory) -> None:
    data = f"#{T}\nls\n#{T}\nls\n#{T + 1}\nls\n"
    assert memory.take("bash-history", data).new == 3
    assert memory.take("bash-history", data).known == 3


@pytest.mark.parametrize("fmt", TIMED)
def test_since(fmt: str) -> None:
    data = "".join(TIMED[fmt].format(at=T + n, text=f"echo {n}") for n in range(4))
    records = parse(fmt, data, since=(T + 2) * US)
    assert [type(record) for record in records] == [Skipped, Skipped, Incoming, Incoming]


@pytest.mark.parametrize("fmt", TIMED)
def test_bytes_that_are_no_text_are_kept(fmt: str) -> None:
    command = b"echo caf\xe9 \xff"
    form = TIMED[fmt].format(at=T, text="@").encode()
    (record,) = parse(fmt, form.replace(b"@", command))
    assert isinstance(record, Incoming)
    assert record.text == "echo caf\\xe9 \\xff" and record.raw == command


@pytest.mark.parametrize("fmt", TIMED)
def test_a_huge_command_costs_itself_only(fmt: str) -> None:
    form = TIMED[fmt]
    data = form.format(at=T, text="x" * 100_000) + form.format(at=T, text="y" * 50)
    data += form.format(at=T, text="ls")
    records = parse(fmt, data, limit_b=1000)
    assert [type(record) for record in records] == [Rejected, Incoming, Incoming]
    assert texts(fmt, data) == ["x" * 100_000, "y" * 50, "ls"]


@pytest.mark.parametrize("fmt", TIMED)
def test_a_last_line_without_its_end(fmt: str, tmp_path: Path) -> None:
    path = tmp_path / "history"
    form = TIMED[fmt]
    data = (form.format(at=T, text="ls") + form.format(at=T + 1, text="pwd")).rstrip("\n")
    path.write_text(data)
    assert words(list(read(fmt, str(path)))) == [("ls", T), ("pwd", T + 1)]


@pytest.mark.parametrize("fmt", ["bash-history", "zsh-history"])
def test_a_line_that_is_still_being_written_waits(fmt: str, tmp_path: Path) -> None:
    path = tmp_path / "history"
    form = TIMED[fmt]
    path.write_text(form.format(at=T, text="ls") + form.format(at=T, text="echo ha")[:-1])

    class Growing(io.BufferedReader):
        """A file to which somebody adds when its end is reached."""

        def readline(self, size: int | None = -1, /) -> bytes:
            line = super().readline(size)
            if line and not line.endswith(b"\n"):
                with open(path, "ab") as file:
                    file.write(b"lf\n")
            return line

    with Growing(io.FileIO(path)) as stream:
        records = list(read_stream(fmt, stream, "h"))
    assert words(records) == [("ls", T)]
    assert isinstance(records[-1], Skipped) and records[-1].why == UNFINISHED
    assert words(list(read(fmt, str(path)))) == [("ls", T), ("echo half", T)]


@pytest.mark.parametrize("fmt", TIMED)
@given(data=st.binary(max_size=200))
@example(data=b"- cmd: \n  when: x\n")
@example(data=b": 1:2;\\\n")
@example(data=b"#1\n\n#2")
def test_any_bytes_are_read_or_named(fmt: str, data: bytes) -> None:
    for record in parse(fmt, data, limit_b=100):
        assert isinstance(record, Incoming | Skipped | Rejected)


def test_the_name_of_a_command_tells_no_secret() -> None:
    secret = "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    other = "export AWS_SECRET_ACCESS_KEY=aJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEZ"
    assert command_id(T * US, secret) == command_id(T * US, other)
    assert command_id(T * US, "ls") != command_id(T * US, "pwd")


def test_commands_of_real_people(shared_data: Path, memory: Memory) -> None:
    import json

    lines = (shared_data / "shell" / "kypo_events_part.jsonl").read_text().splitlines()
    commands = [json.loads(line)["cmd"] for line in lines]
    commands = [command for command in commands if command.strip()]
    stamped = "".join(f"#{T + n}\n{command}\n" for n, command in enumerate(commands))
    assert texts("bash-history", stamped) == [command.rstrip("\n") for command in commands]
    first = memory.take("bash-history", stamped)
    assert first.read == len(commands) == first.new + first.rejected + first.blocked
    again = memory.take("bash-history", stamped)
    assert again.new == 0 and again.read == again.known + again.rejected + again.blocked
    export = (shared_data / "shell" / "hishtory_TestImportHistory-export").read_text()
    assert texts("bash-history", export) == [line for line in export.splitlines() if line.strip()]
