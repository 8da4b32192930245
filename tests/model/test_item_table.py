import torch

from pathdex.model.item_table import ItemTable
from pathdex.model.lazy_adam import LazyAdam


def test_lazy_adam_on_all_rows_equals_adam() -> None:
    torch.manual_seed(0)
    table, gradients = torch.randn(5, 3), [torch.randn(5, 3) for _ in range(4)]
    parameter = torch.nn.Parameter(table.clone())
    adam, rows = torch.optim.Adam([parameter], 0.1), LazyAdam(table, 0.1)
    for gradient in gradients:
        parameter.grad = gradient
        adam.step()
        rows.step(None, gradient)
    torch.testing.assert_close(table, parameter.detach(), rtol=1e-4, atol=1e-5)


def test_lazy_adam_updates_only_the_given_rows() -> None:
    table = torch.ones(4, 2)
    LazyAdam(table, 0.1).step(torch.tensor([1, 3]), torch.ones(2, 2))
    assert table[[0, 2]].eq(1).all()
    assert table[[1, 3]].lt(1).all()


def test_shared_table_has_one_vector_for_input_and_output() -> None:
    shared, apart = ItemTable(3, 4, shared=True), ItemTable(3, 4, shared=False)
    assert shared.rows.shape == (3, 5)
    assert apart.rows.shape == (3, 9)
    assert shared.inputs(shared.rows).equal(shared.outputs(shared.rows))
    assert not apart.inputs(apart.rows).equal(apart.outputs(apart.rows))
    assert apart.bias(apart.rows).tolist() == [0, 0, 0]
