"""What travels between workers."""

from tests.training.distributed.conftest import Workers


def test_everything_arrives(workers: Workers) -> None:
    assert not workers.problems("group")


def test_an_error_of_the_first_worker_stops_all(workers: Workers) -> None:
    assert not workers.problems("first_only")


def test_gradients_are_summed(workers: Workers) -> None:
    assert not workers.problems("gradients")


def test_a_failure_of_one_worker_stops_all(workers: Workers) -> None:
    assert not workers.problems("together")
