"""Encoder epochs: batches cover every interaction, joint epochs also score and assign paths."""

import numpy as np
import pytest
import torch

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.model.network import Network
from pathdex.training.encoder_phase import EncoderPhase, JointPhase
from pathdex.training.loop import TrainingState
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.random_streams import RandomStreams
from tests.index_checks import assert_assignment
from tests.tiny import TINY

ITEMS = 12


def data() -> Interactions:
    rows = [np.random.default_rng(user).integers(0, ITEMS, 9) for user in range(30)]
    return Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(30)), Vocabulary(np.arange(ITEMS)))


def encoder_phase(**parameters: object) -> EncoderPhase:
    torch.manual_seed(0)
    config = Config.from_dict({**TINY, **parameters})
    return EncoderPhase(Network(config, ITEMS, config), config, data(), RandomStreams(0, 0))


def test_an_epoch_predicts_every_interaction_once() -> None:
    phase = encoder_phase()
    steps = phase.begin_epoch(0)
    positions = [phase.windows.batch(phase.batches[step]).position for step in range(steps)]
    assert sorted(np.concatenate(positions).tolist()) == list(range(30 * 9))


def test_a_step_is_the_same_wherever_it_is_taken_from() -> None:
    """A resumed training begins an epoch in its middle."""
    first, second = encoder_phase(dropout=0.5), encoder_phase(dropout=0.5)
    first.begin_epoch(1)
    torch.rand(5)
    second.begin_epoch(1)
    assert first.step(1, 2) == second.step(1, 2)


def test_state_goes_through_a_state_dict_and_back() -> None:
    first, second = encoder_phase(), encoder_phase()
    steps = first.begin_epoch(0)
    for step in range(steps):
        first.step(0, step)
    state = first.state_dict()
    second.load_state_dict(TrainingState(state.values, {name: array.copy() for name, array in state.arrays.items()}))
    for phase in (first, second):
        phase.begin_epoch(1)
        phase.step(1, 0)
    for name, value in first.network.export().items():
        np.testing.assert_array_equal(value, second.network.export()[name], err_msg=name)


@pytest.mark.filterwarnings("ignore::pathdex.errors.IndexHealthWarning")
def test_joint_epochs_train_both_losses_and_end_with_an_m_step() -> None:
    torch.manual_seed(0)
    config = Config.from_dict({**TINY, "schedule": "paper", "start": "random", "scoring": "streaming"})
    network, records = Network(config, ITEMS, config), []  # type: ignore[var-annotated]
    assigner = PathAssigner(network, config, data(), records, seed=0)
    phase = JointPhase(network, config, data(), RandomStreams(0, 0), assigner)
    for step in range(phase.begin_epoch(0)):
        assert phase.step(0, step).keys() == {"softmax", "structure"}
    assert (assigner.table.codes >= 0).any()
    before = assigner.paths.copy()
    assert phase.end_epoch(0)["used_paths"] > 0  # type: ignore[operator]
    assert_assignment(assigner.paths, 4, 2)
    assert not np.array_equal(before, assigner.paths)
