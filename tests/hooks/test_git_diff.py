"""Outlines of what commits change: read by real git, bounded, and not to be forged."""

from __future__ import annotations

import io
import os
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.hooks.sources._git_diff import MAX_LINE, MAX_LINES, Commits
from remem.hooks.sources.git import read_git
from remem.objects.derive import ledger, outline
from remem.objects.model import Incoming, Observation, Scope

HOSTILE = (Path(__file__).parent.parent / "data" / "hostile.gitconfig").read_text()
ENV = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}


class Repository:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A")
        self.git("config", "user.email", "a@example.org")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *words], capture_output=True, check=True, env=ENV
        )
        return done.stdout.decode().strip()

    def write(self, name: str, text: str | bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, message: str = "x") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def records(repository: Repository, env: dict[str, str] | None = None) -> list[Incoming]:
    found = list(read_git(str(repository.path), env=ENV if env is None else env))
    assert all(isinstance(record, Incoming) for record in found), found
    return [record for record in found if isinstance(record, Incoming)]


def outlines(repository: Repository, env: dict[str, str] | None = None) -> dict[str, list[str]]:
    """Lines of each outline behind its first one, by commit."""
    found = {}
    for record in records(repository, env):
        if record.kind == "diff":
            first, *lines = record.text.split("\n")
            assert first == f"changes of commit {record.meta['commit']}"[: len(first)]
            assert record.source_id == f"{record.meta['commit']}:diff"
            found[str(record.meta["commit"])] = lines
    return found


BEFORE = """\
import os

LIMIT = 1


def first(a):
    b = a
    return b


class Shape:
    def area(self):
        return 1

    def edge(self):
        return 2


def last():
    return 9
"""


def test_what_a_commit_does_to_its_symbols(repository: Repository) -> None:
    repository.write("src/app.py", BEFORE)
    repository.write("setup.cfg", "[x]\nname = x\nversion = 1.2.0\n")
    first = repository.commit()
    after = BEFORE.replace("b = a", "b = a + 1").replace("return 2", "return 3")
    after = after.replace("def last():", "def last(more):").replace("LIMIT = 1", "LIMIT = 2")
    after = after.replace("class Shape:", "def middle():\n    return 0\n\n\nclass Shape:")
    repository.write("src/app.py", after)
    repository.write("setup.cfg", "[x]\nname = x\nversion = 1.3.0\n")
    second = repository.commit()
    repository.write("src/app.py", after.replace("def middle():\n    return 0\n\n\n", ""))
    third = repository.commit()
    assert outlines(repository) == {
        first: [
            "A src/app.py",
            "+def first(a):",
            "+class Shape:",
            "+def area(self):",
            "+def edge(self):",
            "+def last():",
        ],
        second: [
            "M setup.cfg",
            "-version = 1.2.0",
            "+version = 1.3.0",
            "M src/app.py",
            "+def middle():",
            "~def last(more):",
            "@@ def first(a):",
            "@@ def edge(self):",
        ],
        third: ["M src/app.py", "-def middle():"],
    }


def test_what_stands_behind_a_function_is_no_change_of_it(repository: Repository) -> None:
    repository.write("a.py", "def one():\n    return 1\n")
    repository.commit()
    repository.write(
        "a.py", "def one():\n    return 1\n\n\nVALUE = 3\n\n\n@wrap\ndef two():\n    x\n"
    )
    behind = repository.commit()
    repository.write(
        "a.py", "def one():\n    return 1\n    more\n\n\nVALUE = 3\n\n\n@wrap\ndef two():\n    x\n"
    )
    inside = repository.commit()
    found = outlines(repository)
    assert found[behind] == ["M a.py", "+def two():"]
    assert found[inside] == ["M a.py", "@@ def one():"]


def test_other_languages(repository: Repository) -> None:
    repository.write("a.go", "package a\n\nfunc (r *Ring) Next(n int) int {\n\treturn 1\n}\n")
    repository.write("b.ts", "export async function load(a: string) {\n  return a;\n}\n")
    repository.write("c.rs", "impl Ring {\n    pub fn next(&self) -> u8 {\n        1\n    }\n}\n")
    repository.write("d.rb", "class Ring < Base\n  def next\n    1\n  end\nend\n")
    repository.write("notes.md", "class notes(1) are\ndef nothing():\nversion: 1.2\n")
    repository.write("log.txt", "def nothing():\n")
    made = repository.commit()
    for name in ("a.go", "b.ts", "c.rs", "d.rb", "notes.md"):
        text = (repository.path / name).read_text()
        repository.write(name, text.replace("return 1", "return 2").replace("    1", "    2")
                         .replace("return a", "return b").replace("1.2", "1.3"))  # fmt: skip
    changed = repository.commit()
    found = outlines(repository)
    assert [line for line in found[made] if line[0] == "+"] == [
        "+func (r *Ring) Next(n int) int {",
        "+export async function load(a: string) {",
        "+pub fn next(&self) -> u8 {",
        "+class Ring < Base",
        "+def next",
    ]
    assert [line for line in found[changed] if line[0] == "@"] == [
        "@@ func (r *Ring) Next(n int) int {",
        "@@ export async function load(a: string) {",
        "@@ pub fn next(&self) -> u8 {",
        "@@ def next",
    ]


def test_a_commit_that_names_nothing_has_no_outline(repository: Repository) -> None:
    repository.write("a.txt", "def nothing():\n")
    repository.write("b.py", "x = 1\n")
    repository.commit()
    repository.commit("empty")
    assert [record.kind for record in records(repository)] == ["commit", "commit"]
    repository.write("b.py", "x = 1\n\n\ndef f():\n    pass\n")
    repository.commit()
    assert [record.kind for record in records(repository)][2:] == ["commit", "diff"]


def test_an_outline_stands_behind_its_commit(repository: Repository) -> None:
    repository.write("a.py", "def f():\n    pass\n")
    sha = repository.commit()
    commit, diff = records(repository)
    assert diff.source_id == f"{sha}:diff" and diff.source_uri == commit.source_uri
    assert (diff.asserted, diff.offset) == (commit.asserted, commit.offset)
    assert (diff.kind, diff.origin, diff.tool, diff.speaker) == ("diff", "tool", "git", "")


def test_a_merge_has_none_and_what_it_joins_has(repository: Repository) -> None:
    repository.write("a.py", "def base():\n    pass\n")
    base = repository.commit()
    repository.git("checkout", "-q", "-b", "side")
    repository.write("b.py", "def side():\n    pass\n")
    side = repository.commit()
    repository.git("checkout", "-q", "main")
    repository.write("c.py", "def main():\n    pass\n")
    main = repository.commit()
    repository.git("merge", "-q", "--no-ff", "-m", "join", "side")
    assert set(outlines(repository)) == {base, side, main}


def test_binary_and_huge_files_are_left_out(repository: Repository) -> None:
    repository.write("a.py", b"def binary():\n    pass\n\0\n")
    repository.write("b.py", "def huge():\n    pass\n" + "# filler of a line\n" * 70_000)
    repository.write("c.py", "def kept():\n    pass\n" + "# filler of a line\n" * 1_000)
    sha = repository.commit()
    assert outlines(repository) == {sha: ["A c.py", "+def kept():"]}


def test_outlines_are_bounded(repository: Repository) -> None:
    for number in range(30):
        body = "".join(f"def f{number}_{n}():\n    pass\n\n\n" for n in range(10))
        repository.write(f"m{number:02}.py", body)
    repository.write("z.toml", 'version = "1.0"\n')
    first = repository.commit()
    repository.write("z.toml", 'version = "1.1"\n')
    repository.write("long.py", f"def long({'a, ' * 5_000}b):\n    pass\n")
    for number in range(30):
        path = repository.path / f"m{number:02}.py"
        path.write_text(path.read_text().replace("pass", "return"))
    second = repository.commit()
    found = outlines(repository)
    assert found[first][-1] == "… and 250 more changes"
    assert sum(line[0] == "+" for line in found[first]) == MAX_LINES
    # A version and a definition come before what was touched.
    assert '+version = "1.1"' in found[second]
    assert any(line.startswith("+def long(") for line in found[second])
    assert sum(line[:2] == "@@" for line in found[second]) == MAX_LINES - 3
    assert all(len(line) <= MAX_LINE + 3 for lines in found.values() for line in lines)


def test_names_of_files_are_what_they_are(repository: Repository) -> None:
    names = ['quo"te.py', "naïve café.py", "中文.py", "back\\slash.py", " lead.py", "a -> b.py"]
    for name in names:
        repository.write(name, "def f():\n    pass\n")
    repository.write("line\nbreak.py", "def hidden():\n    pass\n")
    os.close(os.open(os.fsencode(repository.path) + b"/caf\xe9.py", os.O_CREAT | os.O_WRONLY))
    sha = repository.commit()
    listed = [line for line in outlines(repository)[sha] if line[0] == "A"]
    assert sorted(listed) == sorted(f"A {name}" for name in names)


def test_a_renamed_file_has_both_names(repository: Repository) -> None:
    body = "def f():\n    pass\n" + "x = 1\n" * 30
    repository.write("old.py", body)
    repository.commit()
    repository.git("mv", "old.py", "new.py")
    only_moved = repository.commit()
    repository.git("mv", "new.py", "newer.py")
    repository.write("newer.py", body.replace("pass", "return"))
    changed = repository.commit()
    found = outlines(repository)
    assert only_moved not in found
    assert found[changed] == ["R new.py -> newer.py", "@@ def f():"]


def test_the_content_of_files_forges_nothing(repository: Repository) -> None:
    forged = f"\x01{'f' * 40}"
    lines = [
        "def real():",
        "    pass",
        forged,
        f"\0{forged}\0",
        "diff --git a/evil.py b/evil.py",
        "--- a/evil.py",
        "+++ b/evil.py",
        "@@ -0,0 +1 @@",
        "+def evil():",
        "changes of commit 0123456789ab",
        "M evil.py",
    ]
    padding = "# filler\n" * 2_000  # git looks for a zero byte in the first 8,000 only
    repository.write("a.py", padding + "\n".join(lines) + "\r\n" + forged + "\r" + forged)
    sha = repository.commit()
    assert outlines(repository) == {sha: ["A a.py", "+def real():"]}
    repository.write("a.py", "def real():\n    pass\n")
    last = repository.commit(f"{forged}\n\ndiff --git a/evil.py b/evil.py\n+def evil():")
    assert set(outlines(repository)) == {sha}
    assert [r.source_id for r in records(repository) if r.kind == "commit"] == [sha, last]


MARKS = [
    "def f():", "    x", "", "--- a/e.py", "+++ b/e.py", "@@ -1 +1 @@ def g():", "\x01" + "a" * 40,
    "diff --git a/e.py b/e.py", "-- ", "+", "\\ No newline", "version = 1.2", "rename from e",
]  # fmt: skip
LINES = st.lists(st.sampled_from(MARKS), min_size=1, max_size=12)


@given(LINES, LINES)
def test_only_the_heads_of_git_begin_anything(taken: list[str], put: list[str]) -> None:
    """A hunk has as many lines as its head says, whatever they look like."""
    hunk = f"@@ -1,{len(taken)} +1,{len(put)} @@ class Outer:\n"
    hunk += "".join(f"-{line}\n" for line in taken) + "".join(f"+{line}\n" for line in put)
    end = "diff --git a/b.py b/b.py\n--- a/b.py\n+++ b/b.py\n@@ -0,0 +1 @@\n+def end():\n"
    text = f"\x01{'1' * 40}\n\ndiff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n{hunk}{end}"
    commits = Commits(io.BytesIO(text.encode()))
    shown = commits.of("1" * 40)
    assert shown.endswith("M b.py\n+def end():")
    assert commits.of("a" * 40) == "" and "e.py" not in shown
    named = {line for line in shown.split("\n") if line[0] in "+-~@"}
    assert named <= {"+def f():", "-def f():", "~def f():", "@@ class Outer:", "+def end():",
                     "+version = 1.2", "-version = 1.2"}  # fmt: skip
    assert any(line[1:] == "def f():" for line in named) == ("def f():" in taken + put)


def test_settings_and_attributes_change_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.write("a.py", BEFORE)
    repository.commit()
    repository.write("a.py", BEFORE.replace("return 2", "return 3").replace("b = a", "b = 1"))
    repository.write("ü.py", "def g():\n    pass\n")
    repository.commit()
    expected = outlines(repository)
    assert len(expected) == 2
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(HOSTILE)
    (home / "attributes").write_text("*.py -diff\n")
    hostile = ENV | {"HOME": str(home), "GIT_EXTERNAL_DIFF": "false", "GIT_DIR": "/nonexistent"}
    assert outlines(repository, hostile) == expected
    with open(repository.path / ".git" / "config", "a") as config:
        config.write(HOSTILE)
        config.write('[diff "default"]\n\txfuncname = "^(b.*)$"\n[diff]\n\tcontext = 9\n')
        config.write(
            "\tinterHunkContext = 9\n\tmnemonicPrefix = true\n\tsuppressBlankEmpty = true\n"
        )
    assert outlines(repository, hostile) == expected
    # What is checked out just now takes no part, also not uncommitted.
    repository.write(".gitattributes", "*.py -diff\n")
    assert outlines(repository) == expected
    seen = subprocess.run(
        ["git", "-C", str(repository.path), "log", "-1", "-p"], capture_output=True, env=hostile
    )
    assert b"def g" not in seen.stdout  # git by itself


def test_below_in_a_linked_and_in_a_bare_repository(repository: Repository, tmp_path: Path) -> None:
    repository.write("sub/a.py", "def f():\n    pass\n")
    repository.commit()
    expected = list(outlines(repository).values())
    assert expected == [["A sub/a.py", "+def f():"]]
    repository.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    repository.git("clone", "-q", "--bare", str(repository.path), str(tmp_path / "bare"))
    for path in (repository.path / "sub", tmp_path / "linked", tmp_path / "bare"):
        found = [r for r in read_git(str(path), env=ENV) if isinstance(r, Incoming)]
        lines = [r.text.split("\n")[1:] for r in found if r.kind == "diff"]
        assert lines == expected, path


def test_a_partial_clone_fetches_nothing(repository: Repository) -> None:
    repository.write("a.py", "def f():\n    pass\n")
    repository.commit()
    assert len(outlines(repository)) == 1
    repository.git("config", "remote.origin.promisor", "true")
    assert outlines(repository) == {}


def test_what_is_written_is_what_the_ledger_reads(repository: Repository) -> None:
    """Each line of a random history derives its claim, and nothing else does."""
    rng = random.Random(5)
    body = [f"def base_{n}():\n    return {n}\n" for n in range(6)]
    for step in range(12):
        body[rng.randrange(len(body))] = f"def made_{step}(a, b):\n    return {step}\n"
        at = rng.randrange(len(body))
        body[at] = body[at].replace("return", "return 1 +")
        repository.write("a.py", "\n\n".join(body))
        repository.write("b.toml", f'version = "1.{step}"\n')
        repository.commit()
    scope = Scope("t", "p", "c", "a", "s")
    for record in records(repository):
        if record.kind != "diff":
            continue
        kept = Observation(
            bytes(16), scope, None, record.text, "", "", "tool", None, None, None, None, "diff", {}
        )
        claims = ledger.derive(kept)
        lines = [line for line in record.text.split("\n") if line[0] in "+-~@"]
        versions = sum("version" in line for line in lines)
        assert len(claims) == len(lines) - versions // 2
        assert set(outline.names(record.text)) >= {"a.py"}
