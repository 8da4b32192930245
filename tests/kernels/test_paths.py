"""Paths as nodes, against the checked version."""

import numpy as np

from pathdex.index.paths import decode_paths
from pathdex.kernels.paths import split_codes


def test_codes_split_into_nodes() -> None:
    codes = np.random.default_rng(0).integers(0, 7**4, (20, 3))
    nodes = np.empty((20, 3, 4), np.int64)
    split_codes(codes, 7, nodes)
    np.testing.assert_array_equal(nodes, decode_paths(codes, 7, 4))
