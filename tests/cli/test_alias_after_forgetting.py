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


def test_a_secret_becomes_no_name(run: Runner) -> None:
    token = "remem_" + "aB3-_" * 8 + "xyz"
    github = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"
    for names in ((token, "bot"), ("bot", token), (github, "x"), ("x", f"_{token}_")):
        refused = run("alias", "add", *names, code=2)
        assert "cannot be a name" in refused.err and "aB3" not in refused.err
        assert github not in refused.err
    run("alias", "add", "Annie", "Ann Lee", code=0)
    assert run("alias", "list", code=0).out.split() == ["Annie", "Ann", "Lee"]
