"""Filters over commands (folder, exit status, branch), listings, and questions read as such."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.index import project, ran
from remem.index.asked import Here, understand
from remem.index.check import check
from remem.index.hits import Answer, Question
from remem.index.ran import Ran
from remem.index.recall import Searcher
from remem.objects import forget, instant
from remem.objects.admit import admit
from remem.objects.model import Incoming, Observation, Scope
from remem.objects.scope import Actor, Grant, owner_grant
from remem.objects.store import Store
from remem.objects.views import Lens

HOME = Scope("local", "default", "home", "none", "main")
GRANT = owner_grant(HOME)
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
HOUR = 3_600_000_000
NOON = instant.parse("2026-11-29T12:00:00Z", now=0).micros
NOW = NOON + 24 * HOUR
HERE = Here(("/src/app",), ("/src", "/src-linked"), "main")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(str(tmp_path / "store"))
    yield made
    made.close()


def command(
    text: str,
    cwd: str = "/src/app",
    exit: object = 0,
    branch: str = "main",
    at: int | None = NOON,
    **fields: object,
) -> Incoming:
    meta = {"cwd": cwd, "exit": exit, "branch": branch}
    meta = {name: value for name, value in meta.items() if value not in ("", None)}
    fields.setdefault("kind", "command")
    return Incoming(text=text, asserted=at, meta=meta, role="user", **fields)  # type: ignore[arg-type]


def keep(store: Store, *records: Incoming) -> list[bytes]:
    return [store.write(ME, lambda tx, r=r: admit(tx, r)).id for r in records]  # type: ignore[misc]


def ask(store: Store, text: str = "", **fields: object) -> Answer:
    lens = Lens(NOW)
    question = Question(text, lens, mode="lexical", **fields)  # type: ignore[arg-type]
    return Searcher(store, GRANT).ask(question)


def texts(answer: Answer) -> list[str]:
    return [hit.obj.text for hit in answer.hits]


def fill(store: Store) -> None:
    keep(
        store,
        command("make build", at=NOON - 5 * HOUR),
        command("make test", exit=2, at=NOON - 4 * HOUR),
        command("make test", "/src/app/deep/er", exit=1, branch="fix/parser", at=NOON - 3 * HOUR),
        command("make test", "/src/app2", at=NOON - 2 * HOUR),
        command("make install", "/", exit=None, branch="", at=NOON - HOUR),
        Incoming(text="make test is slow", asserted=NOON),
        Incoming(text="make test in a note", asserted=NOON, meta={"cwd": "/src/app", "exit": 2}),
    )


ASKED = [
    (Ran(("/src/app",)), ["deep", "2", "build"]),
    (Ran(("/src/app/",)), ["deep", "2", "build"]),
    (Ran(("/src/app/deep",)), ["deep"]),
    (Ran(("/src",)), ["app2", "deep", "2", "build"]),
    (Ran(("/",)), ["install", "app2", "deep", "2", "build"]),
    (Ran(("/src/ap",)), []),
    (Ran(("/elsewhere", "/src/app2")), ["app2"]),
    (Ran(exit="failed"), ["deep", "2"]),
    (Ran(exit="ok"), ["app2", "build"]),
    (Ran(exit="2"), ["2"]),
    (Ran(exit="130"), []),
    (Ran(branch="fix/parser"), ["deep"]),
    (Ran(branch="fix"), []),
    (Ran(("/src/app",), "failed", "main"), ["2"]),
]


def named(answer: Answer) -> list[str]:
    """Short names of the commands of `fill`."""
    found = []
    for hit in answer.hits:
        obj = hit.obj
        assert isinstance(obj, Observation)
        if obj.text == "make test":
            known = {"/src/app2": "app2", "/src/app/deep/er": "deep", "/src/app": "2"}
            found.append(known[str(obj.meta["cwd"])])
        else:
            found.append(obj.text.removeprefix("make "))
    return found


@pytest.mark.parametrize("projected", ["all", "some", "none"])
def test_filters_are_exact_whatever_is_projected(store: Store, projected: str) -> None:
    if projected != "some":
        fill(store)
    else:
        keep(store, command("make build", at=NOON - 5 * HOUR))
    if projected != "none":
        project.project(store)
    if projected == "some":
        fill(store)  # the first one is known already
    for asked, expected in ASKED:
        assert named(ask(store, ran=asked)) == expected, asked
        ranked = ask(store, "make", ran=asked, limit=50)
        assert sorted(named(ranked)) == sorted(expected), asked
    assert len(texts(ask(store, "make", limit=50))) == 7


def test_a_filter_works_before_the_cut(store: Store) -> None:
    noise = [command(f"deploy web {n}", "/srv", at=NOON + n) for n in range(400)]
    wanted = command("deploy the whole web of things to everywhere", "/opt", at=NOON - HOUR)
    keep(store, *noise, wanted)
    project.project(store)
    assert wanted.text not in texts(ask(store, "deploy web", limit=3))
    assert texts(ask(store, "deploy web", limit=3, ran=Ran(("/opt",)))) == [wanted.text]
    assert texts(ask(store, "deploy web", limit=3, ran=Ran(("/none", "/opt")))) == [wanted.text]


def test_listing_is_the_latest_first_and_respects_the_period(store: Store) -> None:
    hours = list(range(30))
    random.Random(3).shuffle(hours)
    keep(store, *(command(f"step {n}", at=NOON - n * HOUR) for n in hours[:15]))
    project.project(store)
    keep(store, *(command(f"step {n}", at=NOON - n * HOUR) for n in hours[15:]))
    everything = [f"step {n}" for n in range(30)]
    assert texts(ask(store, ran=Ran(("/src",)), limit=100)) == everything
    assert texts(ask(store, kinds=("command",), limit=4)) == everything[:4]
    day = {"since": NOON - 7 * HOUR, "until": NOON - 4 * HOUR}
    assert texts(ask(store, ran=Ran(("/src",)), **day)) == ["step 5", "step 6", "step 7"]
    assert texts(ask(store, **day)) == ["step 5", "step 6", "step 7"]


def test_a_listing_without_a_time_stands_where_it_was_recorded(store: Store) -> None:
    keep(store, command("undated", at=None), command("dated", at=NOON))
    project.project(store)
    assert texts(ask(store, ran=Ran(("/src",)))) == ["undated", "dated"]  # it was recorded today


def test_what_is_forgotten_is_in_no_listing(store: Store) -> None:
    fill(store)
    project.project(store)
    (deep,) = ask(store, ran=Ran(branch="fix/parser")).hits
    with store.read(GRANT) as reader:
        (part,) = reader.parts
    store.write(ME, lambda tx: forget.forget(tx, part, deep.ref))
    assert named(ask(store, ran=Ran(exit="failed"))) == ["2"]
    project.project(store)
    assert named(ask(store, ran=Ran(exit="failed"))) == ["2"]


def test_the_index_agrees_with_one_built_afresh(store: Store) -> None:
    fill(store)
    project.project(store)
    assert check(store)["ok"]
    before = [named(ask(store, ran=asked)) for asked, _ in ASKED]
    project.rebuild(store)
    assert [named(ask(store, ran=asked)) for asked, _ in ASKED] == before


PATHS = st.lists(st.sampled_from(["a", "b", "ab", "ä ö", "x\ny", "~"]), max_size=6).map(
    lambda parts: "/" + "/".join(parts)
)
DEEP = st.integers(1, 60).map(lambda depth: "/a" * depth)


@given(
    st.one_of(PATHS, DEEP, st.sampled_from(["", "relative", "[redacted]"])),
    st.one_of(st.none(), st.integers(0, 3), st.just("1"), st.just(True)),
    st.sampled_from(["", "main", "fix/é"]),
    st.lists(st.one_of(PATHS, DEEP), max_size=2),
    st.sampled_from(["", "failed", "ok", "0", "1", "2"]),
    st.sampled_from(["", "main", "fix/é"]),
)
def test_what_fits_has_a_filter_of_each_group(
    cwd: str, code: object, branch: str, folders: list[str], exit: str, on: str
) -> None:
    """The index may let something through, but keeps nothing back; here it is exact both ways."""
    meta = {"cwd": cwd, "exit": code, "branch": branch}
    record = Observation(
        bytes(16), HOME, None, "x", "user", "", "owner", None, NOON, 0, None, "command", meta
    )
    asked = Ran(tuple(folders), exit, on)
    own = set(ran.filters(record))
    indexed = all(own.intersection(group) for group in asked.groups())
    if asked.fits(record):
        assert indexed
    elif all(path.count("/") <= 40 for path in folders):
        assert not indexed or not asked


# -- questions ----------------------------------------------------------------------------------

DAY_BEFORE = (NOON - 12 * HOUR, NOON + 12 * HOUR)


@pytest.mark.parametrize(
    ("text", "asked", "period", "words"),
    [
        ("what did I run in this folder yesterday", Ran(HERE.folders), DAY_BEFORE, ""),
        ("What did I run here?", Ran(HERE.folders), None, ""),
        ("which commands failed here", Ran(HERE.folders, "failed"), None, ""),
        ("failed commands", Ran(exit="failed"), None, ""),
        ("what failed in this project yesterday", Ran(HERE.project, "failed"), DAY_BEFORE, ""),
        ("commands that failed on this branch", Ran((), "failed", "main"), None, ""),
        ("what did we run on branch fix/parser", Ran((), "", "fix/parser"), None, ""),
        ("what did we run on the release branch", Ran((), "", "release"), None, ""),
        ("which command exited with code 137", Ran(exit="137"), None, ""),
        ("commands with exit status 2 in this directory", Ran(HERE.folders, "2"), None, ""),
        ("what docker commands did I run in this repo", Ran(HERE.project), None, "docker"),
        ("did I run pytest here yesterday", Ran(HERE.folders), DAY_BEFORE, "pytest"),
        ("what did I type here that didn't work", Ran(HERE.folders, "failed"), None, ""),
        ("what did I run yesterday", Ran(), DAY_BEFORE, ""),
        ("what did I do in this folder yesterday", Ran(HERE.folders), DAY_BEFORE, ""),
        ("show me all the commands I ran here that worked", Ran(HERE.folders, "ok"), None, ""),
        ("which docker commands failed", Ran(exit="failed"), None, "docker"),
        ("docker commands that failed", Ran(exit="failed"), None, "docker"),
    ],
)
def test_questions_about_commands(
    text: str, asked: Ran, period: tuple[int, int] | None, words: str
) -> None:
    read = understand(Question(text, Lens(NOW), here=HERE))
    assert read is not None
    question, said = read
    assert (said.ran, said.words) == (asked, words)
    assert (said.since, said.until) == (period or (None, None))
    assert (question.text, question.kinds, question.ran) == (words, ("command",), asked)


@pytest.mark.parametrize(
    "text",
    [
        "What did I run into yesterday?",
        "Which race did I run yesterday?",
        "How many miles did I run last week",
        "what did I do yesterday",
        "who works here",
        "what failed in the staging deploy",
        "which command do you use to deploy",
        "which commands did you run here",
        "what is the command to restart nginx",
        "what was the reason the build failed",
        "when did Melanie run a charity race",
        "what branch did we release from",
        "which folder holds the keys",
        "don't fail if the locale command fails",
        "the commands accept a new option that can be passed as a string of code",
        "why the deploy command failed",
        "new commands for installing packages into the same environment, described here in full",
    ],
)
def test_other_questions_are_left_alone(text: str) -> None:
    assert understand(Question(text, Lens(NOW), here=HERE)) is None


def test_nothing_is_read_without_a_place_to_ask_from() -> None:
    text = "what did I run here"
    assert understand(Question(text, Lens(NOW), here=HERE)) is not None
    assert understand(Question(text, Lens(NOW))) is None
    assert understand(Question(text, Lens(NOW), here=HERE, kinds=("note",))) is None


def test_options_and_words_add_up() -> None:
    asked = Question("what failed yesterday", Lens(NOW), here=HERE, ran=Ran(("/opt",)))
    read = understand(asked)
    assert read is not None and read[1].ran == Ran(("/opt",), "failed")
    assert (read[1].since, read[1].until) == DAY_BEFORE
    narrowed = understand(
        Question("what did I run yesterday", Lens(NOW), here=HERE, since=NOON, until=NOW)
    )
    assert narrowed is not None and (narrowed[1].since, narrowed[1].until) == (NOON, DAY_BEFORE[1])


def test_the_last_five() -> None:
    read = understand(Question("the last 5 commands I ran here", Lens(NOW), here=HERE))
    assert read is not None and read[0].limit == 5
    fewer = understand(Question("the last 5 commands I ran here", Lens(NOW), here=HERE, limit=2))
    assert fewer is not None and fewer[0].limit == 2


def test_a_question_that_no_command_fits_is_answered_by_its_words(store: Store) -> None:
    fill(store)
    keep(store, Incoming(text="Yesterday I did run ten miles", asserted=NOON))
    project.project(store)
    listed = ask(store, "what did I run here yesterday", here=HERE)
    assert listed.understood is not None and listed.understood.found
    assert named(listed) == ["deep", "2", "build"]
    away = Here(("/nowhere",))
    other = ask(store, "what did I run here yesterday", here=away)
    assert other.understood is not None and not other.understood.found
    assert "Yesterday I did run ten miles" in texts(other)
    plain = ask(store, "run ten miles", here=away)
    assert plain.understood is None and texts(plain)


def test_a_folder_of_a_hundred_levels(store: Store) -> None:
    deep = "/d" * 100
    keep(store, command("ls", deep), command("pwd", "/d" * 99))
    project.project(store)
    assert texts(ask(store, ran=Ran((deep,)))) == ["ls"]
    assert sorted(texts(ask(store, ran=Ran(("/d",))))) == ["ls", "pwd"]
