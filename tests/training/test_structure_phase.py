"""EM rounds: which epochs end with an M-step, and where the paths start."""

import numpy as np
import pytest
import torch

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.model.network import Network
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.random_streams import RandomStreams
from pathdex.training.structure_phase import StructurePhase
from tests.index_checks import assert_assignment
from tests.tiny import TINY

ITEMS = 12


def make(**parameters: object) -> StructurePhase:
    torch.manual_seed(0)
    config = Config.from_dict({**TINY, **parameters})
    rows = [np.random.default_rng(user).integers(0, ITEMS, 9) for user in range(30)]
    data = Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(30)), Vocabulary(np.arange(ITEMS)))
    network = Network(config, ITEMS, config)
    assigner = PathAssigner(network, config, data, [], seed=0)
    return StructurePhase(network, config, data, RandomStreams(0, 1), assigner, seed=0)


@pytest.mark.parametrize(
    ("rounds", "each", "final", "epochs", "m_steps"),
    [(2, 1, 1, 3, [0, 1]), (2, 2, 1, 5, [1, 3]), (3, 1, 0, 3, [0, 1, 2]), (0, 2, 2, 0, [])],
)
def test_rounds_end_with_m_steps_and_final_epochs_do_not(
    rounds: int, each: int, final: int, epochs: int, m_steps: list[int]
) -> None:
    phase = make(rounds=rounds, structure_epochs=each, final_epochs=final)
    assert phase.epochs == epochs
    assert list(phase.m_steps) == m_steps


def test_paths_start_from_codes_of_the_item_vectors_or_at_random() -> None:
    coded, random = make(start="residual-kmeans"), make(start="random")
    before = random.assigner.paths.copy()
    for phase in (coded, random):
        phase.begin()
        assert_assignment(phase.assigner.paths, 4, 2)
    np.testing.assert_array_equal(random.assigner.paths, before)
    assert not np.array_equal(coded.assigner.paths, before)


def test_the_encoder_and_the_item_vectors_stay_frozen() -> None:
    phase = make()
    phase.begin()
    before = {name: value.copy() for name, value in phase.network.export().items()}
    for step in range(phase.begin_epoch(0)):
        phase.step(0, step)
    for name, value in phase.network.export().items():
        assert np.array_equal(value, before[name]) != name.startswith("structure."), name
