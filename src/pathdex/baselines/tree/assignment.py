"""Tree learning of JTM (Zhu et al. 2019): items move to the nodes that the node model likes for them.

From the top down, `gap` levels at a time, every node shares out its items among its descendants so that the summed
log-probability of the interactions grows, and the tree stays balanced.
"""

# mypy: disallow-untyped-decorators=False

from __future__ import annotations

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch.nn import functional

from pathdex.baselines.tree.network import Histories, TreeNetwork
from pathdex.baselines.tree.tree import Tree
from pathdex.data.ragged import Ragged
from pathdex.training.windows import cut_windows, sequential_batches

BATCH = 4096
SWEEPS = 10
"""Rounds of setting prices; more change little."""


def reassigned_tree(
    network: TreeNetwork, sequences: Ragged, gap: int, samples: int, random: np.random.Generator
) -> Tree:
    """The tree after one pass of assignments with the node model as it is.

    At most `samples` interactions of an item are looked at; their sum is scaled to all of them.
    """
    counts = np.bincount(sequences.values, minlength=network.tree.num_items)
    chosen = _sample(sequences.values, samples, random)
    scale = counts / np.maximum(np.minimum(counts, samples), 1)
    # The items' present ancestors go on to stand for them in histories while they move.
    tree, above = network.tree, 0
    for level in _segments(network.first_level, tree.depth, gap):
        levels = range(max(above + 1, network.first_level), level + 1)
        gains = _gains(network, tree, above, levels, sequences, chosen) * scale[:, None]
        tree = Tree(_share_out(tree, above, level, gains))
        above = level
    return tree


def _segments(first: int, depth: int, gap: int) -> list[int]:
    """The levels at which an assignment stops: the first that is scored, then every `gap` levels, above the leaves."""
    return [*range(first, depth - 1, gap), depth - 1]


def _sample(values: NDArray[np.int32], most: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """Which interactions are looked at: `most` of each item, drawn evenly."""
    shuffled = random.permutation(len(values))
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    sorted_values = values[order]
    number = np.arange(len(values)) - np.searchsorted(sorted_values, sorted_values)
    chosen = np.zeros(len(values), np.bool_)
    chosen[order[number < most]] = True
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
    """(item, descendant): the log-probability of each item's interactions, summed over the levels, if the item were
    under that descendant, on the last of the levels, of the node of level `above` that holds it."""
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
            # A node of a middle level counts for every descendant under it.
            total += np.repeat(functional.logsigmoid(logits).numpy(), width // count, axis=1)
        np.add.at(gains, targets, total)
    return gains


def _share_out(tree: Tree, above: int, level: int, gains: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order of the items after those of each node of level `above` went to its descendants on `level`.

    Where the present places are worth no less, they stay.
    """
    rooms = np.diff(tree.starts(level)).reshape(1 << above, -1)
    places, starts = tree.ancestors(level), tree.starts(above)
    for node, room in enumerate(rooms):
        items = np.sort(tree.order[starts[node] : starts[node + 1]])
        own, present = gains[items], places[items] - node * len(room)
        chosen = share_out(own, room)
        rows = np.arange(len(items))
        if own[rows, chosen].sum() > own[rows, present].sum():
            places[items] = node * len(room) + chosen
    return np.lexsort((tree.ranks, places))


def share_out(gains: NDArray[np.float64], room: NDArray[np.int64]) -> NDArray[np.int64]:
    """A column for each row, `room[c]` rows in column c, with a high sum of `gains` (row, column).

    Every column gets a price at which about as many rows want it as it has room for. Then who would lose most by the
    second choice chooses first.
    """
    priced = gains - column_prices(gains, room, SWEEPS)
    if gains.shape[1] == 1:
        return np.zeros(len(gains), np.int64)
    best = np.partition(priced, -2, axis=1)
    order = np.argsort(best[:, -2] - best[:, -1], kind="stable")
    chosen = np.empty(len(gains), np.int64)
    chosen[order] = choose_with_room(priced[order], room)
    return chosen


@njit(cache=True, nogil=True)
def column_prices(gains: NDArray[np.float64], room: NDArray[np.int64], sweeps: int) -> NDArray[np.float64]:
    """Prices of the columns, one after the other raised or lowered until exactly `room` rows want the column.

    This is coordinate descent on the dual of the assignment problem.
    """
    rows, columns = gains.shape
    prices = np.zeros(columns)
    bids = np.empty(rows)
    for _ in range(sweeps if columns > 1 else 0):
        for column in range(columns):
            for row in range(rows):
                other = -np.inf
                for place in range(columns):
                    if place != column:
                        other = max(other, gains[row, place] - prices[place])
                bids[row] = gains[row, column] - other
            if room[column] < rows:
                ordered = np.sort(bids)
                last = rows - room[column]
                prices[column] = (ordered[last] + ordered[last - 1]) / 2
    return prices


@njit(cache=True, nogil=True)
def choose_with_room(gains: NDArray[np.float64], room: NDArray[np.int64]) -> NDArray[np.int64]:
    """One after the other, each row takes its best column that still has room."""
    left = room.copy()
    chosen = np.empty(len(gains), np.int64)
    for row in range(len(gains)):
        best = -1
        for column in range(len(room)):
            if left[column] > 0 and (best < 0 or gains[row, column] > gains[row, best]):
                best = column
        chosen[row] = best
        left[best] -= 1
    return chosen
