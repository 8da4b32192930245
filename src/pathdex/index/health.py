"""Figures that show whether an assignment of items to paths is healthy, collapsed or scattered."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pathdex.index.checks import path_array
from pathdex.index.paths import check_codes, decode_paths
from pathdex.kernels.types import Ints, Mask


@dataclass(frozen=True)
class IndexHealth:
    """Figures of one assignment (item, path)."""

    num_items: int
    paths_per_item: int
    num_nodes: int
    depth: int
    used_paths: int
    """Paths that hold at least one item."""
    mean_size: float
    """Items per path in use."""
    item_mean_size: float
    """Items on the path of an average item, sum |c|^2 / sum |c|: the target of `path_size`."""
    median_size: float
    p99_size: float
    top_size: int
    """Items on the largest path."""
    size_histogram: dict[str, int]
    """Paths in use by size, in classes that double: 1, 2-3, 4-7 ..."""
    entropy: tuple[float, ...]
    """Per layer, the entropy of the nodes on the items' paths, in nats."""
    entropy_share: tuple[float, ...]
    """Per layer, the entropy divided by log K: 1 if all nodes are used evenly, 0 if one node takes everything."""
    dead_nodes: tuple[int, ...]
    """Per layer, the nodes on no path in use."""
    distinct_paths: float
    """Mean number of distinct paths per item; below J only if an assignment repeats a path."""
    unreachable_items: int
    """Items without any path."""
    overlap: float | None
    """Mean share of an item's paths that it already had in the previous assignment; None without one."""

    def __repr__(self) -> str:
        return (
            f"IndexHealth({self.num_items:,} items on {self.used_paths:,} paths, "
            f"an average item's path has {self.item_mean_size:.1f}, the top {self.top_size:,})"
        )

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON."""
        return dataclasses.asdict(self)

    def summary(self) -> dict[str, float | int | None]:
        """The figures that change from one M-step to the next, for a log line."""
        return {
            "used_paths": self.used_paths,
            "item_mean_size": self.item_mean_size,
            "top_size": self.top_size,
            "entropy_share": min(self.entropy_share),
            "dead_nodes": sum(self.dead_nodes),
            "overlap": self.overlap,
        }


def health(paths: ArrayLike, num_nodes: int, depth: int, previous: ArrayLike | None = None) -> IndexHealth:
    """The health of paths (item, path), padded with -1; `previous` is the last assignment of the same items."""
    paths = path_array("paths", paths, low=-1)
    present = paths[paths >= 0]
    used, sizes = np.unique(check_codes("paths", present, num_nodes, depth), return_counts=True)
    ordered = np.sort(paths, axis=1)
    first = np.diff(ordered, axis=1, prepend=-1) != 0
    return health_of_sizes(
        used,
        sizes,
        num_nodes,
        depth,
        num_items=paths.shape[0],
        paths_per_item=paths.shape[1],
        distinct_paths=float(np.mean(np.sum(first & (ordered >= 0), axis=1))),
        unreachable_items=int(np.sum(ordered[:, -1] < 0)),
        overlap=None if previous is None else _overlap(paths, path_array("previous", previous, len(paths), low=-1)),
    )


def health_of_sizes(used: Ints, sizes: Ints, num_nodes: int, depth: int, **of_items: Any) -> IndexHealth:
    """The health of an assignment with so many items on each path in use; `of_items` are the figures of its items."""
    nodes = decode_paths(used, num_nodes, depth)
    passing = [np.bincount(np.repeat(nodes[:, layer], sizes), minlength=num_nodes) for layer in range(depth)]
    entropy = tuple(node_entropy(counts) for counts in passing)
    return IndexHealth(
        num_nodes=num_nodes,
        depth=depth,
        used_paths=len(used),
        mean_size=float(sizes.mean()) if len(used) else 0.0,
        item_mean_size=item_mean_size(sizes),
        median_size=float(np.median(sizes)) if len(used) else 0.0,
        p99_size=float(np.percentile(sizes, 99)) if len(used) else 0.0,
        top_size=int(sizes.max(initial=0)),
        size_histogram=_size_histogram(sizes),
        entropy=entropy,
        entropy_share=tuple(value / math.log(num_nodes) if num_nodes > 1 else 1.0 for value in entropy),
        dead_nodes=tuple(int(np.sum(counts == 0)) for counts in passing),
        **of_items,
    )


def item_mean_size(sizes: Ints) -> float:
    """The size of an item's path, averaged over items and paths: sum |c|^2 / sum |c|."""
    return float(np.sum(sizes.astype(np.float64) ** 2) / sizes.sum()) if len(sizes) else 0.0


def node_entropy(counts: NDArray[np.integer]) -> float:
    """The entropy of a distribution given by counts, in nats."""
    shares = counts[counts > 0] / max(counts.sum(), 1.0)
    return float(-np.sum(shares * np.log(shares))) + 0.0


def _size_histogram(sizes: Ints) -> dict[str, int]:
    classes = np.bincount(np.log2(sizes).astype(np.int64)) if len(sizes) else np.empty(0, np.int64)
    names = (f"{2**k}-{2 ** (k + 1) - 1}" if k else "1" for k in range(len(classes)))
    return {name: int(number) for name, number in zip(names, classes, strict=True)}


def _overlap(paths: Ints, previous: Ints) -> float:
    return float(np.mean(overlapping(paths, previous)))


def overlapping(paths: Ints, previous: Ints) -> Mask:
    """Which paths (item, path) an item already had."""
    stayed: Mask = np.zeros(paths.shape, np.bool_)
    for j in range(previous.shape[1]):
        stayed |= paths == previous[:, j : j + 1]
    return stayed & (paths >= 0)
