"""Compiled encoders against those of the model, with random weights."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.kernels.encoders import (
    ENCODERS,
    FUNCTIONS,
    TOGETHER,
    Encoder,
    advance_state,
    copy_inputs,
    encode_histories,
    encode_history,
)
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
    assert FUNCTIONS.keys() == set(ENCODERS.values())


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
    rows, start = network.items.rows.numpy(), network.start.detach().numpy()
    cut = min(cut, len(codes))
    state, user, count = encode_history(compiled, rows, start, np.array(codes[:cut], np.int64), LENGTH)
    for item in codes[cut:]:
        before = state.copy()
        state, user = advance_state(compiled, rows, before, count, item)
        count += 1
    assert count == 1 + len(codes)
    np.testing.assert_allclose(user, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
def test_a_full_history_has_no_start_and_older_items_are_not_read(encoder: str) -> None:
    network = random_network(encoder, 8, 0)
    codes = [3, 1, 4, 1, 5, 9, 2, 6]
    expected = network.user_vectors(Ragged.from_rows([codes[-LENGTH:]]))[0].numpy()
    for length in (LENGTH, len(codes)):
        history = np.array(codes[-length:], np.int32)
        _, user, count = encode_history(
            packed(network, encoder), network.items.rows.numpy(), network.start.detach().numpy(), history, LENGTH
        )
        assert count == LENGTH
        np.testing.assert_allclose(user, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("encoder", sorted(ENCODERS))
@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.lists(st.integers(0, ITEMS - 1), max_size=9), min_size=1, max_size=TOGETHER))
def test_histories_in_one_call_have_the_bits_of_each_alone(encoder: str, rows: list[list[int]]) -> None:
    network = random_network(encoder, 40, 0)
    weights, batch = packed(network, encoder), Ragged.from_rows(rows)
    table, start = network.items.rows.numpy(), network.start.detach().numpy()
    states, users, starts = encode_histories(weights, table, start, batch.values, batch.offsets, LENGTH)
    for i, row in enumerate(rows):
        state, user, count = encode_history(weights, table, start, np.array(row, batch.values.dtype), LENGTH)
        assert starts[i + 1] - starts[i] == count
        np.testing.assert_array_equal(states[i], state)
        np.testing.assert_array_equal(users[i], user)


def test_a_state_stays_as_it_was() -> None:
    network = random_network("gru", 8, 0)
    state = np.ones((3, 8), np.float32)
    advance_state(packed(network, "gru"), network.items.rows.numpy(), state, 2, 1)
    assert (state == 1).all()


def test_inputs_are_the_first_columns_of_rows() -> None:
    inputs = np.zeros((2, 2), np.float32)
    copy_inputs(np.arange(12, dtype=np.float32).reshape(4, 3), np.array([2, 0]), inputs)
    assert inputs.tolist() == [[6, 7], [0, 1]]
