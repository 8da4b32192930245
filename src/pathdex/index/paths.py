"""A path (c1 .. cD) as one integer in base K, c1 most significant, so that a prefix is a quotient.

K^D may exceed any memory: only the codes of paths in use are stored, and nothing allocates K^D cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pathdex.config import MAX_PATHS
from pathdex.errors import ConfigError, DataError, Problem
from pathdex.index.checks import check_int, int_array
from pathdex.kernels.types import Ints


def check_capacity(num_nodes: int, depth: int) -> int:
    """K^D, the number of possible paths; an error if a path does not fit into one int64."""
    capacity: int = check_int("num_nodes", num_nodes) ** check_int("depth", depth)
    if capacity > MAX_PATHS:
        rule = "K^D must stay below 2^62, since a path is one integer"
        raise ConfigError([Problem(rule, f"num_nodes={num_nodes}, depth", depth, "lower num_nodes or depth")])
    return capacity


def encode_paths(nodes: ArrayLike, num_nodes: int) -> Ints:
    """The codes (...) of paths given as nodes (..., layer)."""
    nodes = np.asarray(nodes)
    if nodes.ndim == 0 or nodes.shape[-1] == 0:
        raise DataError(f"nodes: has shape {nodes.shape}, must end in one axis of layers; pass (..., depth)")
    check_capacity(num_nodes, nodes.shape[-1])
    nodes = int_array("nodes", nodes, *nodes.shape)
    if nodes.size and (largest := nodes.max()) >= num_nodes:
        raise DataError(f"nodes: holds {largest}, must stay below num_nodes={num_nodes}; nodes count from 0")
    return nodes @ _radix(num_nodes, nodes.shape[-1])


def decode_paths(codes: ArrayLike, num_nodes: int, depth: int) -> Ints:
    """The nodes (..., layer) of paths given as codes (...)."""
    codes = check_codes("codes", codes, num_nodes, depth)
    nodes: Ints = codes[..., None] // _radix(num_nodes, depth) % num_nodes
    return nodes


def check_codes(name: str, codes: ArrayLike, num_nodes: int, depth: int) -> Ints:
    """The codes as an int64 array of the same shape, each a path of D layers with K nodes."""
    capacity: int = check_capacity(num_nodes, depth)
    codes = int_array(name, codes, *np.shape(codes))
    if codes.size and (largest := codes.max()) >= capacity:
        raise DataError(
            f"{name}: holds {largest}, must stay below K^D={capacity}; check num_nodes={num_nodes} and depth={depth}"
        )
    return codes


def _radix(num_nodes: int, depth: int) -> Ints:
    return np.array([num_nodes**power for power in reversed(range(depth))], np.int64)
