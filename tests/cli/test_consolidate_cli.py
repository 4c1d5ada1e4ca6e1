"""`remem consolidate` as people and cron run it; status, doctor and the hook target."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import REMEM, Runner
from tests.hooks.sleeper import TALK


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    made = Runner(tmp_path / "home")
    made("init")
    return made


def talk(run: Runner) -> None:
    lines = [
        json.dumps({"text": text, "speaker": who, "role": "user", "session": "talk",
                    "at": f"2026-03-01T10:{n:02}:00Z"})
        for n, (who, text) in enumerate(TALK)
    ]  # fmt: skip
    path = Path(run.cwd) / "talk.jsonl"
    path.write_text("\n".join(lines))
    assert run("import", "jsonl", str(path)).code == 0


def test_what_it_did_is_said_once(run: Runner) -> None:
    talk(run)
    run("add", "the pump is green")
    run("add", "The pump is green.")
    dry = run("consolidate", "--dry-run", "--json")
    assert dry.json["dry_run"] and dry.json["counts"] == {"duplicates": 1, "summaries": 1}
    shown = run("consolidate", "--dry-run").out
    assert "would be:" in shown and "duplicates retired" in shown
    done = run("consolidate")
    assert done.code == 0
    assert "duplicates retired  1\nsummaries proposed  1\n" in done.out
    assert "remem review" in done.err
    again = run("consolidate", "--json").json
    assert again["counts"] == {} and again["runs"] == [] and again["status"] == "done"
    assert again["waiting"] == 1 and again["started"].endswith("Z")
    assert run("consolidate").out == "nothing changed\n"


def test_usage(run: Runner) -> None:
    assert run("consolidate", "--budget-seconds", "0").code == 2
    assert run("consolidate", "--cron", "--dry-run").code == 2
    assert run("consolidate", "--budget-seconds", "60", "--drain-only").code == 0


def test_two_at_once_do_not_disturb_each_other(run: Runner) -> None:
    talk(run)
    both = [
        subprocess.Popen([*REMEM, "consolidate", "--json"], env=run.environment(), cwd=run.cwd,
                         stdout=subprocess.PIPE)
        for _ in range(3)
    ]  # fmt: skip
    found = [json.loads(one.communicate()[0]) for one in both]
    assert [one.returncode for one in both] == [0, 0, 0]
    assert sum(one["counts"].get("summaries", 0) for one in found) == 1
    assert {one["status"] for one in found} <= {"done", "busy"}
    assert run("verify").code == 0


def test_from_cron_it_is_quiet_until_somebody_is_needed(run: Runner) -> None:
    run.env["XDG_STATE_HOME"] = str(Path(run.cwd) / "state")
    log = Path(run.cwd) / "state" / "remem" / "consolidate.log"
    run("add", "the pump is green")
    run("add", "The pump is green.")
    quiet = run("consolidate", "--cron")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    talk(run)
    told = run("consolidate", "--cron")
    assert told.out == "remem: 1 proposal waits for review: 'remem review'\n" and told.err == ""
    assert run("consolidate", "--cron").out == ""
    lines = log.read_text().splitlines()
    assert len(lines) == 3 and "duplicates 1" in lines[0] and "summaries 1" in lines[1]
    assert "\r" not in log.read_text() and "pump" not in log.read_text()


def test_the_log_is_rotated(run: Runner) -> None:
    run.env["XDG_STATE_HOME"] = str(Path(run.cwd) / "state")
    log = Path(run.cwd) / "state" / "remem" / "consolidate.log"
    log.parent.mkdir(parents=True)
    log.write_text("old line\n" * 40_000)
    for _ in range(2):
        assert run("consolidate", "--cron").code == 0
    assert "old line" in Path(f"{log}.1").read_text()
    assert len(log.read_text().splitlines()) == 2


def test_status_tells_of_the_last_sleep_and_of_stale_summaries(run: Runner) -> None:
    value = run("status", "--json").json
    assert value["consolidation"] is None and value["index"]["stale_rate"] is None
    talk(run)
    run("consolidate")
    draft = run("draft", "list", "--json").json
    assert run("draft", "approve", _first_id(draft)).code == 0
    value = run("status", "--json").json
    assert value["consolidation"]["counts"] == {"summaries": 1}
    assert value["consolidation"]["surface"] == "cli"
    assert value["index"]["stale_rate"] == 0.0
    hit = run("recall", "sensors of pier four", "--kind", "summary", "--json").json["hits"][0]
    source = next(c["id"] for c in hit["cites"] if "sensors of pier four" in c["quote"])
    assert run("revise", source, "The sensors of pier nine are fine.").code == 0
    assert run("status", "--json").json["index"]["stale_rate"] == 1.0
    assert "100% stale" in run("status").out
    hit = run("recall", "sensors of pier four", "--kind", "summary", "--json").json["hits"][0]
    assert hit["stale"] == {
        "reason": "revised", "current_value": "The sensors of pier nine are fine.",
    }  # fmt: skip
    shown = run("recall", "sensors of pier four", "--kind", "summary")
    assert "[STALE]" in shown.out and "pier nine" in shown.out
    assert "[STALE" in run("context", "sensors of pier four").out


def _first_id(found: object) -> str:
    first = found[0] if isinstance(found, list) else found["drafts"][0]  # type: ignore[index]
    return str(first["id"] if "id" in first else first["draft"])


def test_doctor_notices_that_it_has_not_run_for_two_periods(run: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    table = tmp_path / "table"
    program = folder / "crontab"
    program.write_text(
        f'#!/bin/sh\ncase "$1" in -l) cat "{table}" ;; -r) rm "{table}" ;; '
        f'-) cat > "{table}" ;; esac\n'
    )
    program.chmod(0o755)
    table.write_text("1 1 * * * mine\n")
    run.env["PATH"] = f"{folder}:{os.environ['PATH']}"
    assert _schedule(run)["remedy"] == "remem hook install cron"
    assert run("hook", "install", "cron", "--dry-run").out.startswith("--- crontab")
    assert table.read_text() == "1 1 * * * mine\n"
    assert run("hook", "install", "cron").code == 0
    assert "consolidate --cron" in table.read_text()
    assert _schedule(run)["level"] == "ok"
    stamp = Path(run.store) / "locks" / "slept"
    value = json.loads(stamp.read_bytes())
    value["scheduled"] -= 5 * 3_600_000_000
    stamp.write_text(json.dumps(value))
    found = _schedule(run)
    assert found["level"] == "warn" and "5 hours" in found["what"]
    assert "consolidate.log" in found["remedy"]
    run("consolidate")
    assert _schedule(run)["level"] == "ok"
    assert run("hook", "uninstall", "cron").code == 0
    assert table.read_text() == "1 1 * * * mine\n"


def _schedule(run: Runner) -> dict[str, str]:
    found = run("doctor", "--json").json["findings"]
    return next(one for one in found if one["check"] == "schedule")  # type: ignore[no-any-return]


def test_a_named_principal_may_not_consolidate(run: Runner) -> None:
    made = run("principal", "add", "helper", "--can", "read,write", "--json")
    assert made.code == 0, made.err
    run.env["REMEM_TOKEN"] = made.json["token"]
    refused = run("consolidate")
    assert refused.code == 3 and "owner" in refused.err
    del run.env["REMEM_TOKEN"]
    assert run("consolidate").code == 0


def test_superseded_text_comes_through_no_other_door(run: Runner) -> None:
    """T5, as commands."""
    ids = []
    for number in range(10):
        made = run("add", "deploy host is alpha-9", "--session", f"s{number}", "--json")
        ids.append(made.json["id"])
    run("consolidate")
    assert "alpha-9" in run("recall", "deploy host").out  # control
    assert run("add", "deploy host is beta-3", "--corrects", ids[3]).code == 0
    for _ in range(2):
        run("consolidate")
        run("reindex")
        assert "alpha-9" not in run("recall", "deploy host").out
        assert "alpha-9" not in run("recall", "alpha-9").out
        assert "beta-3" in run("recall", "deploy host").out
        assert "alpha-9" not in run("context", "deploy host").out
        assert "alpha-9" not in run("draft", "list").out
    past = run("recall", "deploy host alpha-9", "--view", "history", "--json").json["hits"]
    old = [hit for hit in past if "alpha-9" in hit["text"]]
    assert old and all(hit["truth"] == "historical" for hit in old)
    assert any(hit["replaced_by"] for hit in old)


def test_the_whole_of_t2_as_commands(run: Runner) -> None:
    text = "the quokka enclosure opens at seven"
    said = run("add", text, "--json").json["id"]
    run("add", text, "--collection", "other")
    for number in range(3):
        run("add", f"a walk with number {number}", "--session", f"s{number}")
    run("consolidate")
    pack = str(Path(run.cwd) / "before.pack")
    assert run("export", pack).code == 0
    assert run("forget", said, "--yes").code == 0
    assert run("consolidate").code == 0
    for words in (
        ("recall", "quokka"),
        ("recall", "quokka", "--as-of", "2030-01-01", "--view", "history"),
        ("context", "quokka enclosure"),
    ):
        assert "quokka" not in run(*words).out
    assert run("add", text).code == 3
    run("import", "pack", pack)
    run("reindex")
    run("consolidate")
    assert "quokka" not in run("recall", "quokka").out
    assert "quokka" in run("recall", "quokka", "--collection", "other").out  # control
    assert run("verify").code == 0
