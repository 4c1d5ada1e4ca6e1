"""Corrections: whether the old statement gives way, is kept, and nothing else is hidden.

Sets of facts with statements that contradict some of them, and questions in the words of the old
facts.  All facts lie in one collection.  Said with what they correct, the old ones must never come
back as current; said without, the order of the two is what can be measured.  Then a thousand facts
that look alike and contradict nobody: each must be found by its own words, and none be hidden.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from remem.hooks.deriving import named_times
from remem.index import project
from remem.index.recall import Answer, Hit, Question, Searcher
from remem.objects import chains, correct, instant, refs, statements
from remem.objects.admit import admit
from remem.objects.derive import engine
from remem.objects.encode import Obj
from remem.objects.model import Incoming, Memory, Scope
from remem.objects.scope import Actor, Grant, owner_grant
from remem.objects.store import Store
from remem.objects.views import CURRENT, Lens
from tests.bench.data import DEFAULT_DATA, Correction, corrections
from tests.bench.report import Verdicts, note, table, title

TOP = 5
DEPTH = 10
LOOK_ALIKES = 1000
LONG = 10_000  # revisions of one ref, facts of one chain
SEED = 20260301
DERIVERS = ("ledger", "rules")

_SCOPE = Scope("local", "default", "bench", "none", "main")
_ACTOR = Actor(Grant("owner", "local", "default", None, owner=True), "api", _SCOPE)


class Asked(msgspec.Struct):
    """One question: refs of the old statements and of the new one."""

    text: str
    stale: set[bytes]
    new: bytes


class Counts(msgspec.Struct):
    """What the answers to all questions held."""

    asked: int = 0
    stale_current: int = 0
    stale_shown: int = 0
    new_found: int = 0
    stale_in_history: int = 0
    new_first: int = 0
    hidden: int = 0


class Stand:
    """A store in a folder, written through the library as the commands write it."""

    def __init__(self, folder: Path) -> None:
        """Make an empty store."""
        self.store = Store.create(str(folder))
        self.searcher = Searcher(self.store, owner_grant(_SCOPE), None)

    def add(self, text: str, corrects: Sequence[bytes] = ()) -> bytes:
        """Take a statement in, in the place of others; its ref."""

        def change(tx):  # type: ignore[no-untyped-def]
            ref = admit(tx, Incoming(text=text)).ref
            for old in corrects:
                found = tx.reader.find(old.hex())
                if found.state.replaced_by is None:
                    correct.supersede(tx, found, ref, tx.now)
            return ref

        ref: bytes = self.store.write(_ACTOR, change)
        return ref

    def ready(self, derivers: Sequence[str]) -> None:
        """Derive and project what was written."""
        if derivers:
            engine.run(self.store, _ACTOR, tuple(derivers), resolve=named_times)
        project.project(self.store)

    def ask(self, text: str, view: str = "now") -> Answer:
        """Ask as the command does, without vectors."""
        lens = Lens(instant.now(), view)
        return self.searcher.ask(Question(text, lens, limit=DEPTH, mode="lexical"))

    def replaced(self, but: set[bytes] = frozenset()) -> set[bytes]:  # type: ignore[assignment]
        """Refs that something took the place of, or that ended, but for those drawn from some."""
        with self.store.read(_ACTOR.grant) as reader:
            return {
                ref
                for part in reader.parts
                for ref, state in reader.states(part)
                if state.replaced_by is not None or state.valid_to is not None
                if ref not in but and not but.intersection(_cited(reader.object(part, ref)))
            }


def _cited(obj: Obj) -> list[bytes]:
    return obj.cites if isinstance(obj, Memory) else []


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words after the name of the measurement.

    Returns:
        0; 1 with ``--check`` where a target was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench corrections", description="Measure corrections."
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the data")
    parser.add_argument("--check", action="store_true", help="exit 1 where a target is missed")
    args = parser.parse_args(argv)
    verdicts = Verdicts()
    if (args.data / "corrections").is_dir():
        sets = corrections(args.data)
        _said(sets, verdicts)
        _unsaid(sets, verdicts)
    else:
        print(f"data absent: '{args.data}' holds no corrections; nothing measured")
    _look_alikes(verdicts)
    _long_lives()
    return 1 if args.check and verdicts.missed else 0


# -- corrections --------------------------------------------------------------------------------


def _said(sets: list[Correction], verdicts: Verdicts) -> None:
    title("corrections, each said with what it corrects")
    with _stand() as stand:
        asked = _write(stand, sets, say=True)
        stand.ready(DERIVERS)
        found = _count(stand, asked)
    _show([("with --corrects", found)])
    share = found.new_found / found.asked
    kept = found.stale_in_history / found.asked
    verdicts.judge(
        "stale returned as current", not found.stale_current, str(found.stale_current), "0"
    )
    verdicts.judge(f"new in the first {TOP}", share >= 0.95, f"{share:.3f}", "0.95")
    verdicts.judge("stale found in history", kept >= 0.95, f"{kept:.3f}", "0.95")


def _unsaid(sets: list[Correction], verdicts: Verdicts) -> None:
    title("the same, nobody says what corrects what")
    rows = []
    for name, derivers in (("no deriver", ()), ("rules", DERIVERS)):
        with _stand() as stand:
            asked = _write(stand, sets, say=False)
            stand.ready(derivers)
            found = _count(stand, asked)
            right = {ref for one in asked for ref in one.stale}
            found.hidden = len(stand.replaced(right))
        rows.append((name, found))
    _show(rows)
    for name, found in rows:
        verdicts.judge(
            f"hidden and not contradicted, {name}", not found.hidden, str(found.hidden), "0"
        )
        note(f"{name}: new above stale in {found.new_first / found.asked:.3f} of the questions")


def _write(stand: Stand, sets: list[Correction], *, say: bool) -> list[Asked]:
    """Write all facts, then all contradicting statements."""
    written = [[stand.add(fact) for fact in one.facts] for one in sets]
    asked = []
    for one, refs_ in zip(sets, written, strict=True):
        for text, supporting, new in zip(
            one.questions, one.supporting, one.contradicting, strict=False
        ):
            stale = {refs_[index] for index in supporting}
            asked.append(Asked(text, stale, stand.add(new, sorted(stale) if say else ())))
    return asked


def _count(stand: Stand, asked: list[Asked]) -> Counts:
    found = Counts(asked=len(asked))
    for one in asked:
        hits = stand.ask(one.text).hits
        places: dict[bytes, int] = {}
        for place, hit in enumerate(hits):
            for ref in _said_by(hit):
                places.setdefault(ref, place)
        old = [places[ref] for ref in one.stale if ref in places]
        new = places.get(one.new)
        found.stale_shown += bool(old)
        found.stale_current += any(one.stale & _said_by(h) and h.truth == CURRENT for h in hits)
        found.new_found += new is not None and new < TOP
        found.new_first += new is not None and (not old or new < min(old))
        history = stand.ask(one.text, "history").hits
        found.stale_in_history += any(one.stale & _said_by(h) for h in history)
    return found


def _said_by(hit: Hit) -> set[bytes]:
    """The observations of a hit: itself, or those that a memory stands on."""
    return {hit.ref, *(cite.id for cite in hit.cites)}


def _show(rows: list[tuple[str, Counts]]) -> None:
    head = ["", "asked", "stale shown", "stale current", f"new in {TOP}", "new first", "in history"]
    print(
        table(
            head,
            [
                [
                    name,
                    str(c.asked),
                    str(c.stale_shown),
                    str(c.stale_current),
                    f"{c.new_found / c.asked:.3f}",
                    f"{c.new_first / c.asked:.3f}",
                    f"{c.stale_in_history / c.asked:.3f}",
                ]
                for name, c in rows
            ],
        ),
        flush=True,
    )


# -- facts that look alike ----------------------------------------------------------------------


def look_alikes(count: int, seed: int = SEED) -> list[str]:
    """Distinct facts from few templates, none of which contradicts another."""
    rng = random.Random(seed)
    first = (
        "Zoe Adam Mira Jonas Lena Theo Ida Oskar Nora Felix Emma Paul Rosa Hugo Clara Anton".split()
    )
    last = (
        "Kovac Brandt Lindqvist Moreau Tanaka Okafor Silva Novak Petrov Haas Duarte Weiss".split()
    )
    cities = "Turin Ghent Porto Graz Lund Split Brno Bergen Cork Nantes Basel Gdansk Leeds".split()
    things = "billing search ledger gateway mailer archive scheduler relay indexer monitor".split()
    stages = "staging production preview nightly canary".split()

    def person() -> str:
        return f"{rng.choice(first)} {rng.choice(last)}"

    makers: list[Callable[[], tuple[str, str]]] = [
        lambda: (p := person(), f"{p} lives in {rng.choice(cities)}"),
        lambda: (  # somebody may move many times, each in another year
            key := f"move {person()} {rng.randint(1990, 2025)}",
            f"{key.split()[1]} {key.split()[2]} moved to {rng.choice(cities)} in {key.split()[3]}",
        ),
        lambda: (
            key := f"work {person()} {(start := rng.randint(1980, 2020))} {start + 3}",
            f"{key.split()[1]} {key.split()[2]} worked at {rng.choice(things).title()} from "
            f"{key.split()[3]} to {key.split()[4]}",
        ),
        lambda: (
            key := f"budget {rng.choice(cities)} {rng.randint(2015, 2034)}",
            f"The budget of the {key.split()[1]} office for {key.split()[2]} is "
            f"{rng.randint(10, 990)} thousand euros",
        ),
        lambda: (
            key := f"port {rng.choice(stages)} {rng.choice(things)}",
            f"The {key.split()[1]} {key.split()[2]} answers on port {rng.randint(1024, 65000)}",
        ),
        lambda: (
            key := f"host {rng.choice(stages)} {rng.choice(things)}",
            f"The {key.split()[1]} {key.split()[2]} host is {rng.choice(cities).lower()}-"
            f"{rng.randint(1, 99)}",
        ),
        lambda: (
            key := f"since {rng.choice(cities)} {rng.choice(things)}",
            f"The {key.split()[2]} team in {key.split()[1]} was founded in "
            f"{rng.randint(1990, 2025)}",
        ),
        lambda: (
            key := f"met {person()} {person()} {rng.randint(2001, 2025)}",
            f"{key.split()[1]} {key.split()[2]} met {key.split()[3]} {key.split()[4]} in "
            f"{key.split()[5]}",
        ),
        lambda: (
            key := f"visit {person()} {rng.choice(cities)} {rng.randint(2001, 2025)}",
            f"{key.split()[1]} {key.split()[2]} visited {key.split()[3]} in {key.split()[4]}",
        ),
    ]
    made: dict[str, str] = {}
    texts: set[str] = set()
    while len(made) < count:
        key, text = rng.choice(makers)()
        if key not in made and text not in texts:
            made[key] = text
            texts.add(text)
    return list(made.values())


def _look_alikes(verdicts: Verdicts) -> None:
    title(f"{LOOK_ALIKES:,} facts that look alike, none of them a correction")
    rows = []
    for name, derivers in (("no deriver", ()), ("rules", DERIVERS)):
        with _stand() as stand:
            facts = look_alikes(LOOK_ALIKES)
            written = [(text, stand.add(text)) for text in facts]
            stand.ready(derivers)
            ended = stand.replaced()
            replaced = {ref for _, ref in written} & ended
            missing = [text for text, ref in written if not _found(stand, text, ref)]
            with stand.store.read(_ACTOR.grant) as reader:
                memories = sum(
                    state.type == refs.MEMORY
                    for part in reader.parts
                    for _, state in reader.states(part)
                )
        counts = (len(facts), memories, len(ended - replaced), len(missing), len(replaced))
        rows.append([name, *map(str, counts)])
        verdicts.judge(
            f"false hides, {name}",
            not missing and not replaced,
            f"{len(missing)} not found, {len(replaced)} replaced",
            "0",
        )
        for text in missing[:5]:
            note(f"not found: {text}")
    note("a memory ends where the next one of its chain begins; the statement itself stays true")
    head = ["", "facts", "memories", "of them ended", f"not current in {TOP}", "facts replaced"]
    print(table(head, rows))


def _found(stand: Stand, text: str, ref: bytes) -> bool:
    """Whether a fact is among the first hits for its own text, and said to hold."""
    hits = stand.ask(text).hits[:TOP]
    return any(ref in _said_by(hit) and hit.truth == CURRENT for hit in hits)


# -- long lives ---------------------------------------------------------------------------------


def _long_lives() -> None:
    title(f"{LONG:,} revisions of one ref, {LONG:,} facts of one chain")
    with _stand() as stand:
        ref = stand.add("the counter stands at 0")

        def revise(tx, start, stop):  # type: ignore[no-untyped-def]
            for number in range(start, stop):
                correct.revise(tx, tx.reader.find(ref.hex()), f"the counter stands at {number}")

        for start in range(1, LONG, 1000):
            stand.store.write(_ACTOR, lambda tx, s=start: revise(tx, s, s + 1000))  # type: ignore[misc]
        _times(stand, ref, "one ref", "where does the counter stand")
    with _stand() as stand:
        day = 86_400_000_000

        def state(tx, start, stop):  # type: ignore[no-untyped-def]
            held = chains.Held()
            for number in range(start, stop):
                fact = statements.Fact(
                    triple=("meter", "state", f"level {number}"),
                    text=f"the meter has level {number}",
                    starts=number * day,
                )
                done = statements.state(tx, _SCOPE, fact, held=held)
            return done.ref

        began = time.perf_counter()
        for start in range(0, LONG, 1000):
            last = stand.store.write(_ACTOR, lambda tx, s=start: state(tx, s, s + 1000))  # type: ignore[misc]
        note(f"stating {LONG:,} facts of one chain: {time.perf_counter() - began:.1f} s")
        began = time.perf_counter()
        last = stand.store.write(_ACTOR, lambda tx: state(tx, LONG, LONG + 1))
        note(f"stating one more: {1000 * (time.perf_counter() - began):.0f} ms")
        _times(stand, last, "one chain", "which level has the meter")


def _times(stand: Stand, ref: bytes, what: str, question: str) -> None:
    began = time.perf_counter()
    project.project(stand.store)
    projected = time.perf_counter() - began
    began = time.perf_counter()
    with stand.store.read(_ACTOR.grant) as reader:
        found = reader.find(ref.hex())
        count = sum(1 for _ in reader.entries(found.part, found.state))
    logged = time.perf_counter() - began
    took = {}
    for view in ("now", "history"):
        stand.ask(question, view)
        began = time.perf_counter()
        answer = stand.ask(question, view)
        took[view] = time.perf_counter() - began
        assert answer.hits
    note(
        f"{what}: projecting {projected:.2f} s, log ({count:,} entries) {1000 * logged:.0f} ms, "
        f"recall {1000 * took['now']:.0f} ms, with history {1000 * took['history']:.0f} ms"
    )


def _stand() -> _Opened:
    return _Opened()


class _Opened:
    """A stand in a temporary folder."""

    def __enter__(self) -> Stand:
        self._folder = tempfile.TemporaryDirectory(prefix="remem-bench-")
        return Stand(Path(self._folder.name) / "store")

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()
