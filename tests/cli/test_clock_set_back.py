"""A clock that ran ahead once or is set back: what is said then holds from when it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from remem.objects import instant
from tests.cli.conftest import Runner

YEARS_S = 10 * 365 * 86_400
DAYS_S = 10 * 86_400
WRONG = """\
import os
import time

_off = int(os.environ.get("TEST_CLOCK_S", "0"))
_ns, _s = time.time_ns, time.time
time.time_ns = lambda: _ns() + _off * 1_000_000_000
time.time = lambda: _s() + _off
"""


@pytest.fixture(params=[YEARS_S, DAYS_S, 400, 40], ids=["years", "days", "minutes", "seconds"])
def ahead(request: pytest.FixtureRequest, run: Runner, tmp_path: Path) -> Runner:
    """A runner with a note that was recorded by a clock that ran ahead."""
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(WRONG)
    run.env["PYTHONPATH"] = str(tmp_path / "clock")
    run("add", "a note from another time", code=0, env={"TEST_CLOCK_S": str(request.param)})
    entry = run("--json", "log", code=0).json[0]
    ahead_us = instant.parse(entry["recorded_at"], now=0).micros - instant.now()
    assert abs(ahead_us / 1e6 - request.param) < 30  # else it would show nothing
    return run


def texts(run: Runner, *words: str, code: int = 0) -> list[str]:
    return [hit["text"] for hit in run("--json", "recall", *words, code=code).json["hits"]]


def test_what_is_recorded_afterwards_is_found_now(ahead: Runner) -> None:
    ahead("fact", "host", "is", "one", code=0)
    assert texts(ahead, "host", "is") == ["host is one"]
    ahead("fact", "host", "is", "two", code=0)
    assert texts(ahead, "host", "is") == ["host is two"]
    ahead("add", "a plain note", code=0)
    assert texts(ahead, "plain") == ["a plain note"]
    ahead("task", "set", "ship", "the harbour release", code=0)
    assert "harbour" in ahead("task", "show", "ship", code=0).out
    ahead("loop", "add", "call the harbour office", "--topic", "harbour", code=0)
    assert "harbour office" in ahead("loops", code=0).out
    ahead("pin", "keep the harbour clean", code=0)
    assert "harbour clean" in ahead("pins", code=0).out
    ahead("verify", code=0)


def test_corrections_and_ends_take_effect(ahead: Runner) -> None:
    fact = ahead("--json", "fact", "port", "is", "80", code=0).json["id"]
    ahead("revise", fact, "port is 443", code=0)
    assert texts(ahead, "port", "is") == ["port is 443"]
    other = ahead("--json", "fact", "team", "is", "red", code=0).json["id"]
    ahead("close", other, code=0)
    assert texts(ahead, "team", "is", code=1) == []
    assert "port is 443" in ahead("diff", "--known-at", "2020-01-01..", code=0).out
    ahead("verify", code=0)


def test_what_began_by_the_wrong_clock_can_be_corrected(run: Runner, ahead: Runner) -> None:
    wrong = {"TEST_CLOCK_S": str(DAYS_S)}
    fact = ahead("--json", "fact", "door", "is", "open", code=0, env=wrong).json["id"]
    ahead("revise", fact, "door is shut", code=0)
    assert texts(ahead, "door", "is") == ["door is shut"]
    assert texts(ahead, "door", "is", "--as-of", "2080-01-01") == ["door is shut"]
    ahead("fact", "lamp", "is", "on", code=0, env=wrong)
    ahead("fact", "lamp", "is", "off", code=0)
    assert texts(ahead, "lamp", "is") == ["lamp is off"]
    assert texts(ahead, "lamp", "is", "--as-of", "2080-01-01") == ["lamp is off"]
    ahead("verify", code=0)


def test_status_doctor_and_verify_say_so(ahead: Runner, request: pytest.FixtureRequest) -> None:
    far = request.node.callspec.params["ahead"] > 300
    for word in ("status", "verify"):
        assert ("ahead of the clock" in ahead(word, code=0).err) == far
    assert ("ahead of the clock" in ahead("doctor").out.replace("\n", " ")) == far
    ran = {"TEST_CLOCK_S": str(YEARS_S)}
    assert "ahead of the clock" not in ahead("status", code=0, env=ran).err
