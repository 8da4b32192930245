"""Locks of folders."""

import os
import signal
import subprocess
import sys

import pytest

from pathdex.errors import StorageError
from pathdex.storage.folder_lock import LOCK, folder_lock

HOLD = """
import sys, time
from pathlib import Path
from pathdex.storage.folder_lock import folder_lock
with folder_lock(Path(sys.argv[1]), "a test"):
    print("locked", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "locked\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_owner_is_told_who_the_first_is(tmp_path, holder):
    with pytest.raises(StorageError, match=f"in use by a test \\(process {holder.pid} on "), folder_lock(tmp_path, "x"):
        pass


def test_a_killed_owner_leaves_no_lock(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with folder_lock(tmp_path, "x"):
        assert "x" in (tmp_path / LOCK).read_text()


def test_a_lock_can_be_taken_again_and_creates_its_folder(tmp_path):
    for _ in range(2):
        with folder_lock(tmp_path / "new", "x"):
            pass


def test_a_damaged_lock_file_still_locks(tmp_path, holder):
    (tmp_path / LOCK).write_text("{")
    with pytest.raises(StorageError, match="in use by another process"), folder_lock(tmp_path, "x"):
        pass


def test_a_link_or_a_pipe_is_no_lock_and_nothing_outside_is_written(tmp_path):
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    other.write_text("kept")
    (folder / LOCK).symlink_to(other)
    with pytest.raises(StorageError, match="LOCK"), folder_lock(folder, "a test"):
        pass
    assert other.read_text() == "kept"
    (folder / LOCK).unlink()
    os.mkfifo(folder / LOCK)
    with pytest.raises(StorageError, match="LOCK"), folder_lock(folder, "a test"):
        pass
