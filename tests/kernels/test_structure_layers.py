import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.kernels.gemm import LANES
from pathdex.kernels.softmax import PADDING
from pathdex.kernels.structure_layers import LayerWeights, largest


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.5]), min_size=1, max_size=60), st.integers(1, 70))
def test_the_largest_are_those_of_a_stable_sort(values: list[float], keep: int) -> None:
    array = np.array(values, np.float32)
    chosen = np.empty(max(keep, len(values)), np.int64)
    order = [place for place in np.argsort(-array, kind="stable") if array[place] > 0][:keep]
    for floor in {0.0, array[order[-1]] if order else 9.0}:
        found = largest(array, len(array), keep, np.float32(floor), np.empty_like(array), chosen)
        assert chosen[:found].tolist() == order


def test_nodes_are_padded() -> None:
    nodes, outputs, bias = np.ones((2, 3, 2, 4)), np.ones((2, 3, 4)), np.ones((2, 3))
    packed = LayerWeights.pack(nodes, outputs, bias)
    assert packed.outputs.shape == (2, 4, LANES)
    assert packed.outputs[:, :, 3:].sum() == 0
    assert packed.bias[:, :3].sum() == 6
    assert (packed.bias[:, 3:] == PADDING).all()
    assert packed.num_nodes == 3
