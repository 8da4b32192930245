"""The M-step on several workers gives the paths of one process, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.errors import DataError
from pathdex.index.coordinate_descent import AssignmentProblem
from pathdex.index.penalty import search_penalty
from pathdex.index.scores import ScoreTable
from pathdex.index.sharded_assignment import ShardedProblem, SolvedPaths
from tests.peers import ThreadPeers, run_peers


def instance(
    seed: int, items: int, share: float, capacity: int, spread: int = 1
) -> tuple[ScoreTable, np.ndarray, np.ndarray]:
    """A score table, counts and paths: a `share` of items has scores, codes are multiples of `spread`."""
    random = np.random.default_rng(seed)
    table = ScoreTable.empty(items, 6)
    scored = np.flatnonzero(random.random(items) < share)
    found = np.argsort(random.random((len(scored), capacity)), axis=1)[:, :6].astype(np.int64) * spread
    table.set_rows(scored, found, random.random(found.shape).astype(np.float32))
    current = np.argsort(random.random((items, capacity)), axis=1)[:, :2].astype(np.int64) * spread
    return table, random.integers(1, 50, items), current


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 999),
    items=st.integers(4, 60),
    share=st.sampled_from([0.0, 0.5, 1.0]),
    size=st.integers(1, 4),
    block=st.sampled_from([None, 1, 3, 7, 100]),
    penalty=st.sampled_from([0.0, 0.1, 3.0]),
    spread=st.sampled_from([1, 10_007]),
)
def test_paths_are_those_of_one_process_for_any_number_of_workers(
    seed: int, items: int, share: float, size: int, block: int | None, penalty: float, spread: int
) -> None:
    table, counts, current = instance(seed, items, share, capacity=12, spread=spread)
    problem = AssignmentProblem(table.codes, table.scores, counts, current, seed)
    whole = problem.solve(penalty, 4.0, 3, block)

    def work(peers: ThreadPeers) -> SolvedPaths:
        own = slice(peers.rank, None, peers.size)
        sharded = ShardedProblem(peers, table.codes[own], table.scores[own], counts, current[own], seed)
        assert sharded.mean_scored_count == problem.mean_scored_count
        return sharded.solve(penalty, 4.0, 3, block)

    solved = run_peers(size, work)
    for rank, one in enumerate(solved):
        np.testing.assert_array_equal(one.paths, whole[rank::size])
        sizes = dict(zip(*np.unique(whole, return_counts=True), strict=True))
        np.testing.assert_array_equal(one.sizes, np.vectorize(sizes.get, otypes=[np.int64])(one.paths))


@pytest.mark.parametrize("size", [2, 3])
def test_the_penalty_search_and_the_sums_agree_with_one_process(size: int) -> None:
    table, counts, current = instance(3, 300, 0.8, capacity=80)
    problem = AssignmentProblem(table.codes, table.scores, counts, current, 5)
    penalty, paths, trials = search_penalty(problem, 12.0, 4.0, 3)
    sizes = np.unique(paths, return_counts=True)[1].astype(float)

    def work(peers: ThreadPeers) -> None:
        own = slice(peers.rank, None, peers.size)
        sharded = ShardedProblem(peers, table.codes[own], table.scores[own], counts, current[own], 5)
        found = search_penalty(sharded, 12.0, 4.0, 3)
        assert (found[0], found[2]) == (penalty, trials)
        np.testing.assert_array_equal(found[1].paths, paths[own])
        assert found[1].mean_size() == problem.path_size(paths)
        assert found[1].penalty_term(4.0) == pytest.approx(np.sum(sizes**4))

    run_peers(size, work)


def test_a_bad_table_is_an_error() -> None:
    table, counts, current = instance(0, 6, 1.0, capacity=12)
    current[0] = 3
    with pytest.raises(DataError, match="current_paths: row 0"):
        run_peers(1, lambda peers: ShardedProblem(peers, table.codes, table.scores, counts, current))
