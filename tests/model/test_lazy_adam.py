"""LazyAdam: Adam on the rows that a step touches, in torch and compiled."""

import pytest
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


@pytest.mark.parametrize("compiled", [False, True])
def test_other_rows_keep_their_values_and_moments(compiled: bool) -> None:
    lazy = LazyAdam(torch.ones(4, 2), 0.1, compiled=compiled)
    lazy.step(torch.tensor([1, 3]), torch.ones(2, 2))
    assert lazy.table[[0, 2]].eq(1).all()
    assert lazy.table[[1, 3]].lt(1).all()
    assert lazy.first[[0, 2]].eq(0).all()
    assert lazy.second[[0, 2]].eq(0).all()


def test_compiled_steps_equal_those_of_torch() -> None:
    torch.manual_seed(0)
    table = torch.randn(9, 5)
    plain, compiled = (LazyAdam(table.clone(), 0.1, compiled=one) for one in (False, True))
    for rows in ([0, 3, 8], [3, 4], [1, 3, 5, 8]):
        gradient = torch.randn(len(rows), 5)
        for adam in (plain, compiled):
            adam.step(torch.tensor(rows), gradient)
    for name in ("table", "first", "second"):
        torch.testing.assert_close(getattr(compiled, name), getattr(plain, name), rtol=1e-5, atol=1e-6)
    assert compiled.steps == plain.steps == 3
