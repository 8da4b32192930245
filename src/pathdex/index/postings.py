"""Which items lie on which path: the inverted index that retrieval reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from pathdex.errors import DataError
from pathdex.index.checks import Codes, check_whole, path_array, score_array, whole_array
from pathdex.index.paths import check_capacity, check_codes
from pathdex.kernels.hashing import EMPTY, find_slot, new_table

Items = NDArray[np.int32]
LogProbabilities = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Postings:
    """The paths in use, the items on each, and the trie of their prefixes.

    The items on `paths[i]` are `items[offsets[i]:offsets[i + 1]]`, ascending. `prefixes[d]` holds the sorted codes of
    all prefixes of d nodes that begin a path in use; `prefixes[0]` is the root alone and `prefixes[depth]` the paths.
    The prefixes of d + 1 nodes that continue `prefixes[d][i]` are
    `prefixes[d + 1][children[d][i]:children[d][i + 1]]`.
    """

    num_nodes: int
    depth: int
    num_items: int
    items: Items
    offsets: Codes
    prefixes: Sequence[Codes]
    children: Sequence[Codes]

    @classmethod
    def from_paths(cls, paths: ArrayLike, num_nodes: int, depth: int) -> Postings:
        """Turn item -> paths (item, path) round. The paths of an item must be distinct."""
        paths = path_array("paths", check_codes("paths", paths, num_nodes, depth))
        num_items, paths_per_item = paths.shape
        order = np.argsort(paths.ravel(), kind="stable")
        sorted_codes = paths.ravel()[order]
        items = (order // paths_per_item).astype(np.int32)
        starts = np.flatnonzero(np.diff(sorted_codes, prepend=-1))
        repeated = (np.diff(sorted_codes) == 0) & (np.diff(items) == 0)
        if repeated.any():
            raise DataError(
                f"paths: item {items[:-1][repeated][0]} has a path twice, the paths of an item must be distinct; "
                "make them with random_paths, residual_kmeans_paths or assign_paths"
            )
        return cls.from_sorted(sorted_codes[starts], np.append(starts, len(items)), items, num_items, num_nodes, depth)

    @classmethod
    def from_sorted(
        cls, paths: Codes, offsets: Codes, items: Items, num_items: int, num_nodes: int, depth: int
    ) -> Postings:
        """From the sorted paths in use and their items, as the fields describe them; only the trie is made."""
        prefixes, children = _trie(paths, num_nodes, depth)
        return cls(num_nodes, depth, num_items, items, offsets, prefixes, children)

    @property
    def paths(self) -> Codes:
        """The sorted codes of the paths in use."""
        return self.prefixes[self.depth]

    @property
    def sizes(self) -> Codes:
        """How many items lie on each path in use."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.paths)

    def __repr__(self) -> str:
        return f"Postings({self.num_items:,} items on {len(self):,} paths of {self.depth} x {self.num_nodes} nodes)"

    def items_on(self, path: int) -> Items:
        """The items on one path, ascending; none where the path is not in use."""
        place = int(np.searchsorted(self.paths, path))
        if place == len(self) or self.paths[place] != path:
            return self.items[:0]
        return self.items[self.offsets[place] : self.offsets[place + 1]]

    def log_shares(self, counts: ArrayLike) -> LogProbabilities:
        """log p(v | c) beside `items`: an item's share of the interactions with the items on its path.

        `counts` holds N_v; one is added to each, so that an item without interactions has a share as well.
        """
        weights = score_array("counts", counts, self.num_items).astype(np.float64)[self.items] + 1
        totals = np.add.reduceat(weights, self.offsets[:-1]) if len(self) else weights
        shares: LogProbabilities = np.log(weights / np.repeat(totals, self.sizes)).astype(np.float32)
        return shares

    def gather(
        self,
        codes: ArrayLike,
        log_probabilities: ArrayLike,
        log_shares: LogProbabilities | None = None,
        limit: int | None = None,
    ) -> tuple[Items, LogProbabilities]:
        """The distinct items on one query's paths (best path first) and log sum_j p(c_j|x) over their paths among them.

        With `log_shares` it is log sum_j p(c_j|x) p(v|c_j), the index's own estimate of p(v|x). Items come in the order
        in which they are first met. Past `limit` items no new one is taken, but the later paths still count for those
        that were. Paths not in use hold no items.
        """
        codes = whole_array("codes", codes, None)
        log_probabilities = np.ascontiguousarray(log_probabilities, np.float32)
        if log_probabilities.shape != codes.shape:
            raise DataError(
                f"log_probabilities: has shape {log_probabilities.shape}, must have one value for each of the "
                f"{len(codes)} paths; pass the log probability of every path"
            )
        limit = self.num_items if limit is None else check_whole("limit", limit)
        shares = np.zeros(len(self.items), np.float32) if log_shares is None else log_shares
        return gather_items(self.paths, self.offsets, self.items, shares, codes, log_probabilities, limit)


def _trie(paths: Codes, num_nodes: int, depth: int) -> tuple[list[Codes], list[Codes]]:
    check_capacity(num_nodes, depth)
    prefixes: list[Codes] = [paths]
    children: list[Codes] = []
    for _ in range(depth):
        parents = prefixes[0] // num_nodes
        first = np.flatnonzero(np.diff(parents, prepend=-1))
        prefixes.insert(0, parents[first])
        children.insert(0, np.append(first, len(parents)))
    return prefixes, children


@njit(cache=True, nogil=True)
def gather_items(
    paths: Codes,
    offsets: Codes,
    items: Items,
    log_shares: LogProbabilities,
    codes: Codes,
    log_probabilities: LogProbabilities,
    limit: int,
) -> tuple[Items, LogProbabilities]:
    """The compiled form of `Postings.gather`, without checks."""
    places = np.searchsorted(paths, codes)
    total = 0
    for rank in range(len(codes)):
        place = places[rank]
        if place == len(paths) or paths[place] != codes[rank]:
            places[rank] = EMPTY
        else:
            total += offsets[place + 1] - offsets[place]
    total = min(total, limit)
    found, scores = np.empty(total, np.int32), np.empty(total, np.float32)
    position_of = new_table(total)
    count = 0
    for rank in range(len(codes)):
        if places[rank] == EMPTY:
            continue
        for posting in range(offsets[places[rank]], offsets[places[rank] + 1]):
            item = items[posting]
            score = log_probabilities[rank] + log_shares[posting]
            slot = find_slot(position_of, item)
            if position_of[slot, 0] == item:
                position = position_of[slot, 1]
                scores[position] = np.logaddexp(scores[position], score)
            elif count < total:
                position_of[slot, 0], position_of[slot, 1] = item, count
                found[count], scores[count] = item, score
                count += 1
    return found[:count], scores[:count]
