"""Algorithm 2 by hand, against a line-by-line version, and on planted blocks."""

import math
from collections import Counter

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.errors import ConfigError, DataError
from pathdex.index.coordinate_descent import assign_paths, assignment_objective, default_block_size
from pathdex.index.initialization import random_paths


def test_without_a_penalty_an_item_takes_its_best_paths():
    paths = assign_paths([[3, 1, 2]], [[0.5, 0.3, 0.2]], [4], [[8, 9]], penalty=0.0)
    assert paths.tolist() == [[3, 1]]


def test_the_penalty_moves_an_item_when_it_outweighs_the_likelihood():
    # Both items like path 1 best. For the second to arrive, path 1 costs penalty * (2^2 - 1^2) / 2 = 1.5 penalty
    # against 0.5 penalty for the empty path 2, so it stays while 2 log(0.8 / 0.2) = 2.77 is more than 1 penalty.
    table = {"codes": [[1, 2], [1, 2]], "scores": [[0.8, 0.2], [0.8, 0.2]], "counts": [2, 2]}
    together = assign_paths(**table, current_paths=[[1], [2]], penalty=2.7, penalty_degree=2)
    apart = assign_paths(**table, current_paths=[[1], [2]], penalty=2.9, penalty_degree=2)
    assert together.tolist() == [[1], [1]]
    assert sorted(apart.ravel().tolist()) == [1, 2]


def test_the_second_path_is_chosen_by_the_log_of_the_sum():
    # Path 1 is taken first (0.6). Then path 2 gains log(0.9 / 0.6) = 0.41 and path 3 log(0.7 / 0.6) = 0.15, while item
    # 1, without scores, makes path 2 cost penalty * (2^2 - 1^2) / 2 = 1.5 penalty against 0.5: so 0.25 is the limit.
    # A sum that added the gain, or a sum of logs, would put the limit elsewhere.
    table = {
        "codes": [[1, 2, 3], [-1, -1, -1]],
        "scores": [[0.6, 0.3, 0.1], [0.0, 0.0, 0.0]],
        "counts": [1, 0],
        "current_paths": [[1, 9], [2, 8]],
    }
    assert assign_paths(**table, penalty=0.24, penalty_degree=2).tolist() == [[1, 2], [2, 8]]
    assert assign_paths(**table, penalty=0.26, penalty_degree=2).tolist() == [[1, 3], [2, 8]]


def test_items_without_scores_keep_their_paths_and_count_in_the_sizes():
    paths = assign_paths(
        [[1, 2], [-1, -1], [-1, -1]], [[0.6, 0.4], [0, 0], [0, 0]], [1, 0, 5], [[7], [1], [1]], penalty=1.0
    )
    assert paths.tolist() == [[2], [1], [1]]


def test_an_item_with_few_scores_keeps_current_paths_without_duplicates():
    codes, scores = [[5, -1, -1, -1]], [[0.5, 0.0, 0.0, 0.0]]
    assert assign_paths(codes, scores, [1], [[4, 5, 6]], penalty=0.0).tolist() == [[5, 4, 6]]
    assert assign_paths(codes, scores, [1], [[1, 2, 3]], penalty=0.0).tolist() == [[5, 1, 2]]


def test_a_path_with_score_zero_is_not_chosen():
    assert assign_paths([[5, 6]], [[0.5, 0.0]], [1], [[1, 2]], penalty=0.0).tolist() == [[5, 1]]


def test_a_table_without_columns_changes_nothing():
    empty = np.empty((2, 0))
    assert assign_paths(empty.astype(int), empty, [1, 1], [[1, 2], [3, 4]], penalty=0.0).tolist() == [[1, 2], [3, 4]]


def test_codes_may_be_as_large_as_a_thousand_nodes_in_six_layers_allow():
    far = 10**18 - 1
    assert assign_paths([[far, 5]], [[0.9, 0.1]], [1], [[1, 2]], penalty=0.1).tolist() == [[far, 5]]


def planted(blocks=8, items_per_block=40, candidates=6, seed=0):
    """Blocks of items that share their two best paths, followed by noise."""
    random = np.random.default_rng(seed)
    block = np.repeat(np.arange(blocks), items_per_block)
    codes = np.concatenate(
        [2 * block[:, None] + [0, 1], 2 * blocks + np.arange(len(block) * candidates).reshape(len(block), -1)], axis=1
    )
    scores = np.sort(random.uniform(0, 0.02, codes.shape), axis=1)[:, ::-1]
    scores[:, :2] += [0.6, 0.3]
    return block, codes, scores


def test_planted_blocks_are_recovered():
    block, codes, scores = planted()
    start = random_paths(len(block), 2, num_nodes=20, depth=3)
    paths = assign_paths(codes, scores, np.full(len(block), 20), start, penalty=1e-5, seed=3)
    assert (np.sort(paths) == 2 * block[:, None] + [0, 1]).all()


def test_a_large_penalty_spreads_the_blocks():
    block, codes, scores = planted()
    start = random_paths(len(block), 2, num_nodes=20, depth=3)
    paths = assign_paths(codes, scores, np.full(len(block), 20), start, penalty=10.0)
    assert max(Counter(paths.ravel().tolist()).values()) <= 4


def twin(codes, scores, counts, current, alpha, degree, iterations, order, block_size):
    """Algorithm 2 line by line, with dicts. Blocks of one item are the paper's sequence."""

    def f(size):
        return float(size) ** degree / degree

    J = len(current[0])
    rows = [{c: s for c, s in zip(*row, strict=True) if c >= 0 and s > 0} for row in zip(codes, scores, strict=True)]
    pi = [list(paths) for paths in current]
    size = Counter(c for v, paths in enumerate(pi) if not rows[v] for c in paths)
    order = [v for v in order if rows[v]]
    for t in range(iterations):
        for start in range(0, len(order), block_size):
            moves = []
            for v in order[start : start + block_size]:
                others = Counter(size)
                if t > 0:
                    others.subtract(pi[v])
                chosen, partial_sum = [], 0.0
                for j in range(min(J, len(rows[v]))):
                    gain = {}
                    for c, s in rows[v].items():
                        if c not in chosen:
                            likelihood = counts[v] * (np.log(partial_sum + s) - (np.log(partial_sum) if j > 0 else 0.0))
                            gain[c] = likelihood - alpha * (f(others[c] + 1) - f(others[c]))
                    best = max(gain, key=gain.get)
                    chosen.append(best)
                    partial_sum += rows[v][best]
                chosen += [c for c in current[v] if c not in chosen][: J - len(chosen)]
                moves.append((v, chosen))
            for v, chosen in moves:
                if t > 0:
                    size.subtract(pi[v])
                pi[v] = chosen
                size.update(chosen)
    return pi


@st.composite
def problems(draw):
    num_items, candidates, paths_per_item = draw(st.integers(1, 12)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    code = st.integers(0, 7)
    codes, scores = [], []
    for _ in range(num_items):
        row = draw(st.lists(code, max_size=candidates, unique=True))
        weights = draw(st.lists(st.integers(0, 12), min_size=len(row), max_size=len(row)))
        padding = candidates - len(row)
        codes.append(row + [-1] * padding)
        # Powers of two spread the scores and make equal ones common.
        scores.append(sorted((2.0**-weight for weight in weights), reverse=True) + [0.0] * padding)
    current = [
        draw(st.lists(code, min_size=paths_per_item, max_size=paths_per_item, unique=True)) for _ in range(num_items)
    ]
    counts = draw(st.lists(st.integers(0, 9), min_size=num_items, max_size=num_items))
    return codes, scores, counts, current


@settings(max_examples=150, deadline=None)
@given(
    problems(),
    st.sampled_from([0.0, 0.01, 0.3, 5.0]),
    st.sampled_from([2, 4]),
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from([1, 3, 100]),
)
def test_the_compiled_algorithm_agrees_with_its_twin(problem, penalty, degree, iterations, seed, block_size):
    codes, scores, counts, current = problem
    paths = assign_paths(
        codes,
        scores,
        counts,
        current,
        penalty=penalty,
        penalty_degree=degree,
        iterations=iterations,
        seed=seed,
        block_size=block_size,
    )
    scored = [v for v, row in enumerate(scores) if row[0] > 0]
    order = np.random.default_rng(seed).permutation(scored).astype(int)
    expected = twin(codes, scores, counts, current, penalty, degree, iterations, order, block_size)
    assert paths.tolist() == expected
    assert all(len(set(row)) == len(row) for row in paths.tolist())


def crowded(num_items=600, candidates=12, num_paths=150):
    random = np.random.default_rng(5)
    codes = np.stack([random.permutation(num_paths)[:candidates] for _ in range(num_items)])
    scores = -np.sort(-(random.random((num_items, candidates)) ** 3), axis=1)
    return codes, scores, random.integers(1, 20, num_items), random_paths(num_items, 3, 10, 3)


def test_threads_do_not_change_the_result():
    before = numba.get_num_threads()
    results = []
    for threads in {1, before}:
        numba.set_num_threads(threads)
        results.append(assign_paths(*crowded(num_items=3000), penalty=0.01, iterations=2, block_size=1100))
    numba.set_num_threads(before)
    codes, scores, counts, current = crowded(num_items=3000)
    order = np.random.default_rng(0).permutation(3000)
    expected = twin(codes.tolist(), scores, counts, current.tolist(), 0.01, 4, 2, order, 1100)
    assert all((result == expected).all() for result in results)


def test_the_seed_fixes_the_order():
    first, again, other = (assign_paths(*crowded(), penalty=0.01, seed=seed) for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_the_objective_is_the_formula():
    # Item 0: 3 log(0.5 + 0.25); item 1 has no scores. Sizes: path 1 holds both items, paths 2 and 4 one each.
    value = assignment_objective(
        [[1, 2, 3], [-1, -1, -1]],
        [[0.5, 0.25, 0.2], [0, 0, 0]],
        [3, 7],
        [[1, 2], [1, 4]],
        penalty=0.1,
        penalty_degree=2,
    )
    assert value == pytest.approx(3 * math.log(0.75) - 0.1 * (4 / 2 + 1 / 2 + 1 / 2))


def test_the_objective_of_an_item_on_none_of_its_scored_paths_is_minus_infinity():
    assert assignment_objective([[1]], [[0.5]], [3], [[2]], penalty=0.1) == -math.inf


def test_the_block_size_depends_on_the_number_of_items():
    assert [default_block_size(items) for items in (1, 1024, 10_240, 10**8)] == [1, 1, 10, 8192]


GOOD = {"codes": [[1, 2]], "scores": [[0.5, 0.2]], "counts": [1], "current_paths": [[3]], "penalty": 0.1}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"codes": [[1, 1]]},
            DataError,
            "codes: row 0 breaks the rule that a row must hold a path once; add up its scores",
        ),
        (
            {"scores": [[0.2, 0.5]]},
            DataError,
            "scores: row 0 breaks the rule that a row must descend to 0 where codes has -1",
        ),
        ({"codes": [[1, -1]]}, DataError, "scores: row 0 breaks the rule"),
        ({"scores": [[np.inf, 0.5]]}, DataError, "scores: must hold finite values"),
        ({"counts": [-1]}, DataError, "counts: must hold finite values of at least 0"),
        ({"counts": [1, 1]}, DataError, r"counts: has shape \(2,\), must have shape \(1\)"),
        (
            {"current_paths": [[3, 3]]},
            DataError,
            "current_paths: row 0 breaks the rule that a row must hold a path once; start from",
        ),
        ({"current_paths": [[-3]]}, DataError, "current_paths: holds -3"),
        ({"penalty": -1.0}, ConfigError, "penalty=-1.0: must be a finite number at least 0"),
        ({"penalty_degree": 1}, ConfigError, "penalty_degree=1: must be a finite number at least 2"),
        ({"iterations": 0}, ConfigError, "iterations=0: must be a whole number of at least 1"),
        ({"block_size": 0}, ConfigError, "block_size=0: must be a whole number of at least 1"),
        ({"seed": -1}, ConfigError, "seed=-1: must be a whole number of at least 0"),
    ],
)
def test_invalid_input_is_refused(change, error, message):
    with pytest.raises(error, match=message):
        assign_paths(**{**GOOD, **change})
