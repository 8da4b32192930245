"""The assigner owns paths, scores and penalty, and can be saved between two M-steps."""

import numpy as np
import pytest
import torch

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import IndexHealthWarning
from pathdex.model.network import Network
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.position_vectors import PositionVectors
from pathdex.training.random_streams import RandomStreams
from tests.index_checks import assert_assignment
from tests.tiny import TINY

ITEMS = 16


def make(records: list[dict[str, object]] | None = None, **parameters: object) -> PathAssigner:
    torch.manual_seed(0)
    config = Config.from_dict({**TINY, **parameters})
    rows = [np.random.default_rng(user).integers(0, ITEMS, 6) for user in range(20)]
    data = Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(20)), Vocabulary(np.arange(ITEMS)))
    return PathAssigner(Network(config, ITEMS, config), config, data, [] if records is None else records, seed=0)


def vectors(assigner: PathAssigner) -> PositionVectors:
    dim = assigner.config.embedding_dim
    drawn = np.random.default_rng(1).standard_normal((assigner.data.num_interactions, dim))
    return PositionVectors(drawn.astype(np.float32))


def test_nodes_are_the_decoded_paths() -> None:
    assigner = make()
    assigner.paths = np.array([[5, 0]] * ITEMS)
    assert assigner.nodes(np.array([3])).tolist() == [[[1, 1], [0, 0]]]  # K = 4: 5 is (1, 1)


@pytest.mark.parametrize("scoring", ["item", "streaming"])
@pytest.mark.filterwarnings("ignore::pathdex.errors.IndexHealthWarning")
def test_an_m_step_gives_every_item_distinct_paths(scoring: str) -> None:
    assigner = make(scoring=scoring)
    assigner.collect_scores(vectors(assigner), np.random.default_rng(0))
    figures = assigner.m_step(RandomStreams(0, 1), 0)
    assert_assignment(assigner.paths, 4, 2)
    assert {"objective", "penalty", "used_paths", "m_step_seconds"} <= figures.keys()
    assert assigner.penalty == figures["penalty"]


def test_a_fall_of_the_paths_in_use_is_a_warning() -> None:
    assigner = make([{"used_paths": 1000}], penalty=0.0)
    assigner.collect_scores(vectors(assigner), np.random.default_rng(0))
    with pytest.warns(IndexHealthWarning, match="W101"):
        figures = assigner.m_step(RandomStreams(0, 1), 0)
    assert figures["warnings"][0].startswith("W101")


def test_state_goes_through_a_state_dict_and_back() -> None:
    first, second = make(penalty=0.1), make(penalty=0.1)
    first.collect_scores(vectors(first), np.random.default_rng(0))
    first.m_step(RandomStreams(0, 1), 0)
    second.load_state_dict(first.state_dict())
    for assigner in (first, second):
        assigner.m_step(RandomStreams(0, 1), 1)
    np.testing.assert_array_equal(first.paths, second.paths)
    assert first.penalty == second.penalty
