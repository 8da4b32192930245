"""The compiled GRU against a loop in numpy, and its independence of how windows are split."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.gru_training import gru_backward, gru_forward, running_mean, running_mean_backward


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def plain_states(gates: np.ndarray, weight: np.ndarray, bias: np.ndarray, hidden: int) -> np.ndarray:
    """The states after each step."""
    state, states = np.zeros((gates.shape[1], hidden)), []
    for step in gates:
        own = state @ weight + bias
        r, z = (sigmoid(step[:, part] + own[:, part]) for part in (slice(0, hidden), slice(hidden, 2 * hidden)))
        n = np.tanh(step[:, 2 * hidden :] + r * own[:, 2 * hidden :])
        state = (1 - z) * n + z * state
        states.append(state)
    return np.stack(states)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(1, 9), st.sampled_from([1, 3, 16, 20]), st.integers(0, 99))
def test_states_equal_those_of_a_plain_loop(time: int, batch: int, hidden: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    gates, weight, bias = (
        random.normal(size=shape).astype(np.float32)
        for shape in ((time, batch, 3 * hidden), (hidden, 3 * hidden), (3 * hidden,))
    )
    states, candidate = np.zeros((time + 1, batch, hidden), np.float32), np.empty((time, batch, hidden), np.float32)
    expected = plain_states(gates, weight, bias, hidden)
    gates = gates.reshape(time, batch, 3, hidden)
    halves = gates.copy(), states.copy(), candidate.copy()
    gru_forward(gates, weight, bias, states, candidate, 0, batch)
    np.testing.assert_allclose(states[1:], expected, atol=1e-5)
    for first, last in ((0, batch // 2), (batch // 2, batch)):
        gru_forward(halves[0], weight, bias, halves[1], halves[2], first, last)
    np.testing.assert_allclose(halves[1], states, atol=1e-5)


def test_the_gradient_of_one_step_from_zero_by_hand() -> None:
    # With h = 0: h' = (1 - z) n, so dn = (1 - z)(1 - n^2), dz = -n z (1 - z), and r has no effect without a state.
    gates = np.array([0.3, -0.2, 0.7], np.float32).reshape(1, 1, 3, 1)
    weight, bias = np.ones((1, 3), np.float32), np.zeros(3, np.float32)
    states, candidate = np.zeros((2, 1, 1), np.float32), np.empty((1, 1, 1), np.float32)
    gru_forward(gates, weight, bias, states, candidate, 0, 1)
    z, n = sigmoid(np.float32(-0.2)), np.tanh(np.float32(0.7))
    gru_backward(gates, weight.T.copy(), states, candidate, np.ones((1, 1, 1), np.float32), 0, 1)
    np.testing.assert_allclose(gates.ravel(), [0, -n * z * (1 - z), (1 - z) * (1 - n * n)], rtol=1e-5, atol=1e-7)


def test_running_mean_and_its_gradient() -> None:
    values = np.array([2.0, 4.0, 9.0], np.float32).reshape(3, 1, 1)
    means, gradient = np.empty_like(values), np.zeros_like(values)
    running_mean(values, means)
    np.testing.assert_allclose(means.ravel(), [2, 3, 5])
    running_mean_backward(np.ones_like(values), gradient)  # 1 + 1/2 + 1/3, 1/2 + 1/3, 1/3
    np.testing.assert_allclose(gradient.ravel(), [11 / 6, 5 / 6, 1 / 3], rtol=1e-6)
