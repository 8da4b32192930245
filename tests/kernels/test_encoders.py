"""Compiled encoders against those of the model, with random weights."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.kernels.encoders import ENCODERS, Encoder, input_vectors
from pathdex.model.encoders import ENCODERS as MODEL_ENCODERS
from pathdex.model.network import Network

ITEMS = 12
LENGTH = 6


def random_network(encoder: str, dim: int, seed: int) -> Network:
    torch.manual_seed(seed)
    network = Network(Config(encoder=encoder, embedding_dim=dim, num_nodes=3, history_length=LENGTH), ITEMS)
    for parameter in network.parameters():
        parameter.data.normal_(0, 0.5)
    return network


def packed(network: Network, encoder: str) -> Encoder:
    weights = network.export()
    return ENCODERS[encoder].pack(
        {name.removeprefix("encoder."): value for name, value in weights.items() if name.startswith("encoder.")}
    )


def test_every_encoder_of_the_model_has_a_compiled_version() -> None:
    assert ENCODERS.keys() == MODEL_ENCODERS.keys()


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
@settings(max_examples=25, deadline=None)
@given(
    dim=st.sampled_from([1, 5, 8, 32, 40]),
    seed=st.integers(0, 1000),
    codes=st.lists(st.integers(0, ITEMS - 1), max_size=LENGTH - 1),
    cut=st.integers(0, LENGTH),
)
def test_a_history_in_one_or_two_parts_gives_the_vector_of_the_model(
    encoder: str, dim: int, seed: int, codes: list[int], cut: int
) -> None:
    network = random_network(encoder, dim, seed)
    expected = network.user_vectors(Ragged.from_rows([codes]))[0].numpy()
    compiled = packed(network, encoder)
    inputs = input_vectors(network.items.rows.numpy(), network.start.detach().numpy(), np.array([-1, *codes], np.int64))
    state = np.zeros((compiled.state_rows(LENGTH), dim), np.float32)
    cut = min(cut, len(inputs))
    for begin, end in ((0, cut), (cut, len(inputs))):
        if end > begin:
            compiled.advance(state, begin, inputs[begin:end])
    np.testing.assert_allclose(compiled.read(state, len(inputs)), expected, rtol=1e-4, atol=1e-5)


def test_input_vectors_are_rows_of_the_table_or_the_start() -> None:
    table, start = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([-1, -2], np.float32)
    inputs = input_vectors(table, start, np.array([-1, 2, 0]))
    assert inputs.tolist() == [[-1, -2], [6, 7], [0, 1]]
