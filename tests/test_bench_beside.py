"""The side-by-side bench: what counts as found, and a whole small run of this program."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.bench import side_by_side as beside
from tests.bench.data import Doc, Question

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


def test_a_tool_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    for peer in beside.PEERS:
        with pytest.raises(beside.Failed, match="has no command"):
            peer(tmp_path / "none", tmp_path)


def test_this_program_finds_its_own(tmp_path: Path) -> None:
    if not (Path(sys.prefix) / "bin" / "remem").exists():
        pytest.skip("the command is not installed beside this interpreter")
    tool = beside.Remem(Path(sys.prefix), tmp_path)
    asked = [Question("q", "which kettle whistles", ("b",)), Question("r", "of note", ("c",))]
    row = beside._measure(tool, DOCS, asked, 60.0)
    assert row[0] == "remem" and row[4:6] == ["1.000", "1.000"]


def test_a_command_that_fails_says_why(tmp_path: Path) -> None:
    if not (Path(sys.prefix) / "bin" / "remem").exists():
        pytest.skip("the command is not installed beside this interpreter")
    tool = beside.Remem(Path(sys.prefix), tmp_path)
    told = tool.drive(iter([{"words": ["add", "-"], "stdin": "from a pipe"}]), 60.0)
    assert told[0].code == 0 and len(told[0].out.strip()) == 10
    with pytest.raises(beside.Failed, match="no such file"):
        tool.drive(iter([{"words": ["import", "jsonl", "/nonexistent"]}]), 60.0)
    assert json.loads(json.dumps({"seconds": told[0].seconds}))["seconds"] > 0
