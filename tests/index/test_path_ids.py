"""Path ids by hand and round trip."""

import numpy as np

from pathdex.index.path_ids import assign_path_ids


def test_ids_follow_the_codes_and_rows_follow_the_order():
    # Items 2 and 0 have scores and are visited in that order; item 1 has none and comes last.
    codes = np.array([[70, 10], [-1, -1], [90, 50]])
    scores = np.array([[0.6, 0.4], [0.0, 0.0], [0.7, 0.0]], np.float32)
    current = np.array([[10], [30], [90]])
    table = assign_path_ids(codes, scores, current, order=np.array([2, 0, 1]), num_scored=2)
    assert table.codes.tolist() == [10, 30, 70, 90]  # 50 has no score
    assert table.candidate_paths.tolist() == [[3, -1], [2, 0]]
    assert table.scores.tolist() == scores[[2, 0]].tolist()
    assert table.current.tolist() == [[3], [0], [1]]


def test_the_hash_table_grows_with_the_paths():
    codes = np.random.default_rng(0).permutation(10**6)[:30_000].reshape(3000, 10)
    scores = np.ones(codes.shape, np.float32)
    order = np.arange(3000)
    table = assign_path_ids(codes, scores, codes[:, :2].copy(), order, num_scored=3000)
    assert table.codes.tolist() == sorted(codes.ravel().tolist())
    assert (table.codes[table.candidate_paths] == codes).all()
    assert (table.codes[table.current] == codes[:, :2]).all()
