"""Arrays in memory or in a file without a name."""

from __future__ import annotations

import os
import tempfile

import numpy as np
import pytest

from pathdex.errors import StorageError
from pathdex.storage import scratch
from pathdex.storage.scratch import VARIABLE, blocks, memory_limit, permutation, scratch_array


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
