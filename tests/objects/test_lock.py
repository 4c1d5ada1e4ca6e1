"""Advisory locks: one holder, freed by the kernel whatever happens to it."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from remem.objects.errors import StoreError, StoreLocked, StoreReadOnly
from remem.objects.lock import hold

W = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("_workers.py"))))


def holder(folder: Path) -> subprocess.Popen[str]:
    process: subprocess.Popen[str] = W.start("hold-lock", folder, "job")
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    folder = str(tmp_path / "locks")
    with hold(folder, "job"):
        with pytest.raises(StoreLocked, match="job"), hold(folder, "job"):
            pytest.fail("held twice")
        with hold(folder, "other"):
            pass
    with hold(folder, "job"):
        pass


def test_shared_holders(tmp_path: Path) -> None:
    folder = str(tmp_path / "locks")
    with hold(folder, "job", shared=True), hold(folder, "job", shared=True):
        with pytest.raises(StoreLocked), hold(folder, "job"):
            pytest.fail("held besides readers")
    with hold(folder, "job"), pytest.raises(StoreLocked), hold(folder, "job", shared=True):
        pytest.fail("shared besides its holder")


def test_it_is_free_again_after_an_error(tmp_path: Path) -> None:
    folder = str(tmp_path / "locks")
    with pytest.raises(KeyError), hold(folder, "job"):
        raise KeyError
    with hold(folder, "job"):
        pass


def test_waiting_gets_it_as_soon_as_it_is_free(tmp_path: Path) -> None:
    folder = str(tmp_path / "locks")
    got: list[float] = []

    def wait() -> None:
        with hold(folder, "job", wait_s=10):
            got.append(time.monotonic())

    with hold(folder, "job"):
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.1)
        assert not got
        freed = time.monotonic()
    thread.join()
    assert 0 <= got[0] - freed < 1
    began = time.monotonic()
    with hold(folder, "job"), pytest.raises(StoreLocked), hold(folder, "job", wait_s=0.2):
        pytest.fail("held twice")
    assert 0.2 <= time.monotonic() - began < 2


def test_a_killed_holder_leaves_nothing(tmp_path: Path) -> None:
    """C18: the next one takes over at once; the file that stays behind means nothing."""
    folder = tmp_path / "locks"
    process = holder(folder)
    with pytest.raises(StoreLocked), hold(str(folder), "job"):
        pytest.fail("held twice")
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (folder / "job").exists()
    began = time.monotonic()
    with hold(str(folder), "job"):
        assert time.monotonic() - began < 0.5
    # A file that is only there, with the number of a living process in it, locks nothing.
    (folder / "job").write_text(f"{os.getpid()}\n")
    with hold(str(folder), "job"):
        pass


def test_a_child_without_the_lock_does_not_free_it(tmp_path: Path) -> None:
    """A program started by the holder does not inherit the lock."""
    folder = tmp_path / "locks"
    with hold(str(folder), "job"):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
        with pytest.raises(StoreLocked), hold(str(folder), "job"):
            pytest.fail("held twice")
    with hold(str(folder), "job"):  # though the child still runs
        assert child.poll() is None
    child.kill()
    child.wait()


def test_modes_and_errors(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with hold(str(tmp_path / "x" / "locks"), "job"):
            pass
    finally:
        os.umask(old)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "x" / "locks").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "x" / "locks" / "job").stat().st_mode & 0o777 == 0o600
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot lock"), hold(str(tmp_path / "file"), "job"):
        pytest.fail("held in a file")
    with pytest.raises(StoreReadOnly), hold("/sys/remem", "job"):
        pytest.fail("held in a place where nothing can be made")
