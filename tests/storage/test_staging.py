"""Staging that a killed process left is removed; staging in use is kept."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pathdex.storage import staging as module
from pathdex.storage.staging import EMPTY_SECONDS, UNKNOWN_SECONDS, UnconfirmedError, remove_stale, staging_folder


def make(target: Path, *inner: str) -> Path:
    staging = target.with_name(f".{target.name}.abcd1234.staging")
    staging.mkdir(parents=True)
    for name in inner:
        (staging / name).mkdir()
    return staging


def make_older(staging: Path, seconds: float) -> None:
    before = staging.stat().st_mtime - seconds
    os.utime(staging, (before, before))


def test_staging_is_beside_the_target_and_removed_at_the_end(tmp_path: Path) -> None:
    with staging_folder(tmp_path / "deep" / "file") as staging:
        (staging / "new").write_text("part")
        assert staging.parent == tmp_path / "deep"
    assert list((tmp_path / "deep").iterdir()) == []


def test_staging_without_a_lock_is_removed(tmp_path: Path) -> None:
    staging = make(tmp_path / "file", "new")
    remove_stale(tmp_path / "file")
    assert not staging.exists()


def test_staging_of_a_live_process_is_kept_until_it_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pathdex.storage.staging import staging_folder\n"
        "with staging_folder(Path(sys.argv[1])) as staging:\n"
        "    (staging / 'new').mkdir(); print(staging, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        staging = Path(process.stdout.readline().strip())
        make_older(staging, 10 * UNKNOWN_SECONDS)
        remove_stale(tmp_path / "file")
        assert staging.exists()
        process.kill()
        process.wait()
    remove_stale(tmp_path / "file")
    assert not staging.exists()


def test_new_empty_staging_is_kept_for_a_while(tmp_path: Path) -> None:
    staging = make(tmp_path / "file")
    remove_stale(tmp_path / "file")
    assert staging.exists()
    make_older(staging, EMPTY_SECONDS + 1)
    remove_stale(tmp_path / "file")
    assert not staging.exists()


def no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("system", ["without fcntl", "without locks"])
def test_without_locks_age_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    if system == "without fcntl":
        monkeypatch.setattr(module, "fcntl", None)
    else:
        monkeypatch.setattr(module.fcntl, "flock", no_locks)
    with staging_folder(tmp_path / "file") as staging:
        remove_stale(tmp_path / "file")
        assert staging.exists()
    staging = make(tmp_path / "file", "new")
    remove_stale(tmp_path / "file")
    assert staging.exists()
    make_older(staging, UNKNOWN_SECONDS + 1)
    remove_stale(tmp_path / "file")
    assert not staging.exists()


def test_staging_of_other_targets_is_kept(tmp_path: Path) -> None:
    others = [make(tmp_path / name, "new") for name in ("file.json", "fil", "f[i]le")]
    (tmp_path / ".file.hidden").write_text("mine")
    remove_stale(tmp_path / "file")
    assert all(other.exists() for other in others)
    assert (tmp_path / ".file.hidden").exists()


@pytest.mark.parametrize("exists", [True, False])
def test_a_target_that_a_killed_process_moved_away_is_restored(tmp_path: Path, exists: bool) -> None:
    target = tmp_path / "folder"
    staging = make(target, "new", "previous")
    if exists:
        (target / "newer").mkdir(parents=True)
    remove_stale(target)
    assert [file.name for file in target.iterdir()] == (["newer"] if exists else [])
    assert not staging.exists()


def test_staging_is_kept_while_what_it_replaced_may_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write() -> None:
        with staging_folder(tmp_path / "target") as folder:
            (folder / "new").mkdir()
            raise UnconfirmedError("not on disk")

    with pytest.raises(UnconfirmedError):
        write()
    (staging,) = tmp_path.iterdir()

    def fail(_: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(module, "sync", fail)
        remove_stale(tmp_path / "target")
    assert staging.exists()
    remove_stale(tmp_path / "target")
    assert not staging.exists()
