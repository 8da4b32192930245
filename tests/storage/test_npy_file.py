"""`.npy` files written block by block."""

import numpy as np

from pathdex.storage.npy_file import write_npy


def test_blocks_become_one_array(tmp_path):
    write_npy(tmp_path / "a.npy", 5, np.int64, iter([np.arange(2), np.arange(2, 5, dtype=np.int32)]))
    found = np.load(tmp_path / "a.npy")
    assert (found.tolist(), found.dtype) == ([0, 1, 2, 3, 4], np.int64)


def test_an_empty_array(tmp_path):
    write_npy(tmp_path / "a.npy", 0, np.uint8, [])
    assert np.load(tmp_path / "a.npy").shape == (0,)
