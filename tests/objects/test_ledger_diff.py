"""The ledger on diffs, commits and commands; real git makes some of them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remem.hooks.sources.git import read_git
from remem.objects.derive import ledger
from remem.objects.derive.claim import Claim
from remem.objects.model import Incoming, Observation, Scope, Source

SCOPE = Scope("t", "p", "c", "a", "s")
SHA = "0123456789abcdef0123456789abcdef01234567"


def observation(
    text: str,
    *,
    kind: str = "",
    source: Source | None = None,
    meta: dict[str, object] | None = None,
) -> Observation:
    return Observation(
        bytes(16), SCOPE, None, text, "", "", "tool", source, None, None, None, kind, meta or {}
    )


def derive(text: str) -> list[Claim]:
    return ledger.derive(observation(text))


def triples(claims: list[Claim]) -> list[tuple[str, str, str]]:
    return [(c.subject, c.predicate, c.object) for c in claims]


DIFF = """\
diff --git a/pyproject.toml b/pyproject.toml
index 1111111..2222222 100644
--- a/pyproject.toml
+++ b/pyproject.toml
@@ -1,4 +1,4 @@
 [project]
-version = "1.2"
+version = "1.3"
 name = "x"

diff --git a/src/a.py b/src/a.py
index 1111111..2222222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -10,3 +10,4 @@ def outer(x):
     y = 1
-def old(): ...
+async def new(): ...
+class Thing:
     z = 1
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/gone.py b/gone.py
deleted file mode 100644
index 1111111..0000000
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/fresh.py b/fresh.py
new file mode 100644
index 0000000..1111111
--- /dev/null
+++ b/fresh.py
@@ -0,0 +1 @@
+x
\\ No newline at end of file
"""


def test_diff() -> None:
    found = derive(DIFF)
    assert triples(found) == [
        ("pyproject.toml", "changed", "+1 -1"),
        ("pyproject.toml version", "version", "1.3"),
        ("src/a.py", "changed", "+2 -1"),
        ("src/a.py", "touches", "outer"),
        ("src/a.py", "removes", "old"),
        ("src/a.py", "adds", "new"),
        ("src/a.py", "adds", "Thing"),
        ("new name.txt", "renamed", "+0 -0"),
        ("new name.txt", "renamed_from", "old name.txt"),
        ("gone.py", "deleted", "+0 -1"),
        ("fresh.py", "added", "+1 -0"),
    ]
    bump = found[1]
    assert DIFF[bump.start : bump.end] == '-version = "1.2"\n+version = "1.3"'
    assert (bump.kind, bump.single) == ("fact", True)
    assert {c.kind for c in found if c is not bump} == {"event"}


def test_plain_diff_between_prose() -> None:
    text = "Here it is:\n\n--- a.txt\t2024-01-01\n+++ b.txt\n@@ -1,2 +1,2 @@\n-x\n+y\n z\n\nDone."
    assert triples(derive(text)) == [("b.txt", "changed", "+1 -1")]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('version = "1.2"', 'version = "1.3"', ("f version", "version", "1.3")),
        ('  "lodash": "^4.17.20",', '  "lodash": "^4.17.21",', ("f lodash", "version", "4.17.21")),
        ("requests==2.30.0", "requests==2.31.0", ("f requests", "version", "2.31.0")),
        ("__version__ = '2.0rc1'", "__version__ = '2.0.0'", None),
        ("version: 1.2.3-beta.1", "version: 1.2.3", ("f version", "version", "1.2.3")),
        ("x = 1.5", "y = 1.6", None),
        ("x = 1.5", "x = 1.5", None),
        ("x = one", "x = two", None),
        ("we are at 1.2 now", "we are at 1.3 now", None),
    ],
)
def test_version_bumps(before: str, after: str, said: tuple[str, str, str] | None) -> None:
    text = f"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-{before}\n+{after}"
    found = triples(derive(text))
    assert ("f", "changed", "+1 -1") in found
    if before.startswith("__version__"):
        said = ("f __version__", "version", "2.0.0")
    assert [t for t in found if t[1] == "version"] == ([said] if said else [])


@pytest.mark.parametrize(
    "change",
    [
        ("@@ -1 +0,0 @@\n-x\n", "@@ -1,2 +0,0 @@\n-x\n"),  # a line is missing
        ("@@ -1 +0,0 @@\n-x\n", "@@ -1 +0,0 @@\n-x\n-y\n"),  # a line too many
        ("@@ -1 +0,0 @@\n-x\n", "@@ -1 +0,0 @@\nx\n"),  # a line without its sign
        ("+++ /dev/null\n", ""),  # a hunk of no file
    ],
)
def test_malformed_diff_says_nothing(change: tuple[str, str]) -> None:
    broken = DIFF.replace(*change)
    assert broken != DIFF
    assert derive(broken) == []
    assert derive(DIFF)


@pytest.mark.parametrize(
    "text",
    [
        "--- a\n+++ b",
        "diff --git a/x b/x",
        "diff --git a/x b/x\nindex 1..2",
        "the line\n@@ -1 +1 @@\nis the head of a hunk",
        "---\n+++\n@@ -1 +1 @@\n-x\n+y",
    ],
)
def test_what_only_looks_like_a_diff(text: str) -> None:
    assert derive(text) == []


def test_real_git_diff_and_commit(tmp_path: Path) -> None:
    def git(*args: str) -> str:
        return subprocess.run(
            [
                "git",
                "-C",
                str(tmp_path),
                "-c",
                "user.name=A",
                "-c",
                "user.email=a@example.org",
                *args,
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    git("init", "-q")
    (tmp_path / "a.py").write_text("def one():\n    return 1\n\n\nversion = '1.0'\n")
    (tmp_path / "b.txt").write_text("b\n" * 30)
    git("add", ".")
    git("commit", "-qm", "first")
    git("tag", "v1.0")
    (tmp_path / "a.py").write_text("def two():\n    return 2\n\n\nversion = '1.1'\n")
    git("mv", "b.txt", "c.txt")
    git("add", ".")
    shown = git("diff", "--cached", "-M")
    assert triples(derive(shown)) == [
        ("a.py", "changed", "+3 -3"),
        ("a.py", "removes", "one"),
        ("a.py", "adds", "two"),
        ("a.py version", "version", "1.1"),
        ("c.txt", "renamed", "+0 -0"),
        ("c.txt", "renamed_from", "b.txt"),
    ]
    git("commit", "-qm", "second")
    git("revert", "--no-edit", "HEAD")
    found = [r for r in read_git(str(tmp_path)) if isinstance(r, Incoming)]
    records = [r for r in found if r.kind != "diff"]
    derived = [
        ledger.derive(
            observation(r.text, kind=r.kind, meta=r.meta, source=Source(r.source_uri, r.source_id))
        )
        for r in records
    ]
    shas = [r.source_id for r in records]
    assert triples(derived[0]) == [
        (shas[0][:12], "adds", "a.py"),
        (shas[0][:12], "adds", "b.txt"),
    ]
    assert triples(derived[1]) == [
        (shas[1][:12], "changes", "a.py"),
        (shas[1][:12], "renames", "b.txt -> c.txt"),
    ]
    assert triples(derived[2])[0] == (shas[2][:12], "reverts", shas[1])
    assert triples(derived[3]) == [("tag v1.0", "commit", shas[0][:12])]
    (tag,) = derived[3]
    assert tag.single and records[3].text[tag.start : tag.end] == tag.text
    outlined = [derive_diff(r.text) for r in found if r.kind == "diff"]
    assert [triples(claims) for claims in outlined] == [
        [("a.py", "adds", "one")],
        [("a.py version", "version", "1.1"), ("a.py", "adds", "two"), ("a.py", "removes", "one")],
        [("a.py version", "version", "1.0"), ("a.py", "adds", "one"), ("a.py", "removes", "two")],
    ]


# --- outlines of changes


OUTLINE = f"""\
changes of commit {SHA[:12]}
M src/app.py
@@ def parse(text):
+def parse_all(text):
-class Old(Base):
~    async def render(page, width):
R lib/a.rs -> lib/b.rs
+pub fn next(&self) -> u8 {{
M pyproject.toml
-version = "1.2.0"
+version = "1.3.0"
… and 3 more changes"""


def derive_diff(text: str) -> list[Claim]:
    return ledger.derive(observation(text, kind="diff"))


def test_outline() -> None:
    claims = derive_diff(OUTLINE)
    assert triples(claims) == [
        ("src/app.py", "touches", "parse"),
        ("src/app.py", "adds", "parse_all"),
        ("src/app.py", "removes", "Old"),
        ("src/app.py", "changes", "render"),
        ("lib/b.rs", "adds", "next"),
        ("pyproject.toml version", "version", "1.3.0"),
    ]
    quoted = [OUTLINE[c.start : c.end] for c in claims]
    assert quoted[0] == "@@ def parse(text):" and quoted[1] == "+def parse_all(text):"
    assert quoted[5] == '-version = "1.2.0"\n+version = "1.3.0"'
    assert claims[5].single and not any(c.single for c in claims[:5])
    assert claims[0].text == "src/app.py touches parse"


@pytest.mark.parametrize(
    "line",
    [
        "+class names are words",
        "+def __init__(self):",
        "+x = parse(1)",
        "-version = 1.2\n+release = 1.3",
        "-version = 1.2\n+version = 1.2",
        "+version = 1.3",
        "-version = 1.2\n~def f():\n+version = 1.3",
        "def f():",
        "@@def f():",
    ],
)
def test_lines_of_an_outline_that_say_nothing(line: str) -> None:
    text = f"changes of commit {SHA[:12]}\nM a.py\n{line}\nM b.py\n+def told():"
    told = [t for t in triples(derive_diff(text)) if t != ("a.py", "changes", "f")]
    assert told == [("b.py", "adds", "told")]


def test_an_outline_needs_its_first_line_and_a_file() -> None:
    assert derive_diff(OUTLINE.split("\n", 1)[1]) == []
    assert derive_diff(f"changes of commit {SHA[:12]}\n+def f():") == []
    assert triples(derive_diff(DIFF)) == triples(derive(DIFF)) != []


@given(st.text(max_size=300))
def test_any_text_behind_the_first_line(text: str) -> None:
    whole = f"changes of commit {SHA[:12]}\nM a.py\n{text}"
    for claim in derive_diff(whole):
        assert 0 <= claim.start < claim.end <= len(whole)
        assert claim.object in whole[claim.start : claim.end]


# --- commits and commands


def test_commit() -> None:
    text = f"Revert it\n\nThis reverts commit {SHA}.\n\nM src/a b.py +1 -2\nA new.py"
    meta: dict[str, object] = {"commit": SHA, "refs": ["main", "v1.2.3", "2.0rc1", 7]}
    found = ledger.derive(observation(text, kind="commit", meta=meta))
    assert triples(found) == [
        (SHA[:12], "tagged", "v1.2.3"),
        (SHA[:12], "tagged", "2.0rc1"),
        (SHA[:12], "reverts", SHA),
        (SHA[:12], "changes", "src/a b.py"),
        (SHA[:12], "adds", "new.py"),
    ]
    assert text[found[3].start : found[3].end] == "M src/a b.py +1 -2"
    assert all(c.kind == "event" and not c.single for c in found)


@pytest.mark.parametrize(
    ("text", "meta"),
    [
        ("Say something", {"commit": SHA}),
        ("Say something\n\nM y dear, this is prose\nand more of it", {"commit": SHA}),
        ("Subject\n\nM a.py", {}),
        ("Subject\n\nM a.py", {"commit": "no sha"}),
        ("Subject\n\nM a.py", {"commit": 7}),
    ],
)
def test_commit_that_says_nothing(text: str, meta: dict[str, object]) -> None:
    assert ledger.derive(observation(text, kind="commit", meta=meta)) == []
    assert ledger.derive(observation("Subject\n\nM a.py", kind="commit", meta={"commit": SHA}))


def test_exit_code() -> None:
    found = ledger.derive(observation("make test\n", kind="command", meta={"exit": 2}))
    assert triples(found) == [("make test", "exit_code", "2")]
    assert (found[0].text, found[0].kind, found[0].single) == (
        "make test exited with 2",
        "event",
        True,
    )
    assert (found[0].start, found[0].end) == (0, 9)
    long = ledger.derive(observation("x" * 500, kind="command", meta={"exit": 0}))
    assert len(long[0].subject) == 200


@pytest.mark.parametrize("code", [None, "", "1", True, 1.0, -1, 256, [1]])
def test_no_exit_code(code: object) -> None:
    assert ledger.derive(observation("make", kind="command", meta={"exit": code})) == []
    assert ledger.derive(observation("make", kind="command", meta={"exit": 0}))
    # The text of a command is a command, whatever it looks like.
    assert ledger.derive(observation('{"a": 1}', kind="command")) == []


@given(st.integers(0, len(DIFF) - 1), st.sampled_from(["", "\n", "+", "-", " ", "@@", "a"]))
def test_a_damaged_diff_counts_the_lines_that_it_has(at: int, put: str) -> None:
    damaged = DIFF[:at] + put + DIFF[at + 1 :]
    for claim in derive(damaged):
        if claim.predicate in ("changed", "added", "deleted", "renamed"):
            part = damaged[claim.start : claim.end]
            added = len(re.findall(r"^\+(?!\+\+ )", part, re.MULTILINE))
            removed = len(re.findall(r"^-(?!-- )", part, re.MULTILINE))
            assert claim.object == f"+{added} -{removed}"
