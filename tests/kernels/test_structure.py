"""The packed structure model against torch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.gemm import LANES
from pathdex.kernels.softmax import PADDING
from pathdex.kernels.structure import (
    STATES,
    StructureWeights,
    advance,
    begin,
    layer_logits,
    layer_probabilities,
    new_scratch,
    score_nodes,
)
from pathdex.model.structure import STRUCTURES, MLPStructure
from tests.kernels.structures import DIM, packed, random_structure


def test_nodes_are_padded_to_whole_tiles() -> None:
    nodes, outputs, bias = np.ones((2, 3, 2, 4)), np.ones((2, 3, 4)), np.ones((2, 3))
    weights = StructureWeights.from_layers(nodes, outputs, bias)
    assert (weights.num_nodes, weights.depth, weights.recurrent) == (3, 2, False)
    assert weights.nodes.shape == (2, 3, 2 * 4)
    assert weights.outputs.shape == (2, 4, LANES)
    assert weights.outputs[:, :, 3:].sum() == 0
    assert weights.bias[:, :3].sum() == 6
    assert (weights.bias[:, 3:] == PADDING).all()


def test_a_layer_by_hand() -> None:
    weights = StructureWeights.from_layers(
        np.zeros((1, 2, 1, 2)), np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.array([[0.5, -0.5]])
    )
    sums, logits = np.array([[1.0, -9.0]], np.float32), np.empty((1, LANES), np.float32)
    layer_logits(weights, 0, sums, 1, logits)  # relu drops the -9
    assert logits[0, :2].tolist() == [1.5, 2.5]
    layer_probabilities(weights, 0, sums, 1, logits)
    np.testing.assert_allclose(logits[0, :2], [1 / (1 + np.e), np.e / (1 + np.e)], rtol=1e-5)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_names_and_torch_layers_pack_to_the_same_weights(depth: int) -> None:
    structure = random_structure("mlp", 5, depth, 0)
    assert isinstance(structure, MLPStructure)
    by_name, by_layers = packed(structure), StructureWeights.from_layers(*structure.layer_arrays())
    np.testing.assert_allclose(by_name.nodes, by_layers.nodes, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(by_name.outputs, by_layers.outputs)
    np.testing.assert_array_equal(by_name.bias, by_layers.bias)


@pytest.mark.parametrize("kind", sorted(STRUCTURES))
@settings(max_examples=20, deadline=None)
@given(nodes=st.integers(1, 20), depth=st.integers(1, 4), states=st.integers(1, STATES), seed=st.integers(0, 99))
def test_states_and_logits_equal_those_of_torch(kind: str, nodes: int, depth: int, states: int, seed: int) -> None:
    structure = random_structure(kind, nodes, depth, seed)
    weights = packed(structure)
    scratch, random = new_scratch(weights), np.random.default_rng(seed)
    user = torch.randn(1, DIM)
    expected = structure.begin(user)
    state = begin(weights, user[0].numpy()).reshape(1, -1)
    for layer in range(depth):
        score_nodes(weights, state, layer, scratch)
        log_p = scratch.logits[: len(state), :nodes] - scratch.norms[: len(state), None]
        with torch.no_grad():
            wanted = structure.logits(expected, layer).log_softmax(-1).numpy()
        np.testing.assert_allclose(log_p, wanted, rtol=1e-3, atol=1e-3)
        if layer + 1 < depth:
            parents, chosen = random.integers(0, len(state), states), random.integers(0, nodes, states)
            after = np.empty((states, state.shape[1]), np.float32)
            advance(weights, state, parents, layer, chosen, scratch, after)
            with torch.no_grad():
                expected = structure.advance(expected[torch.from_numpy(parents)], layer, torch.from_numpy(chosen))
            state = after
