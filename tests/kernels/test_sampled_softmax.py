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

    users, vectors = (random.normal(size=(size, 4)).astype(np.float32) for size in (rows, width))
    pulls, sums = np.empty(rows, np.float32), np.zeros(width, np.float32)
    users_gradient, items_gradient = np.empty_like(users), np.zeros_like(vectors)
    points, draws = random.random(rows, np.float32), 1 << 12
    before = scores, offset, positive, own, items, points, draws
    loss = softmax_rows(*before, users, vectors, pulls, users_gradient, items_gradient, sums)
    np.testing.assert_allclose(loss, -np.log(share[:, -1]).sum(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores[:, :items], share[:, :-1], atol=1e-5)
    np.testing.assert_allclose(scores[:, items:], 0, atol=1e-20)
    np.testing.assert_allclose(pulls, share[:, -1] - 1, atol=1e-5)
    # The gradient is exact up to one draw of each number.
    np.testing.assert_allclose(sums[:items], share[:, :-1].sum(axis=0), atol=2e-3)
    np.testing.assert_allclose(users_gradient, share[:, :-1] @ vectors[:items], atol=5e-2)
    np.testing.assert_allclose(items_gradient[:items], share[:, :-1].T @ users, atol=5e-3)
