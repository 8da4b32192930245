import numpy as np

from pathdex.index.path_ids import number_paths


def test_numbers_follow_the_codes_and_rows_follow_the_order():
    # Items 2 and 0 have scores and are visited in that order; item 1 has none and comes last.
    codes = np.array([[70, 10], [-1, -1], [90, 50]])
    scores = np.array([[0.6, 0.4], [0.0, 0.0], [0.7, 0.0]], np.float32)
    current = np.array([[10], [30], [90]])
    numbered = number_paths(codes, scores, current, order=np.array([2, 0, 1]), num_scored=2)
    assert numbered.codes.tolist() == [10, 30, 70, 90]  # 50 has no score
    assert numbered.candidates.tolist() == [[3, -1], [2, 0]]
    assert numbered.scores.tolist() == scores[[2, 0]].tolist()
    assert numbered.current.tolist() == [[3], [0], [1]]


def test_the_table_grows_with_the_paths():
    codes = np.random.default_rng(0).permutation(10**6)[:30_000].reshape(3000, 10)
    scores = np.ones(codes.shape, np.float32)
    order = np.arange(3000)
    numbered = number_paths(codes, scores, codes[:, :2].copy(), order, num_scored=3000)
    assert numbered.codes.tolist() == sorted(codes.ravel().tolist())
    assert (numbered.codes[numbered.candidates] == codes).all()
    assert (numbered.codes[numbered.current] == codes[:, :2]).all()
