"""Real repositories, read whatever the user's git is configured to do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remem.hooks.sources import detect, read
from remem.hooks.sources._record import Record
from remem.hooks.sources.git import META_FILES, TEXT_FILES, read_git
from remem.objects.errors import BadInput, RememError
from remem.objects.model import Incoming, Rejected, Skipped

DAY = 86_400
START = 1_772_323_200  # 2026-03-01T00:00:00Z


class Repository:
    """A repository that is written with a clock of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.time = START
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Zoë Ünal")
        self.git("config", "user.email", "zoe@example.org")

    def git(self, *words: str, text: bytes | None = None, **env: str) -> str:
        stamp = f"{self.time} +0530"
        dates = {"GIT_AUTHOR_DATE": stamp, "GIT_COMMITTER_DATE": stamp}
        done = subprocess.run(
            ["git", "-C", str(self.path), *words],
            input=text,
            capture_output=True,
            check=True,
            env={**os.environ, **dates, **env},
        )
        return done.stdout.decode(errors="replace").strip()

    def commit(self, message: str | bytes, **files: str | bytes | None) -> str:
        """Write files ("a.txt" as a_txt) and commit them; None removes one."""
        for name, content in files.items():
            path = self.path / name.replace("_", ".")
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "-A")
        raw = message.encode() if isinstance(message, str) else message
        self.git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "-", text=raw)
        self.time += DAY
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def environment() -> dict[str, str]:
    return dict(os.environ)


def load(repository: Repository, **options: int) -> list[Record]:
    return list(read("git", str(repository.path), env=environment(), **options))


def commits(repository: Repository) -> list[Incoming]:
    records = load(repository)
    assert all(isinstance(record, Incoming) for record in records), records
    return [record for record in records if isinstance(record, Incoming)]


def test_a_commit_is_one_record(repository: Repository) -> None:
    first = repository.commit("Paint the attic\n\nIt was über-grey.\n", a_txt="1\n2\n", b_txt="x\n")
    second = repository.commit("Repaint", a_txt="1\n3\n4\n", b_txt=None)
    path = str(repository.path)
    assert commits(repository) == [
        Incoming(
            text="Paint the attic\n\nIt was über-grey.\n\nA a.txt +2 -0\nA b.txt +1 -0",
            asserted=START * 1_000_000,
            offset=330,
            role="",
            speaker="Zoë Ünal",
            origin="tool",
            source_uri=f"git:{path}",
            source_id=first,
            tool="git",
            kind="commit",
            meta={
                "commit": first,
                "parents": [],
                "author_email": "zoe@example.org",
                "files": [["A", "a.txt"], ["A", "b.txt"]],
                "files_changed": 2,
                "lines": [[2, 0], [1, 0]],
                "insertions": 3,
                "deletions": 0,
            },
            where=f"{path}@{first[:12]}",
        ),
        Incoming(
            text="Repaint\n\nM a.txt +2 -1\nD b.txt +0 -1",
            asserted=(START + DAY) * 1_000_000,
            offset=330,
            speaker="Zoë Ünal",
            origin="tool",
            source_uri=f"git:{path}",
            source_id=second,
            tool="git",
            kind="commit",
            meta={
                "commit": second,
                "parents": [first],
                "author_email": "zoe@example.org",
                "files": [["M", "a.txt"], ["D", "b.txt"]],
                "files_changed": 2,
                "lines": [[2, 1], [0, 1]],
                "insertions": 2,
                "deletions": 2,
            },
            where=f"{path}@{second[:12]}",
        ),
    ]


NAMES = [
    "naïve café.txt",
    "中文.md",
    "tab\there",
    "line\nbreak",
    'quo"te',
    "\x01soh",
    " lead",
    "-d",
]


def test_names_of_files_are_what_they_are(repository: Repository) -> None:
    for name in NAMES:
        (repository.path / name).write_text("x\n")
    os.close(os.open(os.fsencode(repository.path) + b"/caf\xe9", os.O_CREAT | os.O_WRONLY))
    repository.commit("all kinds")
    (record,) = commits(repository)
    files = record.meta["files"]
    assert isinstance(files, list)
    assert sorted(files) == sorted([["A", name] for name in [*NAMES, "caf\\xe9"]])
    assert "A naïve café.txt +1 -0" in record.text
    assert record.meta["insertions"] == len(NAMES)


def test_renames_name_both_ends(repository: Repository) -> None:
    repository.commit("one", old_txt="line\n" * 20)
    repository.git("mv", "old.txt", "new name.txt")
    repository.commit("two")
    record = commits(repository)[1]
    assert record.meta["files"] == [["R", "old.txt", "new name.txt"]]
    assert record.meta["lines"] == [[0, 0]]
    assert record.text == "two\n\nR old.txt -> new name.txt"


def test_binary_files_have_no_lines(repository: Repository) -> None:
    repository.commit("pixels", a_png=b"\0\1\2" * 100)
    (record,) = commits(repository)
    assert record.text == "pixels\n\nA a.png"
    assert (record.meta["insertions"], record.meta["deletions"]) == (0, 0)
    assert record.meta["lines"] == [None]


def test_a_merge_is_flagged(repository: Repository) -> None:
    repository.commit("base", a_txt="a")
    repository.git("checkout", "-q", "-b", "side")
    side = repository.commit("on the side", b_txt="b")
    repository.git("checkout", "-q", "main")
    main = repository.commit("on main", c_txt="c")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge the side", "side")
    repository.git("tag", "v1.0")
    *records, tag = commits(repository)
    assert [record.text.partition("\n")[0] for record in records] == [
        "base", "on the side", "on main", "Merge the side",
    ]  # fmt: skip
    merge = records[-1]
    assert tag.meta == {"tag": "v1.0", "commit": merge.source_id}
    assert merge.meta["merge"] is True and merge.meta["parents"] == [main, side]
    assert "files" not in merge.meta and merge.text == "Merge the side"
    assert [record.meta.get("merge") for record in records[:-1]] == [None] * 3


def test_tags_are_records_of_their_own(repository: Repository) -> None:
    first = repository.commit("one", a_txt="1")
    repository.git("tag", "plain")
    second = repository.commit("two", a_txt="2")
    repository.git("tag", "-a", "v2/ü", "-m", "the second\n\n\x01 with\nlines", "HEAD~1")
    repository.git("tag", "blob", repository.git("rev-parse", "HEAD:a.txt"))
    made = repository.git("rev-parse", "v2/ü")
    repository.git("checkout", "-q", "--orphan", "elsewhere")
    repository.commit("beside", b_txt="b")
    repository.git("tag", "beside")
    repository.git("checkout", "-q", "main")
    tags = [record for record in load(repository) if record.where.partition("@")[2][:12] not in
            (first[:12], second[:12])]  # fmt: skip
    assert [type(tag) for tag in tags] == [Incoming, Incoming]
    plain, annotated = tags
    assert isinstance(plain, Incoming) and isinstance(annotated, Incoming)
    assert plain.text == f"tag plain is commit {first[:12]}"
    assert (plain.source_id, plain.kind) == (f"tag:plain:{first}", "tag")
    assert plain.speaker == "" and plain.asserted == START * 1_000_000
    assert annotated.text == (f"tag v2/ü is commit {first[:12]}\n\nthe second\n\n\x01 with\nlines")
    assert annotated.source_id == f"tag:v2/ü:{made}"
    assert annotated.speaker == "Zoë Ünal" and annotated.offset == 330
    assert annotated.asserted == (START + 2 * DAY) * 1_000_000


def test_what_a_commit_reverts_is_named_in_full(repository: Repository) -> None:
    first = repository.commit("one", a_txt="1")
    repository.git("revert", "--no-edit", "HEAD")
    short = repository.commit(f"by hand\n\nThis reverts commit {first[:9]}.", a_txt="3")
    repository.commit("This reverts commit 0123456789.", a_txt="4")
    found = {record.source_id: record.meta.get("reverts") for record in commits(repository)}
    assert list(found.values()) == [None, [first], [first], None]
    assert found[short] == [first]


def test_messages_in_other_encodings(repository: Repository) -> None:
    repository.git("config", "i18n.commitEncoding", "ISO-8859-1")
    repository.commit("grün".encode("latin-1"), a_txt="1")
    repository.git("config", "--unset", "i18n.commitEncoding")
    repository.commit("GREEN", a_txt="2")
    # Git itself would not write what says UTF-8 and is not; other programs do.
    raw = repository.git("cat-file", "commit", "HEAD").encode()
    raw = raw.replace(b"GREEN", "grün\n".encode("latin-1"))
    made = repository.git("hash-object", "-t", "commit", "-w", "--stdin", text=raw)
    repository.git("update-ref", "HEAD", made)
    repository.commit("grün", a_txt="3")
    records = commits(repository)
    assert [record.text.partition("\n")[0] for record in records] == ["grün"] * 3
    assert [record.meta.get("encoding") for record in records] == [None, "latin-1, guessed", None]


def test_an_empty_message_is_named_after_its_commit(repository: Repository) -> None:
    repository.git("commit", "-q", "--allow-empty", "--allow-empty-message", "-m", "")
    (record,) = commits(repository)
    assert record.text == f"commit {record.source_id}"


def test_long_lists_of_files_are_bounded(repository: Repository) -> None:
    count = META_FILES + 5
    repository.commit("many", **{f"f{number:03}_txt": "x\n" for number in range(count)})
    (record,) = commits(repository)
    assert record.text.count("\nA f") == TEXT_FILES
    assert record.text.endswith(f"… and {count - TEXT_FILES} more files")
    assert record.meta["files_changed"] == record.meta["insertions"] == count
    files = record.meta["files"]
    assert isinstance(files, list) and len(files) == META_FILES
    assert record.meta["lines"] == [[1, 0]] * META_FILES


HOSTILE = (Path(__file__).parent.parent / "data" / "hostile.gitconfig").read_text()


def hostile_environment(home: Path) -> dict[str, str]:
    home.mkdir()
    (home / ".gitconfig").write_text(HOSTILE)
    (home / "attributes").write_text("*.txt diff=loud\n")
    (home / "xdg" / "git").mkdir(parents=True)
    (home / "xdg" / "git" / "attributes").write_text("*.txt -diff\n")
    (home / "order").write_text("ü.txt\n")
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return env | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "xdg"),
        "GIT_DIR": "/nonexistent",
        "GIT_WORK_TREE": "/nonexistent",
        "GIT_INDEX_FILE": "/nonexistent",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "color.ui",
        "GIT_CONFIG_VALUE_0": "always",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_PAGER": "false",
        "LC_ALL": "de_DE.UTF-8",
    }


def test_the_users_configuration_changes_nothing(repository: Repository, tmp_path: Path) -> None:
    old = "b\nb\nc\nx\na\n"
    repository.commit("grün\n\nim Körper", a_txt="x\n" * 20, c_txt="z\n" * 40, e_txt=old)
    (repository.path / "sub").mkdir()
    (repository.path / "sub" / "é.txt").write_text("y\n")
    repository.git("mv", "a.txt", "ü.txt")
    repository.git("mv", "c.txt", "d.txt")
    (repository.path / "d.txt").write_text("z\n" * 40 + "y\n")
    # Of this change the two algorithms count different numbers of lines.
    repository.commit("zwei", e_txt="a\nb\nc\nb\n")
    expected = commits(repository)
    env = hostile_environment(tmp_path / "home")
    path = str(repository.path)
    assert list(read_git(path, env=env)) == expected
    # In a folder below, and from the repository's own settings.
    below = list(read_git(f"{path}/sub", env=env))
    assert [r.text for r in below if isinstance(r, Incoming)] == [r.text for r in expected]
    with open(repository.path / ".git" / "config", "a") as config:
        config.write(HOSTILE)
    assert list(read_git(path, env=environment())) == expected
    below = list(read_git(f"{path}/sub", env=environment()))
    assert [r.text for r in below if isinstance(r, Incoming)] == [r.text for r in expected]
    # The same settings do change what git says by itself.
    seen = {key: value for key, value in env.items() if not key.startswith("GIT_")}
    plain = subprocess.run(
        ["git", "-C", path, "log", "-1", "--raw"], capture_output=True, env=seen, check=False
    )
    assert b"\x1b[" in plain.stdout and "grün".encode() not in plain.stdout


def test_a_broken_configuration_of_the_user_is_no_obstacle(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit("one", a_txt="1")
    (tmp_path / ".gitconfig").write_text("[broken\n")
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env["HOME"] = str(tmp_path)
    assert list(read_git(str(repository.path), env=env)) == commits(repository)
    done = subprocess.run(["git", "-C", repository.path, "log"], capture_output=True, env=env)
    assert done.returncode  # git by itself gives up


def test_no_environment_at_all_is_enough(repository: Repository) -> None:
    repository.commit("one", a_txt="1")
    if not (Path("/usr/bin/git").exists() or Path("/bin/git").exists()):
        pytest.skip("git is not in the default path")
    assert list(read_git(str(repository.path))) == commits(repository)


def test_nothing_is_run_that_the_repository_names(repository: Repository, tmp_path: Path) -> None:
    repository.commit("one", a_txt="1\n")
    signed = repository.git("cat-file", "commit", "HEAD").encode()
    signed = signed.replace(b"\n\n", b"\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n\n", 1)
    made = repository.git("hash-object", "-t", "commit", "-w", "--stdin", text=signed)
    repository.git("update-ref", "HEAD", made)
    mark = tmp_path / "mark"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand"):
        repository.git("config", key, str(program))
    repository.git("config", "diff.loud.textconv", str(program))
    repository.git("config", "log.showSignature", "true")
    (repository.path / ".gitattributes").write_text("*.txt diff=loud\n")
    assert len(commits(repository)) == 1
    assert not mark.exists()
    subprocess.run(["git", "-C", str(repository.path), "status"], capture_output=True, check=False)
    assert mark.exists()  # git itself would have run it


def test_reading_leaves_the_repository_as_it_was(repository: Repository) -> None:
    repository.commit("one", a_txt="1")

    def state() -> dict[str, tuple[int, int]]:
        files = sorted(repository.path.rglob("*"))
        return {str(file): (file.stat().st_mtime_ns, file.stat().st_size) for file in files}

    before = state()
    commits(repository)
    assert state() == before


def test_an_empty_repository_has_no_commits(repository: Repository) -> None:
    assert load(repository) == []


def test_what_is_no_repository_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone", Path(__file__)):
        with pytest.raises(BadInput) as caught:
            list(read("git", str(path), env=environment() | {"GIT_CEILING_DIRECTORIES": "/"}))
        assert str(path) in str(caught.value)
    with pytest.raises(BadInput, match="not a git repository") as caught:
        list(read_git(str(tmp_path), env=environment()))
    assert caught.value.hint


def test_without_git_the_error_says_so(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(RememError, match="cannot run git") as caught:
        list(read_git(str(repository.path), env={"PATH": str(tmp_path)}))
    assert caught.value.hint


def test_since(repository: Repository) -> None:
    for number in range(4):
        repository.commit(f"number {number}")
    limit = (START + 2 * DAY) * 1_000_000
    records = load(repository, since=limit)
    assert [type(record) for record in records] == [Skipped, Skipped, Incoming, Incoming]
    assert {record.why for record in records if isinstance(record, Skipped)} == {"before --since"}
    assert len(load(repository, since=limit + 1)) == 4


def test_times_that_are_out_of_the_ordinary(repository: Repository) -> None:
    repository.git("commit", "-q", "--allow-empty", "-m", "a")
    head = repository.git("cat-file", "commit", "HEAD").splitlines()
    for author in ("1234567890 -0800", "99999999999999 +0000", "5 +9999"):
        lines = [f"author A <a@b> {author}" if line.startswith("author") else line for line in head]
        raw = "\n".join(lines).encode() + b"\n"
        made = repository.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally",
                              text=raw)  # fmt: skip
        repository.git("update-ref", "HEAD", made)
        (record,) = commits(repository)
        expected = {
            "1234567890 -0800": (1_234_567_890_000_000, -480),
            "5 +9999": (5_000_000, None),
        }
        assert (record.asserted, record.offset) == expected.get(author, (None, None))


def test_a_damaged_repository_is_named(repository: Repository) -> None:
    repository.commit("one", a_txt="1")
    gone = repository.commit("two", a_txt="2")
    repository.commit("three", a_txt="3")
    (repository.path / ".git" / "objects" / gone[:2] / gone[2:]).unlink()
    records = load(repository)
    assert isinstance(records[-1], Rejected)
    assert records[-1].where == str(repository.path)
    assert records[-1].why.startswith("git stopped before the end: ")


def test_a_message_above_the_limit_costs_itself_only(repository: Repository) -> None:
    repository.commit("word " * 1000)
    repository.commit("short")
    records = load(repository, limit_b=200)
    assert [type(record) for record in records] == [Rejected, Incoming]


def test_reading_can_stop_at_any_commit(repository: Repository) -> None:
    for number in range(3):
        repository.commit(f"number {number}")
    found = read("git", str(repository.path), env=environment())
    assert isinstance(found, Iterator)
    first = next(found)
    assert isinstance(first, Incoming) and first.text == "number 0"
    found.close()  # type: ignore[attr-defined]


def test_work_trees_and_bare_clones_share_one_name(repository: Repository, tmp_path: Path) -> None:
    repository.commit("one", a_txt="1")
    repository.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    uris = {
        record.source_uri
        for path in (repository.path, tmp_path / "tree", repository.path / ".git")
        for record in read_git(str(path), env=environment())
        if isinstance(record, Incoming)
    }
    assert uris == {f"git:{repository.path}"}
    repository.git("clone", "-q", "--bare", str(repository.path), str(tmp_path / "bare.git"))
    (bare,) = read_git(str(tmp_path / "bare.git"), env=environment())
    assert isinstance(bare, Incoming) and bare.source_uri == f"git:{repository.path}"
    repository.git("remote", "add", "origin", "https://me:secret@Host.org/a/b.git")
    assert commits(repository)[0].source_uri == "git:host.org/a/b"
    assert detect(str(tmp_path / "tree")) == detect(str(tmp_path / "bare.git")) == "git"


def test_a_partial_clone_is_read_without_fetching(repository: Repository, tmp_path: Path) -> None:
    repository.commit("one", a_txt="1\n")
    repository.commit("two", a_txt="2\n")
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "clone"
    url = f"file://{repository.path}"
    repository.git("clone", "-q", "--bare", "--filter=blob:none", url, str(clone))
    repository.path.rename(tmp_path / "moved")  # whoever fetches now, fails
    records = list(read_git(str(clone), env=environment()))
    assert [r.text for r in records if isinstance(r, Incoming)] == [
        "one\n\nA a.txt",
        "two\n\nM a.txt",
    ]
    assert len(records) == 2


def test_folders_of_other_people_need_the_users_leave(
    repository: Repository, tmp_path: Path
) -> None:
    if os.geteuid():
        pytest.skip("only root can give a folder away")
    repository.commit("one", a_txt="1")
    for path in [repository.path, *repository.path.rglob("*")]:
        os.chown(path, 12345, 12345)
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    env["HOME"] = str(tmp_path)
    with pytest.raises(BadInput, match="dubious ownership"):
        list(read_git(str(repository.path), env=env))
    (tmp_path / ".gitconfig").write_text(f"[safe]\n\tdirectory = {repository.path}\n")
    assert len(list(read_git(str(repository.path), env=env))) == 1


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=20),
        min_size=1,
        max_size=3,
    )
)
@example(["\x01" + "a" * 40, ":100644 100644 0 0 M", "1\t2\tx"])
def test_any_message_comes_back(
    tmp_path_factory: pytest.TempPathFactory, messages: list[str]
) -> None:
    repository = Repository(tmp_path_factory.mktemp("any") / "repo")
    # Plumbing, because "git commit" would refuse or tidy some of them.
    tree = repository.git("write-tree")
    parent: list[str] = []
    for message in messages:
        made = repository.git("commit-tree", tree, *parent, text=message.encode())
        parent = ["-p", made]
        repository.time += 1
    repository.git("update-ref", "HEAD", parent[1])
    found = [record.text for record in commits(repository)]
    expected = [message.strip() for message in messages]
    for record, text in zip(found, expected, strict=True):
        assert record == text if text else record.startswith("commit ")
