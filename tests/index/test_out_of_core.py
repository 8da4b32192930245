"""A table on disk gives the paths of one in memory."""

import numpy as np
import pytest

from pathdex.errors import ConfigError, DataError
from pathdex.index.coordinate_descent import assign_paths
from pathdex.index.initialization import random_paths
from pathdex.index.out_of_core import assign_paths_out_of_core


def table(items=3000, width=12, num_paths=900, spread=1):
    random = np.random.default_rng(5)
    codes = spread * np.stack([random.permutation(num_paths)[:width] for _ in range(items)])
    scores = -np.sort(-(random.random((items, width)).astype(np.float32) ** 3), axis=1)
    codes[7:9], scores[7:9] = -1, 0.0
    return codes, scores, random.integers(1, 20, items), random_paths(items, 3, 10, 3)


def mapped(folder, *arrays):
    for number, array in enumerate(arrays):
        np.save(folder / f"{number}.npy", array)
    return [np.load(folder / f"{number}.npy", mmap_mode="r") for number in range(len(arrays))]


@pytest.mark.parametrize("spread", [1, 10**12])
@pytest.mark.parametrize(("rows_in_memory", "block_size"), [(700, None), (1000, 300), (3, 1), (10**6, 7)])
def test_the_paths_are_those_of_a_table_in_memory(tmp_path, spread, rows_in_memory, block_size):
    codes, scores, counts, current = table(200 if rows_in_memory == 3 else 3000, spread=spread)
    options = {"penalty": 0.01, "iterations": 3, "seed": 4, "block_size": block_size}
    (tmp_path / "work").mkdir()
    steps = []
    paths = assign_paths_out_of_core(
        *mapped(tmp_path, codes, scores),
        counts,
        current,
        folder=tmp_path / "work",
        rows_in_memory=rows_in_memory,
        progress=lambda *step: steps.append(step),
        **options,
    )
    assert (paths == assign_paths(codes, scores, counts, current, **options)).all()
    assert not list((tmp_path / "work").iterdir())
    assert steps[-1] == ("iteration 3 of 3", len(codes) - 2, len(codes) - 2)


def test_a_row_that_breaks_a_rule_is_named(tmp_path):
    codes, scores, counts, current = table()
    scores[2900, 3] = 2.0
    with pytest.raises(DataError, match="scores: row 2900 breaks the rule"):
        assign_paths_out_of_core(codes, scores, counts, current, folder=tmp_path, penalty=0.1, rows_in_memory=400)


def test_a_share_must_hold_a_block(tmp_path):
    with pytest.raises(ConfigError, match="rows_in_memory=5: must be at least the block size, 10; raise it"):
        assign_paths_out_of_core(*table(), folder=tmp_path, penalty=0.1, rows_in_memory=5, block_size=10)


def test_a_table_without_scores_changes_nothing(tmp_path):
    codes, scores, counts, current = table()
    paths = assign_paths_out_of_core(
        np.full_like(codes, -1), np.zeros_like(scores), counts, current, folder=tmp_path, penalty=0.1
    )
    assert (paths == current).all()
