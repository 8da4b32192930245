"""Checkpoints: one file, replaced atomically."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from pathdex.errors import RunError, StorageError
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from tests.storage.test_atomic import file_size_limit, names

STATE = {"epoch": 3, "records": [{"loss": 0.5}], "seed": 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "checkpoint.safetensors"
    save_checkpoint(path, STATE, {"codes": np.arange(6).reshape(2, 3), "empty": np.zeros((0, 2), np.float32)})
    return path


def test_state_and_arrays_can_be_read_back(path: Path) -> None:
    state, arrays = load_checkpoint(path)
    assert state == STATE
    assert arrays["codes"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (arrays["empty"].shape, arrays["empty"].dtype) == ((0, 2), np.float32)
    assert names(path.parent) == ["checkpoint.safetensors"]


def test_a_full_disk_leaves_the_old_checkpoint(path: Path) -> None:
    message = r"cannot write .*checkpoint.safetensors: .*; free space or choose another path; nothing was ch"
    with file_size_limit(4096), pytest.raises(StorageError, match=message):
        save_checkpoint(path, {"epoch": 4}, {"large": np.zeros(100_000)})
    assert load_checkpoint(path)[0] == STATE
    assert names(path.parent) == ["checkpoint.safetensors"]


def test_a_damaged_checkpoint_is_an_error(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(RunError, match=r"checkpoint.safetensors cannot be read .*; train again into a new folder"):
        load_checkpoint(path)


def test_a_file_without_a_state_is_an_error(tmp_path: Path) -> None:
    save_file({"a": np.zeros(1)}, tmp_path / "file")
    with pytest.raises(RunError, match="cannot be read"):
        load_checkpoint(tmp_path / "file")
