"""The health of sharded paths."""

from tests.training.distributed.conftest import Workers


def test_figures_are_those_of_the_whole(workers: Workers) -> None:
    assert not workers.problems("path_health")
