"""Training on 2 and 3 workers follows the curve of one process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pathdex.training.trainer import Trainer
from tests.training.distributed.conftest import JOBS, SIZES, Workers

FIGURES = ("softmax", "structure", "objective", "penalty", "item_mean_size", "used_paths", "overlap")


def test_the_first_paths_are_those_of_one_process(workers: Workers) -> None:
    assert not workers.problems("kmeans")


@pytest.mark.parametrize("job", range(len(JOBS)))
def test_the_curve_and_the_model_are_those_of_one_process(
    job: int, workers: Workers, alone: Callable[[int], Trainer]
) -> None:
    whole = alone(job)
    for size in SIZES:
        arrays, records = workers.trained(size, job)
        for own, expected in zip(records, whole.records, strict=True):
            assert own.keys() == expected.keys()
            figures = [name for name in FIGURES if name in expected]
            assert [own[name] for name in figures] == pytest.approx([expected[name] for name in figures], rel=1e-4)
        np.testing.assert_array_equal(arrays.pop("paths"), whole.paths)
        for name, value in whole.weights.items():
            np.testing.assert_allclose(arrays[name], value, rtol=1e-2, atol=1e-4)
