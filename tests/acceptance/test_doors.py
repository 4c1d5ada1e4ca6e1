"""Every door by which stored text can leave: what is held back goes through none of them.

Doors are found by looking at the program, so a new command, tool or method fails here until it
says how it is judged: by `remem.objects.views.Eye`, with a probe that is run, or as one that shows
no stored text or is the owner's own inspection of one thing by its id, with the reason.
"""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path

import msgspec
import pytest

from remem.cli import table
from remem.hooks import api
from remem.hooks.mcp import service, tools
from remem.hooks.options import Options
from remem.objects.errors import RememError, ScopeRefused
from remem.objects.scope import Actor, Grant, owner_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from remem.objects.views import VIEWS
from tests.acceptance.walled import CONTROL, HELD, HOME, marker, markers, owner, withheld
from tests.cli.conftest import Result, Runner

ALL = [word for status in [*HELD, "erased"] for word in markers(status)]
BATCH = json.dumps({"id": 1, "query": "walrus count", "limit": 50})


class Judged:
    """A door that the Eye judges; each probe shows the control and nothing that is held back.

    Attributes:
        made: a command that makes what the door shows, with {WORD} in it; what it made is held back
            afterwards for every word but the control.
    """

    def __init__(self, *probes: str, stdin: str = "", made: str = "") -> None:
        self.probes = probes
        self.stdin = stdin
        self.made = made


class Inspects:
    """The owner looks at one thing by its id: held back things come with their label."""

    def __init__(self, *probes: str) -> None:
        self.probes = probes


class Silent:
    """A door that shows no stored text; probes are run all the same."""

    def __init__(self, why: str, *probes: str, stdin: str = "") -> None:
        self.why = why
        self.stdin = stdin
        self.probes = probes


class Decides:
    """Where the owner, or who reviews, decides on what is held back and so has to see it."""

    def __init__(self, why: str, *probes: str) -> None:
        self.why = why
        self.probes = probes


Door = Judged | Inspects | Silent | Decides

IDS_ONLY = "prints ids, counts and codes"
OWN_WORDS = "prints the id of what it was given"
EVAL = '[[case]]\nquery = "walrus count"\nmust_not_retrieve = ["nothing at all"]\n'

SPOKEN = "".join(
    json.dumps({"jsonrpc": "2.0", **said}) + "\n"
    for said in (
        {
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "probe", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {
            "id": 1,
            "method": "tools/call",
            "params": {"name": "recall", "arguments": {"query": "walrus count", "limit": 50}},
        },
    )
)

# {ID} is the id of something held back, {TOTAL} of a claim that may be seen and cites it.
CLI: dict[str, Door] = {
    "recall": Judged(
        "recall walrus count -n 50",
        "recall walrus count -n 50 --json",
        "recall walrus count -n 50 --view history --why --full",
        "recall walrus count -n 50 --view history --as-of 2999-01-01",
        "recall walrus count -n 50 --view history --known-at 2999-01-01",
        "recall walrus count -n 50 --mode lexical --all-collections",
        "recall walrus count -n 50 --mode vector",
        "recall --batch -",
        stdin=BATCH,
    ),
    "context": Judged(
        "context walrus count",
        "context walrus count --json",
        "context walrus count --format text --no-evidence",
        "context walrus count --view history --mode vector",
    ),
    "about": Judged("about walrus", "about walrus --json", "about walrus --view now"),
    "log": Judged("log -n 100", "log", "log --json", "log {ID}"),
    "why": Inspects("why {ID}", "why {ID} --json"),
    "show": Inspects("show {ID}", "show {ID} --json", "show {TOTAL}"),
    "diff": Judged("diff --known-at 2000-01-01..2999-01-01", "diff {TOTAL} {CONTROL}"),
    "cat-object": Inspects("cat-object {ID}"),
    "eval": Silent(
        "prints the words of its own cases", "eval cases.toml", "eval cases.toml --json"
    ),
    "completion": Judged(
        "completion bash --candidates ids", "completion bash {ID} --candidates ids"
    ),
    "forget": Judged("forget {CONTROL} --dry-run", "forget --scope-all --dry-run"),
    "undo": Silent(IDS_ONLY, "undo --dry-run"),
    "principal": Silent("prints names and scopes", "principal list"),
    "owner": Silent("prints whether decisions are signed", "owner status"),
    "pin": Silent("the owner pins; prints an id", "pin {CONTROL}"),
    "pins": Judged("pins", "pins --json", "pins --all-collections", made="pin {WORD}"),
    "unpin": Silent(IDS_ONLY, "unpin {CONTROL}"),
    "loop": Silent(OWN_WORDS, "loop add words --topic walrus"),
    "loops": Judged(
        "loops",
        "loops --all --json",
        "loops --due walrus",
        made="loop add {WORD} --topic walrus",
    ),
    "task": Judged(
        "task list", "task list --json", "task list --view history", made="task set {WORD} {WORD}"
    ),
    "brief": Judged("brief", "brief --json", made="brief {WORD}"),
    "promote": Silent(IDS_ONLY, "promote {ID}"),
    "draft": Decides("drafts are shown to who decides and who proposed", "draft list"),
    "quarantine": Decides("what is held back is shown to who decides", "quarantine list"),
    "review": Decides("what waits is shown to who decides", "review"),
    "hook": Silent("prints the state of hooks and their scripts", "hook status", "hook print bash"),
    "hook-event": Judged(
        "hook-event claude session-start",
        "hook-event claude user-prompt-submit",
        "hook-event claude post-tool-use",
        stdin=json.dumps({"session_id": "s", "prompt": "walrus count"}),
    ),
    "mcp": Judged("mcp", "mcp --read-only", stdin=SPOKEN),
    "drain": Silent(IDS_ONLY, "drain"),
    "consolidate": Silent(IDS_ONLY, "consolidate --dry-run", "consolidate", "consolidate --json"),
    "init": Silent("prints a path", "init"),
    "add": Silent(OWN_WORDS, "add words"),
    "fact": Silent(OWN_WORDS, "fact a b c"),
    "import": Silent(IDS_ONLY, "import jsonl - --dry-run"),
    "revise": Silent(OWN_WORDS, "revise {CONTROL} words"),
    "rollback": Silent(OWN_WORDS, "rollback {TOTAL}"),
    "close": Silent(OWN_WORDS, "close {CONTROL}"),
    "reopen": Silent(OWN_WORDS, "reopen {CONTROL}"),
    "alias": Silent("prints names that the owner gave", "alias list"),
    "derive": Silent(IDS_ONLY, "derive"),
    "jobs": Silent(IDS_ONLY, "jobs"),
    "purge": Silent(IDS_ONLY, "purge --dry-run"),
    "tombstones": Silent(IDS_ONLY, "tombstones"),
    "hold": Judged("hold add {CONTROL}", "hold list"),
    "retain": Silent(IDS_ONLY, "retain list"),
    "status": Silent(IDS_ONLY, "status", "status --json"),
    "audit": Silent("the chain holds no content", "audit", "audit --json"),
    "verify": Silent(IDS_ONLY, "verify", "verify --json"),
    "doctor": Silent("prints the state of the machine", "doctor"),
    "warm": Silent("starts, ends and reports a process", "warm --status"),
    "reindex": Silent(IDS_ONLY, "reindex --lexical"),
    "export": Silent("a whole copy for its owner; others get no withheld text", "export a.pack"),
    "backup": Silent("a whole copy for its owner", "backup copy"),
    "config": Silent("prints settings", "config list"),
    "demo": Silent("a store of its own"),
    "help": Silent("prints the manual", "help recall"),
    "hash-object": Silent(OWN_WORDS, "hash-object -", stdin="some words"),
    "ls-jobs": Silent(IDS_ONLY, "ls-jobs", "ls-jobs --json"),
    "ls-refs": Silent(IDS_ONLY, "ls-refs", "ls-refs --all --json"),
    "rev-parse": Silent(IDS_ONLY, "rev-parse {ID}"),
    "project": Silent(IDS_ONLY, "project"),
    "count-objects": Silent(IDS_ONLY, "count-objects"),
}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    path = tmp_path_factory.mktemp("doors") / "store"
    store, ids = withheld(path)
    store.close()
    return path, ids


@pytest.fixture
def at_home(tmp_path: Path, scene: tuple[Path, dict[str, str]]) -> Runner:
    run = Runner(tmp_path / "home")
    run.env["REMEM_EMBEDDER"] = "hash"
    shutil.copytree(scene[0], run.store)
    (run.cwd / "cases.toml").write_text(EVAL)
    return run


def said(result: Result) -> str:
    return result.out + result.err


def ask(run: Runner, probe: str, ids: dict[str, str], held: str, stdin: str = "") -> Result:
    words = [
        word.format(ID=ids[held], TOTAL=ids["total"], CONTROL=ids["control"])
        for word in probe.split()
    ]
    return run(*words, stdin=stdin)


def leaked(text: str) -> list[str]:
    return [word for word in ALL if word in text]


def make(run: Runner, command: str) -> None:
    """Make one thing that may be seen and one of each status that may not."""
    run(*command.format(WORD=CONTROL).split(), code=0)
    for status in HELD:
        run(*command.format(WORD=marker(status)).split(), code=0)
        entries = run("log", "--json", "-n", "20", code=0).json
        together = [e["ref"] for e in entries if e["recorded_at"] == entries[0]["recorded_at"]]
        store = Store(str(run.store))
        for ref in dict.fromkeys(together):
            store.write(owner(), lambda tx, r=ref, s=status: hold_back(tx, r, s))  # type: ignore[misc]
        store.close()


def hold_back(tx: Tx, ref: str, status: str) -> None:
    found = tx.reader.find(ref)
    tx.record(found.part, "quarantine", found.ref, found.state, status=status)


# -- the registry ---------------------------------------------------------------------------------


def test_every_command_says_how_it_is_judged() -> None:
    assert set(CLI) == {command.name for command in table.COMMANDS}


def test_include_is_a_word_of_the_doors_to_a_prompt_alone() -> None:
    taking = {c.name for c in table.COMMANDS if any(o.name == "include" for o in c.opts)}
    assert taking >= {"recall", "context", "about"}
    assert all(isinstance(CLI[name], Judged) for name in taking)


JUDGED = sorted(name for name, door in CLI.items() if isinstance(door, Judged))


@pytest.mark.parametrize("name", JUDGED)
def test_nothing_held_back_leaves_by_a_judged_door(
    at_home: Runner, scene: tuple[Path, dict[str, str]], name: str
) -> None:
    door = CLI[name]
    assert isinstance(door, Judged)
    if door.made:
        make(at_home, door.made)
    shown = 0
    for probe in door.probes:
        for held in HELD if "{ID}" in probe else HELD[:1]:
            result = ask(at_home, probe, scene[1], held, door.stdin)
            assert result.code in (0, 1), result.shown
            assert not leaked(said(result)), (probe, held, result.shown)
            shown += CONTROL in result.out
    assert shown, "the positive control was shown by no probe"


@pytest.mark.parametrize("name", sorted(n for n, d in CLI.items() if isinstance(d, Silent)))
def test_a_silent_door_shows_no_stored_text(
    at_home: Runner, scene: tuple[Path, dict[str, str]], name: str
) -> None:
    door = CLI[name]
    assert isinstance(door, Silent) and door.why
    for probe in door.probes:
        result = ask(at_home, probe, scene[1], HELD[0], door.stdin)
        assert result.code in (0, 1, 3), result.shown
        assert not leaked(said(result)), result.shown
        assert CONTROL not in result.out, "it shows stored text: it must be judged"


@pytest.mark.parametrize("name", sorted(n for n, d in CLI.items() if isinstance(d, Inspects)))
def test_the_owner_sees_what_is_held_back_by_its_id_with_its_label(
    at_home: Runner, scene: tuple[Path, dict[str, str]], name: str
) -> None:
    door = CLI[name]
    assert isinstance(door, Inspects)
    for probe in door.probes:
        for held in HELD:
            result = ask(at_home, probe, scene[1], held)
            assert result.code == 0, result.shown
            if "{ID}" in probe:
                assert marker(held) in result.out and held in result.out
            others = [word for word in leaked(result.out) if word not in markers(held)]
            assert not others, result.shown
        gone = ask(at_home, probe, scene[1], "erased")
        assert not leaked(said(gone)) or "{ID}" not in probe
        assert gone.code == (3 if "{ID}" in probe else 0)


def test_who_decides_sees_what_waits_and_only_that(
    at_home: Runner, scene: tuple[Path, dict[str, str]]
) -> None:
    """The doors of review show what waits, whole; the tests of review look at them closely."""
    for name in (name for name, door in CLI.items() if isinstance(door, Decides)):
        door = CLI[name]
        assert isinstance(door, Decides) and door.why
        for probe in door.probes:
            found = leaked(said(ask(at_home, probe, scene[1], HELD[0])))
            waiting = {*markers("pending"), *markers("quarantined")}
            assert set(found) <= waiting, (probe, found)


# -- those who are not the owner ------------------------------------------------------------------


@pytest.fixture
def as_reader(at_home: Runner) -> Runner:
    token = at_home("principal", "add", "eyes", "--can", "read", "-q", code=0).out.strip()
    at_home.env["REMEM_TOKEN"] = token
    return at_home


@pytest.mark.parametrize("name", sorted(CLI))
def test_nobody_but_the_owner_sees_it_by_any_command(
    as_reader: Runner, scene: tuple[Path, dict[str, str]], name: str
) -> None:
    door = CLI[name]
    stdin = door.stdin if isinstance(door, Judged | Silent) else ""
    for probe in door.probes:
        for held in [*HELD, "erased"] if "{ID}" in probe else HELD[:1]:
            result = ask(as_reader, probe, scene[1], held, stdin)
            assert result.code in (0, 1, 3), result.shown
            assert not leaked(said(result)), (probe, result.shown)
    for file in as_reader.cwd.rglob("*"):
        if file.is_file():
            assert not leaked(file.read_bytes().decode("utf-8", "replace")), file


def test_the_same_reader_does_see_what_is_not_held_back(
    as_reader: Runner, scene: tuple[Path, dict[str, str]]
) -> None:
    for probe in ("recall walrus count", "show {CONTROL}", "export -", "why {TOTAL}"):
        assert CONTROL in ask(as_reader, probe, scene[1], HELD[0]).out, probe


# -- asking for it by name ------------------------------------------------------------------------


@pytest.mark.parametrize("status", HELD)
@pytest.mark.parametrize("door", ["recall walrus count -n 50", "context walrus", "about walrus"])
def test_include_shows_what_it_names_with_its_label_and_nothing_else(
    at_home: Runner, status: str, door: str
) -> None:
    words = door.split()
    result = at_home(*words, "--include", status, code=0)
    found = set(leaked(said(result)))
    own = {marker(status, "claim" if words[0] == "about" else "evidence")}
    assert found & set(markers(status)) and found <= set(markers(status)), result.shown
    assert own & found
    lines = result.out.splitlines()
    for at, line in enumerate(lines):
        if any(word in line for word in markers(status)):
            assert f"[{status}]" in line + lines[at - 1], result.shown


def test_include_takes_several_statuses_in_either_form(at_home: Runner) -> None:
    both = ("quarantined", "rejected")
    wanted = {word for status in both for word in markers(status)}
    for words in (["--include", ",".join(both)], ["--include", both[0], "--include", both[1]]):
        result = at_home("recall", "walrus", "count", "-n", "50", "--json", *words, code=0)
        assert {hit["status"] for hit in result.json["hits"]} >= set(both)
        assert set(leaked(result.out)) <= wanted
    line = json.dumps({"query": "walrus count", "limit": 50, "include": list(both)})
    plain = json.dumps({"query": "walrus count", "limit": 50})
    result = at_home("recall", "--batch", "-", stdin=f"{line}\n{plain}\n", code=0)
    first, second = result.out.splitlines()
    assert set(leaked(first)) == set(leaked(first)) & wanted != set()
    assert not leaked(second)


@pytest.mark.parametrize("word", ["erased", "verified", "everything", "", "quarantined,nothing"])
def test_include_names_a_status_that_is_held_back_or_nothing_happens(
    at_home: Runner, word: str
) -> None:
    for door in (["recall", "walrus"], ["context", "walrus"], ["about", "walrus"]):
        result = at_home(*door, "--include", word, code=2)
        assert "is no status that is held back" in result.err and not result.out
    line = json.dumps({"query": "walrus", "include": word})
    result = at_home("recall", "--batch", "-", stdin=line)
    assert result.code == 2 and not leaked(result.out)


def test_a_reader_may_not_include_and_a_reviewer_may(at_home: Runner) -> None:
    tokens = {
        name: at_home("principal", "add", name, "--can", can, "-q", code=0).out.strip()
        for name, can in (("eyes", "read"), ("judge", "read,review"))
    }
    door = ("recall", "walrus", "count", "-n", "50", "--include", "quarantined")
    refused = at_home(*door, env={"REMEM_TOKEN": tokens["eyes"]}, code=3)
    assert not leaked(said(refused))
    line = json.dumps({"query": "walrus count", "include": "quarantined"})
    refused = at_home("recall", "--batch", "-", stdin=line, env={"REMEM_TOKEN": tokens["eyes"]})
    assert refused.code == 3 and not leaked(said(refused))
    assert marker("quarantined") in at_home(*door, env={"REMEM_TOKEN": tokens["judge"]}).out


# -- other doors ----------------------------------------------------------------------------------

# Methods of the Python interface: how they are asked, or why they show no text.
NO_TEXT = "returns ids and counts"
API: dict[str, str] = {
    "answer": "answers what recall asks",
    "approve": NO_TEXT,
    "ask": "answers what answer asks",
    "banner": "judged",
    "block": "answers what context asks",
    "brief": NO_TEXT,
    "briefs": "judged",
    "close": "shows no text",
    "close_ref": "shows no text",
    "context": "judged",
    "deny": NO_TEXT,
    "derive_soon": "shows no text",
    "follow": "shows no text",
    "draft": "decides: shown to who reviews, and to who proposed it",
    "drafts": "decides",
    "engine": "shows no text",
    "fact": NO_TEXT,
    "finish_loop": NO_TEXT,
    "finish_task": "returns the words of the task that it ends",
    "forget": NO_TEXT,
    "held_back": "decides",
    "history": "shows entries of the log, which hold no text",
    "known_scope": "shows no text",
    "lens": "shows no text",
    "log": "shows entries of the log, which hold no text",
    "loops": "judged",
    "observe": NO_TEXT,
    "observe_many": NO_TEXT,
    "open_loop": NO_TEXT,
    "pin": NO_TEXT,
    "pin_block": "judged",
    "pins": "judged",
    "promote": NO_TEXT,
    "propose": NO_TEXT,
    "recall": "judged",
    "recall_many": "judged",
    "refused": "shows no text",
    "reject": "returns an entry of the log, which holds no text",
    "release": "returns an entry of the log, which holds no text",
    "reopen_ref": "shows no text",
    "resubmit": NO_TEXT,
    "revise": NO_TEXT,
    "rollback": NO_TEXT,
    "set_task": NO_TEXT,
    "show": "the owner looks at one thing by its id; others see no text of what is held back",
    "status": NO_TEXT,
    "take": NO_TEXT,
    "tasks": "judged",
    "unpin": "shows no text",
    "waiting": "decides",
}
AGENT = Grant("eyes", "local", "default", ("home",), proposes=True)


def store_of(scene: tuple[Path, dict[str, str]], path: Path, grant: Grant) -> api.Store:
    if not path.exists():
        shutil.copytree(scene[0], path)
    actor = Actor(grant, "api", HOME)
    return api.Store(Store(str(path)), actor, actor.grant, Options(embedder="hash"), warm=False)


def test_every_method_of_the_python_interface_is_judged_or_shows_no_text(
    scene: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    methods = inspect.getmembers(api.Store, inspect.isfunction)
    assert {name for name, _ in methods if not name.startswith("_")} == set(API)
    with store_of(scene, tmp_path / "store", owner_grant(HOME)) as store:
        store.pin(f"pinned {CONTROL}")
        store.open_loop(f"due {CONTROL}", when=1)
        store.set_task("walrus", f"done {CONTROL}")
        store.brief(f"a brief {CONTROL}")
        for view in ("now", "history"):
            answers: list[object] = [
                store.recall("walrus count", limit=50, view=view),
                store.context("walrus", view=view),
                store.recall_many(["walrus count"], limit=50),
                store.banner(since=1),
                store.pin_block(),
                store.pins(),
                store.loops(due=True, about="walrus"),
                store.tasks(view=view),
                store.briefs(),
            ]
            for answer in answers:
                assert CONTROL in repr(answer) and not leaked(repr(answer))
        assert not leaked(repr(store.history(scene[1]["quarantined"])))
        assert not leaked(repr(store.log(limit=1000)))
        waits = {*markers("pending"), *markers("quarantined")}
        for shown in (store.waiting(), store.held_back(), store.drafts(decided=True)):
            assert set(leaked(repr(shown))) <= waits
        assert leaked(repr(store.held_back())), "the control: it is for who decides"


def test_nobody_but_the_owner_sees_it_by_any_method(
    scene: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    with store_of(scene, tmp_path / "store", AGENT) as store:
        for status in [*HELD, "erased"]:
            for name in (status, f"{status} claim", f"{status} cited"):
                try:
                    shown = repr(store.show(scene[1][name]))
                except RememError as error:
                    shown = str(error)
                assert not leaked(shown), (name, shown)
        assert CONTROL in repr(store.show(scene[1]["control"]))
        assert not leaked(repr(store.show(scene[1]["total"])))
        assert not leaked(repr(store.drafts(decided=True)))
        for look in (store.waiting, store.held_back):
            with pytest.raises(ScopeRefused, match="may not review"):
                look()
        for status in HELD:
            with pytest.raises(ScopeRefused, match="held back"):
                store.recall("walrus", include=[status])
            with pytest.raises(ScopeRefused, match="held back"):
                store.context("walrus", include=[status])


# Tools of the MCP server: the calls that are made, where the tool shows stored text.
CALLS: list[dict[str, object]] = [{"query": "walrus count", "view": view} for view in VIEWS]
TOOLS: dict[str, list[dict[str, object]] | str] = {
    "recall": [*CALLS, {"query": "walrus count", "limit": 50, "why": True}],
    "context": [*CALLS, {"query": "walrus", "evidence": False}],
    "show": [{"id": "{ID}"}, {"id": "{TOTAL}"}, {"id": "{CONTROL}"}],
    "history": "shows entries of the log, which hold no text",
    "observe": NO_TEXT,
    "propose": NO_TEXT,
    "loops": [{}, {"done": True}, {"due": True, "about": "walrus"}],
    "loop": NO_TEXT,
    "tasks": [{}, {"view": "history"}],
    "task": NO_TEXT,
    "brief": NO_TEXT,
    "status": NO_TEXT,
}


def test_nothing_held_back_leaves_by_a_tool_or_a_resource_of_the_server(
    scene: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    assert set(tools.TOOLS) == set(TOOLS)
    with store_of(scene, tmp_path / "store", owner_grant(HOME)) as store:
        store.pin(f"pinned {CONTROL}")
        store.open_loop(f"due {CONTROL}", when=1)
        store.set_task("walrus", f"done {CONTROL}")
    agent = store_of(scene, tmp_path / "store", AGENT)
    served = service.Service(lambda: agent, AGENT)
    ids = {"TOTAL": scene[1]["total"], "CONTROL": scene[1]["control"]}
    for name, probes in TOOLS.items():
        if isinstance(probes, str):
            continue
        shown = 0
        for probe in probes:
            for held in [*HELD, "erased"] if probe.get("id") == "{ID}" else HELD[:1]:
                given = {
                    k: v.format(ID=scene[1][held], **ids) if isinstance(v, str) else v
                    for k, v in probe.items()
                }
                try:
                    text, value = served.call(name, given)
                except RememError as error:
                    text, value = str(error), None
                assert not leaked(text + repr(value)), (name, given, text)
                shown += CONTROL in text and CONTROL in repr(value)
        assert shown, f"the positive control was shown by no call of '{name}'"
    for uri in service.RESOURCES:
        text = served.read(uri)
        assert CONTROL in text and not leaked(text)
    served.close()


def test_the_hits_of_an_answer_say_what_was_held_back(at_home: Runner) -> None:
    hits = at_home(
        "recall", "walrus", "count", "-n", "50", "--json", "--include", ",".join(HELD), code=0
    ).json["hits"]
    found = {hit["status"] for hit in hits}
    assert found == {*HELD, "verified"}
    assert msgspec.json.encode(hits)
