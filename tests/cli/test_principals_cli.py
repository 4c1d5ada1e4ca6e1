"""remem principal and acting as one: tokens, the environment, exit statuses, what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Runner


@pytest.fixture
def home(run: Runner) -> Runner:
    """A runner with a store of one piece of evidence."""
    run.add("the staging API answers on port 8443")
    return run


def token(run: Runner, name: str, *words: str) -> str:
    return run("principal", "add", name, "-q", *words, code=0).out.strip()


def test_a_token_is_shown_once_and_stored_nowhere(home: Runner) -> None:
    made = home("principal", "add", "bot", "--can", "read,write", "--json", code=0)
    assert set(made.json) == {"name", "pattern", "scope", "can", "token"}
    assert (
        made.json["can"] == ["read", "write"] and made.json["pattern"] == "local/default/home/*/*"
    )
    secret = made.json["token"]
    listed = home("principal", "list", "--json", code=0)
    assert secret not in listed.out and listed.json[0]["name"] == "bot"
    for words in (["audit", "--json"], ["status", "--json"], ["config", "list"], ["log", "--json"]):
        assert secret not in home(*words, code=0).out
    for path in home.home.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes(), path


def test_the_words_say_what_a_pattern_means(home: Runner) -> None:
    result = home(
        "principal", "add", "bot", "--scope", "local/default/github.com/ann/notes", code=0
    )
    assert "collection 'github.com', agent 'ann', session 'notes'" in result.err
    assert "holds nothing yet" in result.err
    result = home("principal", "add", "bot2", "--agent", "coder", "--can", "read", code=0)
    assert "collection 'home', agent 'coder', every session" in result.err


def test_a_token_binds_the_process(home: Runner) -> None:
    bot = {"REMEM_TOKEN": token(home, "bot", "--can", "read,write")}
    assert "8443" in home("recall", "staging", env=bot, code=0).out
    made = home("add", "from the bot", "--json", env=bot, code=0).json
    assert made["receipt"]["status"] == "provisional"
    shown = home("show", made["id"], "--json", code=0).json
    assert shown["origin"] == "agent" and shown["revisions"][0]["principal"] == "bot"
    shown = home("add", "mine, says the bot", "--origin", "owner", "--json", env=bot, code=0).json
    assert home("show", shown["id"], "--json", code=0).json["origin"] == "agent"
    rows = home("audit", "--json", code=0).json
    assert {row["principal"] for row in rows} == {"owner", "bot"}
    assert home("verify", code=0)


@pytest.mark.parametrize("words", [["--as", "owner"], []])
def test_a_token_makes_nobody_the_owner(home: Runner, words: list[str]) -> None:
    secret = token(home, "bot")
    home("config", "set", "as", "owner", code=0)
    result = home("purge", *words, env={"REMEM_TOKEN": secret, "REMEM_AS": "owner"})
    assert result.code == 3 and not result.out
    assert home("recall", "staging", env={"REMEM_TOKEN": secret, "REMEM_AS": "owner"}).code == 0


def test_as_goes_with_its_token_only(home: Runner) -> None:
    one, two = token(home, "one"), token(home, "two")
    assert home("--as", "one", "recall", "staging", env={"REMEM_TOKEN": one}, code=0).out
    for words, env in (
        (["--as", "one"], {}),
        (["--as", "one"], {"REMEM_TOKEN": two}),
        (["--as", "owner"], {"REMEM_TOKEN": one}),
        (["--as", "nobody"], {}),
        ([], {"REMEM_AS": "one"}),
        ([], {"REMEM_AS": "two", "REMEM_TOKEN": one}),
    ):
        result = home(*words, "recall", "staging", env=env)
        assert result.code == 3 and not result.out, result.shown
        assert one not in result.err and two not in result.err
    rows = home("audit", "--json", "--action", "bind", code=0).json
    assert [row["outcome"] for row in rows] == [
        "no_token",
        "other_principal",
        "other_principal",
        "no_token",
        "no_token",
        "other_principal",
    ]
    assert home("--as", "owner", "recall", "staging", code=0).out


def test_names_of_a_collection_are_told_to_who_sees_all_of_it(home: Runner) -> None:
    home("alias", "add", "the zebra project", "billing", code=0)
    wide = {"REMEM_TOKEN": token(home, "wide")}
    pinned = {"REMEM_TOKEN": token(home, "pinned", "--agent", "coder")}
    assert "zebra" in home("alias", "list", env=wide, code=0).out
    assert home("alias", "list", env=pinned, code=0).out == ""
    assert "zebra" in home("alias", "list", "--agent", "coder", code=0).out


def test_the_owners_key_is_shown_to_the_owner_only(home: Runner) -> None:
    bot = {"REMEM_TOKEN": token(home, "bot")}
    home("config", "set", "embedder_key", "sesame-4711", code=0)
    for words in (["get", "embedder_key"], ["get", "--json", "embedder_key"], ["list"]):
        shown = home("config", *words, env=bot)
        assert shown.code == (3 if "get" in words else 0) and "sesame" not in shown.out
    assert home("config", "get", "recall.limit", env=bot, code=0).out == "10\n"
    assert home("config", "get", "embedder_key", code=0).out == "sesame-4711\n"


COMMANDS = (
    ["recall", "staging"],
    ["context", "staging"],
    ["log"],
    ["status"],
    ["add", "words"],
    ["fact", "a", "b", "c"],
    ["export", "-"],
    ["ls-refs"],
    ["principal", "list"],
    ["completion", "bash", "--candidates", "ids"],
    ["config", "list"],
)


@pytest.mark.parametrize("secret", ["remem_" + "A" * 43, "garbage", " ", ""])
def test_what_is_no_token_opens_nothing(home: Runner, secret: str) -> None:
    before = home("count-objects", code=0).out
    for words in COMMANDS:
        result = home(*words, env={"REMEM_TOKEN": secret})
        assert result.code == 3 and not result.out, (words, result.shown)
        assert not secret.strip() or secret not in result.err
    assert home("count-objects", code=0).out == before
    rows = home("audit", "--json", "-n", "50", "--principal", "unknown").out
    assert rows.count("unknown_token") == (len(COMMANDS) if secret.strip() else 0)
    assert home("help", "recall", env={"REMEM_TOKEN": secret}, code=0).out


def test_revoking_and_renewing(home: Runner) -> None:
    old = token(home, "bot", "--can", "read")
    new = home("principal", "token", "bot", "-q", code=0).out.strip()
    assert home("recall", "staging", env={"REMEM_TOKEN": old}).code == 3
    bot = {"REMEM_TOKEN": new}
    kid = home("principal", "add", "kid", "-q", env=bot, code=0).out.strip()
    assert home("recall", "staging", env={"REMEM_TOKEN": kid}, code=0)
    assert home("principal", "revoke", "bot", code=0).out == "bot revoked\nkid revoked\n"
    for secret in (new, kid):
        assert home("recall", "staging", env={"REMEM_TOKEN": secret}).code == 3
    listed = home("principal", "list", "--json", code=0).json
    assert all(one["revoked_at"] for one in listed)
    assert [(one["name"], one["parent"]) for one in listed] == [("bot", "owner"), ("kid", "bot")]
    assert home("principal", "add", "bot", code=3)
    assert home("principal", "revoke", "bot", code=3)
    assert home("principal", "revoke", "nobody", code=1)
    assert home("verify", code=0)


def test_a_principal_makes_no_greater_one(home: Runner) -> None:
    bot = {"REMEM_TOKEN": token(home, "bot", "--can", "read", "--agent", "coder")}
    for words in (
        ["--can", "write"],
        ["--scope", "local/default/home"],
        ["--scope", "local/default/*"],
        ["--scope", "others/default/home/coder"],
    ):
        result = home("principal", "add", "kid", *words, env=bot)
        assert result.code == 3 and not result.out
    assert home("principal", "add", "kid", "--session", "s1", "-q", env=bot, code=0).out
    assert home("principal", "revoke", "bot", env=bot, code=0).out == "bot revoked\nkid revoked\n"


def test_the_file_of_a_token(home: Runner, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token(home, "bot") + "\n")
    env = {"REMEM_TOKEN_FILE": str(path)}
    path.chmod(0o644)
    result = home("recall", "staging", env=env, code=3)
    assert "others can read" in result.err
    path.chmod(0o600)
    assert home("recall", "staging", env=env, code=0).out
    assert home("audit", env=env).code == 3, "it is the principal, not the owner"
    path.write_text("")
    assert home("recall", "staging", env=env).code == 3
    for missing in (str(tmp_path / "none"), ""):
        assert home("recall", "staging", env={"REMEM_TOKEN_FILE": missing}).code == 3


@pytest.mark.parametrize("key", ["token", "token_file"])
def test_no_file_of_settings_holds_a_token(home: Runner, key: str) -> None:
    secret = token(home, "bot")
    assert home("config", "set", key, secret).code in (1, 2)
    (home.store / "config.toml").write_text(f'{key} = "{secret}"\n')
    result = home("recall", "staging")
    assert result.code == 2 and secret not in result.err
    assert f"unknown setting '{key}'" in result.err


def test_a_token_of_another_store_is_none_here(home: Runner, tmp_path: Path) -> None:
    secret = token(home, "bot")
    elsewhere = {"REMEM_STORE": str(tmp_path / "other"), "REMEM_TOKEN": secret}
    result = home("add", "words", env=elsewhere, code=3)
    assert "no store" in result.err and not (tmp_path / "other").exists()
    home("add", "words", env={"REMEM_STORE": str(tmp_path / "other")}, code=0)
    assert home("add", "words", env=elsewhere).code == 3


def test_who_may_only_write_is_told_new_of_everything(home: Runner) -> None:
    home("forget", home.add("a secret that was forgotten"), code=0)
    writer = {"REMEM_TOKEN": token(home, "writer", "--can", "write")}
    both = {"REMEM_TOKEN": token(home, "both", "--can", "read,write")}
    seen: list[object] = []
    for text, code in (("a secret that was forgotten", 3), ("something else", 0)):
        assert home("add", text, env=both).code == code
        for _ in range(2):
            told = home("add", text, "--json", env=writer, code=0).json
            assert told["status"] == "new" and "tombstone" not in told["receipt"]["codes"]
            seen.append(told["receipt"])
    assert seen == seen[:1] * 4, "one answer differs from the others"
    lines = "\n".join(json.dumps({"text": t}) for t in ("something else", "a line"))
    told = home("add", "--jsonl", "--json", stdin=lines, env=writer, code=0).json
    assert (told["new"], told["known"], told["blocked"]) == (2, 0, 0)
    for words in (["recall", "staging"], ["log"], ["show", "abcdefab"], ["fact", "a", "b", "c"]):
        assert home(*words, env=writer).code == 3


def test_words_that_are_wrong(home: Runner) -> None:
    for words in (
        ["frobnicate"],
        ["add"],
        ["list", "bot"],
        ["revoke"],
        ["add", "bot", "--can", "everything"],
        ["add", "bot", "--scope", "home"],
        ["list", "--can", "read"],
    ):
        assert home("principal", *words).code == 2, words
    assert home("principal", "list", "--json", code=0).json == []


def test_verdicts_of_a_pack_are_not_believed(home: Runner, tmp_path: Path) -> None:
    """What was verified, or approved, elsewhere is legacy here, whoever exported it."""
    home("fact", "port", "is", "8443", code=0)
    pack = tmp_path / "a.pack"
    home("export", pack, code=0)
    assert '"verified"' in pack.read_text()
    forged = pack.read_text().replace('"op":"create"', '"op":"approve"')
    for number, text in enumerate((pack.read_text(), forged)):
        other = {"REMEM_STORE": str(tmp_path / f"store{number}")}
        home("add", "there is something here", env=other, code=0)
        path = tmp_path / f"{number}.pack"
        path.write_text(text)
        home("import", "pack", path, env=other)
        entries = home("log", "--json", "--limit", "100", env=other, code=0).json
        brought = [entry for entry in entries if "made_at" in entry]
        assert brought or number == 1
        assert not [entry for entry in brought if entry["status"] == "verified"], brought
    trusted = {"REMEM_STORE": str(tmp_path / "trusted")}
    home("import", "pack", pack, "--trust", env=trusted, code=0)
    entries = home("log", "--json", "--limit", "100", env=trusted, code=0).json
    assert "verified" in {entry["status"] for entry in entries}, "positive control"
    bot = {"REMEM_TOKEN": token(home, "bot", "--can", "read,write,review")}
    assert home("import", "pack", pack, "--trust", env=bot).code == 3
