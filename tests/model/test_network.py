import numpy as np
import pytest
import torch

from pathdex.config import Config, EncoderConfig
from pathdex.data.ragged import Ragged
from pathdex.model.network import Network, pad_histories


def make(**parameters: object) -> Network:
    torch.manual_seed(0)
    config = Config(num_nodes=3, embedding_dim=8, history_length=4).replace(**parameters)
    return Network(config, 10, config)


def test_a_short_history_begins_with_the_start_and_a_long_one_does_not() -> None:
    codes, last = pad_histories(Ragged.from_rows([[], [7], [1, 2, 3, 4]]), 4)
    assert codes.tolist() == [[-1, -1, -1, -1], [-1, 7, -1, -1], [1, 2, 3, 4]]
    assert last.tolist() == [0, 1, 3]


@pytest.mark.parametrize("encoder", ["gru", "pooled", "attention"])
def test_user_vectors_are_the_same_one_by_one_and_in_a_batch(encoder: str) -> None:
    network = make(encoder=encoder)
    histories = Ragged.from_rows([[], [7], [1, 2, 3], [9, 8, 7, 6, 5, 4], [3, 3]])
    together = network.user_vectors(histories)
    apart = torch.cat([network.user_vectors(histories.take(np.array([row]))) for row in range(5)])
    torch.testing.assert_close(together, apart, rtol=1e-5, atol=1e-6)


def test_only_the_latest_items_are_read() -> None:
    network = make()
    long, short = network.user_vectors(Ragged.from_rows([[9, 9, 1, 2, 3, 4], [1, 2, 3, 4]]))
    torch.testing.assert_close(long, short)


def test_weights_go_out_and_come_back() -> None:
    first, second = make(), make(dropout=0.1)
    second.items.rows += 1
    second.restore(first.export())
    histories = Ragged.from_rows([[1, 2]])
    torch.testing.assert_close(first.user_vectors(histories), second.user_vectors(histories))


def test_without_an_index_there_is_no_structure_model_and_the_rest_is_the_same() -> None:
    whole = make()
    torch.manual_seed(0)
    vectors_only = Network(EncoderConfig(embedding_dim=8, history_length=4), 10)
    assert whole.has_structure
    assert not vectors_only.has_structure
    shared = {name: value for name, value in whole.export().items() if not name.startswith("structure.")}
    assert vectors_only.export().keys() == shared.keys()
    for name, value in vectors_only.export().items():
        np.testing.assert_array_equal(value, shared[name], err_msg=name)
