"""One writer per live folder; a kill or a full disk between any two steps leaves a version that can be read."""

from __future__ import annotations

import errno
import itertools
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from pathdex.errors import BundleError, StorageError
from pathdex.storage import live_writer, tensor_file
from pathdex.storage.bundle import Bundle, read_bundle, write_bundle
from pathdex.storage.folder_lock import LOCK
from pathdex.storage.live_folder import (
    CURRENT,
    DELTAS,
    DamagedCurrentError,
    LiveVersion,
    delta_folder,
    read_current,
    read_delta,
)
from pathdex.storage.live_writer import LiveWriter
from tests.storage.test_kill import start


def write_base(folder: Path, number: int = 0) -> None:
    write_bundle(folder, Bundle("some-model", {"number": number}, {"values": np.full(10, number)}))


def append(writer: LiveWriter, value: int) -> int:
    return writer.append({"value": value}, {"values": np.array([value])}, {})


def total(path: Path) -> int:
    """The number of the base and all deltas that count, verified."""
    version = read_current(path)
    found: int = read_bundle(path / version.base.name).settings["number"]
    digest = version.base.digest
    for number in version.deltas:
        delta = read_delta(path, number, before=digest)
        found, digest = found + delta.settings["value"], delta.digest
    assert digest == version.digest
    return found


@pytest.fixture
def live(tmp_path: Path) -> Path:
    with LiveWriter(tmp_path / "live") as writer:
        writer.add_base(write_base)
        append(writer, 1)
        append(writer, 10)
    return tmp_path / "live"


def test_deltas_and_bases_continue_one_chain(live: Path) -> None:
    assert total(live) == 11
    with LiveWriter(live) as writer:
        before = writer.version
        assert before is not None
        append(writer, 100)  # While the base is written.
        writer.add_base(lambda folder: write_base(folder, 11), at=before)
        assert total(live) == 111
        assert list(writer.version.deltas) == [3]  # type: ignore[union-attr]
        assert append(writer, 1000) == 4
    assert total(live) == 1111


def test_bases_and_deltas_are_pruned(live: Path) -> None:
    with LiveWriter(live, keep=2) as writer:
        for number in range(3, 6):
            writer.add_base(lambda folder: write_base(folder, total(live)), at=writer.version)
            append(writer, 0)
            assert total(live) == 11
            kept = {one.name for one in live.iterdir() if one.name.startswith("base-")}
            assert kept == {f"base-{one:06d}" for one in (number - 2, number - 1)}
    assert sorted(int(one.name) for one in (live / DELTAS).iterdir()) == [4, 5]


def test_rolling_back_forgets_later_deltas(live: Path) -> None:
    with LiveWriter(live) as writer:
        writer.add_base(lambda folder: write_base(folder, 11), at=writer.version)
        append(writer, 100)
        assert total(live) == 111
        assert writer.roll_back().number == 1
        assert total(live) == 0
        append(writer, 5)
        assert total(live) == 5
        writer.roll_back(2)
        assert total(live) == 11
        with pytest.raises(BundleError, match="keeps no base 9; choose one of: 1, 2"):
            writer.roll_back(9)
        with pytest.raises(
            BundleError, match="keeps no base before the current one, 1; there is nothing to go back to"
        ):
            writer.roll_back(1) and writer.roll_back()


def test_a_base_written_during_a_rollback_is_refused(live: Path) -> None:
    with LiveWriter(live) as writer:
        at = writer.version
        writer.roll_back(1)
        with pytest.raises(StorageError, match="was rolled back while a base was written; compact it again"):
            writer.add_base(write_base, at=at)
        assert not (live / "base-000002").exists()
        append(writer, 3)
        with pytest.raises(StorageError, match="was rolled back"):
            writer.add_base(write_base, at=at)
    assert total(live) == 3


def test_a_second_publisher_is_told_who_publishes(live: Path) -> None:
    with LiveWriter(live), pytest.raises(StorageError, match=rf"is in use by a publisher \(process {os.getpid()} on "):
        LiveWriter(live)
    (live / LOCK).write_text("not JSON, and nobody holds it")
    with LiveWriter(live) as writer:
        assert append(writer, 1) == 3
    with pytest.raises(StorageError, match="is closed for this publisher; open it again"):
        append(writer, 1)


def test_a_folder_without_a_base_takes_no_deltas(tmp_path: Path) -> None:
    with LiveWriter(tmp_path / "live") as writer, pytest.raises(BundleError, match="has no base yet"):
        append(writer, 1)


def test_a_full_disk_changes_nothing(live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with LiveWriter(live) as writer:
        with monkeypatch.context() as patch:
            patch.setattr(tensor_file, "write_file", full)
            with pytest.raises(StorageError, match="No space left on device; free space"):
                append(writer, 100)
        assert total(live) == 11
        with monkeypatch.context() as patch:
            patch.setattr(live_writer, "write_current", full)
            with pytest.raises(OSError, match="No space left"):
                append(writer, 100)
        assert total(live) == 11
        assert append(writer, 100) == 3
    assert total(live) == 111


def publish_until(path: Path, step: int) -> None:
    """Publish a delta, a base and a rollback, and die before the step-th file operation."""
    steps = itertools.count()

    def die(event: str, _: object) -> None:
        if event.startswith(("open", "os.", "shutil.", "ctypes.", "tempfile.")) and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(die)
    with LiveWriter(path) as writer:
        append(writer, 100)
        writer.add_base(lambda folder: write_base(folder, 111), at=writer.version)
        append(writer, 1000)


def test_a_kill_before_any_file_operation_leaves_a_whole_version(tmp_path: Path) -> None:
    outcomes, last = set(), 0
    for step in itertools.chain(range(0, 10_000, int(os.environ.get("PATHDEX_KILL_STEP", "9")))):
        path = tmp_path / str(step) / "live"
        with LiveWriter(path) as writer:
            writer.add_base(write_base)
            append(writer, 1)
            append(writer, 10)
        process = start(publish_until, path, step)
        process.join()
        found = total(path)
        assert found in (11, 111, 1111)
        assert found >= last
        last = found
        outcomes.add((process.exitcode, found))
        with LiveWriter(path) as writer:  # The lock of a killed process is free.
            append(writer, 10_000)
            names = {one.name for one in path.iterdir() if not one.name.startswith(".")}
            assert names == {"CURRENT", "LOCK", DELTAS, *(one.name for one in writer.version.bases)}  # type: ignore[union-attr]
        assert total(path) == found + 10_000
        assert not [one for one in (path / DELTAS).iterdir() if one.name.startswith(".") and any(one.iterdir())]
        if process.exitcode == 0:
            break
    assert {(-signal.SIGKILL, 11), (-signal.SIGKILL, 111), (0, 1111)} <= outcomes


def test_a_delta_that_a_killed_process_left_is_replaced(live: Path) -> None:
    orphan = delta_folder(live, 3)
    orphan.mkdir()
    (orphan / "junk").write_text("")
    with LiveWriter(live) as writer:
        assert not orphan.exists()
        append(writer, 100)
    assert total(live) == 111


def test_a_damaged_current_is_replaced_on_request(live: Path) -> None:
    (live / CURRENT).write_text("{")
    with pytest.raises(DamagedCurrentError, match="is damaged"):
        LiveWriter(live)
    with LiveWriter(live, replaces_damaged=True) as writer:
        assert writer.version is None
        assert "is damaged" in str(writer.damage)
        assert (live / "base-000001").exists()
        writer.add_base(lambda folder: write_base(folder, 5))
        append(writer, 2)
    assert total(live) == 7
    assert read_current(live).base.name == "base-000002"
    assert not (live / "base-000001").exists()
    with LiveWriter(live, replaces_damaged=True) as writer:
        assert writer.damage is None


def test_a_version_that_the_disk_did_not_confirm_is_taken_back_before_its_delta_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LiveWriter(tmp_path) as writer:
        writer.add_base(write_base)
        append(writer, 1)
        publish = live_writer.write_current

        def fail_after(path: Path, version: LiveVersion) -> None:
            publish(path, version)
            raise StorageError("is written, but the disk does not confirm it")

        with monkeypatch.context() as patch:
            patch.setattr(live_writer, "write_current", fail_after)
            with pytest.raises(StorageError, match="does not confirm"):
                append(writer, 10)
        seen: list[int] = []

        def look(path: Path, version: LiveVersion) -> None:
            publish(path, version)
            seen.append(total(path))

        monkeypatch.setattr(live_writer, "write_current", look)
        assert append(writer, 100) == 2
        assert seen == [1, 101]
