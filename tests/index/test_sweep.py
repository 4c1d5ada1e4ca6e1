"""Purging end to end: what is gone from which files, the proof, kills, others at work meanwhile."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from remem.index import lexical, needles, project, proof, spooled, sweep
from remem.index.recall import Question, Searcher
from remem.index.sweep import Purged
from remem.objects import backup, encode, forget, holds, memories, purge, tombs
from remem.objects.admit import admit
from remem.objects.errors import NotFound, StoreFull, StoreLocked
from remem.objects.fsck import verify
from remem.objects.lock import hold
from remem.objects.model import Deriver, Incoming, Memory, Scope
from remem.objects.scope import Actor, Grant, maintenance_grant
from remem.objects.store import Store, read_generation
from remem.objects.tx import Tx
from remem.objects.views import Lens

HOME = Scope("local", "default", "home", "none", "main")
ME = Actor(Grant("owner", "local", "default", None, owner=True), "cli", HOME)
WORD = "zorvexquark"
TEXT = f"the codeword of the safe is {WORD}-71"


class Bench:
    """A store whose index holds something to forget."""

    def __init__(self, root: Path) -> None:
        self.store = Store.create(str(root))

        def fill(tx: Tx) -> bytes:
            for n in range(20):
                admit(tx, Incoming(text=f"turn {n} of the safe and of tea"))
            return admit(tx, Incoming(text=TEXT, meta={"caption": f"{WORD} caption"})).ref

        self.ref = self.store.write(ME, fill)
        self.part = self.store.write(ME, lambda tx: tx.part(HOME))
        project.project(self.store)

    def forget(self, ref: bytes | None = None) -> None:
        own = ref or self.ref
        self.store.write(ME, lambda tx: forget.forget(tx, self.part, own))

    def purge(self, **options: object) -> Purged:
        return sweep.run(self.store, ME, **options)  # type: ignore[arg-type]

    def found(self, query: str = WORD) -> list[bytes]:
        question = Question(query, Lens(time.time_ns() // 1000, "history"), mode="lexical")
        return [hit.ref for hit in Searcher(self.store, ME.grant, None).ask(question).hits]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "store")
    yield made
    made.store.close()


def grep(root: str, word: str = WORD) -> list[str]:
    """Files that hold a word in any of its forms: a search of its own."""
    forms = [word.encode(), word.upper().encode(), word.encode("utf-16-le")]
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            data = Path(folder, name).read_bytes()
            if any(form in data for form in forms):
                found.append(os.path.relpath(Path(folder, name), root))
    return sorted(found)


def sound(store: Store) -> bool:
    from remem.index.check import check

    report = verify(store, index_check=lambda _: check(store))
    return report.ok and not report.problems and not report.warnings


# -- gone ---------------------------------------------------------------------------------------


def test_a_purge_removes_the_word_from_every_file_and_proves_it(bench: Bench) -> None:
    root = bench.store.root
    assert grep(root) == ["canon/g1/data.mdb", "index/g1/terms/data.mdb"]  # the control
    assert bench.found() == [bench.ref]
    bench.forget()
    assert bench.found() == []
    assert grep(root) == ["canon/g1/data.mdb", "index/g1/terms/data.mdb"]  # it waits
    report = bench.purge()
    assert (report.refs, report.objects, report.observations) == ([bench.ref], 1, 1)
    assert report.left == ["index/g1", "canon/g1"] and report.generation == 2
    assert report.proof is not None
    assert report.proof.findings == [] and report.proof.needles >= 5
    assert report.proof.files >= 8
    assert report.proof.bytes == sum(p.stat().st_size for p in Path(root).rglob("*") if p.is_file())
    assert grep(root) == []
    assert sound(bench.store)
    assert bench.found() == [] and len(bench.found("safe tea")) == 10
    again = bench.purge()
    assert (again.refs, again.proof, again.generation) == ([], None, 2)


def test_terms_that_occur_nowhere_else_leave_the_dictionary(bench: Bench) -> None:
    def terms() -> set[bytes]:
        env = project.open_lexical(bench.store, write=False)
        assert env is not None
        with env.read() as txn:
            return {term for term, _ in lexical.vocabulary(txn, bench.part.number)}

    before = terms()
    assert WORD.encode() in before and b"tea" in before
    bench.forget()
    bench.purge()
    assert not any(WORD.encode() in term for term in terms())
    assert b"tea" in terms()


def test_only_what_is_named_goes_with_what_was_derived_from_it(bench: Bench) -> None:
    def more(tx: Tx) -> tuple[bytes, bytes]:
        other = admit(tx, Incoming(text="another flimflam secret")).ref
        memory = Memory(
            encode.ZERO_SALT, HOME, "fact", f"{WORD} opens it", None, [bench.ref], None,
            Deriver("rules"), 900, None, None, None, [], "", [], {},
        )  # fmt: skip
        ref = memories.create(tx, bench.part, memory, status="provisional", valid_from=None)
        assert ref is not None
        return other, ref

    other, memory = bench.store.write(ME, more)
    for ref in (bench.ref, other):
        bench.forget(ref)
    dry = bench.purge(only={bench.ref}, dry_run=True)
    assert set(dry.refs) == {bench.ref, memory} and (dry.observations, dry.memories) == (1, 1)
    assert bench.store.generation == 1
    report = bench.purge(only={bench.ref})
    assert report.refs == dry.refs
    assert grep(bench.store.root) == []
    assert grep(bench.store.root, "flimflam") == ["canon/g2/data.mdb"]  # its turn comes later
    with pytest.raises(NotFound):
        bench.purge(only={bench.ref})
    assert bench.purge().refs == [other]
    assert grep(bench.store.root, "flimflam") == []
    assert sound(bench.store)


def test_what_is_held_keeps_its_bytes(bench: Bench) -> None:
    bench.forget()
    bench.store.write(ME, lambda tx: holds.hold(tx, bench.part, bench.ref))
    report = bench.purge()
    assert (report.refs, report.held, report.proof) == ([], [bench.ref], None)
    assert grep(bench.store.root) != []
    bench.store.write(ME, lambda tx: holds.release(tx, bench.part, bench.ref))
    assert bench.purge().refs == [bench.ref]
    assert grep(bench.store.root) == []


def test_vectors_and_marks_go_too(bench: Bench) -> None:
    np = pytest.importorskip("numpy")
    from remem.index import embed
    from remem.index.dense import Dense, vector_folder
    from remem.index.vecfile import marks_of
    from remem.index.vectors import VectorIndex

    embedder = embed.resolve("hash", cache_dir=None)
    assert embedder is not None
    Dense(embedder).project(bench.store)
    number = 21  # the entry that brought it

    def index() -> VectorIndex:
        folder = vector_folder(bench.store, bench.part.number)
        return VectorIndex(
            folder, name=f"part {bench.part.number}", dim=embedder.dim, digest=embedder.digest
        )  # fmt: skip

    vector = index().get(number)
    assert vector is not None
    raw = np.rint(vector * 32767).astype("<i2").tobytes()
    root = Path(bench.store.root)
    holding = [p for p in root.rglob("*") if p.is_file() and raw in p.read_bytes()]
    assert [p.name.partition("-")[0] for p in holding] == ["rows"]  # the control
    mark = marks_of(np.frombuffer(raw, "<i2").reshape(1, -1)).tobytes()
    holding = [p for p in root.rglob("*") if p.is_file() and mark in p.read_bytes()]
    assert [p.name.partition("-")[0] for p in holding] == ["marks"]
    bench.forget()
    assert bench.purge().vectors == 1
    assert index().get(number) is None and index().count == 20
    assert not [p for p in root.rglob("*") if p.is_file() and raw in p.read_bytes()]
    assert not [p for p in root.rglob("*") if p.is_file() and mark in p.read_bytes()]
    assert index().verify() == []
    bench.store.write(ME, lambda tx: admit(tx, Incoming(text="and on it goes")))
    assert Dense(embedder).project(bench.store) == (1, 0)
    assert sound(bench.store)


def test_a_damaged_or_missing_index_is_no_obstacle(bench: Bench) -> None:
    bench.forget()
    terms = Path(project.lexical_path(bench.store)) / "data.mdb"
    terms.write_bytes(os.urandom(9000))
    (terms.parent / "SEAL").unlink()
    folder = Path(bench.store.index_path) / "vectors-1"
    folder.mkdir(mode=0o700)
    (folder / "HEAD").write_bytes(b"remem vectors 1\nnonsense" + WORD.encode())
    report = bench.purge()
    assert report.proof is not None and report.proof.findings == []
    assert grep(bench.store.root) == []
    assert bench.found("tea") and sound(bench.store)
    shutil.rmtree(Path(bench.store.root) / "index")
    bench.forget(bench.found("tea")[0])
    assert bench.purge().objects == 1
    assert sound(bench.store)


# -- the proof ----------------------------------------------------------------------------------


def removed(bench: Bench) -> list[encode.Obj]:
    with bench.store.read(maintenance_grant()) as reader:
        return purge.gather(reader, [(bench.part, bench.ref)]).objects


def test_the_proof_finds_what_was_not_removed(bench: Bench) -> None:
    """The positive control: the same scan, before the bytes are gone."""
    bench.forget()
    found = proof.prove(bench.store, removed(bench))
    assert {f.file for f in found.findings} == {"canon/g1/data.mdb", "index/g1/terms/data.mdb"}
    assert {"text", "word"} <= {f.form for f in found.findings}
    for finding in found.findings:
        data = (Path(bench.store.root) / finding.file).read_bytes()
        assert (
            data[finding.offset :]
            .lower()
            .startswith((b"the codeword", b"zorv", b"codeword", b"caption"))
        )


FORMS: dict[str, Callable[[str], bytes]] = {
    "text": lambda text: text.encode(),
    "NFD": lambda text: unicodedata.normalize("NFD", text).encode(),
    "UTF-16": lambda text: text.encode("utf-16-le"),
    "word": lambda text: text.split()[-1].encode(),
    "folded word": lambda text: text.split()[-1].casefold().encode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", ["spool/a.jsonl", "locks/stray", "config.toml", "index/x/y"])
def test_every_form_is_found_anywhere_under_the_store(
    tmp_path: Path, form: str, place: str
) -> None:
    store = Store.create(str(tmp_path / "store"))
    text = "le mot est Caf\u00e9-Zorv\u00e9xquark"
    ref = store.write(ME, lambda tx: admit(tx, Incoming(text=text)).ref)
    part = store.write(ME, lambda tx: tx.part(HOME))
    store.write(ME, lambda tx: forget.forget(tx, part, ref))
    with store.read(maintenance_grant()) as reader:
        objects = purge.gather(reader, [(part, ref)]).objects
    assert sweep.run(store, ME).proof == proof.prove(store, objects)  # nothing
    assert proof.prove(store, objects).findings == []
    path = Path(store.root) / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * 1000 + FORMS[form](text) + b"x")
    found = proof.prove(store, objects)
    if place == "config.toml" and "word" in form:  # a setting may hold a word, not a text
        assert found.findings == []
    else:
        assert {f.file for f in found.findings} == {place}
        assert min(f.offset for f in found.findings) == 1000
    store.close()


def test_words_that_a_store_is_made_of_are_no_findings(bench: Bench, tmp_path: Path) -> None:
    """A text of nothing but names of tables, statuses, actions, settings and backups."""
    text = "objects values audit chains owner create erase purge observation vectors hybrid monday"
    config = Path(bench.store.root) / "config.toml"
    config.write_text('[recall]\nmode = "hybrid"\n')
    backup.backup(bench.store, str(tmp_path / "monday"))
    ref = bench.store.write(ME, lambda tx: admit(tx, Incoming(text=text)).ref)
    with bench.store.read(maintenance_grant()) as reader:
        everything = [(p, r) for p in reader.parts for r, _ in reader.states(p)]
    bench.store.write(ME, lambda tx: forget.forget_many(tx, everything))
    report = bench.purge()
    assert ref in report.refs and len(report.refs) == 22
    assert report.proof is not None and report.proof.findings == []
    assert report.proof.living >= 11 and report.proof.needles > 20
    config.write_text(f"# {TEXT}\n")  # the control: a whole text is found there
    again = bench.store.write(ME, lambda tx: admit(tx, Incoming(text=TEXT + "2")).ref)
    bench.forget(again)
    config.write_text(f"# {TEXT}2\n")
    report = bench.purge()
    assert report.proof is not None
    assert {(f.file, f.form) for f in report.proof.findings} == {("config.toml", "text")}


def test_a_needle_across_two_pieces_of_a_file_is_found(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.forget()
    objects = removed(bench)
    bench.purge()
    monkeypatch.setattr(proof, "_CHUNK_B", 64)
    path = Path(bench.store.root) / "locks" / "stray"
    for at in (40, 60, 63, 64, 100, 200):
        path.write_bytes(b"." * at + TEXT.encode())
        found = [f for f in proof.prove(bench.store, objects).findings if f.form == "text"]
        assert [(f.file, f.offset) for f in found] == [("locks/stray", at)]


def test_what_lives_elsewhere_is_no_finding_and_is_counted(bench: Bench) -> None:
    twin = bench.store.write(ME, lambda tx: admit(tx, Incoming(text=TEXT, asserted=5)).ref)
    alias = msgspec.msgpack.encode(("Zorvexquarkish", "x"))
    key = bench.part.prefix + bytes(16)
    bench.store.write(ME, lambda tx: tx.txn.put("aliases", key, alias))
    bench.forget()
    report = bench.purge()
    assert report.proof is not None and report.proof.findings == []
    assert report.proof.living >= 4
    assert grep(bench.store.root) != []
    bench.store.write(ME, lambda tx: tx.txn.delete("aliases", key))
    bench.forget(twin)
    report = bench.purge()
    assert report.proof is not None and report.proof.findings == []
    assert report.proof.living < 4
    assert grep(bench.store.root) == []


def test_what_is_said_again_meanwhile_is_no_finding(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.store.write(ME, lambda tx: forget.forget(tx, bench.part, bench.ref, allow_return=True))
    real = proof._scan

    def scan(*args: object) -> object:
        bench.store.write(ME, lambda tx: admit(tx, Incoming(text=TEXT)))
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(proof, "_scan", scan)
    report = bench.purge()
    assert report.proof is not None and report.proof.findings == []
    assert grep(bench.store.root) != []  # the control: it was there to be found


def test_any_text_is_proved_gone_without_a_false_alarm(tmp_path: Path) -> None:
    """Nothing is found after a purge, nor was anything left: a search of its own agrees."""
    store = Store.create(str(tmp_path / "store"))
    store.write(ME, lambda tx: admit(tx, Incoming(text="what stays")))
    part = store.write(ME, lambda tx: tx.part(HOME))

    @settings(max_examples=25)
    @given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=60))
    def check(text: str) -> None:
        assume(text.strip())
        made = store.write(ME, lambda tx: admit(tx, Incoming(text=text)))
        assume(made.status == "new")
        project.project(store)
        store.write(ME, lambda tx: forget.forget(tx, part, made.ref))
        report = sweep.run(store, ME)
        assert report.proof is not None and report.proof.findings == []
        stored = encode.decode(encode.seal(_plain(text), bytes(32))[1]).text
        if len(stored) > 8 and stored not in "what stays":
            assert grep(store.root, stored) == []

    check()
    assert sound(store)
    store.close()


def test_without_numpy_a_sample_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needles, "find_spec", lambda name: None)
    monkeypatch.setattr(needles, "EACH_PLAIN", 50)
    store = Store.create(str(tmp_path / "store"))
    refs = store.write(
        ME, lambda tx: [admit(tx, Incoming(text=f"{WORD}{n:03} of many")).ref for n in range(100)]
    )
    part = store.write(ME, lambda tx: tx.part(HOME))
    store.write(ME, lambda tx: forget.forget_many(tx, [(part, ref) for ref in refs]))
    report = sweep.run(store, ME)
    assert report.proof is not None and report.proof.findings == []
    assert report.proof.needles == 50 and report.proof.sampled > 100
    store.close()


def test_thousands_are_proved_at_once(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    store = Store.create(str(tmp_path / "store"))
    dice = random.Random(3)
    words = [f"secret{dice.getrandbits(40):010x}" for _ in range(2000)]

    def fill(tx: Tx) -> list[bytes]:
        admit(tx, Incoming(text="what stays"))
        return [admit(tx, Incoming(text=f"number {w} of many")).ref for w in words]

    refs = store.write(ME, fill)
    part = store.write(ME, lambda tx: tx.part(HOME))
    project.project(store)
    store.write(ME, lambda tx: forget.forget_many(tx, [(part, ref) for ref in refs]))
    report = sweep.run(store, ME)
    assert report.proof is not None
    assert (report.objects, report.proof.findings, report.proof.sampled) == (2000, [], 0)
    assert report.proof.needles > 4000
    stray = Path(store.root) / "locks" / "stray"
    stray.write_bytes(b"x" * 70_000 + words[1234].encode())
    with store.read(maintenance_grant()) as reader:
        assert purge.waiting(reader) == []
    left = [encode.decode(encode.seal(_plain(f"number {w} of many"), bytes(32))[1]) for w in words]
    found = proof.prove(store, left).findings
    assert {(f.file, f.offset) for f in found} == {("locks/stray", 70_000)}
    store.close()


def _plain(text: str) -> encode.Obj:
    from remem.objects.model import Observation

    return Observation(
        encode.ZERO_SALT, HOME, None, text, "", "", "owner", None, None, None, None, "", {}
    )


def test_short_words_are_left_out_as_the_store_grows(bench: Bench) -> None:
    forms, short = proof._forms([_plain("abcde fghijk lmnopqrstu")], 1000)
    assert (b"abcde" in forms, short) == (True, 0)
    forms, short = proof._forms([_plain("abcde fghijk lmnopqrstu")], 1 << 33)
    assert (b"abcde" in forms, b"lmnopqrstu" in forms, short >= 1) == (False, True, True)


# -- the spool ----------------------------------------------------------------------------------


def test_lines_of_the_spool_are_blanked_in_place(bench: Bench) -> None:
    spool = Path(bench.store.root) / "spool" / "hook" / "one.jsonl"
    spool.parent.mkdir(mode=0o700)
    lines = [
        b'{"text": "kept line"}\n',
        b'{"text": "THE codeword of the safe is ZORVEXQUARK-71!"}\n',
        b'{"text": "x", "inner": ["the codeword of the safe is \\u007aorvexquark-71"]}\n',
        f"plain: {TEXT}, it says\n".encode(),
        b"not json {\n",
        b'{"text": "last", "no": "newline"}',
    ]
    spool.write_bytes(b"".join(lines))
    bench.forget()
    report = bench.purge()
    assert report.spool_lines == 3
    kept = spool.read_bytes()
    assert len(kept) == sum(map(len, lines))
    assert kept.split(b"\n")[0] + b"\n" == lines[0] and kept.endswith(lines[5])
    assert [line.strip() for line in kept.splitlines()[1:4]] == [b"", b"", b""]
    assert grep(bench.store.root) == []
    assert spooled.blank(bench.store.root, removed(bench)) == 0


# -- backups ------------------------------------------------------------------------------------


def test_backups_that_still_hold_it_are_named(bench: Bench, tmp_path: Path) -> None:
    def copy(name: str) -> str:
        return backup.backup(bench.store, str(tmp_path / name)).path

    late = bench.store.write(ME, lambda tx: admit(tx, Incoming(text="said later")).ref)
    one = copy("one")
    later = bench.store.write(ME, lambda tx: admit(tx, Incoming(text="said at last")).ref)
    for ref in (bench.ref, late, later):
        bench.forget(ref)
    two = copy("two")
    report = bench.purge()
    assert [(made.path, count) for made, count in report.backups] == [(one, 2), (two, 3)]
    copy("three")
    extra = bench.store.write(ME, lambda tx: admit(tx, Incoming(text="never copied")).ref)
    bench.forget(extra)
    assert bench.purge().backups == []
    assert len(grep(one)) == len(grep(two)) == 1  # as the report says
    assert grep(str(tmp_path / "three")) == []


# -- kills --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def forgotten(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which something waits for a purge, made once and copied for each kill."""
    made = Bench(tmp_path_factory.mktemp("kills") / "store")
    made.forget()
    made.store.close()
    return Path(made.store.root)


def in_child(root: Path, act: Callable[[Store], None]) -> int:
    """Fork a process that acts on a store and ends; its id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        act(Store(str(root)))
        code = 0
    except KeyboardInterrupt:
        code = 130
    finally:
        os._exit(code)


def purge_all(store: Store) -> None:
    sweep.run(store, ME)


def examine(root: Path) -> int:
    """What was left is a whole store; the next purge finishes the job. The generation found."""
    generation = read_generation(str(root))
    store = Store(str(root))
    report = verify(store)
    assert report.problems == []
    left = purge.others(str(root))
    with store.read(maintenance_grant()) as reader:
        waits = len(purge.waiting(reader))
    assert (generation, waits) in ((1, 1), (2, 0))
    written = store.write(ME, lambda tx: admit(tx, Incoming(text="and on it goes")).ref)
    there = purge.leftover(store).objects
    done = sweep.run(store, ME)
    if generation == 1 or there:
        assert done.proof is not None and done.proof.needles and not done.proof.findings
    assert done.finished == bool(left)
    assert grep(str(root)) == []
    assert purge.others(str(root)) == []
    assert sound(store)
    with store.read(maintenance_grant()) as reader:
        part = reader.parts[0]
        assert reader.state(part, written) is not None
        assert [t.purged is None for _, t in tombs.all_of(reader, part)] == [False]
    store.close()
    return generation


def test_kills_at_random_points(forgotten: Path, tmp_path: Path) -> None:
    """SIGKILL at 50 points in time, spread over the length of a purge."""
    dice = random.Random(50)
    lengths = []  # seconds
    for n in range(3):
        root = shutil.copytree(forgotten, tmp_path / f"whole-{n}")
        began = time.monotonic()
        os.waitpid(in_child(root, purge_all), 0)
        lengths.append(time.monotonic() - began)
        assert grep(str(root)) == []
    killed, seen = 0, set()
    longest = min(lengths)  # how long a purge takes here and now, as the kills find out
    for n in range(50):
        root = shutil.copytree(forgotten, tmp_path / f"kill-{n}")
        child = in_child(root, purge_all)
        time.sleep(dice.uniform(0, longest))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
        longest *= 1.05 if os.WIFSIGNALED(status) else 0.9
        seen.add(examine(root))
        shutil.rmtree(root)
    assert killed >= 20
    assert seen == {1, 2}


STEPS: list[tuple[str, str, int, int]] = [
    # module, function, call (from 0) before which the process is killed, generation left
    ("remem.index.sweep", "_drop_vectors", 0, 1),
    ("remem.index.project", "project", 0, 1),
    ("remem.index.sweep", "_projections", 0, 1),
    ("remem.objects.purge", "copy_table", 0, 1),
    ("remem.objects.purge", "copy_table", 5, 1),
    ("remem.objects.purge", "copy_table", 10, 1),
    ("remem.objects.purge", "copy_table", 23, 1),
    ("remem.objects.purge", "_record", 0, 1),
    ("remem.objects.purge", "flush", 0, 1),
    ("remem.objects.format", "write_file", 0, 1),
    ("remem.objects.purge", "sweep", 0, 2),
    ("shutil", "rmtree", 2, 2),
    ("shutil", "rmtree", 3, 2),
    ("os", "rmdir", 0, 2),
    ("remem.index.spooled", "blank", 0, 2),
    ("remem.index.proof", "prove", 0, 2),
    ("remem.index.sweep", "_backups", 0, 2),
]


@pytest.mark.parametrize(("module", "name", "at", "generation"), STEPS)
def test_kills_at_named_steps(
    forgotten: Path, tmp_path: Path, module: str, name: str, at: int, generation: int
) -> None:
    root = shutil.copytree(forgotten, tmp_path / "store")

    def act(store: Store) -> None:
        owner = sys.modules[module]
        real = getattr(owner, name)
        calls = iter(range(1 << 30))

        def call(*args: object, **options: object) -> object:
            if next(calls) == at:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        setattr(owner, name, call)
        sweep.run(store, ME)

    _, status = os.waitpid(in_child(root, act), 0)
    assert os.WIFSIGNALED(status), "the step was never reached"
    assert examine(root) == generation


def test_ctrl_c_leaves_nothing_behind(forgotten: Path, tmp_path: Path) -> None:
    root = shutil.copytree(forgotten, tmp_path / "store")

    def act(store: Store) -> None:
        real = purge.copy_table

        def slow(*args: object) -> None:
            real(*args)  # type: ignore[arg-type]
            time.sleep(0.2)

        purge.copy_table = slow  # type: ignore[assignment]
        sweep.run(store, ME)

    child = in_child(root, act)
    while not (root / "canon" / "g2").exists():
        time.sleep(0.005)
    os.kill(child, signal.SIGINT)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert sorted(p.name for p in (root / "canon").iterdir()) == ["g1"]
    assert examine(root) == 1


def test_a_full_disk_leaves_the_old_generation(forgotten: Path, tmp_path: Path) -> None:
    root = shutil.copytree(forgotten, tmp_path / "store")

    def act(store: Store) -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))  # less than the data file
        try:
            sweep.run(store, ME)
        except StoreFull:
            os._exit(7)

    _, status = os.waitpid(in_child(root, act), 0)
    assert os.waitstatus_to_exitcode(status) == 7
    assert purge.others(str(root)) == []
    assert examine(root) == 1


# -- others at work -----------------------------------------------------------------------------

READER = """
import sys, time
from remem.objects.scope import maintenance_grant
from remem.objects.store import Store
store = Store(sys.argv[1])
with store.read(maintenance_grant()) as reader:
    part = reader.parts[0]
    before = reader.txn.count("objects")
    text = lambda r: r.txn.get("objects", part.prefix + bytes.fromhex(sys.argv[2]))
    assert text(reader) is not None
    print("open", flush=True)
    sys.stdin.readline()
    assert reader.txn.count("objects") == before and text(reader) is not None
    assert sum(1 for _ in reader.txn.scan("audit")) > 20
with store.read(maintenance_grant()) as reader:
    assert text(reader) is None
    print(store.generation, reader.txn.count("objects") - before, flush=True)
"""

WRITER = """
import sys
from remem.objects.admit import admit
from remem.objects.model import Incoming, Scope
from remem.objects.scope import Actor, Grant
from remem.objects.store import Store
store = Store(sys.argv[1])
scope = Scope("local", "default", "home", "none", sys.argv[2])
me = Actor(Grant("owner", "local", "default", None, owner=True), "cli", scope)
n = 0
while True:
    ref = store.write(me, lambda tx: admit(tx, Incoming(text=f"{sys.argv[2]} {n}")).ref)
    print(ref.hex(), store.generation, flush=True)
    n += 1
"""

PROJECTOR = """
import sys
from remem.index import project
from remem.objects.store import Store
store = Store(sys.argv[1])
n = 0
while True:
    project.try_project(store)
    print(n, flush=True)
    n += 1
"""


def start(program: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_reader_process_reads_on_and_follows(bench: Bench) -> None:
    bench.forget()
    reader = start(READER, bench.store.root, bench.ref.hex())
    assert reader.stdout is not None and reader.stdout.readline() == "open\n"
    report = bench.purge()
    assert report.proof is not None and report.proof.findings == []
    assert grep(bench.store.root) == []
    out, _ = reader.communicate("go\n", timeout=30)
    assert (reader.returncode, out) == (0, "2 -1\n")


def test_writers_and_projectors_of_other_processes_go_on(bench: Bench) -> None:
    others = [
        start(WRITER, bench.store.root, "ann"),
        start(WRITER, bench.store.root, "bo"),
        start(PROJECTOR, bench.store.root),
    ]
    for other in others:
        assert other.stdout is not None and other.stdout.readline()
    for n in range(5):
        ref = bench.ref
        if n:
            text = f"the next codeword is {WORD}{n}"
            ref = bench.store.write(ME, lambda tx, t=text: admit(tx, Incoming(text=t)).ref)  # type: ignore[misc]
        bench.forget(ref)
        report = bench.purge()
        assert report.refs == [ref]
        assert report.proof is not None and report.proof.findings == []
    time.sleep(0.2)
    written: list[list[str]] = []
    for other in others:
        other.kill()
        assert other.stdout is not None
        written.append(other.stdout.read().splitlines())
        other.wait()
    assert grep(bench.store.root) == []
    project.project(bench.store)
    assert sound(bench.store)
    with bench.store.read(maintenance_grant()) as reader:
        for lines in written[:2]:
            whole = [line.split() for line in lines if len(line.split()) == 2]
            assert {generation for _, generation in whole} >= {"6"}
            for name, _ in whole:
                state = reader.state(bench.part, bytes.fromhex(name))
                assert state is not None


def test_a_projector_that_holds_its_lock_is_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.forget()
    monkeypatch.setattr(sweep, "WAIT_S", 0.2)
    with hold(bench.store.locks_path, project.LOCK), pytest.raises(StoreLocked):
        bench.purge()
    assert bench.store.generation == 1 and sound(bench.store)
    with hold(bench.store.locks_path, sweep.LOCK), pytest.raises(StoreLocked):
        bench.purge()
    assert bench.purge().refs == [bench.ref]


# -- recall against a model ---------------------------------------------------------------------


def test_recall_agrees_with_a_model_through_it_all(tmp_path: Path) -> None:
    """Add, forget, purge, say again: what was forgotten is never found, everything else is."""
    dice = random.Random(12)
    store = Store.create(str(tmp_path / "store"))
    part = store.write(ME, lambda tx: tx.part(HOME))
    living: dict[str, bytes] = {}
    gone: list[str] = []

    def search(word: str) -> list[bytes]:
        project.try_project(store)
        question = Question(word, Lens(time.time_ns() // 1000), mode="lexical")
        return [hit.ref for hit in Searcher(store, ME.grant, None).ask(question).hits]

    for step in range(400):
        roll = dice.random()
        if roll < 0.6 or not living:
            word = "".join(dice.choices("bcdfghklmnprstvw", k=10))
            text = f"{word} among the words"
            living[word] = store.write(ME, lambda tx, t=text: admit(tx, Incoming(text=t)).ref)  # type: ignore[misc]
        elif roll < 0.85:
            word = dice.choice(sorted(living))
            ref = living.pop(word)
            store.write(ME, lambda tx, r=ref: forget.forget(tx, part, r))  # type: ignore[misc]
            gone.append(word)
        elif roll < 0.95 and gone:
            text = f"{dice.choice(gone)} among the words"
            again = store.write(ME, lambda tx, t=text: admit(tx, Incoming(text=t)).status)  # type: ignore[misc]
            assert again == "blocked"
        elif roll > 0.97:
            report = sweep.run(store, ME)
            assert report.proof is None or report.proof.findings == []
        if step % 40 == 39:
            for word in dice.sample(sorted(living), min(6, len(living))):
                assert search(word)[0] == living[word]
            for word in dice.sample(gone, min(6, len(gone))):
                assert search(word) == []
    sweep.run(store, ME)
    assert not any(grep(store.root, word) for word in gone)
    assert all(search(word)[0] == ref for word, ref in living.items())
    assert sound(store)
    store.close()
