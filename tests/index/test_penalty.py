"""The penalty search on items that crowd on few paths."""

import numpy as np
import pytest

from pathdex.errors import ConfigError, DataError
from pathdex.index.coordinate_descent import assign_paths
from pathdex.index.initialization import random_paths
from pathdex.index.penalty import penalty_for_path_size

PATHS_PER_ITEM = 2


def crowded(num_items=500, num_paths=400, candidates=60, seed=0):
    """Items that agree on the best paths: without a penalty, few paths hold nearly everything."""
    random = np.random.default_rng(seed)
    liking = np.linspace(12, 0, num_paths) + random.gumbel(size=(num_items, num_paths))
    codes = np.argsort(-liking, axis=1)[:, :candidates]
    scores = np.exp(np.take_along_axis(liking, codes, axis=1) - 20)
    counts = random.integers(1, 20, num_items)
    return codes, scores, counts, random_paths(num_items, PATHS_PER_ITEM, num_nodes=10, depth=3)


def mean_size(paths):
    """The size of the path of an average item."""
    sizes = np.unique(paths, return_counts=True)[1]
    return np.sum(sizes**2) / np.sum(sizes)


@pytest.mark.parametrize("path_size", [4.4, 5.5, 6.6])
@pytest.mark.parametrize("degree", [2, 4])
def test_the_wanted_path_size_is_reached(path_size, degree):
    problem = crowded()
    found = penalty_for_path_size(*problem, path_size=path_size, penalty_degree=degree, tolerance=0.03)
    assert found.reached
    assert found.path_size == pytest.approx(path_size, rel=0.03)
    assert found.path_size == mean_size(found.paths)
    again = assign_paths(*problem, penalty=found.penalty, penalty_degree=degree)
    assert (found.paths == again).all()


def test_a_search_that_starts_at_its_result_takes_one_trial():
    found = penalty_for_path_size(*crowded(), path_size=5.0)
    again = penalty_for_path_size(*crowded(), path_size=5.0, start=found.penalty)
    assert again.penalty == found.penalty
    assert again.trials == 1


@pytest.mark.parametrize("start", [1e-12, 1.0, 1e9])
def test_a_search_recovers_from_a_bad_start(start):
    found = penalty_for_path_size(*crowded(), path_size=5.0, start=start, tolerance=0.03)
    assert found.reached


def test_paths_that_are_small_without_a_penalty_get_none():
    found = penalty_for_path_size(*crowded(), path_size=400.0)
    assert not found.reached
    assert found.penalty == 0.0
    assert found.path_size == mean_size(assign_paths(*crowded(), penalty=0.0))


def test_too_few_candidate_paths_give_the_nearest_size_at_a_moderate_penalty():
    problem = crowded()
    floor = mean_size(assign_paths(*problem, penalty=1e9))
    assert floor > 2.0
    found = penalty_for_path_size(*problem, path_size=1.5)
    assert not found.reached
    assert found.path_size == pytest.approx(floor, rel=0.21)
    assert found.penalty < 1e3


def test_items_without_scores_keep_their_paths():
    _, _, counts, current = crowded()
    empty = np.full((500, 3), -1)
    found = penalty_for_path_size(empty, np.zeros((500, 3)), counts, current, path_size=5.0)
    assert (found.paths == current).all()
    assert not found.reached


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path_size": 0.5}, "path_size=0.5: must be a finite number at least 1"),
        ({"path_size": 4, "start": -1.0}, "start=-1.0: must be a finite number at least 0"),
        ({"path_size": 4, "tolerance": 2}, "tolerance=2: must be a finite number between 0 and 1"),
        ({"path_size": 4, "penalty_degree": 1}, "penalty_degree=1: must be a finite number at least 2"),
        ({"path_size": 4, "iterations": 0}, "iterations=0: must be a whole number of at least 1"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        penalty_for_path_size(*crowded(num_items=5), **options)


def test_an_invalid_table_is_refused():
    codes, scores, counts, current = crowded(num_items=5)
    with pytest.raises(DataError, match="scores: row 0 breaks the rule"):
        penalty_for_path_size(codes, scores[:, ::-1], counts, current, path_size=4)
