"""What travels between workers."""

import pytest
import torch
import torch.distributed as dist

from pathdex.errors import LostWorkerError
from pathdex.training.distributed.group import connect
from tests.training.distributed.conftest import Workers


def test_everything_arrives(workers: Workers) -> None:
    assert not workers.problems("group")


def test_an_error_of_the_first_worker_stops_all(workers: Workers) -> None:
    assert not workers.problems("first_only")


def test_gradients_are_summed(workers: Workers) -> None:
    assert not workers.problems("gradients")


def test_workers_that_are_connected_already_stay_so_and_a_lost_one_has_its_own_error() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        group = connect("cpu", 5.0)
        assert (group.rank, group.size, group.timeout) == (0, 1, 5.0)
        with pytest.raises(LostWorkerError, match=r"worker 0 of 1 lost contact with another worker .*--resume"):
            group.exchange(torch.zeros(2, 1), [1], [1])  # Not what was announced: torch raises as for a lost worker.
    finally:
        dist.destroy_process_group()


def test_an_error_of_the_first_worker_is_told_without_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        group, told = connect("cpu", 5.0), list[object]()
        guarded = group._guarded
        monkeypatch.setattr(group, "_guarded", lambda work: told.append(guarded(work)))
        with pytest.raises(ZeroDivisionError):
            group.first_only(lambda: 1 // 0)
        assert len(told) == 1  # A call that had run into the time-out would have raised an error.
    finally:
        dist.destroy_process_group()


def test_a_failure_of_one_worker_stops_all(workers: Workers) -> None:
    assert not workers.problems("together")
