"""Cost of keeping a store: verification, memory, and what an installation weighs."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.bench import metrics
from tests.bench.data import ROOT
from tests.bench.process import LEXICAL_ONLY, CommandFailed, peak_memory
from tests.bench.report import note, table
from tests.bench.stand import Stand, data_file

ROUNDS = 3
LEAST_VERIFIED = 50_000.0  # objects a second
MOST_GROWTH = 1.5  # private memory at ten times the turns
INSTALLERS = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence")
INSTALL_TIMEOUT_S = 600.0


class _Checked(msgspec.Struct):
    checked: int


class _Verified(msgspec.Struct):
    ok: bool
    objects: _Checked


def verify(stand: Stand) -> None:
    """Check the whole large store, beside a loop that reads and hashes every value of it.

    Raises:
        CommandFailed: a command failed, or verify found a fault.
    """
    store = stand.indexed(stand.big)
    walls, scans, checked = [], [], 0
    for _ in range(ROUNDS):
        wall, out = stand.remem(store, "verify", "--json", extra=LEXICAL_ONLY)
        found = msgspec.json.decode(out, type=_Verified)
        if not found.ok:
            raise CommandFailed("verify found a fault in a fresh store")
        walls.append(wall)
        checked = found.objects.checked
        scans.append(stand.bare("scan", str(data_file(store))).seconds)
    rate = checked / metrics.median(walls)
    share = metrics.median([scan / wall for scan, wall in zip(scans, walls, strict=True)])
    note(f"{checked} objects in {metrics.median(walls):.2f} s; bare scan/verify {share:.3f}")
    stand.verdicts.judge(
        f"verify of {stand.big} turns, whole process",
        rate >= LEAST_VERIFIED and checked >= stand.big,
        f"{rate:,.0f} objects/s over {checked} objects",
        f">= {LEAST_VERIFIED:,.0f}",
    )


def memory(stand: Stand) -> None:
    """Peak memory of verify and of reindex over the small and the large store.

    The target is on private memory; the resident set also counts mapped pages of the store.

    Raises:
        CommandFailed: a command failed.
    """
    rows = []
    for words in (("verify",), ("reindex", "--lexical")):
        found = {}
        for turns in (stand.small, stand.big):
            store = stand.copy(stand.indexed(turns), "memory")
            env = stand.env(LEXICAL_ONLY)
            found[turns] = peak_memory(stand.words(store, *words), env, cwd=stand.home)
            rows.append(
                [
                    " ".join(words),
                    str(turns),
                    f"{found[turns].private / 1024:.1f}",
                    f"{found[turns].resident / 1024:.1f}",
                ]
            )
        growth = found[stand.big].private / max(found[stand.small].private, 1)
        stand.verdicts.judge(
            f"{' '.join(words)}: private memory at {stand.big} over {stand.small} turns",
            growth <= MOST_GROWTH,
            f"{growth:.2f}",
            f"<= {MOST_GROWTH}",
        )
    print(table(["command", "turns", "private MiB", "resident MiB"], rows))


def install(stand: Stand) -> None:
    """Install the checkout into a fresh environment and weigh it; needs a package index.

    Raises:
        CommandFailed: the installation failed.
    """
    place = stand.work / "installed"
    _call([sys.executable, "-m", "venv", str(place)])
    python = place / "bin" / "python"
    _call([str(python), "-m", "pip", "install", "--quiet", "--no-input", str(ROOT)])
    purelib = Path(
        _call(
            [str(python), "-I", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        ).strip()
    )
    size = sum(
        path.stat().st_size
        for top in purelib.iterdir()
        if not top.name.lower().startswith(INSTALLERS)
        for path in ([top] if top.is_file() else top.rglob("*"))
        if path.is_file()
    )
    names = sorted(
        found.name
        for found in importlib.metadata.distributions(path=[str(purelib)])
        if found.name.lower() not in INSTALLERS
    )
    note(f"install: {size / 1e6:.1f} MB in site-packages, {len(names)} packages")
    note(", ".join(names))


def _call(words: list[str]) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, check=True, timeout=INSTALL_TIMEOUT_S
        )
    except subprocess.CalledProcessError as failed:
        said = failed.stderr.strip().splitlines()
        raise CommandFailed(f"{words[1:4]}: {said[-1] if said else 'failed'}") from failed
    except subprocess.TimeoutExpired as slow:
        raise CommandFailed(f"{words[1:4]}: not done after {INSTALL_TIMEOUT_S:.0f} s") from slow
    return done.stdout
