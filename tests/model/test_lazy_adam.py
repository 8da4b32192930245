"""LazyAdam: Adam on the rows that a step touches."""

import torch

from pathdex.model.lazy_adam import LazyAdam


def test_a_step_on_all_rows_is_adam() -> None:
    torch.manual_seed(0)
    table, gradients = torch.randn(5, 3), [torch.randn(5, 3) for _ in range(4)]
    parameter = torch.nn.Parameter(table.clone())
    adam, lazy = torch.optim.Adam([parameter], 0.1), LazyAdam(table, 0.1)
    for gradient in gradients:
        parameter.grad = gradient
        adam.step()
        lazy.step(None, gradient)
    torch.testing.assert_close(table, parameter.detach(), rtol=1e-4, atol=1e-5)


def test_other_rows_keep_their_values_and_moments() -> None:
    lazy = LazyAdam(torch.ones(4, 2), 0.1)
    lazy.step(torch.tensor([1, 3]), torch.ones(2, 2))
    assert lazy.table[[0, 2]].eq(1).all()
    assert lazy.table[[1, 3]].lt(1).all()
    assert lazy.first[[0, 2]].eq(0).all()
    assert lazy.second[[0, 2]].eq(0).all()


def test_steps_on_rows_equal_steps_on_a_table_of_these_rows() -> None:
    torch.manual_seed(0)
    table, rows = torch.randn(9, 5), torch.tensor([0, 3, 8])
    some, whole = LazyAdam(table.clone(), 0.1), LazyAdam(table[rows], 0.1)
    for _ in range(3):
        gradient = torch.randn(3, 5)
        some.step(rows, gradient)
        whole.step(None, gradient)
    for name in ("table", "first", "second"):
        torch.testing.assert_close(getattr(some, name)[rows], getattr(whole, name), rtol=1e-5, atol=1e-6)
    assert some.steps == whole.steps == 3
