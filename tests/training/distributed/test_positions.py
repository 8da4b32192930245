"""User vectors on several workers."""

from tests.training.distributed.conftest import Workers


def test_users_stay_whole_and_any_vector_can_be_read(workers: Workers) -> None:
    assert not workers.problems("positions")
