"""Arrays in memory or in a file without a name."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from pathdex.data import Interactions, Ragged, Vocabulary, save_interactions
from pathdex.errors import StorageError
from pathdex.storage import scratch
from pathdex.storage.scratch import VARIABLE, blocks, memory_limit, permutation, read_soon, scratch_array


def test_small_arrays_are_in_memory(monkeypatch):
    monkeypatch.setenv(VARIABLE, "800")
    monkeypatch.setattr(scratch.mmap, "mmap", lambda *_: 1 / 0)
    assert scratch_array((10, 20), np.float32).shape == (10, 20)


def test_large_arrays_are_mapped_from_a_file_without_a_name(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, "799")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = scratch_array((10, 20), np.float32)
    assert (found.shape, found.dtype, type(found)) == ((10, 20), np.float32, np.ndarray)
    found[:] = np.arange(200).reshape(10, 20)
    assert found.sum() == 19900
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_an_error_at_once(monkeypatch, tmp_path):
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv(VARIABLE, "0")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(os, "posix_fallocate", fail, raising=False)
    with pytest.raises(StorageError, match=r"cannot reserve 80 bytes in .*: No space left on device; .* TMPDIR"):
        scratch_array(10, np.int64)


@pytest.mark.skipif(not hasattr(mmap, "MADV_WILLNEED"), reason="this system takes no advice about mapped files")
def test_rows_that_are_read_soon_are_asked_for_in_pieces(monkeypatch):
    asked: list[tuple[int, ...]] = []

    class Recording(mmap.mmap):
        def madvise(self, *given: int) -> None:
            asked.append(given)
            super().madvise(*given)

    monkeypatch.setenv(VARIABLE, "0")
    monkeypatch.setattr(scratch.mmap, "mmap", Recording)
    found = scratch_array((10_000, 256), np.float32, scattered=True)  # rows of 1,024 bytes
    found[:] = 1
    assert asked == [(mmap.MADV_RANDOM,)]
    read_soon(found, np.concatenate([[0, 3], np.arange(400, 600), [9999]]))
    page, need = mmap.PAGESIZE, mmap.MADV_WILLNEED
    begins = [given[1] for given in asked[1:]]
    assert all(given[0] == need and given[1] % page == 0 for given in asked[1:])
    assert begins == [0, 400 * 1024 // page * page, 400 * 1024 // page * page + 2**17, 9999 * 1024 // page * page]
    assert sum(given[2] for given in asked[2:4]) >= 200 * 1024
    assert asked[-1][1] + asked[-1][2] == found.nbytes
    before = len(asked)
    read_soon(np.zeros((5, 5)), np.arange(5))
    read_soon(found, np.zeros(0, np.int64))
    assert len(asked) == before


def test_an_empty_array(monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    assert scratch_array(0, np.int64).shape == (0,)


def test_the_limit_is_a_part_of_the_memory(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(scratch, "allowed_memory", lambda: 1600)
    assert memory_limit() == 100


@pytest.mark.parametrize("limit", ["0", "1000000"])
def test_a_permutation_is_that_of_the_generator(monkeypatch, limit):
    monkeypatch.setenv(VARIABLE, limit)
    monkeypatch.setattr(scratch, "BLOCK", 7)
    expected = np.random.default_rng(3).permutation(100)
    assert permutation(100, np.random.default_rng(3)).tolist() == expected.tolist()


def test_blocks_cover_all_elements_once():
    assert list(blocks(7, 3)) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert list(blocks(0, 3)) == []


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the memory figures of Linux")
def test_data_four_times_as_large_as_the_memory_limit_is_split_and_read(tmp_path):
    """The arrays have 12 bytes per interaction, 192 MB; the process may allocate 46 MiB."""
    rows, users, room = 16_000_000, 160_000, 46 * 2**20
    values = np.random.default_rng(0).integers(0, 1000, rows, dtype=np.int32)
    values[:1000] = np.arange(1000)
    offsets = np.arange(0, rows + 1, rows // users)
    data = Interactions(
        Ragged(values, offsets), Vocabulary(np.arange(users)), Vocabulary(np.arange(1000)), np.arange(rows, dtype=float)
    )
    save_interactions(tmp_path / "data", data)
    assert sum(file.stat().st_size for file in (tmp_path / "data").iterdir()) >= 4 * room
    command = [sys.executable, "-m", "tests.limited_memory", str(tmp_path / "data"), str(room)]
    environment = {**os.environ, VARIABLE: str(2**20), "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
    found = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    if lines[0] != "too little for one array":
        pytest.skip("this system does not limit the data segment")
    assert lines[1:] == ["counted True", "read True", "grouped True", "ordered True"]
