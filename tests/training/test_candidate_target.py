"""`candidates_per_query` as the target instead of the path size."""

import numpy as np
import pytest
import torch

from pathdex.config import Config, RunOptions
from pathdex.data.demo_catalogue import demo_catalogue
from pathdex.errors import ConfigError
from pathdex.model.structure import MLPStructure
from pathdex.training.candidate_target import candidates_per_query, first_path_size
from pathdex.training.trainer import Trainer

PATHS = np.array([[0, 1], [1, 2], [3, 0], [0, 1]])


def test_candidates_are_distinct_items_on_the_best_paths() -> None:
    config = Config(num_nodes=2, depth=2, beam_size=1)
    structure = MLPStructure(3, 2, 2, 4, 2)
    for parameter in structure.parameters():
        parameter.data.zero_()
    structure.outputs[0].bias.data = torch.tensor([1.0, 0.0])  # The first node of each layer is the likeliest.
    structure.outputs[1].bias.data = torch.tensor([1.0, 0.0])
    users = np.zeros((2, 3), np.float32)
    assert candidates_per_query(structure, users, PATHS, config) == 3  # items 0, 2 and 3 lie on path 0
    assert candidates_per_query(structure, users, PATHS, config.replace(beam_size=2)) == 4
    assert candidates_per_query(structure, users, PATHS, config.replace(beam_size=9)) == 4


def test_first_path_size_is_candidates_over_beam_size() -> None:
    assert first_path_size(Config(candidates_per_query=600, beam_size=50)) == 12
    assert first_path_size(Config(candidates_per_query=5, beam_size=50)) == 1
    assert first_path_size(Config(path_size=7)) == 7


def test_fixed_penalty_excludes_candidates_per_query() -> None:
    with pytest.raises(ConfigError, match=r"candidates_per_query=100: cannot be reached with a fixed penalty=0.1"):
        Config(candidates_per_query=100, penalty=0.1)


@pytest.mark.parametrize("wanted", [40, 100])
def test_every_m_step_approaches_the_target(wanted: int) -> None:
    data = demo_catalogue(items=400, users=200, mean_length=15, seed=0).data
    small = {
        "epochs": 1,
        "rounds": 2,
        "final_epochs": 1,
        "embedding_dim": 16,
        "structure_hidden": 32,
        "batch_size": 128,
        "structure_batch_size": 4096,
        "bias_start": "zero",
    }
    config = Config(candidates_per_query=wanted, beam_size=10, candidate_paths=30, score_beam=20, **small)
    trainer = Trainer(config, RunOptions(threads=1), data)
    trainer.run()
    steps = [record for record in trainer.records if "objective" in record]
    assert len(steps) == 2
    for record in steps:
        assert record["candidates_per_query"] == pytest.approx(wanted, rel=0.2)
        assert record["item_mean_size"] == pytest.approx(record["wanted_path_size"], rel=0.3)
