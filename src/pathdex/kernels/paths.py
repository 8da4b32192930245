"""Paths as nodes."""

from __future__ import annotations

from numba import njit

from pathdex.kernels.types import Ints


@njit(cache=True, nogil=True)
def split_codes(codes: Ints, num_nodes: int, nodes: Ints) -> None:
    """nodes[i, j] (layer,) = the path codes[i, j], as `index.paths.decode_paths` but in one pass and without checks."""
    for i in range(codes.shape[0]):
        for j in range(codes.shape[1]):
            code = codes[i, j]
            for layer in range(nodes.shape[2] - 1, -1, -1):
                before = code // num_nodes
                nodes[i, j, layer] = code - before * num_nodes
                code = before
