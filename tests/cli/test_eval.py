"""remem eval: a user's own regression tests of memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Runner

CASES = """
[[case]]
name = "where Ann lives"
query = "where does Ann live"
must_retrieve = ["ann lives in PARIS"]
must_not_retrieve = ["Berlin"]

[[case]]
query = "where did Ann live before"
must_rank_above = [{above = "Paris", below = "Berlin"}]

[[case]]
query = "where does Ann live"
as_of = "2019"
must_retrieve = ["Berlin"]
k = 1

[[case]]
query = "which port"
collection = "work"
view = "now"
must_retrieve = ["8443"]
"""


@pytest.fixture
def filled(run: Runner) -> Runner:
    run("fact", "Ann", "lives_in", "Berlin", "--from", "2018", code=0)
    run("fact", "Ann", "lives_in", "Paris", "--from", "2022", code=0)
    run.add("--collection", "work", "the port is 8443")
    return run


def test_cases_that_hold(filled: Runner, tmp_path: Path) -> None:
    file = tmp_path / "cases.toml"
    file.write_text(CASES)
    assert filled("eval", file, code=0).out == "4 of 4 cases hold\n"
    result = filled("eval", file, "--json", "--mode", "lexical", code=0).json
    assert (result["cases"], result["failed"]) == (4, 0)
    assert [one["view"] for one in result["results"]] == ["now", "history", "now", "now"]
    assert result["results"][0]["case"] == "where Ann lives"
    assert result["results"][3]["case"] == "case 4"


def test_each_kind_of_miss_is_named(filled: Runner, tmp_path: Path) -> None:
    ref = filled("recall", "--json", "Ann", code=0).json["hits"][0]["ref"]
    file = tmp_path / "cases.toml"
    file.write_text(f"""
        [[case]]
        query = "where does Ann live"
        must_retrieve = ["Oslo", "{ref[:12]}"]
        must_not_retrieve = ["Paris"]

        [[case]]
        query = "where did Ann live before"
        must_rank_above = [
            {{above = "Berlin", below = "Paris"}},
            {{above = "Oslo", below = "Paris"}},
        ]
    """)
    done = filled("eval", file, code=1)
    assert done.out.splitlines() == [
        "MISS  case 1: where does Ann live",
        "      not in the first 10: Oslo",
        "      must not come, stands at 1: Paris",
        "MISS  case 2: where did Ann live before",
        "      at 2: Berlin, yet at 1: Paris",
        "      not in the first 10: Oslo",
        "0 of 2 cases hold",
    ]
    assert filled("eval", file, "--json", code=1).json["failed"] == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "case"),
        ("case = []", "no case"),
        ("[[case]]\nquery = 'x'", "demands nothing"),
        ("[[case]]\nquery = ' '\nmust_retrieve = ['x']", "empty text"),
        ("[[case]]\nquery = 'x'\nmust_retrieve = ['']", "empty text"),
        ("[[case]]\nquery = 'x'\nmust_retrieve = 'x'", "array"),
        ("[[case]]\nquery = 'x'\nmust_retrieve = ['x']\nviews = 'now'", "views"),
        ("[[case]]\nquery = 'x'\nmust_retrieve = ['x']\nview = 'then'", "no view"),
        ("[[case]]\nquery = 'x'\nmust_retrieve = ['x']\nk = 0", "between 1"),
        ("[[case]]\nquery = 'x'\nmust_retrieve = ['x']\nas_of = 'the 40th of May'", "case 1"),
        ("[[case]\n", "toml"),
    ],
)
def test_files_that_cannot_be_read_as_cases(
    filled: Runner, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "cases.toml"
    file.write_text(text)
    done = filled("eval", file, code=2)
    assert said in done.err
    assert filled("eval", tmp_path / "absent.toml").code == 5
