"""Places of workers, and what is wrong with them."""

import pytest

from pathdex.errors import ConfigError, WorkerError
from pathdex.training.distributed.launch import WorkerPlace, check_workers, worker_place


def test_a_place_is_read_from_the_environment_of_torchrun() -> None:
    assert worker_place({}) is None
    assert worker_place({"RANK": "0", "WORLD_SIZE": "1"}) is None
    given = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "3"}
    assert worker_place(given) == WorkerPlace(1, 4, 2, 3)
    assert WorkerPlace(0, 4, 10_000, 0).threads == 1


def test_a_damaged_environment_is_an_error() -> None:
    with pytest.raises(WorkerError, match="RANK=4 is not below WORLD_SIZE=4; give every worker its own rank"):
        worker_place({"RANK": "4", "WORLD_SIZE": "4"})
    with pytest.raises(WorkerError, match="environment of torchrun is damaged"):
        worker_place({"RANK": "one", "WORLD_SIZE": "4"})


def test_the_number_of_workers_agrees_with_torchrun() -> None:
    place = WorkerPlace(0, 4, 4, 0)
    assert (check_workers(None, None), check_workers(3, None)) == (1, 3)
    assert (check_workers(None, place), check_workers(4, place)) == (4, 4)
    with pytest.raises(ConfigError, match="workers=2: must be the number that torchrun has started, 4"):
        check_workers(2, place)
    with pytest.raises(ConfigError, match="workers=0: must be at least 1"):
        check_workers(0, None)
