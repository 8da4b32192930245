from tests.training.distributed.conftest import Workers


def test_sizes_and_weights_of_paths_are_those_of_all_items(workers: Workers) -> None:
    assert not workers.problems("used")
