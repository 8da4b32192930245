"""Path numbers by hand and round trip."""

import numpy as np
import pytest

from pathdex.index.path_ids import PathNumbers


def test_small_codes_are_their_own_numbers():
    codes = np.array([[7, 3], [15, -1]])
    numbers = PathNumbers.for_table(codes, np.array([[1], [2]]))
    assert numbers.number(codes) is codes
    assert len(numbers) == 16
    assert numbers.find(np.array([[3, 16], [-1, 0]])).tolist() == [[3, -1], [-1, 0]]


def test_codes_are_numbered_as_they_occur_up_to_the_first_score_of_0():
    codes = np.array([[70, 10], [90, 50], [10, 70]])
    scores = np.array([[0.6, 0.4], [0.7, 0.0], [0.5, 0.5]], np.float32)
    current = np.array([[10], [30], [90]])
    numbers = PathNumbers.for_table(codes, current)
    assert numbers.number(codes, scores).tolist() == [[0, 1], [2, -1], [1, 0]]
    assert numbers.number(current).tolist() == [[1], [3], [2]]
    assert len(numbers) == 4
    assert numbers.codes(np.array([[3, 2, 1, 0]])).tolist() == [[30, 90, 10, 70]]
    assert numbers.find(np.array([[30, 50], [-1, 10]])).tolist() == [[3, -1], [-1, 1]]


@pytest.mark.parametrize("parts", [1, 7])
def test_the_hash_table_grows_with_the_paths(parts):
    codes = np.random.default_rng(0).permutation(10**6)[:30_000].reshape(3000, 10)
    numbers = PathNumbers.for_table(codes, codes)
    found = np.concatenate([numbers.number(part) for part in np.array_split(codes, parts)])
    assert found.ravel().tolist() == list(range(30_000))
    assert (numbers.codes(found) == codes).all()
