"""Training and tree learning in turn, from a first tree to the last."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions
from pathdex.errors import DataError
from pathdex.recommenders.popularity import popularity_order
from pathdex.recommenders.tree.assignment import reassigned_tree
from pathdex.recommenders.tree.clustering import cluster_tree
from pathdex.recommenders.tree.config import TreeConfig
from pathdex.recommenders.tree.network import TreeNetwork
from pathdex.recommenders.tree.samples import beam_lessons, draw_levels, following_items, sampled_lesson
from pathdex.recommenders.tree.step import NodeSamples, NodeStep
from pathdex.recommenders.tree.tree import Tree
from pathdex.system import check_device
from pathdex.training.callbacks import Callback
from pathdex.training.determinism import deterministic, set_threads
from pathdex.training.malloc import keep_freed_memory
from pathdex.training.schedule import cosine_rate
from pathdex.training.windows import Batch, cut_windows, draw_readers

Teacher = Callable[[Batch, list[int], np.random.Generator], Sequence[NodeSamples]]


class TreeTrainer:
    """Learns the tree and the node model of one data set."""

    def __init__(
        self,
        settings: TreeConfig,
        options: RunOptions,
        data: Interactions,
        categories: Sequence[Any] | None,
        listener: Callback,
    ) -> None:
        if data.num_interactions == 0:
            raise DataError("data: has no interactions; training needs at least one user with one item")
        check_device(options.device)
        set_threads(options.threads)
        keep_freed_memory()
        self.settings, self.options, self.data, self.listener = settings, options, data, listener
        torch.manual_seed(options.seed)
        tree = Tree(first_order(data, settings.first_tree, categories, self._random(0)))
        self.network = TreeNetwork(settings, tree, torch.device(options.device))

    def run(self) -> TreeNetwork:
        """Every tree in turn, then the beam-aware epochs on the last."""
        settings, network = self.settings, self.network
        with deterministic(network.device):
            for number in range(1 + settings.clusterings + settings.assignments):
                self._learn_tree(number)
                # Of a tree that clustering will replace, only the leaves' vectors live on.
                first = network.tree.depth if number < settings.clusterings else network.first_level
                self._train(f"tree {number + 1}", number, settings.epochs, first, self._sampled)
            if settings.beam_epochs:
                number = 1 + settings.clusterings + settings.assignments
                self._train("beam", number, settings.beam_epochs, network.first_level, self._beam)
        network.model.eval()
        return network

    def _learn_tree(self, number: int) -> None:
        settings, network, random = self.settings, self.network, self._random(1, number)
        if number == 0:
            return
        if number <= settings.clusterings:
            network.replant(cluster_tree(network.item_vectors, random))
        else:
            # Nodes keep their vectors: the items have chosen the nodes for what they are.
            network.tree = reassigned_tree(
                network, self.data.sequences, settings.gap, settings.assignment_samples, random
            )

    def _train(self, phase: str, number: int, epochs: int, first: int, teacher: Teacher) -> None:
        settings, step = self.settings, NodeStep(self.network)
        reach = 1 if settings.beam_epochs else settings.next_items
        for epoch in range(epochs):
            started, total = time.monotonic(), 0.0
            windows = cut_windows(self.data.sequences, settings.history_length, self._random(2, number, epoch))
            batches = windows.batches(settings.batch_size, self._random(3, number, epoch))
            readers = draw_readers(self.data.sequences, reach, self._random(5, number, epoch))
            for place, chosen in enumerate(batches):
                random = self._random(4, number, epoch, place)
                torch.manual_seed(int(random.integers(2**62)))
                batch = windows.batch(chosen).read_earlier(readers)
                levels = draw_levels(first, self.network.tree.depth, settings.levels_per_step, random)
                rate = cosine_rate((epoch + place / len(batches)) / epochs)
                total += step(batch, teacher(batch, levels, random), rate)
                self.listener.on_step_end(
                    phase, epoch + 1, epochs, place + 1, len(batches), {"loss": total / (place + 1)}
                )
            seconds = time.monotonic() - started
            record = {"phase": phase, "number": epoch + 1, "loss": total / len(batches), "seconds": seconds}
            self.listener.on_epoch_end(record)

    def _sampled(self, batch: Batch, levels: list[int], random: np.random.Generator) -> Sequence[NodeSamples]:
        count = self.settings.negatives
        return [sampled_lesson(self.network.tree, level, batch.targets, count, random) for level in levels]

    def _beam(self, batch: Batch, levels: list[int], random: np.random.Generator) -> Sequence[NodeSamples]:
        settings = self.settings
        targets = following_items(self.data.sequences, batch.position, settings.next_items)
        return beam_lessons(self.network, batch, targets, levels, settings.training_beam, settings.negatives, random)

    def _random(self, *stamp: int) -> np.random.Generator:
        return np.random.default_rng([self.options.seed, *stamp])


def first_order(
    data: Interactions, kind: str, categories: Sequence[Any] | None, random: np.random.Generator
) -> NDArray[np.int64]:
    """The items as the first tree has them: by category where given, and otherwise or within one by `kind`."""
    if kind == "popularity":
        order = popularity_order(data.item_counts())
    elif kind == "time":
        order = np.argsort(_mean_times(data), kind="stable")
    else:
        order = random.permutation(data.num_items)
    if categories is None:
        return order
    if len(categories) != data.num_items:
        raise DataError(
            f"categories has {len(categories):,} entries: must have one for each of the {data.num_items:,} items, in "
            "the order of data.items"
        )
    numbers = np.unique(np.asarray(categories, dtype=str), return_inverse=True)[1]
    ordered: NDArray[np.int64] = order[np.argsort(numbers[order], kind="stable")]
    return ordered


def _mean_times(data: Interactions) -> NDArray[np.float64]:
    """When each item is taken on average; items without interactions come last."""
    if data.times is None:
        raise DataError("first_tree='time': the data has no times; choose random or popularity")
    counts = data.item_counts()
    sums = np.bincount(data.sequences.values, weights=data.times, minlength=data.num_items)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
