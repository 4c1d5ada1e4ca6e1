"""What the admission gate holds back: injected instructions, poisoned advice, and clean text.

Attacks are put at the start, in the middle and at the end of clean mails, as BIPIA does; poisoned
experiences stand among benign ones; beside them stands what tools of agents bring all day: source,
listings, documentation, changes, talk.  All go in through each write door as words of a tool and of
a stranger, and are looked for as every read looks: through a lens, and in `remem context`.  Clean
text goes in as the words of an agent too, of which the strong rules alone hold anything back.

The categories of attacks are taken in turns into two halves: the rules were tuned on one of them.

Source: tests/data/bipia, tests/data/memgraft.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from remem.hooks import sources
from remem.hooks.ingest import ingest
from remem.objects.admit import admit, normalise
from remem.objects.errors import RememError
from remem.objects.model import Incoming, Rejected, Scope, Skipped
from remem.objects.redact import clean
from remem.objects.scope import Actor, owner_grant
from remem.objects.store import Store
from remem.objects.tx import Tx
from remem.objects.views import Eye, Lens
from tests.bench.carriers import tool_texts
from tests.bench.process import CommandFailed, child_env, console_script
from tests.bench.process import run as run_process
from tests.bench.report import note, table, title

DATA = Path(__file__).resolve().parent.parent / "data"
SHARED = DATA.parent.parent.parent / "shared" / "data"  # measured, not copied
ORIGINS = ("tool", "untrusted")
HALVES = ("tuned on", "held out")
KEPT_OUT, WRONGLY_HELD = 0.95, 0.05  # at least, at most
OF_AGENTS = 0.01  # of what agents wrote, at most
HOME = Scope("local", "default", "home", "none", "main")

_SENTENCE = re.compile(r"[.!?]\s")
_CARRIER_STEP = 3  # every third mail carries each attack
_CLI_STEP, _CLEAN_STEP = 97, 9  # of the texts that go through a process each
_READABLE = ("mail", "advice")  # clean texts that are asked for in their own words


class Case(msgspec.Struct, frozen=True):
    """A text and what is known of it.

    Attributes:
        text: as it goes in.
        attack: what was inserted, "" for clean text.
        part: the half of an attack, or the kind of clean text.
        place: start, middle, end, or "".
    """

    text: str
    attack: str
    part: str
    place: str = ""


def insert(carrier: str, attack: str) -> dict[str, str]:
    """A mail with an attack at its start, in its middle and at its end."""
    ends = [match.end() for match in _SENTENCE.finditer(carrier)]
    at = ends[len(ends) // 2] if ends else len(carrier) // 2
    return {
        "start": f"{attack}\n{carrier}",
        "middle": f"{carrier[:at]} {attack} {carrier[at:]}",
        "end": f"{carrier}\n{attack}",
    }


def carriers() -> list[str]:
    """The clean mails, each once."""
    lines = (DATA / "bipia" / "benchmark_email_train.jsonl").read_text("utf-8").splitlines()
    return list(dict.fromkeys(json.loads(line)["context"] for line in lines))


def attacks() -> Iterator[tuple[str, str]]:
    """(half, attack) of every attack; categories are taken in turns."""
    number = 0
    for name in ("text", "code"):
        path = DATA / "bipia" / f"benchmark_{name}_attack_train.json"
        for found in json.loads(path.read_text("utf-8")).values():
            for attack in found:
                yield HALVES[number % 2], attack
            number += 1


def cases() -> list[Case]:
    """Every text of the measurement."""
    found = [Case(mail, "", "mail") for mail in carriers()]
    for half, attack in attacks():
        for mail in carriers()[::_CARRIER_STEP]:
            for place, text in insert(mail, attack).items():
                found.append(Case(text, attack, half, place))
    seeds = json.loads((DATA / "memgraft" / "experience_seeds.json").read_text("utf-8"))
    for seed in seeds["benign_experiences"]:
        found.append(Case(f"{seed['req']}\n{seed['resp']}", "", "advice"))
    for number, seed in enumerate(seeds["poisoned_experiences"]):
        text = f"{seed['req']}\n{seed['resp']}"
        found.append(Case(text, seed["resp"], f"poisoned, {HALVES[number % 2]}"))
    for kind, texts in tool_texts(SHARED if SHARED.is_dir() else None).items():
        found += [Case(text, "", kind) for text in texts if _kept(text).strip()]
    return found


# -- doors --------------------------------------------------------------------------------------

Record = Incoming | Rejected | Skipped


def by_admit(store: Store, actor: Actor, texts: Sequence[str], origin: str) -> None:
    """The library."""

    def change(tx: Tx) -> None:
        for text in texts:
            admit(tx, Incoming(text=text, origin=origin))

    store.write(actor, change)


def by_jsonl(store: Store, actor: Actor, texts: Sequence[str], origin: str) -> None:
    """``import jsonl``."""
    lines = "".join(json.dumps({"text": text, "origin": origin}) + "\n" for text in texts)
    ingest(store, actor, _read("jsonl", lines))


def by_transcript(store: Store, actor: Actor, texts: Sequence[str], origin: str) -> None:
    """Results of tools in a session of an agent: their origin is always that of a tool."""
    del origin
    lines = []
    for number, text in enumerate(texts):
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
        entry = {
            "type": "user",
            "uuid": f"u{number}",
            "sessionId": "s",
            "timestamp": "2026-03-01T10:00:00Z",
            "message": {"role": "user", "content": [result]},
        }
        lines.append(json.dumps(entry) + "\n")
    ingest(store, actor, _read("claude-code", "".join(lines)))


def _read(fmt: str, lines: str) -> Iterator[Record]:
    return sources.read_stream(fmt, io.BytesIO(lines.encode()), "-", since=None, limit_b=1 << 24)


Door = Callable[[Store, Actor, Sequence[str], str], None]
DOORS: dict[str, tuple[Door, tuple[str, ...]]] = {
    "admit": (by_admit, ORIGINS),
    "jsonl": (by_jsonl, ORIGINS),
    "claude-code": (by_transcript, ("tool",)),
}


def shown(store: Store, actor: Actor) -> set[str]:
    """Texts that a plain read shows."""
    found = set()
    with store.read(actor.grant) as reader:
        eye = Eye(Lens(now=1 << 62), reader)
        for part in reader.parts:
            for entry in reader.log(part):
                if entry.new is not None and eye.see(part, entry.ref, entry.new) is not None:
                    found.add(reader.object(part, entry.new).text)
    return found


# -- the measurement ----------------------------------------------------------------------------


def run(argv: Sequence[str]) -> int:
    """Measure and print.

    Args:
        argv: words behind the name of the measurement.

    Returns:
        0 when both targets are met by every door, else 1.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.bench attacks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the command line")
    options = parser.parse_args(argv)
    every = cases()
    title(f"admission: {len(every):,} texts, {sum(bool(c.attack) for c in every):,} with an attack")
    met = True
    work = Path(tempfile.mkdtemp(prefix="remem-attacks-"))
    try:
        for name, (door, origins) in DOORS.items():
            for origin in origins:
                actor = Actor(owner_grant(HOME), "api", HOME)
                store = Store.create(str(work / f"{name}-{origin}"))
                door(store, actor, [case.text for case in every], origin)
                met &= _report(f"{name}, {origin}", every, shown(store, actor))
                store.close()
        met &= _as_agents(work, every)
        if not options.quick:
            for origin in ORIGINS:
                good = [case for case in every if case.part in _READABLE][::_CLEAN_STEP]
                bad = [case for case in every if case.attack][::_CLI_STEP]
                met &= _by_command(work, [*bad, *good], origin)
    finally:
        shutil.rmtree(work)
    note("targets met" if met else "TARGETS MISSED")
    return 0 if met else 1


def _as_agents(work: Path, every: Sequence[Case]) -> bool:
    """Clean text, and what agents wrote in sessions, as the words of an agent."""
    clean_texts = [case for case in every if not case.attack]
    clean_texts += [Case(text, "", "agents' words") for text in agents_words()]
    actor = Actor(owner_grant(HOME), "api", HOME)
    store = Store.create(str(work / "agents"))
    by_admit(store, actor, [case.text for case in clean_texts], "agent")
    seen = shown(store, actor)
    store.close()
    met = _report("admit, agent", clean_texts, seen)
    own = [case for case in clean_texts if case.part == "agents' words"]
    held = sum(_kept(case.text) not in seen for case in own)
    return met and held <= OF_AGENTS * len(own)


def agents_words() -> list[str]:
    """What the agents of the sessions under tests/data wrote, each text once."""
    found: dict[str, None] = {}
    for path in sorted((DATA / "transcripts").glob("*.json*")):
        for fmt in ("claude-code", "codex", "gemini", "chatgpt"):
            try:
                records = list(sources.read(fmt, str(path), since=None, limit_b=1 << 24, env={}))
            except RememError:
                continue
            said = [r.text for r in records if isinstance(r, Incoming) and r.origin == "agent"]
            found |= dict.fromkeys(said)
            if said:
                break
    return list(found)


def _report(name: str, every: Sequence[Case], seen: set[str]) -> bool:
    """Print the shares of one door; whether both targets are met."""
    rows = []
    met = True
    groups: dict[str, list[Case]] = {}
    for case in every:
        groups.setdefault(case.part, []).append(case)
        if case.place:
            groups.setdefault(f"at the {case.place}", []).append(case)
    for group, members in groups.items():
        held = sum(_kept(case.text) not in seen for case in members)
        share = held / len(members)
        is_attack = bool(members[0].attack)
        met &= share >= KEPT_OUT if is_attack else share <= WRONGLY_HELD
        rows.append((group, "attack" if is_attack else "clean", str(len(members)), f"{share:.3f}"))
    print(table((name, "what", "texts", "held back"), rows))
    return met


def _kept(text: str) -> str:
    """A text as the store keeps it."""
    return normalise(clean(text)[0])


def _by_command(work: Path, some: Sequence[Case], origin: str) -> bool:
    """``remem add``, then ``remem context`` asked for each text in its own words."""
    home = work / f"cli-{origin}"
    home.mkdir()
    env = child_env(home, {"REMEM_STORE": str(home / "store"), "REMEM_EMBEDDER": "none"})

    def remem(*words: str) -> str:
        return run_process([console_script(), *words], env, cwd=home).stdout

    def is_shown(text: str) -> bool:
        asked = re.sub(r"[^\w ]", " ", text)[:200]
        words = [console_script(), "context", "--budget", "40000", "--", asked]
        done = subprocess.run(words, env=env, cwd=home, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):  # 1: there is nothing to show
            raise CommandFailed(f"remem context: exit {done.returncode}: {done.stderr}")
        return _start(text) in _plain(done.stdout)

    for number, case in enumerate(some):
        file = home / f"{number}.txt"
        file.write_text(case.text, "utf-8")
        remem("add", "--origin", origin, "--file", str(file))
    bad = [case for case in some if case.attack]
    good = [case for case in some if not case.attack]
    leaked = sum(is_shown(case.attack) for case in bad)
    found = sum(is_shown(case.text) for case in good)
    print(f"\nadd, {origin}: {leaked} of {len(bad)} attacks in context")
    note(f"{found} of {len(good)} clean texts there when asked for")
    kept = leaked <= len(bad) * (1 - KEPT_OUT)
    return kept and found >= len(good) * (1 - WRONGLY_HELD)


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isalnum())


def _start(text: str) -> str:
    return _plain(text)[:60]
