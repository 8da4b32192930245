"""What is checked and set before a training."""

import numpy as np
import pytest
import torch

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import ConfigError, DataError
from pathdex.training.setup import prepare


def data(rows: list[list[int]]) -> Interactions:
    return Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(len(rows))), Vocabulary(np.arange(3)))


def test_data_without_interactions_is_refused() -> None:
    with pytest.raises(DataError, match="data: has no interactions"):
        prepare(data([[]]), RunOptions())


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="device='tpu'"):
        prepare(data([[0]]), RunOptions(device="tpu"))


def test_torch_is_seeded() -> None:
    draws = []
    for seed in (3, 3, 4):
        prepare(data([[0]]), RunOptions(seed=seed))
        draws.append(torch.rand(1).item())
    assert draws[0] == draws[1] != draws[2]


def test_threads_are_set_when_given() -> None:
    before = torch.get_num_threads()
    prepare(data([[0]]), RunOptions(threads=1))
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)
