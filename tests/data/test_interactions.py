"""Interactions: sizes, counts and subsets."""

import numpy as np

from pathdex.data import Interactions, Ragged, Vocabulary


def interactions(ordered=True):
    return Interactions(
        Ragged.from_rows([[0, 1, 0], [2], [1, 2]]),
        Vocabulary(["ann", "bob", "cy"]),
        Vocabulary(np.array([10, 20, 30, 40])),
        np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ordered,
        {"rows": 6},
    )


def test_sizes_and_counts():
    data = interactions()
    assert (data.num_users, data.num_items, data.num_interactions) == (3, 4, 6)
    assert data.item_counts().tolist() == [2, 2, 2, 0]


def test_take_keeps_the_catalogue_and_takes_the_times():
    data = interactions().take(np.array([2, 0]))
    assert data.users.ids([0, 1]) == ["cy", "ann"]
    assert [row.tolist() for row in data.sequences] == [[1, 2], [0, 1, 0]]
    assert data.times.tolist() == [5.0, 6.0, 1.0, 2.0, 3.0]
    assert data.num_items == 4
    assert data.notes == {"rows": 6}


def test_only_sequences_without_an_order_are_shuffled():
    data = interactions()
    assert data.shuffled_if_unordered(0) is data
    rows = Ragged.from_rows([range(30), [40], range(10)])
    unordered = Interactions(rows, Vocabulary([1, 2, 3]), Vocabulary(np.arange(50)), None, False)
    shuffled, same = unordered.shuffled_if_unordered(1), unordered.shuffled_if_unordered(1)
    assert [sorted(row) for row in shuffled.sequences] == [sorted(row) for row in rows]
    assert shuffled.sequences[0].tolist() != list(range(30))
    assert shuffled.sequences.values.tolist() == same.sequences.values.tolist()


def test_repr_mentions_a_missing_order():
    assert repr(interactions()) == "Interactions(3 users, 4 items, 6 interactions)"
    assert repr(interactions(ordered=False)) == "Interactions(3 users, 4 items, 6 interactions, no order)"
