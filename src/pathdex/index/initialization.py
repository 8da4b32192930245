"""Initial paths of all items, before the first M-step."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from pathdex.errors import ConfigError, DataError, Problem
from pathdex.index.checks import check_int
from pathdex.index.paths import check_capacity
from pathdex.index.residual_kmeans import fit_codebooks, nearest_codes
from pathdex.kernels.hashing import EMPTY, find_slot, new_table
from pathdex.kernels.types import Ints


def random_paths(num_items: int, paths_per_item: int, num_nodes: int, depth: int, seed: int = 0) -> Ints:
    """J distinct paths per item (item, path), uniform over all K^D: the initialisation of the paper."""
    check_int("num_items", num_items)
    capacity = _check_paths_per_item(paths_per_item, num_nodes, depth)
    random = np.random.default_rng(seed)
    chosen = np.empty((num_items, paths_per_item), np.int64)
    for j in range(paths_per_item):
        # Draw one of the capacity - j paths that the item does not have yet: skip the ones it has, lowest first.
        path = random.integers(0, capacity - j, num_items)
        taken = np.sort(chosen[:, :j], axis=1)
        for rank in range(j):
            path += path >= taken[:, rank]
        chosen[:, j] = path
    return chosen


def residual_kmeans_paths(
    vectors: ArrayLike,
    paths_per_item: int,
    num_nodes: int,
    depth: int,
    *,
    seed: int = 0,
    iterations: int = 10,
    max_size: int | None = None,
) -> Ints:
    """J distinct paths per item (item, path): the residual k-means codes nearest to its vector (item, dim).

    A path takes at most `max_size` items (default: 32, or 8 times the mean path size if that is more). An item whose
    nearest codes are full goes to a random path that shares the longest possible prefix.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    if vectors.ndim != 2 or 0 in vectors.shape:
        rule = "must be (item, dim), neither empty; pass one row per item"
        raise DataError(f"vectors: has shape {vectors.shape}, {rule}")
    if not np.isfinite(vectors).all():
        raise DataError("vectors: holds NaN or infinity, must be finite; check the training they come from")
    capacity = _check_paths_per_item(paths_per_item, num_nodes, depth)
    check_int("iterations", iterations)
    mean = len(vectors) * paths_per_item / capacity
    max_size = default_max_size(mean) if max_size is None else check_int("max_size", max_size)
    if max_size * capacity < 2 * len(vectors) * paths_per_item:
        rule = f"must be at least {math.ceil(2 * mean)}, twice the mean path size"
        raise ConfigError([Problem(rule, "max_size", max_size, "raise it")])
    random = np.random.default_rng(seed)
    codebooks = fit_codebooks(vectors, num_nodes, depth, iterations, random)
    candidate_paths = nearest_codes(vectors, codebooks, beam=placed_codes(paths_per_item))
    return place_items(candidate_paths, paths_per_item, num_nodes, depth, max_size, random)


def default_max_size(mean: float) -> int:
    """The most items on a path at first, given the mean over all paths."""
    return max(32, math.ceil(8 * mean))


def placed_codes(paths_per_item: int) -> int:
    """The number of nearest codes among which an item gets its paths."""
    return max(8, 2 * paths_per_item)


def place_items(
    candidate_paths: Ints, paths_per_item: int, num_nodes: int, depth: int, max_size: int, random: np.random.Generator
) -> Ints:
    """Paths (item, path) from the nearest codes of all items (item, code), at most `max_size` items on each."""
    order = random.permutation(len(candidate_paths))
    return _place(candidate_paths, order, paths_per_item, num_nodes, depth, max_size, int(random.integers(2**31)))


@njit(cache=True, nogil=True)
def _place(
    candidate_paths: Ints, order: Ints, paths_per_item: int, num_nodes: int, depth: int, max_size: int, seed: int
) -> Ints:
    """Give every item its first J candidate paths that are not full, then random neighbours of the first."""
    np.random.seed(seed)
    paths = np.empty((len(candidate_paths), paths_per_item), np.int64)
    sizes = new_table(paths.size)
    for v in order:
        found, attempt = 0, 0
        while found < paths_per_item:
            if attempt < candidate_paths.shape[1]:
                path = candidate_paths[v, attempt]
            else:
                # After every 8 failed attempts, one more node at the end is random.
                span = num_nodes ** min(depth, 1 + (attempt - candidate_paths.shape[1]) // 8)
                path = candidate_paths[v, 0] // span * span + np.random.randint(0, span)
            attempt += 1
            slot = find_slot(sizes, path)
            if sizes[slot, 0] == EMPTY:
                sizes[slot, 0], sizes[slot, 1] = path, 0
            repeated = False
            for j in range(found):
                repeated |= paths[v, j] == path
            if sizes[slot, 1] < max_size and not repeated:
                sizes[slot, 1] += 1
                paths[v, found] = path
                found += 1
    return paths


def _check_paths_per_item(paths_per_item: int, num_nodes: int, depth: int) -> int:
    capacity = check_capacity(num_nodes, depth)
    if check_int("paths_per_item", paths_per_item) > capacity:
        remedy = "raise num_nodes or depth, or lower paths_per_item"
        raise ConfigError([Problem(f"J must be at most K^D={capacity}", "paths_per_item", paths_per_item, remedy)])
    return capacity
