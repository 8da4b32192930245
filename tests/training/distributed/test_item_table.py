"""The item table and its optimiser on several workers."""

from tests.training.distributed.conftest import Workers


def test_table_steps_and_best_items_are_those_of_one_process(workers: Workers) -> None:
    assert not workers.problems("item_table")
