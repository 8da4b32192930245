"""Checkpoints in shards: any number of workers reads them, and a kill leaves one whole checkpoint."""

from pathlib import Path

import numpy as np
import pytest

from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from pathdex.storage.checkpoint_shards import SHARDS, ShardSet, load_rows, remove_shards, save_head, save_shard

ROWS = np.arange(14).reshape(7, 2)
NAMES = frozenset({"rows"})


def write(checkpoint: Path, serial: int, size: int, rows: np.ndarray) -> ShardSet:
    shards = ShardSet(serial, size, len(rows), f"token {serial}")
    for rank in range(size):
        save_shard(checkpoint, shards, rank, {"rows": rows[rank::size]})
    save_head(checkpoint, shards, {"step": serial}, {"dense": np.ones(2)})
    return shards


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("readers", [1, 2, 5])
def test_any_number_of_workers_reads_its_rows(size: int, readers: int, tmp_path: Path) -> None:
    checkpoint = tmp_path / "state.safetensors"
    write(checkpoint, 1, size, ROWS)
    state, arrays = load_checkpoint(checkpoint)
    assert list(arrays) == ["dense"]
    for rank in range(readers):
        found = load_rows(checkpoint, state, arrays, NAMES, rank, readers)
        np.testing.assert_array_equal(found["rows"], ROWS[rank::readers])


def test_rows_of_an_unsharded_checkpoint_are_split(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "state", {}, {"rows": ROWS})
    state, arrays = load_checkpoint(tmp_path / "state")
    np.testing.assert_array_equal(load_rows(tmp_path / "state", state, arrays, NAMES, 1, 3)["rows"], ROWS[1::3])


def test_shards_that_were_not_made_valid_change_nothing(tmp_path: Path) -> None:
    """As after a kill between the shards and the head."""
    checkpoint = tmp_path / "state.safetensors"
    write(checkpoint, 1, 2, ROWS)
    save_shard(checkpoint, ShardSet(2, 2, 7, "token 2"), 0, {"rows": ROWS[::2] + 1})
    state, arrays = load_checkpoint(checkpoint)
    np.testing.assert_array_equal(load_rows(checkpoint, state, arrays, NAMES, 0, 1)["rows"], ROWS)
    write(checkpoint, 3, 3, ROWS)
    state, _ = load_checkpoint(checkpoint)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        *(f"state.3.{rank}-of-3.safetensors" for rank in range(3)),
        "state.safetensors",
    ]
    assert ShardSet(*state[SHARDS]).size == 3
    remove_shards(checkpoint)
    assert [file.name for file in tmp_path.iterdir()] == ["state.safetensors"]
