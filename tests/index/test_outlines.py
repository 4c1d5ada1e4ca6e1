"""Outlines of changes in the index: found by what they name, in nobody's way else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from remem.hooks import deriving
from remem.index import dense, embed, project
from remem.index.check import check
from remem.index.hits import Answer, Question
from remem.index.recall import Searcher
from remem.objects import instant
from remem.objects.admit import admit
from remem.objects.model import Incoming, Memory, Observation, Scope
from remem.objects.scope import Actor, Grant, owner_grant
from remem.objects.store import Store
from remem.objects.views import Lens

HOME = Scope("local", "default", "home", "none", "main")
GRANT = owner_grant(HOME)
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
MINUTE = 60_000_000
START = 1_700_000_000_000_000
SUBJECTS = [
    "Read the whole page before parsing",
    "Retry uploads when the network is gone",
    "Colour the prompt of the shell",
    "Drop support for old interpreters",
    "Parse dates with a time zone",
]
NAMES = ["read_page", "retry_upload", "prompt_colour", "support_old", "parse_zone"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.create(str(tmp_path / "store"))
    yield made
    made.close()


def fill(store: Store, *, diffs: bool) -> None:
    """Commits, each followed by an outline with names like the words of another one's subject."""
    for number, subject in enumerate(SUBJECTS):
        sha = f"{number:x}" * 40
        commit = Incoming(
            text=f"{subject}\n\nM src/m{number}.py",
            asserted=START + number * MINUTE,
            origin="tool",
            source_uri="git:x",
            source_id=sha,
            kind="commit",
            meta={"commit": sha},
        )
        names = [NAMES[(number + 1) % 5], NAMES[(number + 2) % 5], f"only_here_{number}"]
        lines = "\n".join(f"+def {name}(page, network, prompt):" for name in names)
        diff = Incoming(
            text=f"changes of commit {sha[:12]}\nM src/m{number}.py\n{lines}",
            asserted=START + number * MINUTE,
            origin="tool",
            source_uri="git:x",
            source_id=f"{sha}:diff",
            kind="diff",
            meta={"commit": sha},
        )
        for record in (commit, diff) if diffs else (commit,):
            store.write(ME, lambda tx, r=record: admit(tx, r))  # type: ignore[misc]
    deriving.run(store, ME, GRANT, ("ledger",))
    project.project(store)


def ask(store: Store, text: str, **fields: object) -> Answer:
    question = Question(text, Lens(instant.now()), mode="lexical", **fields)  # type: ignore[arg-type]
    return Searcher(store, GRANT).ask(question)


def commits(answer: Answer) -> list[str]:
    return [hit.obj.text.split("\n")[0] for hit in answer.hits if hit.obj.kind == "commit"]


def test_a_symbol_is_found_by_its_name(store: Store) -> None:
    fill(store, diffs=True)
    (first, *_) = ask(store, "only_here_3").hits
    assert isinstance(first.obj, Memory)
    assert first.obj.triple == ("src/m3.py", "adds", "only_here_3")
    (cite,) = first.cites
    assert cite.source is not None and cite.source.id == "3" * 40 + ":diff"
    assert "+def only_here_3(page, network, prompt):" in cite.quote
    outline = ask(store, "only_here_3", kinds=("diff",)).hits[0].obj
    assert isinstance(outline, Observation) and "only_here_3" in outline.text


def test_the_lines_of_code_are_not_what_it_is_found_by(store: Store) -> None:
    fill(store, diffs=True)
    assert ask(store, "only_here_3", kinds=("diff",)).hits
    assert not ask(store, "network", kinds=("diff",)).hits  # a parameter of every function there
    assert commits(ask(store, "network"))[0] == SUBJECTS[1]


@pytest.mark.parametrize("number", range(5))
def test_questions_get_the_commits_that_they_got(tmp_path: Path, number: int) -> None:
    found = []
    for diffs in (False, True):
        store = Store.create(str(tmp_path / str(diffs)))
        fill(store, diffs=diffs)
        answer = ask(store, SUBJECTS[number], limit=20)
        assert answer.hits[0].obj.text.startswith(SUBJECTS[number])
        found.append(commits(answer)[:1])
        if diffs:
            assert any(hit.obj.kind != "commit" for hit in answer.hits)
        store.close()
    assert found[0] == found[1]


def test_a_commit_has_the_commits_beside_it_as_its_neighbours(store: Store) -> None:
    fill(store, diffs=True)
    answer = ask(store, "uploads network shell", limit=20, why=True)
    found = {hit.obj.text.split("\n")[0]: hit.why or {} for hit in answer.hits}
    # A fifth of what the one beside it has; a twentieth, if a diff stood between them.
    assert found[SUBJECTS[2]]["neighbours"] > 0.15 * found[SUBJECTS[1]]["lexical"]
    assert "discount" not in found[SUBJECTS[1]]
    named = ask(store, "retry_upload", limit=20, why=True)
    parsed = [h for h in named.hits if h.obj.kind in ("diff", "event")]
    assert parsed and all(h.why is not None and h.why["discount"] <= 0 for h in parsed)
    assert parsed[0].why is not None and parsed[0].why["discount"] < 0


def test_what_parsers_read_has_no_vectors(store: Store) -> None:
    fill(store, diffs=True)
    embedder = embed.resolve("hash", cache_dir=None)
    assert embedder is not None
    side = dense.Dense(embedder)
    made, left = side.project(store)
    assert (made, left) == (5, 0)  # one for each commit
    assert check(store, dense=side)["ok"]
    answer = Searcher(store, GRANT, side).ask(
        Question("only_here_3", Lens(instant.now()), mode="hybrid")
    )
    assert isinstance(answer.hits[0].obj, Memory)
