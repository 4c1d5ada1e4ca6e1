"""Clean text as tools of agents bring it: source, documentation, listings, data, changes, talk.

Most of it is what every machine with a Python has; nothing of it is an attack, so whatever of it is
held back is held back wrongly.

Source: the standard library and the packages of this environment; LoCoMo (measured, not copied).
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import sysconfig
from importlib.metadata import distributions
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SEED = 11
LARGEST = 100_000  # bytes of a file
EACH = 120  # texts of a kind
_LISTINGS = (
    ("ls", "-la", "/usr/bin"),
    ("ls", "-laR", "/etc"),
    ("env",),
    ("ps", "aux"),
    ("df", "-h"),
    ("mount",),
    (sys.executable, "-m", "pip", "--help"),
    (sys.executable, "-m", "pip", "list"),
    (sys.executable, "-m", "pytest", "--help"),
    (sys.executable, "-m", "pydoc", "json"),
    (sys.executable, "-X", "importtime", "-c", "import json"),
    (sys.executable, "-c", "import nothing_of_this_name"),
    ("git", "--help"),
    ("tar", "--help"),
    ("sort", "--help"),
)


def tool_texts(shared: Path | None = None) -> dict[str, list[str]]:
    """Texts of each kind.

    Args:
        shared: folder of data that is measured only, or None.
    """
    rng = random.Random(SEED)
    own = Path(sysconfig.get_paths()["stdlib"])
    packages = Path(sysconfig.get_paths()["purelib"])
    source = _files(rng, own.glob("*.py"), own.glob("*/*.py"), packages.glob("*/*.py"))
    readmes = [text for text in (_readme(dist) for dist in distributions()) if len(text) > 400]
    listings = _listings()
    data = _files(rng, packages.glob("**/*.json"), packages.glob("**/*.csv"))
    diffs = _diffs(Path(__file__).parent)
    found = {
        "source files": source,
        "parts of source files": _parts(rng, source),
        "readmes": readmes[:EACH],
        "paragraphs": _paragraphs(rng, readmes),
        "listings": listings,
        "parts of listings": _parts(rng, listings),
        "data": data,
        "parts of data": _parts(rng, data),
        "parts of changes": _parts(rng, diffs),
    }
    if shared is not None:
        found["talk"], found["sessions"] = _talk(rng, shared)
    return {kind: texts for kind, texts in found.items() if texts}


def _files(rng: random.Random, *found: Iterable[Path]) -> list[str]:
    paths = sorted({path for some in found for path in some if path.is_file()})
    rng.shuffle(paths)
    texts: list[str] = []
    for path in paths:
        if len(texts) == EACH:
            break
        if 200 < path.stat().st_size < LARGEST:
            try:
                texts.append(path.read_text("utf-8"))
            except UnicodeDecodeError:
                continue
    return texts


def _readme(dist: object) -> str:
    text = getattr(dist, "metadata", {}).get_payload() if hasattr(dist, "metadata") else ""
    return text if isinstance(text, str) else ""


def _parts(rng: random.Random, texts: Sequence[str]) -> list[str]:
    """Four to forty lines of each of some texts."""
    found = []
    for _ in range(EACH if texts else 0):
        lines = rng.choice(texts).split("\n")
        count = rng.randint(4, 40)
        begin = rng.randrange(max(1, len(lines) - count))
        part = "\n".join(lines[begin : begin + count])
        if part.strip():
            found.append(part)
    return found


def _paragraphs(rng: random.Random, texts: Sequence[str]) -> list[str]:
    every = [part for text in texts for part in re.split(r"\n\s*\n", text) if len(part) > 60]
    rng.shuffle(every)
    return every[: 2 * EACH]


def _listings() -> list[str]:
    found = []
    for words in _LISTINGS:
        try:
            done = subprocess.run(words, capture_output=True, check=False, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            continue
        text = (done.stdout + done.stderr).decode("utf-8", "replace")[:LARGEST]
        if len(text) > 80:
            found.append(text)
    return found


def _diffs(folder: Path) -> list[str]:
    """Changes of this repository, where it is one."""
    words = ("git", "log", "-p", "-30", "--format=commit %h%n%n    %s%n%n    %b")
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    text = done.stdout.decode("utf-8", "replace")
    return [f"diff --git {part}"[:LARGEST] for part in text.split("diff --git ")[1:]]


def _talk(rng: random.Random, shared: Path) -> tuple[list[str], list[str]]:
    turns: list[str] = []
    sessions: list[str] = []
    for sample in json.loads((shared / "locomo" / "locomo-dev.json").read_text("utf-8")):
        for name, session in sample["conversation"].items():
            if re.fullmatch(r"session_\d+", name):
                turns += [turn["text"] for turn in session]
                sessions.append("\n".join(f"{t['speaker']}: {t['text']}" for t in session))
    rng.shuffle(turns)
    return turns[: 4 * EACH], sessions
