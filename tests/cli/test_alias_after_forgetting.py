"""Names can be given while a forgotten fact still waits for its purge."""

from __future__ import annotations

from tests.cli.conftest import Runner


def test_an_alias_is_taken_beside_a_forgotten_fact(run: Runner) -> None:
    gone = run("fact", "a", "port", "1", "--json", code=0).json["id"]
    kept = run("fact", "Ann", "port", "2", "--json", code=0).json["id"]
    run("forget", gone, code=0)
    run("alias", "add", "Annie", "Ann", code=0)
    assert kept[:10] in run("about", "Annie", code=0).out
    assert run("verify", code=0).out.rstrip().endswith("ok")
