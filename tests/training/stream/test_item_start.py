"""The start of a new item, by hand."""

import numpy as np

from pathdex.training.stream.item_start import mean_length, scale_to, weighted_start


def test_the_mean_is_weighted():
    mean, _ = weighted_start(np.array([[1, 0], [0, 4]], np.float32), np.array([[1, 2], [3, 4]]), [3.0, 1.0])
    np.testing.assert_allclose(mean, [0.75, 1.0])


def test_the_paths_are_those_that_weigh_most_and_of_the_best_item_where_they_are_equal():
    vectors = np.zeros((3, 2), np.float32)
    _, paths = weighted_start(vectors, np.array([[1, 2], [3, 4], [4, 5]]), [0.9, 0.5, 0.5])
    assert paths.tolist() == [[4, 1]]
    _, paths = weighted_start(vectors[:2], np.array([[7, 2], [3, 4]]), [0.5, 0.5])
    assert paths.tolist() == [[7, 2]]


def test_a_start_has_the_mean_length_of_its_models():
    models = np.array([[3, 4], [0, 1]], np.float32)
    assert mean_length(models) == 3.0
    start = scale_to(models.mean(axis=0), mean_length(models))
    np.testing.assert_allclose(np.linalg.norm(start), 3.0, rtol=1e-6)
    np.testing.assert_allclose(start / np.linalg.norm(start), [1.5 / 2.9155, 2.5 / 2.9155], rtol=1e-4)


def test_a_zero_vector_stays_zero():
    assert scale_to(np.zeros(3, np.float32), 2.0).tolist() == [0, 0, 0]
