from pathdex.model.item_table import ItemTable


def test_shared_rows_read_and_score_by_one_vector() -> None:
    shared, apart = ItemTable(3, 4, shared=True), ItemTable(3, 4, shared=False)
    assert shared.rows.shape == (3, 5)
    assert apart.rows.shape == (3, 9)
    assert shared.inputs(shared.rows).equal(shared.outputs(shared.rows))
    assert not apart.inputs(apart.rows).equal(apart.outputs(apart.rows))
    assert apart.bias(apart.rows).tolist() == [0, 0, 0]
