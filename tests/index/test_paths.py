"""Path codes by hand and round trip."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathdex.errors import ConfigError, DataError
from pathdex.index.paths import check_capacity, decode_paths, encode_paths


def test_the_first_node_is_the_most_significant_digit():
    assert encode_paths([3, 0, 7], num_nodes=10) == 307
    assert encode_paths([[0, 0, 1], [1, 0, 0]], num_nodes=50).tolist() == [1, 2500]
    assert decode_paths(307, num_nodes=10, depth=3).tolist() == [3, 0, 7]


def test_a_thousand_nodes_in_six_layers_fit():
    assert check_capacity(1000, 6) == 10**18
    last = encode_paths([999] * 6, num_nodes=1000)
    assert last == 10**18 - 1
    assert decode_paths(last, num_nodes=1000, depth=6).tolist() == [999] * 6


@given(st.integers(1, 1000), st.integers(1, 6), st.data())
def test_decoding_undoes_encoding(num_nodes, depth, data):
    nodes = data.draw(st.lists(st.lists(st.integers(0, num_nodes - 1), min_size=depth, max_size=depth), min_size=1))
    codes = encode_paths(nodes, num_nodes)
    assert decode_paths(codes, num_nodes, depth).tolist() == nodes
    assert sorted(codes) == encode_paths(sorted(nodes), num_nodes).tolist()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_capacity(0, 3), "num_nodes=0: must be a whole number of at least 1"),
        (lambda: check_capacity(10, 2.5), "depth=2.5: must be a whole number of at least 1"),
        (lambda: check_capacity(1000, 7), r"num_nodes=1000, depth=7: K\^D must stay below 2\^62.*lower num_nodes"),
    ],
)
def test_a_structure_whose_paths_do_not_fit_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: encode_paths([1, 5], 5), "nodes: holds 5, must stay below num_nodes=5; nodes count from 0"),
        (lambda: encode_paths([-1, 2], 5), "nodes: holds -1, must hold no value below 0"),
        (lambda: encode_paths([0.5], 5), "nodes: has dtype float64, must hold whole numbers"),
        (lambda: encode_paths(3, 5), r"nodes: has shape \(\), must end in one axis of layers"),
        (lambda: decode_paths([25], 5, 2), r"codes: holds 25, must stay below K\^D=25"),
        (lambda: decode_paths(np.array([-1]), 5, 2), "codes: holds -1, must hold no value below 0"),
    ],
)
def test_invalid_nodes_and_codes_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()
