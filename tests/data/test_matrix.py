"""Sequences as a sparse matrix."""

from pathdex.data.matrix import interaction_matrix
from pathdex.data.ragged import Ragged

ROWS = Ragged.from_rows([[2, 0, 2], [], [1]])


def test_counts_and_ones() -> None:
    assert interaction_matrix(ROWS, 4, binary=False).toarray().tolist() == [[1, 0, 2, 0], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert interaction_matrix(ROWS, 4, binary=True).toarray().tolist() == [[1, 0, 1, 0], [0, 0, 0, 0], [0, 1, 0, 0]]


def test_the_sequences_are_not_changed() -> None:
    interaction_matrix(ROWS, 4, binary=True)
    assert ROWS.values.tolist() == [2, 0, 2, 1]
