"""Named arrays in one safetensors file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save

from pathdex.storage.tensor_file import _DTYPES, write_tensors


def test_arrays_and_metadata_can_be_read_back(tmp_path: Path) -> None:
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    write_tensors(tmp_path / "file", {"a": table.T, "b": table[:, ::2]}, metadata={"key": "value"})
    found = load_file(tmp_path / "file")
    np.testing.assert_array_equal(found["a"], table.T)
    np.testing.assert_array_equal(found["b"], table[:, ::2])
    with safe_open(tmp_path / "file", framework="numpy") as file:
        assert file.metadata() == {"key": "value"}


def test_a_failure_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"."):
        write_tensors(tmp_path / "missing" / "file", {"a": np.zeros(1)})


@pytest.mark.parametrize("seed", range(20))
def test_the_bytes_are_those_of_the_safetensors_package(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    arrays = {
        f'"{random.integers(99)}/é{number}': random.integers(0, 9, random.integers(0, 4, random.integers(1, 4)))
        for number in range(random.integers(0, 9))
    }
    arrays = {name: one.astype(random.choice(list(_DTYPES))) for name, one in arrays.items()}
    metadata = {"state": '{"a": "é"}'} if seed % 2 else None
    write_tensors(tmp_path / "file", arrays, metadata=metadata)
    assert (tmp_path / "file").read_bytes() == save(arrays, metadata)
