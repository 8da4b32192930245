"""JTM's reassignment: swaps by hand, gains against a loop, and items that move to the right node."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pathdex.data.ragged import Ragged
from pathdex.recommenders.tree.assignment import (
    _gains,
    _sample,
    _segments,
    _share_out,
    exchange,
    reassigned_tree,
)
from pathdex.recommenders.tree.network import Histories
from pathdex.recommenders.tree.tree import Tree
from tests.recommenders.tree.tiny import tiny_network

SEQUENCES = Ragged.from_rows([[0, 3, 5], [4, 4, 1, 2], [6]])


def exchanged(gains: list[list[float]], columns: list[int]) -> list[int]:
    return exchange(np.array(gains), np.array(columns), 10).tolist()


def test_rows_swap_if_the_sum_gains() -> None:
    # Row 0 gains 3 and row 1 loses 1 by swapping; rows 2 and 3 would lose.
    gains = [[0.0, 3.0], [0.0, 1.0], [2.0, 0.0], [1.0, 2.0]]
    assert exchanged(gains, [0, 1, 0, 1]) == [1, 0, 0, 1]


def test_contested_column_goes_to_the_rows_with_the_largest_gain() -> None:
    # All rows prefer the first column; rows 1 and 2 have the most to lose.
    assert exchanged([[5.0, 4.0], [9.0, 1.0], [3.0, 0.0], [2.0, 2.0]], [0, 1, 1, 0]) == [1, 0, 0, 1]


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 1000), num_columns=st.integers(1, 5))
def test_no_swap_that_gains_is_left(seed: int, num_columns: int) -> None:
    random = np.random.default_rng(seed)
    columns = random.permutation(np.repeat(np.arange(num_columns), random.integers(1, 5, num_columns)))
    rows = np.arange(len(columns))
    gains = random.normal(size=(len(columns), num_columns)) + 3 * random.normal(size=num_columns)
    found = exchange(gains, columns, 10)
    assert np.bincount(found).tolist() == np.bincount(columns).tolist()
    assert gains[rows, found].sum() >= gains[rows, columns].sum() - 1e-9
    own, elsewhere = gains[rows, found], gains[:, found]  # elsewhere[i, j]: row i in the column of row j
    assert (elsewhere + elsewhere.T <= own[:, None] + own + 1e-9).all()


def test_items_stay_without_a_gain() -> None:
    tree = Tree(np.array([2, 0, 3, 1]))
    assert _share_out(tree, 0, 1, np.zeros((4, 2))).tolist() == [2, 0, 3, 1]


def test_items_swap_if_both_gain() -> None:
    tree = Tree(np.arange(4))
    gains = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    order = _share_out(tree, 0, 1, gains)
    assert sorted(order[:2].tolist()) == [0, 2]


def test_segments_stop_every_gap_levels() -> None:
    assert _segments(6, 12, 3) == [6, 9, 11]
    assert _segments(2, 3, 5) == [2]
    assert _segments(1, 6, 2) == [1, 3, 5]


def test_sample_limits_interactions_per_item() -> None:
    values = np.array([0, 1, 0, 0, 2, 0], np.int32)
    chosen = _sample(values, 2, np.random.default_rng(0))
    assert np.bincount(values[chosen]).tolist() == [2, 1, 1]


def log_sigmoid(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    return -np.log1p(np.exp(-logits.astype(np.float64)))


@torch.no_grad()
def test_gains_are_sums_of_log_probabilities() -> None:
    network = tiny_network(7, hierarchical=True)
    tree = network.tree
    gains = _gains(network, tree, 0, range(1, 3), SEQUENCES, np.ones(8, np.bool_))
    expected = np.zeros((7, 4))
    for row in SEQUENCES:
        for place, item in enumerate(row.tolist()):
            history = np.array([[-1, *row[:place].tolist()]])
            histories = Histories(network, history, np.array([0]), np.array([place]))
            first, second = (log_sigmoid(histories.logits(level, np.arange(2**level)[None])[0]) for level in (1, 2))
            expected[item] += np.repeat(first, 2) + second
    np.testing.assert_allclose(gains, expected, rtol=1e-4, atol=1e-5)


def test_items_move_to_the_node_that_scores_them() -> None:
    # Users of odd items have seen item 8 and those of even items item 9; node 1 of level 1 wants the former, node 0
    # the latter. Whatever the tree was before, odd items end under node 1.
    network = tiny_network(10, node_model="dnn", first_level=1, gap=1)
    with torch.no_grad():
        for parameter in network.model.parameters():
            parameter.zero_()
        network.model.last.weight.copy_(torch.eye(4))
        network.rows.zero_()
        network.rows[8, 0], network.rows[9, 0] = 1.0, -1.0
        first = network.tree.first_row(1)
        network.rows[first, 0], network.rows[first + 1, 0] = -3.0, 3.0
    sequences = Ragged.from_rows([[8 if item % 2 else 9, item] for item in range(8)])
    tree = reassigned_tree(network, sequences, gap=1, samples=4, random=np.random.default_rng(0))
    assert sorted(tree.order.tolist()) == list(range(10))
    assert tree.ancestors(1)[:8].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
