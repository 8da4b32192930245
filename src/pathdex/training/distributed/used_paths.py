"""What all items together say about the paths in use, while each worker has the paths of its own items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.kernels.types import Ints
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.rows import RowShard


class UsedPaths(NamedTuple):
    """One entry per path in use, in ascending order of the codes; the same on all workers."""

    codes: Ints
    sizes: Ints
    """The number of items on each."""
    weights: Ints
    """The sum of N_v + 1 over these items."""
    first: Ints
    """The lowest of these items."""


def used_paths(group: Group, paths: NDArray[np.int64], counts: NDArray[np.int64]) -> UsedPaths:
    """For the paths (item, path) of own items, and the counts N_v of all items. Each path is summed by one worker."""
    items = RowShard(group.rank, group.size, len(counts)).codes
    codes, place = np.unique(paths, return_inverse=True)
    place, owner = place.ravel(), np.repeat(items, paths.shape[1])
    own = _summed(codes, place, np.ones(len(place), np.int64), counts[owner] + 1, owner)
    ranks = codes % group.size
    order = np.argsort(ranks, kind="stable")
    sent = np.bincount(ranks, minlength=group.size).tolist()
    received = group.exchange(torch.from_numpy(np.stack(own, axis=1)[order]), sent)[0].numpy()
    codes, place = np.unique(received[:, 0], return_inverse=True)
    mine = _summed(codes, place.ravel(), *received[:, 1:].T)
    whole = [np.concatenate(group.gather(one)) for one in mine]
    return UsedPaths(*(one[np.argsort(whole[0])] for one in whole))


def _summed(codes: Ints, place: Ints, sizes: Ints, weights: Ints, first: Ints) -> UsedPaths:
    """Of entries with the path `codes[place]`, the sums, and the lowest `first`."""
    nothing = np.zeros(len(codes), np.int64)
    found = UsedPaths(codes, nothing, nothing.copy(), np.full(len(codes), 2**62))
    np.add.at(found.sizes, place, sizes)
    np.add.at(found.weights, place, weights)
    np.minimum.at(found.first, place, first)
    return found
