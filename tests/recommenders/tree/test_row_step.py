"""The compiled step against `LazyAdam` in torch."""

import torch

from pathdex.model.lazy_adam import LazyAdam
from pathdex.recommenders.tree.row_step import step_rows


def test_compiled_step_equals_lazy_adam() -> None:
    torch.manual_seed(0)
    table = torch.randn(9, 5)
    plain, compiled = (LazyAdam(table.clone(), 0.1) for _ in range(2))
    for rows in ([0, 3, 8], [3, 4], [1, 3, 5, 8]):
        gradient = torch.randn(len(rows), 5)
        plain.step(torch.tensor(rows), gradient)
        step_rows(compiled, torch.tensor(rows), gradient)
    for name in ("table", "first", "second"):
        torch.testing.assert_close(getattr(compiled, name), getattr(plain, name), rtol=1e-5, atol=1e-6)
    assert compiled.steps == plain.steps == 3
