"""The softmax loss of rows of scores and its gradient, against numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.sampled_softmax import softmax_rows
from pathdex.kernels.softmax import PADDING


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.floats(0.1, 10), st.integers(0, 99))
def test_loss_and_gradient_equal_those_of_numpy(items: int, rows: int, spread: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    width = (items + 16) // 16 * 16
    scores, offset = np.zeros((rows, width), np.float32), np.full(width, PADDING, np.float32)
    scores[:, :items], offset[:items] = spread * random.normal(size=(rows, items)), random.normal(size=items)
    positive, own = random.normal(size=rows).astype(np.float32), random.integers(-1, items, rows)

    others = scores[:, :items].astype(np.float64) + offset[:items]
    others[own >= 0, own[own >= 0]] = -np.inf
    every = np.exp(np.column_stack([others, positive]))
    share = every / every.sum(axis=1, keepdims=True)

    pulls, sums = np.empty(rows, np.float32), np.zeros(width, np.float32)
    loss = softmax_rows(scores, offset, positive, own, items, pulls, sums)
    np.testing.assert_allclose(loss, -np.log(share[:, -1]).sum(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores[:, :items], share[:, :-1], atol=1e-5)
    np.testing.assert_allclose(pulls, share[:, -1] - 1, atol=1e-5)
    np.testing.assert_allclose(sums[:items], share[:, :-1].sum(axis=0), atol=1e-4)
    np.testing.assert_allclose(scores[:, items:], 0, atol=1e-20)
