"""Gradient steps of the E-step: what they change and what they leave alone."""

import numpy as np
import torch

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.model.network import Network
from pathdex.training.e_step import RerankerStep, StructureStep, position_vectors
from pathdex.training.windows import Batch, cut_windows

CONFIG = Config(
    num_nodes=3, depth=2, embedding_dim=8, history_length=4, num_negatives=3, softmax="sampled", dropout=0.0
)
ROWS = [[0, 1, 2], [3, 1], [4, 5, 4, 0, 2, 1]]


def data() -> Interactions:
    return Interactions(Ragged.from_rows(ROWS), Vocabulary(np.arange(3)), Vocabulary(np.arange(12)))


def network() -> Network:
    torch.manual_seed(0)
    return Network(CONFIG, 12, CONFIG)


def first_batch() -> Batch:
    windows = cut_windows(data().sequences, 4, np.random.default_rng(0))
    return windows.batch(np.arange(len(windows.context)))


def test_a_reranker_step_lowers_the_loss_and_moves_only_the_rows_it_uses() -> None:
    model = network()
    step = RerankerStep(model, CONFIG, data().item_counts())
    before = model.items.rows.clone()
    losses = [step(first_batch(), np.random.default_rng(1))[0]["softmax"] for _ in range(30)]
    assert losses[-1] < losses[0]
    drawn = set(np.random.default_rng(1).integers(0, 12, 3).tolist())
    moved = {item for item in range(12) if not model.items.rows[item].equal(before[item])}
    assert moved == {item for row in ROWS for item in row} | drawn


def test_a_structure_step_moves_the_structure_model_alone() -> None:
    model = network()
    before = {name: value.copy() for name, value in model.export().items()}
    step = StructureStep(model, CONFIG)
    users, paths = torch.randn(5, 8), torch.randint(0, 3, (5, 2, 2))
    losses = [step(users, paths, np.random.default_rng(number)) for number in range(20)]
    assert losses[-1] < losses[0]
    for name, value in model.export().items():
        assert np.array_equal(value, before[name]) != name.startswith("structure."), name


def test_position_vectors_are_the_users_before_each_interaction() -> None:
    model = network()
    vectors = position_vectors(model, data(), 3)
    position = 0
    for row in ROWS[:2]:
        for place in range(len(row)):
            alone = model.user_vectors(Ragged.from_rows([row[:place]]))[0]
            np.testing.assert_allclose(vectors[position], alone.numpy(), rtol=1e-4, atol=1e-6)
            position += 1
