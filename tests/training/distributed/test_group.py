"""What travels between workers."""

import time

import pytest

from pathdex.training.distributed.group import bounded
from tests.training.distributed.conftest import Workers


def test_everything_arrives(workers: Workers) -> None:
    assert not workers.problems("group")


def test_an_error_of_the_first_worker_stops_all(workers: Workers) -> None:
    assert not workers.problems("first_only")


def test_gradients_are_summed(workers: Workers) -> None:
    assert not workers.problems("gradients")


def test_a_failure_of_one_worker_stops_all(workers: Workers) -> None:
    assert not workers.problems("together")


def test_a_call_that_does_not_return_is_an_error() -> None:
    assert bounded(lambda: 7, 60.0) == 7
    with pytest.raises(ZeroDivisionError):
        bounded(lambda: 1 // 0, 60.0)
    with pytest.raises(RuntimeError, match=r"no answer within 0.01 s"):
        bounded(lambda: time.sleep(0.5), 0.01)
