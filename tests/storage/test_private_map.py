"""Writable copies that share pages with a file."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

from pathdex.storage.private_map import private_copy


@pytest.mark.parametrize("map_file", [False, True])
def test_writes_stay_in_the_process(tmp_path: Path, map_file: bool) -> None:
    original = np.arange(6000.0).reshape(-1, 3)
    np.save(tmp_path / "array.npy", original)
    mapped = np.load(tmp_path / "array.npy", mmap_mode="r")
    grown = private_copy(mapped, 5000, map_file=map_file)
    del mapped
    gc.collect()
    assert grown.shape == (5000, 3)
    assert (grown[:2000] == original).all()
    assert (grown[2000:] == 0).all()
    grown[7], grown[4999] = -1.0, 2.0
    assert grown[7].tolist() == [-1.0] * 3
    assert grown[4999].tolist() == [2.0] * 3
    assert (np.load(tmp_path / "array.npy") == original).all()


@pytest.mark.parametrize("map_file", [False, True])
def test_arrays_in_memory_and_empty_files_are_copied(tmp_path: Path, map_file: bool) -> None:
    assert private_copy(np.arange(3), 5, map_file=map_file).tolist() == [0, 1, 2, 0, 0]
    np.save(tmp_path / "empty.npy", np.empty((0, 2)))
    empty = np.load(tmp_path / "empty.npy")
    assert private_copy(empty, 4, map_file=map_file).shape == (4, 2)
    assert private_copy(np.arange(3), 1, map_file=map_file).tolist() == [0, 1, 2]


def test_a_view_outlives_the_array(tmp_path: Path) -> None:
    np.save(tmp_path / "array.npy", np.arange(100_000))
    view = private_copy(np.load(tmp_path / "array.npy", mmap_mode="r"), 200_000, map_file=True)[50_000:]
    gc.collect()
    assert view[0] == 50_000
    assert view[-1] == 0
