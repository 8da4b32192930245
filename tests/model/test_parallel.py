"""Blocks of rows on several threads."""

import threading
from collections.abc import Iterator

import pytest
import torch

from pathdex.model.parallel import blocks, own_threads, run_blocks, sum_in_order


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_blocks_cover_all_rows_in_order() -> None:
    assert blocks(7, 3) == [slice(0, 3), slice(3, 6), slice(6, 7)]
    assert blocks(2, 3) == [slice(0, 2)]
    assert blocks(0, 3) == [slice(0, 0)]


def test_results_come_in_order_and_torch_keeps_its_threads(threads: int) -> None:
    values = torch.arange(10.0)
    with own_threads():
        assert torch.get_num_threads() == 1
        assert run_blocks(lambda part: float(values[part].sum()), blocks(10, 4)) == [6.0, 22.0, 17.0]
    assert torch.get_num_threads() == threads


def test_torch_keeps_its_threads_where_its_operators_do_the_work(threads: int) -> None:
    with own_threads(enabled=False):
        assert torch.get_num_threads() == threads


@pytest.mark.parametrize("enabled", [True, False])
def test_blocks_run_on_several_threads_only_within_own_threads(threads: int, enabled: bool) -> None:
    with own_threads(enabled=enabled):
        names = run_blocks(lambda part: threading.current_thread().name, blocks(4, 1))
    assert (threading.current_thread().name in names) == (threads == 1 or not enabled)


def test_an_error_in_a_block_reaches_the_caller(threads: int) -> None:
    def fail(part: slice) -> None:
        raise ValueError(part.start)

    with pytest.raises(ValueError, match="0"), own_threads():
        run_blocks(fail, blocks(4, 2))
    assert torch.get_num_threads() == threads


def test_a_sum_is_taken_in_order() -> None:
    assert sum_in_order((torch.ones(2), torch.ones(2), torch.ones(2))).tolist() == [3.0, 3.0]
