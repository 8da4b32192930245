from dataclasses import replace

import numpy as np
import pytest

from pathdex.config import Config
from pathdex.metrics import f_measure
from pathdex.recommenders.score_fitting import (
    GRID,
    Fitted,
    fit_weights,
    free_weights,
    recencies,
)
from pathdex.recommenders.score_pools import Pools
from pathdex.retrieval.score_weights import ScoreWeights
from pathdex.training.held_out import SIZES

ALL = {"path", "neighbour", "smoothing", "share", "recency", "popularity"}


def pools(features: np.ndarray, hits: np.ndarray, **others: np.ndarray) -> Pools:
    """Pools in which every item comes from a path; `features` are the scores."""
    shape = features.shape
    arrays = {
        "scores": np.zeros(shape, np.float32),
        "log_probability": np.zeros(shape, np.float32),
        "similarity": np.zeros(shape, np.float32),
        "log_counts": np.zeros(shape, np.float32),
        **others,
    }
    rank = np.tile(np.arange(shape[1]), (shape[0], 1))
    return Pools(**arrays, path_rank=rank, hits=hits, truth=hits.sum(axis=1))


def fitted_to(pool: Pools, start: ScoreWeights, free: set[str], *, neighbours_fixed: bool) -> Fitted:
    """Weights for pools that do not depend on recency."""
    return fit_weights(dict.fromkeys(recencies(start, free), pool), start, free, neighbours_fixed=neighbours_fixed)


@pytest.mark.parametrize("part", ["log_probability", "similarity", "log_counts"])
def test_the_part_that_finds_the_truth_gets_weight(part: str) -> None:
    random = np.random.default_rng(0)
    hits = random.random((80, 60)) < 0.1
    hits[:, 0] = True
    feature = (hits + 0.3 * random.random(hits.shape)).astype(np.float32)
    noise = random.normal(size=hits.shape).astype(np.float32) * 0.3
    pool = pools(feature, hits, scores=noise, **{part: feature})
    start = ScoreWeights(path=0.0, neighbour=0.0)
    fitted = fitted_to(pool, start, ALL, neighbours_fixed=False)
    weight = {"log_probability": "path", "similarity": "neighbour", "log_counts": "popularity"}[part]
    assert getattr(fitted.weights, weight) > 0
    assert np.mean(fitted.figures["fitted"]) > 1.2 * np.mean(fitted.figures["default weights"])
    assert fitted.neighbours == (part == "similarity")


def test_noise_changes_nothing() -> None:
    random = np.random.default_rng(1)
    hits = random.random((200, 60)) < 0.1
    hits[:, 0] = True
    scores = (hits + 0.3 * random.random(hits.shape)).astype(np.float32)
    others = {name: random.random(hits.shape).astype(np.float32) for name in ("log_probability", "similarity")}
    fitted = fitted_to(pools(scores, hits, scores=scores, **others), ScoreWeights(), ALL, neighbours_fixed=False)
    assert not fitted.neighbours
    assert fitted.weights.path <= 0.6
    assert fitted.figures["fitted"] >= fitted.figures["default weights"]


def test_fixed_weights_stay() -> None:
    random = np.random.default_rng(2)
    hits = random.random((50, 40)) < 0.2
    hits[:, 0] = True
    pool = pools(hits, hits, scores=random.random(hits.shape).astype(np.float32), similarity=hits.astype(np.float32))
    start = ScoreWeights(path=0.7, neighbour=0.4, share=0.1, smoothing=0.2, popularity=0.1)
    assert fitted_to(pool, start, set(), neighbours_fixed=True).weights == start
    only = fitted_to(pool, start, {"neighbour"}, neighbours_fixed=True).weights
    assert only == replace(start, neighbour=only.neighbour)


def test_the_recency_whose_pool_finds_the_truth_is_chosen() -> None:
    random = np.random.default_rng(3)
    hits = random.random((80, 60)) < 0.1
    hits[:, 0] = True
    noise = random.random(hits.shape).astype(np.float32)
    blind, seeing = (pools(hits, hits, scores=0.1 * noise, similarity=one) for one in (noise, hits + 0.1 * noise))
    pool = {recency: seeing if recency == 1.0 else blind for recency in GRID["recency"]}
    start = ScoreWeights(path=0.0, recency=0.0)
    assert fit_weights(pool, start, ALL, neighbours_fixed=True).weights.recency == 1.0


def test_neighbours_that_are_off_leave_their_weights_alone() -> None:
    assert free_weights(Config()) == ALL
    assert free_weights(Config(neighbours=0)) == {"path", "popularity"}
    assert free_weights(Config(neighbours=5, path_weight=0.1)) == ALL - {"path"}


def test_f_of_a_pool_by_hand() -> None:
    hits = np.array([[True, False, True]])
    pool = pools(hits, hits, scores=np.array([[3, 2, 1]], np.float32))
    # All three items fit each budget: two hits among ten and fifty places, and all of the truth.
    expected = [f_measure(np.array([2 / size]), np.array([1.0]))[0] for size in SIZES]
    np.testing.assert_allclose(pool.f_measures(ScoreWeights())[0], expected)
