"""Tree learning of JTM (Zhu et al. 2019): reassign items to the nodes that the node model prefers.

From the top down, `gap` levels at a time, every node distributes its items among its descendants so that the summed
log-probability of the interactions grows. The tree stays balanced.
"""

# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch.nn import functional

from pathdex.data.ragged import Ragged
from pathdex.recommenders.tree.network import Histories, TreeNetwork
from pathdex.recommenders.tree.tree import Tree
from pathdex.training.windows import cut_windows, sequential_batches

BATCH = 4096
SWEEPS = 10
"""Maximum passes over all pairs of nodes; most assignments converge earlier."""
LEAST_GAIN = 1e-9
"""A swap with a smaller gain is a rounding error."""


def reassigned_tree(
    network: TreeNetwork, sequences: Ragged, gap: int, samples: int, random: np.random.Generator
) -> Tree:
    """The tree after one pass of assignments with the node model fixed.

    Uses at most `samples` interactions per item and scales their sum to all of them.
    """
    counts = np.bincount(sequences.values, minlength=network.tree.num_items)
    chosen = _sample(sequences.values, samples, random)
    scale = counts / np.maximum(np.minimum(counts, samples), 1)
    # Histories keep using the old ancestors of items during the pass.
    tree, above = network.tree, 0
    for level in _segments(network.first_level, tree.depth, gap):
        levels = range(max(above + 1, network.first_level), level + 1)
        gains = _gains(network, tree, above, levels, sequences, chosen) * scale[:, None]
        tree = Tree(_share_out(tree, above, level, gains))
        above = level
    return tree


def _segments(first: int, depth: int, gap: int) -> list[int]:
    """Levels at which assignments are made: the first scored level, then every `gap` levels above the leaves."""
    return [*range(first, depth - 1, gap), depth - 1]


def _sample(values: NDArray[np.int32], max_samples: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """Mask of the interactions to use: at most `max_samples` per item, drawn uniformly."""
    shuffled = random.permutation(len(values))
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    sorted_values = values[order]
    number = np.arange(len(values)) - np.searchsorted(sorted_values, sorted_values)
    chosen = np.zeros(len(values), np.bool_)
    chosen[order[number < max_samples]] = True
    return chosen


@torch.no_grad()
def _gains(
    network: TreeNetwork,
    tree: Tree,
    above: int,
    levels: range,
    sequences: Ragged,
    chosen: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """(item, descendant): summed log-probability of an item's interactions if it were under that descendant.

    Descendants are those of the item's node on level `above`, on the last of `levels`. The sum is over `levels`.
    """
    network.model.eval()
    bottom = levels[-1]
    width = 1 << (bottom - above)
    gains = np.zeros((tree.num_items, width))
    holder = tree.ancestors(above)
    windows = cut_windows(sequences, network.settings.history_length, np.random.default_rng(0))
    for batch in sequential_batches(windows, BATCH):
        wanted = np.flatnonzero(chosen[batch.position])
        if not len(wanted):
            continue
        targets = batch.targets[wanted]
        histories = Histories(network, batch.inputs, batch.window[wanted], batch.time[wanted])
        total = np.zeros((len(wanted), width))
        for level in levels:
            count = 1 << (level - above)
            nodes = holder[targets][:, None] * count + np.arange(count)
            logits = torch.from_numpy(histories.logits(level, nodes))
            # A node of an intermediate level counts for every descendant.
            total += np.repeat(functional.logsigmoid(logits).numpy(), width // count, axis=1)
        np.add.at(gains, targets, total)
    return gains


def _share_out(tree: Tree, above: int, level: int, gains: NDArray[np.float64]) -> NDArray[np.int64]:
    """The item order after each node of level `above` has distributed its items among its descendants on `level`."""
    num_columns = 1 << (level - above)
    places, starts = tree.ancestors(level), tree.starts(above)
    for node in range(1 << above):
        items = np.sort(tree.order[starts[node] : starts[node + 1]])
        places[items] = node * num_columns + exchange(gains[items], places[items] - node * num_columns, SWEEPS)
    return np.lexsort((tree.ranks, places))


@njit(cache=True, nogil=True)
def exchange(gains: NDArray[np.float64], columns: NDArray[np.int64], sweeps: int) -> NDArray[np.int64]:
    """Swap rows between columns pairwise while that raises the sum of `gains` (row, column).

    For each pair of columns, rows that gain most from moving swap with rows that gain most, or lose least, from
    moving back. Column sizes stay fixed and the sum never falls.
    """
    columns = columns.copy()
    for _ in range(sweeps):
        exchanged = 0
        for first in range(gains.shape[1]):
            for second in range(first + 1, gains.shape[1]):
                there, back = np.flatnonzero(columns == first), np.flatnonzero(columns == second)
                over = gains[:, second][there] - gains[:, first][there]
                home = gains[:, first][back] - gains[:, second][back]
                there, over = _falling(there, over)
                back, home = _falling(back, home)
                for place in range(min(len(there), len(back))):
                    if over[place] + home[place] <= LEAST_GAIN:
                        break
                    columns[there[place]], columns[back[place]] = second, first
                    exchanged += 1
        if exchanged == 0:
            break
    return columns


@njit(cache=True, nogil=True)
def _falling(rows: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Both arrays by descending value; stable."""
    order = np.argsort(-values, kind="mergesort")
    return rows[order], values[order]
