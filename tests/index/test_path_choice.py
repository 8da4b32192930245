"""The choice of one item by hand and against a version that looks at every candidate."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.index.path_choice import Penalty, choose_paths, keep_current_paths


def choose(scores, sizes, J=1, N_v=1.0, last=(), alpha=0.1, degree=2.0):
    """Positions that an item with candidate paths 0, 1, ... of these sizes chooses."""
    chosen = np.full(J, -1)
    found = choose_paths(
        np.arange(len(scores)),
        np.array(scores, np.float32),
        np.float32(N_v),
        np.array(last, np.int64),
        np.array(sizes, np.int32),
        Penalty.of(alpha, degree),
        np.empty(len(scores), np.int32),
        chosen,
    )
    return chosen[:found].tolist()


def choose_slowly(scores, sizes, J, N_v, last, alpha, degree):
    def f(size):
        return float(size) ** degree / degree

    scores, chosen, partial_sum = np.float64(np.float32(scores)), [], 0.0
    for _ in range(J):
        gains = {}
        for c in np.flatnonzero(scores > 0).tolist():
            size = sizes[c] - (c in last)
            if c not in chosen:
                likelihood = np.log(partial_sum + scores[c]) - (np.log(partial_sum) if chosen else 0.0)
                gains[c] = N_v * likelihood - alpha * (f(size + 1) - f(size))
        if not gains:
            break
        best = max(gains, key=gains.get)
        chosen.append(best)
        partial_sum += scores[best]
    return chosen


def test_an_empty_path_wins_if_its_likelihood_is_close_enough():
    # log(0.5 / 0.4) = 0.22 against 0.1 * (3 - 1) / 2 * n for a path of n items.
    assert choose([0.5, 0.4], sizes=[2, 0]) == [0]
    assert choose([0.5, 0.4], sizes=[3, 0]) == [1]


def test_an_item_does_not_count_against_its_own_path():
    assert choose([0.5, 0.4], sizes=[3, 0], last=[0]) == [0]


def test_a_row_ends_at_its_first_score_of_0():
    assert choose([0.5, 0.0], sizes=[9, 0], J=2) == [0]
    assert choose([0.0], sizes=[0]) == []


def test_the_price_of_large_paths_is_computed():
    price = Penalty.of(0.5, 3.0)
    size = len(price.steps)
    assert price.steps[-1] == 0.5 * (size**3.0 / 3 - (size - 1) ** 3.0 / 3)
    assert choose([0.5, 0.49], sizes=[size + 1, size]) == [1]
    assert choose([0.5, 0.49], sizes=[size, size + 1]) == [0]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_stopping_early_changes_nothing(data):
    count = data.draw(st.integers(1, 12))
    # From equal scores to steep ones, and from no penalty to one that outweighs all likelihood.
    steepness = data.draw(st.sampled_from([0.0, 1e-9, 1e-3, 0.2, 3.0]))
    steps = data.draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    arguments = {
        "scores": np.exp(-steepness * np.cumsum(steps)).tolist(),
        "sizes": data.draw(st.lists(st.sampled_from([1, 2, 3, 10, 11, 900, 2000]), min_size=count, max_size=count)),
        "J": data.draw(st.integers(1, 4)),
        "N_v": data.draw(st.sampled_from([0.0, 1.0, 7.0, 1e5])),
        "last": data.draw(st.lists(st.integers(0, count - 1), max_size=3, unique=True)),
        "alpha": data.draw(st.sampled_from([0.0, 1e-9, 1e-3, 0.1, 1.0, 1e9])),
        "degree": data.draw(st.sampled_from([2.0, 2.5, 4.0])),
    }
    assert choose(**arguments) == choose_slowly(**arguments)


@pytest.mark.parametrize(
    ("chosen", "found", "expected"), [([5, 0, 0], 1, [5, 4, 6]), ([4, 0, 0], 1, [4, 5, 6]), ([1, 2, 3], 3, [1, 2, 3])]
)
def test_current_paths_fill_up_without_duplicates(chosen, found, expected):
    paths = np.array(chosen)
    keep_current_paths(paths, found, np.array([4, 5, 6]))
    assert paths.tolist() == expected
