"""A principal sees and changes its own scope, by every command, and learns nothing of the others.

The probes are made from the command table, so a new command is tried without being listed: its
arguments are filled by their shown names.  What it prints, on both channels and into files, must
not hold a word that stands in another scope.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from remem.cli import allowed, table
from remem.objects.store import Store
from tests.acceptance.walled import ELSEWHERE, OWN, divided, foreign
from tests.cli.conftest import Result, Runner

FOREIGN = [word for where in ELSEWHERE for word in foreign(where)]
UNKNOWN = "ab" * 32
SCOPE = "local/default/mine/bot/s1"
CAN = "read,write,propose"

# How a command is called where the words made from the table would not do.
PROBES: dict[str, list[list[str]]] = {
    "add": [["words"], ["words", "--corrects", "{ID}"]],
    "alias": [["list"], ["add", "seal", "walrus"]],
    "completion": [["bash", "--candidates", what] for what in ("ids", "collections", "agents")]
    + [["bash", "{ID}", "--candidates", "ids"], ["bash", "--candidates", "sessions"]],
    "config": [["list"], ["set", "recall.limit", "5"]],
    "context": [["walrus", "count"], ["walrus", "--all-collections", "--json"]],
    "count-objects": [[], ["--all-collections"]],
    "demo": [],
    "diff": [["{ID}", "{OWN}"], ["--known-at", "2000-01-01..2999-01-01", "--all-collections"]],
    "eval": [["cases.toml"]],
    "export": [["-", "--all-collections"], ["out.pack"], ["-", "--all-scopes"]],
    "fact": [["walrus", "count", "7"], ["walrus", "count", "7", "--source-obs", "{ID}"]],
    "forget": [["{ID}"], ["--query", "walrus", "--yes"], ["--scope-all", "--dry-run"]],
    "help": [["recall"]],
    "hook-event": [["claude", "session-start"], ["claude", "user-prompt-submit"]],
    "hold": [["list"], ["add", "{ID}"]],
    "import": [["jsonl", "lines.jsonl", "--dry-run"], ["jsonl", "lines.jsonl"]],
    "init": [[], ["--here"]],
    "jobs": [[], ["retry", "{ID}"]],
    "log": [[], ["--all-collections", "-n", "100"], ["{ID}"], ["--all-collections", "--json"]],
    "ls-refs": [["--all"], ["--all", "--all-collections", "--json"]],
    "principal": [["list"], ["add", "kid", "--can", "read"], ["revoke", "other"]],
    "recall": [
        ["walrus", "count", "-n", "50"],
        ["walrus", "count", "--all-collections", "--mode", "vector", "-n", "50"],
        ["walrus", "count", "--all-collections", "--mode", "lexical", "--view", "history"],
        ["walrus", "count", "--all-collections", "--json", "--why", "--full"],
        *([word] for word in FOREIGN),
    ],
    "retain": [["list"]],
    "status": [[], ["--all-collections", "--json"]],
    "tombstones": [[], ["lift", "{ID}"]],
}
BY_METAVAR = {"ID": "{ID}", "NAME": "walrus", "PATH": "lines.jsonl", "ACTION": "list", "A": "{ID}"}


def probes(command: table.Command) -> list[list[str]]:
    """Command lines of a command: as listed, else made from its arguments."""
    if command.name in PROBES:
        return PROBES[command.name]
    words = [BY_METAVAR.get(a.metavar, "words") for a in command.args if a.nargs in "1+"]
    made = [words]
    if any(o.name == "all_collections" for o in command.opts):
        made.append([*words, "--all-collections"])
    return made


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    path = tmp_path_factory.mktemp("wall") / "store"
    store, ids = divided(path)
    store.close()
    return path, ids


@pytest.fixture
def bot(tmp_path: Path, scene: tuple[Path, dict[str, str]]) -> Runner:
    """A runner that is a principal pinned to one session."""
    run = Runner(tmp_path / "home")
    run.env["REMEM_EMBEDDER"] = "hash"
    shutil.copytree(scene[0], run.store)
    made = run("principal", "add", "bot", "--scope", SCOPE, "--can", CAN, "-q", code=0)
    run.env["REMEM_TOKEN"] = made.out.strip()
    case = f'query = "walrus count"\nk = 50\nmust_retrieve = ["{OWN}"]\n'
    cases = f"[[case]]\n{case}[[case]]\n{case}all_collections = true\n"
    (run.cwd / "cases.toml").write_text(cases)
    (run.cwd / "lines.jsonl").write_text(json.dumps({"text": "a line"}) + "\n")
    return run


def words_of(probe: list[str], ids: dict[str, str], at: str) -> list[str]:
    return [word.format(ID=ids.get(at, at), OWN=ids["own"]) for word in probe]


def shown(result: Result) -> str:
    return result.out + result.err


@pytest.mark.parametrize("command", table.COMMANDS, ids=lambda c: c.name)
def test_no_command_shows_a_word_of_another_scope(
    bot: Runner, scene: tuple[Path, dict[str, str]], command: table.Command
) -> None:
    ids = scene[1]
    for probe in probes(command):
        for where in ("agent", "collection") if "{ID}" in probe else ("agent",):
            words = words_of(probe, ids, where)
            result = bot(command.name, *words)
            assert result.code in {*command.exits, 2}, result.shown
            found = [word for word in FOREIGN if word in shown(result) and word not in words]
            assert not found, (words, result.shown)
            others = [name for name in ELSEWHERE if ids[f"{name} fact"][:10] in shown(result)]
            assert not others, (words, result.shown)
    files = [f for f in bot.cwd.rglob("*") if f.is_file()]
    assert not [f for f in files if any(word.encode() in f.read_bytes() for word in FOREIGN)]


@pytest.mark.parametrize("command", table.COMMANDS, ids=lambda c: c.name)
def test_a_foreign_id_answers_exactly_as_an_unknown_one(
    bot: Runner, scene: tuple[Path, dict[str, str]], command: table.Command
) -> None:
    ids = scene[1]
    for probe in probes(command):
        if "{ID}" not in probe:
            continue
        wanted = bot(command.name, *words_of(probe, ids, UNKNOWN))
        assert wanted.code != 0 or not wanted.out, wanted.shown
        for where in ELSEWHERE:
            result = bot(command.name, *words_of(probe, ids, where))
            told = [
                (
                    r.code,
                    r.out.replace(name, "ID"),
                    r.err.replace(name, "ID").replace(name[:10], "ID"),
                )
                for r, name in ((result, ids[where]), (wanted, UNKNOWN))
            ]
            assert told[0] == told[1], (command.name, where)


READING = (
    ("recall", "walrus", "count"),
    ("recall", "walrus", "count", "--mode", "vector"),
    ("context", "walrus"),
    ("about", "walrus"),
    ("log",),
    ("export", "-"),
    ("show", "{OWN}"),
    ("why", "{OWN}"),
    ("cat-object", "{OWN}"),
    ("completion", "bash", "--candidates", "ids"),
    ("diff", "--known-at", "2000-01-01..2999-01-01"),
)


@pytest.mark.parametrize("probe", READING, ids=lambda p: " ".join(p))
def test_the_same_principal_does_see_its_own(
    bot: Runner, scene: tuple[Path, dict[str, str]], probe: tuple[str, ...]
) -> None:
    result = bot(*words_of(list(probe), scene[1], "own"), code=0)
    assert OWN in result.out
    assert bot("eval", "cases.toml").code == 0


def test_the_owner_sees_all_of_them_where_they_are(
    bot: Runner, scene: tuple[Path, dict[str, str]]
) -> None:
    """Positive control: the words that nobody else may see are there to be seen."""
    free = {"REMEM_TOKEN": None}
    for where, scope in ELSEWHERE.items():
        options = ["--tenant", scope.tenant, "--profile", scope.profile]
        options += ["--collection", scope.collection]
        for word in foreign(where):
            result = bot("recall", word, *options, env=free, code=0)
            assert word in result.out
        assert foreign(where)[0] in bot("show", scene[1][where], *options, env=free, code=0).out


# -- options and places ---------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["tenant", "profile", "collection", "agent", "session"])
def test_options_and_environment_do_not_leave_the_grant(bot: Runner, part: str) -> None:
    for command in (["recall", "walrus"], ["add", "words"], ["log"], ["status"]):
        for result in (
            bot(*command, f"--{part}", "theirs"),
            bot(*command, env={f"REMEM_{part.upper()}": "theirs"}),
        ):
            assert result.code == 3 and not result.out, result.shown
            assert "names a scope that 'bot' may not use" in result.err
    scope = dict(
        zip(("tenant", "profile", "collection", "agent", "session"), SCOPE.split("/"), strict=True)
    )
    assert OWN in bot("recall", "walrus", f"--{part}", scope[part], code=0).out
    rows = bot("audit", "--json", "--principal", "bot", env={"REMEM_TOKEN": None}).json
    assert [row["outcome"] for row in rows].count("scope_refused") == 8


def test_what_it_writes_lies_in_its_own_session(bot: Runner) -> None:
    made = bot("add", "a word of the bot", "--json", code=0).json
    told = bot("show", made["id"], "--json", code=0).json
    assert "/".join(told["scope"].values()) == SCOPE
    line = {"text": "smuggled", "session": "s2"}
    result = bot("add", "--jsonl", "--json", stdin=json.dumps(line), code=0).json
    assert (result["new"], result["rejected"]) == (0, 1)
    assert not bot("recall", "smuggled", env={"REMEM_TOKEN": None}).out


def test_a_pattern_narrows_what_is_left_open(
    bot: Runner, scene: tuple[Path, dict[str, str]]
) -> None:
    """A collection, whichever agent and session: both are seen, and options narrow them."""
    free = {"REMEM_TOKEN": None}
    scope = "local/default/mine"
    made = bot("principal", "add", "wide", "--scope", scope, "-q", env=free, code=0)
    wide = {"REMEM_TOKEN": made.out.strip()}
    found = bot("recall", "walrus", "count", "-n", "50", "--json", env=wide, code=0).out
    seen = {where for where in ELSEWHERE if foreign(where)[0] in found}
    assert seen == {"agent", "session"} and OWN in found
    narrow = bot("recall", "walrus", "count", "--session", "s2", "--json", env=wide, code=0).out
    assert foreign("session")[0] in narrow and OWN not in narrow
    assert bot("add", "words", env=wide).code == 3, "it may only read"


# -- what is the owner's --------------------------------------------------------------------------

OWNERS = {
    "purge --yes": "purge",
    "purge": "purge",
    "forget {OWN}": "forget",
    "hold add {OWN}": "hold",
    "retain list": "retain",
    "tombstones": "tombstones",
    "verify": "verify",
    "audit": "audit",
    "backup copy": "backup",
    "export - --all-scopes": "export",
    "config set recall.limit 3": "config",
    "alias add seal walrus": "alias",
    "import pack some.pack": "import",
    "reindex": "reindex",
    "doctor": "doctor",
    "derive": "derive",
    "project": "project",
    "init": "init",
}


@pytest.mark.parametrize("probe", OWNERS)
def test_what_is_the_owners_is_refused_with_a_row(
    bot: Runner, scene: tuple[Path, dict[str, str]], probe: str
) -> None:
    before = Store(str(bot.store)).generation
    result = bot(*words_of(probe.split(), scene[1], "own"), code=3)
    assert not result.out and f"'{OWNERS[probe]}' is the owner's" in result.err
    rows = bot("audit", "--json", "-n", "1", env={"REMEM_TOKEN": None}, code=0).json
    assert (rows[0]["principal"], rows[0]["action"], rows[0]["outcome"]) == (
        "bot",
        OWNERS[probe],
        "not_owner",
    )
    assert Store(str(bot.store)).generation == before
    assert bot("verify", env={"REMEM_TOKEN": None}, code=0)


def test_every_command_has_a_row_of_what_it_takes() -> None:
    named = {name.split(" ")[0] for name in allowed.NEEDS}
    assert named == {command.name for command in table.COMMANDS}
    assert allowed.needs("a command of tomorrow", {}) == allowed.OWNER


def test_status_tells_nothing_of_the_store_as_a_whole(bot: Runner) -> None:
    told = bot("status", "--json", "--all-collections", code=0).json
    assert told["counts"]["refs"] == 2 and len(told["collections"]) == 1
    whole = ("audit", "generation", "sizes", "spool", "readers")
    assert [told[name] for name in whole] == ["unknown"] * len(whole)
    assert told["index"]["vectors"] == told["index"]["lag"] == "unknown"
    owners = bot("status", "--json", env={"REMEM_TOKEN": None}, code=0).json
    assert "unknown" not in [owners[name] for name in whole]
    assert not re.search(r"\b(others|theirs|someone|s2)\b", bot("status", "-v").out)
