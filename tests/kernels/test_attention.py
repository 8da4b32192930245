"""The attention kernel against a numpy version, and its cache against reading everything at once."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pathdex.kernels.attention import EPSILON, Attention, advance_attention, attention_rows, read_attention

DIM, BLOCKS, LENGTH = 4, 2, 20


def random_weights(seed: int) -> dict[str, NDArray[np.float32]]:
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {"norm.weight": (DIM,), "norm.bias": (DIM,), "last.weight": (DIM, DIM)}
    for block in range(BLOCKS):
        for name, shape in {
            "norm": (DIM,),
            "query_key_value": (3 * DIM, DIM),
            "merge": (DIM, DIM),
            "forward_network.0": (DIM,),
            "forward_network.1": (2 * DIM, DIM),
            "forward_network.4": (DIM, 2 * DIM),
        }.items():
            shapes[f"blocks.{block}.{name}.weight"] = shape
            shapes[f"blocks.{block}.{name}.bias"] = shape[:1]
    return {name: random.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def twin(weights: dict[str, Any], inputs: NDArray[np.float32]) -> NDArray[np.float64]:
    """The user vector after all inputs, block by block over the whole history."""

    def normed(x: NDArray[Any], name: str) -> NDArray[Any]:
        spread = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
        scaled: NDArray[Any] = spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
        return scaled

    def linear(x: NDArray[Any], name: str) -> NDArray[Any]:
        product: NDArray[Any] = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return product

    hidden, count, size = inputs.astype(np.float64), len(inputs), DIM // 2
    distance = np.arange(count)[:, None] - np.arange(count)
    for block in range(BLOCKS):
        at = f"blocks.{block}."
        query, key, value = np.split(linear(normed(hidden, f"{at}norm"), f"{at}query_key_value"), 3, axis=1)
        attended = np.empty_like(query)
        for head in range(2):
            own = slice(head * size, (head + 1) * size)
            logits = query[:, own] @ key[:, own].T / np.sqrt(size) - 2.0 ** (-3 * head - 1) * distance
            share = np.exp(np.where(distance < 0, -np.inf, logits))
            attended[:, own] = share / share.sum(1, keepdims=True) @ value[:, own]
        hidden = hidden + linear(attended, f"{at}merge")
        inner = np.maximum(linear(normed(hidden, f"{at}forward_network.0"), f"{at}forward_network.1"), 0)
        hidden = hidden + linear(inner, f"{at}forward_network.4")
    user: NDArray[np.float64] = normed(hidden[-1], "norm") + inputs[-1] @ weights["last.weight"].T
    return user


@pytest.mark.parametrize("parts", [[1], [17], [1, 1, 1], [16, 1], [3, 14]])
def test_a_history_in_any_parts_gives_the_vector_of_the_twin(parts: list[int]) -> None:
    weights = random_weights(0)
    packed = Attention.pack(weights)
    inputs = np.random.default_rng(1).normal(size=(sum(parts), DIM)).astype(np.float32)
    state, read = np.zeros((attention_rows(packed, LENGTH), DIM), np.float32), 0
    for part in parts:
        advance_attention(packed, state, read, inputs[read : read + part])
        read += part
        np.testing.assert_allclose(
            read_attention(packed, state, read), twin(weights, inputs[:read]), rtol=1e-3, atol=1e-4
        )
