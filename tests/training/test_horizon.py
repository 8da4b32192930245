import numpy as np
import pytest
import torch

from pathdex.config import Config
from pathdex.data import Queries, Ragged, Vocabulary
from pathdex.model.network import Network
from pathdex.training.horizon import AHEAD, HorizonMap, choose_horizon, decision_epoch, draw_horizons


def test_the_map_of_the_other_horizon_starts_as_the_identity() -> None:
    users = torch.randn(5, 3)
    assert torch.equal(HorizonMap(3)(users), users)


def test_the_next_item_alone_needs_no_second_horizon() -> None:
    readers, near = draw_horizons(Ragged.from_rows([[1, 2, 3]]), 1, np.random.default_rng(0))
    assert readers.tolist() == [0, 1, 2]
    assert near is None


def test_half_of_the_samples_predict_the_next_item() -> None:
    sequences = Ragged.from_rows([range(20)] * 200)
    readers, near = draw_horizons(sequences, 8, np.random.default_rng(0))
    assert near is not None
    assert (readers[near] == np.flatnonzero(near)).all()
    assert near.mean() == pytest.approx(0.5, abs=0.05)
    assert (readers[~near] < np.flatnonzero(~near)).mean() > 0.4


@pytest.mark.parametrize(("samples", "epoch"), [(10_000_000, 2), (350_000, 3), (1000, 5)])
def test_small_data_decides_later(samples: int, epoch: int) -> None:
    assert decision_epoch(10, samples) == epoch
    assert decision_epoch(1, samples) == 1


@pytest.mark.parametrize("near_finds_it", [True, False])
def test_the_horizon_with_the_better_answers_is_chosen(near_finds_it: bool) -> None:
    torch.manual_seed(0)
    network, ahead = Network(Config(num_nodes=2, embedding_dim=4), 200), HorizonMap(4)
    rows = network.items.rows
    rows.zero_()
    rows[:100, 0], rows[100:, 0] = 1.0, -1.0
    users = network.user_vectors(Ragged.from_rows([[0]]))
    # The map turns the user vector around, so each horizon finds one half of the catalogue.
    ahead.change.weight.data.copy_(-2 * torch.eye(4))
    low_half = (float(users[0, 0]) > 0) == near_finds_it
    truth = list(range(100)) if low_half else list(range(100, 200))
    held_out = Queries(Vocabulary([0]), Ragged.from_rows([[0]]), Ragged.from_rows([truth]))
    found = choose_horizon(network, ahead, held_out)
    assert found["choices"] == {"next_items": 1 if near_finds_it else AHEAD}
    assert found["reason"].startswith("best F@10 and F@50 on 1 held-out users so far (1: ")
