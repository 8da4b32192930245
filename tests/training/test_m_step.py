"""The M-step: a fixed penalty is used as it is, otherwise one is found for the wanted path size."""

import numpy as np
import pytest

from pathdex.config import Config
from pathdex.index.scores import ScoreTable
from pathdex.training.m_step import MStep, m_step

ITEMS, CONFIG = 40, {"num_nodes": 4, "depth": 2, "paths_per_item": 1, "candidate_paths": 4}


def scores() -> ScoreTable:
    """Every item likes path 3 best, then three of its own."""
    table = ScoreTable.empty(ITEMS, 4)
    codes = np.stack([[3, 4 + item % 4, 8 + item % 4, 12 + item % 4] for item in range(ITEMS)])
    table.set_rows(np.arange(ITEMS), codes, np.tile([0.4, 0.3, 0.2, 0.1], (ITEMS, 1)))
    return table


def run(path_size: float = 16.0, **parameters: object) -> MStep:
    return m_step(
        scores(),
        np.ones(ITEMS, np.int64),
        np.arange(ITEMS)[:, None] % 16,
        Config(**CONFIG, **parameters),  # type: ignore[arg-type]
        path_size=path_size,
        last_penalty=None,
        seed=0,
    )


def test_without_a_penalty_every_item_takes_its_best_path() -> None:
    step = run(penalty=0.0)
    assert step.penalty == 0.0
    assert (step.paths == 3).all()
    assert step.figures["used_paths"] == 1


def test_a_fixed_penalty_spreads_the_items() -> None:
    step = run(penalty=0.01)
    assert step.penalty == 0.01
    assert step.figures["used_paths"] > 1
    assert step.figures["top_size"] < ITEMS


@pytest.mark.parametrize("path_size", [4.0, 10.0])
def test_a_penalty_is_found_for_the_path_size(path_size: float) -> None:
    step = run(path_size)
    assert step.penalty > 0
    assert step.figures["item_mean_size"] == pytest.approx(path_size, rel=0.3)
