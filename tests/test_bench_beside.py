"""The side-by-side bench: what counts as found, and a whole small run of this program."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.bench import side_by_side as beside
from tests.bench.data import Doc, Question
from tests.bench.peer_driver import belonging, end, spent

DOCS = [
    Doc("a", "the kettle  is blue", "Ann", "s1"),
    Doc("b", "the kettle is blue and it whistles", "Bo", "s1"),
    Doc("c", "nothing of note", "Ann", "s2"),
]


def index() -> dict[str, list[tuple[str, str]]]:
    out: dict[str, list[tuple[str, str]]] = {}
    for doc in DOCS:
        plain = beside._plain(doc.text)
        out.setdefault(plain[:8], []).append((plain, doc.id))
    return out


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("1. Bo: the kettle is blue and it whistles\n2. nothing of\n   note", ["b", "c"]),
        ("│ the kettle │ is blue │ x", ["a"]),
        ("the kettle is blue\nthe kettle is blue", ["a"]),
        ('{"hits": [{"content": "nothing\\nof note"}, {"content": "the kettle is blue"}]}',
         ["c", "a"]),
        ("the kettle is red", []),
        ("", []),
    ],
)  # fmt: skip
def test_texts_are_found_in_the_order_of_the_output(printed: str, found: list[str]) -> None:
    assert beside._found(beside._plain(beside._readable(printed)), index()) == found


def stand_in(folder: Path, code: str) -> beside.Tool:
    """A program of these lines, installed where a tool is looked for."""
    packages = folder / "venv" / "lib" / "python" / "site-packages"
    described = packages / "standin-1.dist-info"
    described.mkdir(parents=True)
    body = "".join(f"    {line}\n" for line in code.splitlines())
    (packages / "standin.py").write_text(f"def main():\n{body}")
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: standin\nVersion: 1\n")
    (described / "entry_points.txt").write_text("[console_scripts]\nstandin = standin:main\n")
    programs = folder / "venv" / "bin"
    programs.mkdir()
    start = programs / "start.py"
    start.write_text(
        f"import runpy, sys\nsys.path.insert(0, {str(packages)!r})\ndel sys.argv[0]\n"
        "runpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    python = f"#!/bin/sh\nshift\nexec '{sys.executable}' '{start}' \"$@\"\n"  # without its -I
    for name, text in (("python", python), ("standin", "#!/bin/sh\n")):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    class StandIn(beside.Tool):
        name = label = "standin"

        def load(self, docs: Sequence[Doc]) -> Iterator[beside.Line]:
            yield from ()

        def ask(self, text: str) -> list[str]:
            return [text]

    return StandIn(folder / "venv", folder, {"MARK": "given"})


def test_a_tool_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    for peer in beside.PEERS:
        with pytest.raises(beside.Failed, match="has no command"):
            peer(tmp_path / "none", tmp_path)


def test_this_program_finds_its_own(tmp_path: Path) -> None:
    if not (Path(sys.prefix) / "bin" / "remem").exists():
        pytest.skip("the command is not installed beside this interpreter")
    tool = beside.Remem(Path(sys.prefix), tmp_path)
    asked = [Question("q", "which kettle whistles", ("b",)), Question("r", "of note", ("c",))]
    row = dict(zip(beside.HEAD, beside._measure(tool, DOCS, asked, 60.0), strict=True))
    assert row[""] == "remem, words" and row["recall@10"] == row["MRR"] == row["hit@10"] == "1.000"
    assert float(row["process s"]) > 0 and float(row["resident s"]) > 0
    assert not belonging(str(tool.home)), "the helper in memory was left running"


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    if not (Path(sys.prefix) / "bin" / "remem").exists():
        pytest.skip("the command is not installed beside this interpreter")
    tool = beside.Remem(Path(sys.prefix), tmp_path)
    told = tool.drive(iter([beside.Line(["add", "-"], "from a pipe")]), 60.0)
    assert told[0].code == 0 and len(told[0].out.strip()) == 10
    assert told[0].seconds > 0 and told[0].cpu > 0
    with pytest.raises(beside.Failed, match="no such file"):
        tool.drive(iter([beside.Line(["import", "jsonl", str(tmp_path / "absent")])]), 60.0)


def test_a_turn_that_waits_for_an_index_does_not_count_as_found(tmp_path: Path) -> None:
    if not (Path(sys.prefix) / "bin" / "remem").exists():
        pytest.skip("the command is not installed beside this interpreter")
    tool = beside.Remem(Path(sys.prefix), tmp_path)
    tool.drive(tool.load(DOCS), 60.0)
    assert tool.reached() == {"kept": 3, "indexed": 3}
    tool.drive(iter([beside.Line(["add", "-"], "one more")]), 60.0)
    assert tool.reached() == {"kept": 4, "indexed": 0}
    tool.drive(iter([beside.Line(["project"])]), 60.0)
    assert tool.reached() == {"kept": 4, "indexed": 4}


def test_a_tool_that_takes_too_long_says_how_far_it_came(tmp_path: Path) -> None:
    tool = stand_in(tmp_path, "import time, sys\ntime.sleep(float(sys.argv[1]))\n")
    lines = [beside.Line([seconds]) for seconds in ("0", "0", "60", "0")]
    with pytest.raises(beside.Failed, match=r"not done after 2 s, .*: 2 of 4 command lines"):
        tool.drive(iter(lines), 2.0)


def test_what_is_kept_apart_is_run_but_not_counted(tmp_path: Path) -> None:
    tool = stand_in(tmp_path, "import os, sys\nprint(sys.argv[1], os.environ.get('MARK'))\n")
    lines = [
        beside.Line(["one"], apart=True),
        beside.Line(["two"], env={"MARK": "here"}),
        beside.Line(["three"]),
    ]
    told = tool.drive(iter(lines), 60.0)
    assert [one.out for one in told] == ["two here\n", "three given\n"]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_what_is_left_behind_is_counted_and_ended(tmp_path: Path) -> None:
    burn = "sum(range(10_000_000)); import time; print(flush=True); time.sleep(600)"
    env = {"HOME": str(tmp_path / "own")}
    left = subprocess.Popen(
        [sys.executable, "-c", burn], env=env, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert left.stdout is not None and left.stdout.readline() == b"\n"
        assert belonging(str(tmp_path)) == [] and spent(str(tmp_path)) == 0
        assert belonging(env["HOME"]) == [left.pid] and spent(env["HOME"]) > 0
        reap = threading.Thread(target=left.wait)
        reap.start()
        end(env["HOME"])
        reap.join(10)
        assert left.returncode == -signal.SIGTERM and belonging(env["HOME"]) == []
    finally:
        left.kill()
        left.wait(10)
