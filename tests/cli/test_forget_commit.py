"""Forgetting a commit forgets what it changed as well."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.conftest import Runner


def _git(folder: Path, *words: str) -> None:
    made = {"GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder), "PATH": "/usr/bin:/bin"}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, env=made, check=True, capture_output=True)


def test_a_forgotten_commit_takes_its_outline_along(run: Runner, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    _git(folder, "init", "-q")
    for name in ("marmalade", "quince"):
        (folder / f"{name}.py").write_text(f"def boil_{name}():\n    return 1\n")
        _git(folder, "add", ".")
        _git(folder, "commit", "-q", "-m", f"cook {name}")
    run("import", "git", folder, code=0, cwd=folder)

    def outlines() -> list[str]:
        hits = run("recall", "--json", "--kind", "diff", "boil_marmalade boil_quince", cwd=folder)
        return sorted(hit["text"] for hit in hits.json["hits"])

    assert len(outlines()) == 2
    found = run("recall", "--json", "--kind", "commit", "cook marmalade", cwd=folder).json["hits"]
    run("forget", found[0]["id"], code=0, cwd=folder)
    left = outlines()
    assert len(left) == 1 and "boil_quince" in left[0]
