"""Training of tree models: one phase per tree, then beam-aware epochs on the last tree (OTM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions, popularity_order
from pathdex.errors import DataError
from pathdex.recommenders.tree.assignment import reassigned_tree
from pathdex.recommenders.tree.clustering import cluster_tree
from pathdex.recommenders.tree.config import TreeConfig
from pathdex.recommenders.tree.network import TreeNetwork
from pathdex.recommenders.tree.samples import beam_samples, draw_levels, following_items, sampled_nodes
from pathdex.recommenders.tree.step import NodeSamples, NodeStep
from pathdex.recommenders.tree.tree import Tree
from pathdex.training.callbacks import Callback
from pathdex.training.checkpointing import load_optimizer_arrays, optimizer_arrays
from pathdex.training.determinism import seed_step
from pathdex.training.loop import Phase, TrainingLoop, TrainingState
from pathdex.training.schedule import cosine_rate
from pathdex.training.setup import prepare
from pathdex.training.trainer import checkpointer
from pathdex.training.windows import Batch, cut_windows, draw_readers


class TreeStream(IntEnum):
    """The random draws of a tree model. The values are part of the seed: changing one changes every trained model."""

    FIRST_TREE = 0
    TREE = 1
    WINDOWS = 2
    BATCHES = 3
    STEP = 4
    TARGETS = 5


class TreeTrainer:
    """Trains the node model and learns the tree on one data set."""

    def __init__(
        self,
        settings: TreeConfig,
        options: RunOptions,
        data: Interactions,
        categories: Sequence[Any] | None = None,
        *,
        callbacks: Sequence[Callback] | None = (),
        checkpoint: Path | None = None,
    ) -> None:
        prepare(data, options)
        first = np.random.default_rng([options.seed, TreeStream.FIRST_TREE])
        tree = Tree(first_order(data, settings.first_tree, categories, first))
        self.network = TreeNetwork(settings, tree, torch.device(options.device))
        trees = 1 + settings.clusterings + settings.assignments
        phases: list[Phase] = [TreePhase(self.network, data, options.seed, number) for number in range(trees)]
        if settings.beam_epochs:
            phases.append(BeamPhase(self.network, data, options.seed, trees))
        saved = checkpointer(checkpoint, vars(settings), options, data)
        self.loop = TrainingLoop(phases, callbacks, saved, device=options.device)

    def resume(self) -> None:
        """Continue from the checkpoint."""
        self.loop.resume()

    def run(self) -> TreeNetwork:
        """Train to the end; returns the network."""
        self.loop.run()
        self.network.model.eval()
        return self.network


class TreePhase(Phase):
    """Learns one tree, then trains the node model on sampled nodes (TDM)."""

    def __init__(self, network: TreeNetwork, data: Interactions, seed: int, number: int) -> None:
        self.network, self.data, self.seed, self.number = network, data, seed, number
        self.settings = network.settings
        self.name, self.epochs = f"tree {number + 1}", self.settings.epochs
        self.node_step: NodeStep | None = None

    def begin(self) -> None:
        self._learn_tree()
        self.node_step = NodeStep(self.network)

    def _learn_tree(self) -> None:
        settings, network = self.settings, self.network
        random = self._random(TreeStream.TREE)
        if self.number == 0:
            return
        if self.number <= settings.clusterings:
            network.replant(cluster_tree(network.item_vectors, random))
        else:
            # Nodes keep their vectors, since the items were assigned by them.
            network.tree = reassigned_tree(
                network, self.data.sequences, settings.gap, settings.assignment_samples, random
            )

    @property
    def first_level(self) -> int:
        """First trained level: the leaves if clustering will replace the tree, since only their vectors are kept."""
        tree = self.network.tree
        return tree.depth if self.number < self.settings.clusterings else self.network.first_level

    def begin_epoch(self, epoch: int) -> int:
        settings, sequences = self.settings, self.data.sequences
        self.windows = cut_windows(sequences, settings.history_length, self._random(TreeStream.WINDOWS, epoch))
        self.batches = self.windows.batches(settings.batch_size, self._random(TreeStream.BATCHES, epoch))
        reach = 1 if settings.beam_epochs else settings.next_items
        self.readers = draw_readers(sequences, reach, self._random(TreeStream.TARGETS, epoch))
        return len(self.batches)

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        assert self.node_step is not None
        random = self._random(TreeStream.STEP, epoch, step)
        seed_step(int(random.integers(2**62)), self.network.rows.device)
        batch = self.windows.batch(self.batches[step]).read_earlier(self.readers)
        levels = draw_levels(self.first_level, self.network.tree.depth, self.settings.levels_per_step, random)
        rate = cosine_rate((epoch + step / len(self.batches)) / self.epochs)
        return {"loss": self.node_step(batch, self._samples(batch, levels, random), rate)}

    def _samples(self, batch: Batch, levels: list[int], random: np.random.Generator) -> Sequence[NodeSamples]:
        count = self.settings.negatives
        return [sampled_nodes(self.network.tree, level, batch.targets, count, random) for level in levels]

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        if epoch == self.epochs - 1:
            self.node_step = None  # The next tree starts with fresh optimizers.
        return {}

    def _random(self, stream: TreeStream, *key: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, stream, self.number, *key])

    @property
    def _prefix(self) -> str:
        return f"phase-{self.number}"

    def state_dict(self) -> TrainingState:
        arrays: dict[str, NDArray[Any]] = {f"network.{name}": one for name, one in self.network.export().items()}
        arrays["order"] = self.network.tree.order
        if self.node_step is None:
            return TrainingState({}, arrays)
        rows = self.node_step.rows
        arrays |= {f"{self._prefix}-rows.first": rows.first.cpu().numpy()}
        arrays |= {f"{self._prefix}-rows.second": rows.second.cpu().numpy()}
        arrays |= optimizer_arrays(f"{self._prefix}-adam", self.node_step.dense)
        return TrainingState({f"{self._prefix}-row-steps": rows.steps}, arrays)

    def load_state_dict(self, state: TrainingState) -> None:
        arrays, prefix = state.arrays, "network."
        if self.number == 0:
            # Phases share the network, so the first phase restores it for all.
            self.network.tree = Tree(arrays["order"])
            own = {name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)}
            self.network.restore(own)
        if f"{self._prefix}-rows.first" in arrays:
            self.node_step = NodeStep(self.network)
            rows, device = self.node_step.rows, self.network.device
            rows.steps = state.values[f"{self._prefix}-row-steps"]
            rows.first = torch.from_numpy(arrays[f"{self._prefix}-rows.first"]).to(device)
            rows.second = torch.from_numpy(arrays[f"{self._prefix}-rows.second"]).to(device)
            load_optimizer_arrays(f"{self._prefix}-adam", self.node_step.dense, arrays)


class BeamPhase(TreePhase):
    """Trains on the nodes that a beam of the model reaches (OTM)."""

    def __init__(self, network: TreeNetwork, data: Interactions, seed: int, number: int) -> None:
        super().__init__(network, data, seed, number)
        self.name, self.epochs = "beam", self.settings.beam_epochs

    def _learn_tree(self) -> None:
        """Keep the last tree."""

    def _samples(self, batch: Batch, levels: list[int], random: np.random.Generator) -> Sequence[NodeSamples]:
        settings = self.settings
        targets = following_items(self.data.sequences, batch.position, settings.next_items)
        return beam_samples(self.network, batch, targets, levels, settings.training_beam, settings.negatives, random)


def first_order(
    data: Interactions, kind: str, categories: Sequence[Any] | None, random: np.random.Generator
) -> NDArray[np.int64]:
    """The item order of the first tree: by category if given, then by `kind`."""
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
    """Mean time of each item's interactions; inf without interactions."""
    if data.times is None:
        raise DataError("first_tree='time': the data has no times; choose random or popularity")
    counts = data.item_counts()
    sums = np.bincount(data.sequences.values, weights=data.times, minlength=data.num_items)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.inf)
