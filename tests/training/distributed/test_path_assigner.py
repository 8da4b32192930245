"""The discrete half of EM on several workers."""

from tests.training.distributed.conftest import Workers


def test_both_m_steps_give_the_paths_of_one_process(workers: Workers) -> None:
    assert not workers.problems("assigner")
