"""Rows of size V on several workers."""

from tests.training.distributed.conftest import Workers


def test_rows_come_from_their_owners_and_values_go_back(workers: Workers) -> None:
    assert not workers.problems("rows")
