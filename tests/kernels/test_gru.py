"""The compiled GRU step by step against its formulas."""

import numpy as np
import pytest

from pathdex.kernels.gru import GATES, GRU, HISTORIES, UNITS, advance_gru, advance_grus, gru_rows, read_gru


def random_weights(dim: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(dim)
    shapes = {
        "recurrent.weight_ih_l0": (GATES * dim, dim),
        "recurrent.weight_hh_l0": (GATES * dim, dim),
        "recurrent.bias_ih_l0": (GATES * dim,),
        "recurrent.bias_hh_l0": (GATES * dim,),
        "project.weight": (dim, dim),
        "project.bias": (dim,),
        "last.weight": (dim, dim),
        "mean.weight": (dim, dim),
    }
    return {name: generator.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step(weights: dict[str, np.ndarray], hidden: np.ndarray, x: np.ndarray) -> np.ndarray:
    from_input = weights["recurrent.weight_ih_l0"] @ x + weights["recurrent.bias_ih_l0"]
    from_hidden = weights["recurrent.weight_hh_l0"] @ hidden + weights["recurrent.bias_hh_l0"]
    (xr, xz, xn), (hr, hz, hn) = np.split(from_input, GATES), np.split(from_hidden, GATES)
    new = np.tanh(xn + sigmoid(xr + hr) * hn)
    return new + sigmoid(xz + hz) * (hidden - new)


@pytest.mark.parametrize("dim", [1, 7, UNITS, UNITS + 1, 2 * UNITS, 3 * UNITS])
@pytest.mark.parametrize("steps", [1, 2, 7])
def test_steps_equal_the_formulas(dim: int, steps: int) -> None:
    weights = random_weights(dim)
    inputs = np.random.default_rng(steps).normal(size=(steps, dim)).astype(np.float32)
    hidden = np.zeros(dim)
    for x in inputs:
        hidden = step(weights, hidden, x)
    gru = GRU.pack(weights)
    state = np.zeros((gru_rows(gru, steps), dim), np.float32)
    advance_gru(gru, state, 0, inputs)
    np.testing.assert_allclose(state[0], hidden, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state[1], inputs.sum(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(state[2], inputs[-1])
    user = weights["project.weight"] @ hidden + weights["project.bias"]
    user += weights["last.weight"] @ inputs[-1] + weights["mean.weight"] @ inputs.mean(axis=0)
    np.testing.assert_allclose(read_gru(gru, state, steps), user, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dim", [7, UNITS, UNITS + 1])
@pytest.mark.parametrize("steps", [(5,), (3, 8), (6, 6, 6), (1, 9, 4, 9), (7, 7, 7, 7), (9, 1, 1, 2), (2, 3, 4, 5)])
def test_histories_together_have_the_bits_of_each_alone(dim: int, steps: tuple[int, ...]) -> None:
    assert len(steps) <= HISTORIES
    gru, starts = GRU.pack(random_weights(dim)), np.cumsum([0, *steps])
    inputs = np.random.default_rng(dim).normal(size=(starts[-1], dim)).astype(np.float32)
    states = np.random.default_rng(0).normal(size=(len(steps), gru_rows(gru, 9), dim)).astype(np.float32)
    alone = states.copy()
    advance_grus(gru, states, inputs, starts)
    for i in range(len(steps)):
        advance_gru(gru, alone[i], 0, inputs[starts[i] : starts[i + 1]])
    np.testing.assert_array_equal(states, alone)


def test_large_inputs_saturate() -> None:
    weights = random_weights(3)
    gru = GRU.pack(weights)
    state = np.zeros((3, 3), np.float32)
    advance_gru(gru, state, 0, np.full((4, 3), 1e4, np.float32))
    assert np.isfinite(state).all()
    assert (np.abs(state[0]) <= 1).all()
