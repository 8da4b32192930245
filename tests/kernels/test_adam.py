"""One Adam step on one row, by hand."""

import numpy as np

from pathdex.kernels.adam import update_rows


def test_a_first_step_by_hand() -> None:
    table, first, second = (np.zeros((3, 2), np.float32) for _ in range(3))
    gradient = np.array([[2.0, -4.0]], np.float32)
    update_rows(table, first, second, gradient, np.array([1]), 0.9, 0.999, 0.1)
    np.testing.assert_allclose(first[1], [0.2, -0.4], rtol=1e-5)
    np.testing.assert_allclose(second[1], [0.004, 0.016], rtol=1e-5)
    # 0.1 * 0.2 / sqrt(0.004) and 0.1 * 0.4 / sqrt(0.016): the same size, whatever the gradient.
    np.testing.assert_allclose(table[1], [-0.316228, 0.316228], rtol=1e-4)
    assert not table[[0, 2]].any()
