"""Workers compare what they are about to do."""

from tests.training.distributed.conftest import Workers


def test_one_that_differs_stops_all(workers: Workers) -> None:
    assert not workers.problems("agreement")
