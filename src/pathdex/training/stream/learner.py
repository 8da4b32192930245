"""What a stream learns: network, optimizers, scores and paths, with one row per slot of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.ragged import Ragged
from pathdex.index.initialization import random_paths
from pathdex.index.item_scores import score_item_paths
from pathdex.index.online_assignment import PathSizes, place_items, reassign_items
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.index.scores import ScoreTable
from pathdex.kernels.hashing import EMPTY
from pathdex.kernels.structure import StructureWeights
from pathdex.model.network import ITEM_ROWS, Network, pad_histories
from pathdex.training.candidate_target import first_path_size
from pathdex.training.checkpointing import load_optimizer_arrays, optimizer_arrays
from pathdex.training.determinism import deterministic, seed_step
from pathdex.training.e_step import RerankerStep, StructureStep
from pathdex.training.loop import TrainingState
from pathdex.training.m_step import m_step
from pathdex.training.stream.growing import GrowingArray
from pathdex.training.stream.negatives import StreamNegatives
from pathdex.training.windows import Batch

LIKE = 3
"""A new item starts near so many of the last items of its first user."""
LIKE_WEIGHT = 0.7
"""The share of their mean in the vector of a new item; the rest is random."""


@dataclass(frozen=True)
class Samples:
    """Events to learn from: the history before each, in slots, and the slot of its item."""

    histories: Sequence[Sequence[int]]
    targets: NDArray[np.int64]


class StreamLearner:
    """Learns from batches of samples, each once, at constant learning rates.

    A batch updates encoder and item vectors on Q_softmax, the structure model on Q_str over the same user vectors, and
    the score table by the streaming update of Section 3. Its items then move to their best paths.

    Differs from the paper: an item's own paths are always among those that are scored. Otherwise they fall out of its
    list wherever the beam does not reach them, and items drift to the paths of popular ones.
    """

    def __init__(self, config: Config, *, seed: int = 0) -> None:
        assert config.num_nodes is not None
        self.config, self.seed, self.steps = config, seed, 0
        torch.manual_seed(seed)
        self.network = Network(config, 0, config)
        self.reranker = RerankerStep(self.network, config, np.empty(0, np.int64))
        self.reranker.sampler = self.negatives = StreamNegatives(config.num_negatives)  # type: ignore[assignment]
        self.structure = StructureStep(self.network, config)
        width, S = self.network.items.rows.shape[1], config.candidate_paths
        self._arrays = {
            "rows": GrowingArray((width,), np.float32),
            "first": GrowingArray((width,), np.float32),
            "second": GrowingArray((width,), np.float32),
            "codes": GrowingArray((S,), np.int64, EMPTY),
            "scores": GrowingArray((S,), np.float32),
            "paths": GrowingArray((config.paths_per_item,), np.int64, NO_PATH),
            "counts": GrowingArray((), np.int64),
            "used": GrowingArray((), np.bool_),
        }
        self.sizes = PathSizes()
        self.penalty: float | None = None
        self._bind()

    def _bind(self) -> None:
        """Use the memory of the arrays, which moves when they grow."""
        arrays = {name: one.values for name, one in self._arrays.items()}
        rows, first, second = (torch.from_numpy(arrays[name]) for name in ("rows", "first", "second"))
        self.reranker.bind(rows, first, second)
        self.table = ScoreTable(arrays["codes"], arrays["scores"])
        self.rows, self.paths, self.counts = arrays["rows"], arrays["paths"], arrays["counts"]
        self.negatives.used = arrays["used"]

    @property
    def num_slots(self) -> int:
        return len(self.counts)

    @property
    def used(self) -> NDArray[np.bool_]:
        """(slot,) whether an item is in the slot."""
        return self.negatives.used

    def add_item(self, slot: int, like: Sequence[int] = ()) -> None:
        """Put a new item in a slot. It starts near the items in the slots `like`, on the paths of the last of them.

        Its vector, moments, scores and count are new, whatever the slot held before.
        """
        if slot >= self.num_slots:
            for array in self._arrays.values():
                array.resize(slot + 1)
            self._bind()
        for name, array in self._arrays.items():
            if name != "paths":
                array.values[slot] = EMPTY if name == "codes" else 0
        generator = np.random.default_rng([self.seed, 1, self.steps, slot])
        dim = self.config.embedding_dim
        self.rows[slot, :-1] = generator.standard_normal(self.rows.shape[1] - 1) * dim**-0.5
        seed = int(generator.integers(2**31))
        paths = random_paths(1, self.paths.shape[1], self.structure_nodes, self.config.depth, seed)
        near = [one for one in like if self.used[one]][-LIKE:]
        if near:
            self.rows[slot, :-1] *= 1 - LIKE_WEIGHT
            self.rows[slot, :-1] += LIKE_WEIGHT * self.rows[near, :-1].mean(axis=0)
            paths = self.paths[near[-1:]]
        self.used[slot] = True
        place_items([slot], paths, self.paths, self.sizes)

    def adopt(
        self,
        rows: NDArray[np.float32],
        paths: NDArray[np.int64],
        counts: NDArray[np.int64],
        weights: Mapping[str, NDArray[Any]],
    ) -> None:
        """Continue from a trained model: slot v holds item v. Optimizers start from scratch.

        An item's scores start as if its occurrences so far had been spread evenly over its paths, so that a few events
        do not move a popular item.
        """
        loaded: dict[str, NDArray[Any]] = {
            "rows": rows,
            "paths": paths,
            "counts": counts,
            "used": np.ones(len(rows), np.bool_),
        }
        for name, array in self._arrays.items():
            array.resize(0)
            array.resize(len(rows))
            if name in loaded:
                array.values[:] = loaded[name]
        self._bind()
        self.load_weights(weights)
        most = len(rows) if self.config.decay == 1.0 else 1 / (1 - self.config.decay)
        each = np.minimum(np.maximum(counts, 1), most)[:, None] / paths.shape[1]
        self.table.set_rows(np.arange(len(rows)), paths, np.broadcast_to(each, paths.shape).astype(np.float32))
        self.sizes = PathSizes(self.paths)

    def remove_item(self, slot: int) -> None:
        """Take the item out of a slot: it leaves its paths and is not drawn as a negative any more."""
        self.used[slot] = False
        place_items([slot], np.full((1, self.paths.shape[1]), NO_PATH), self.paths, self.sizes)

    @property
    def structure_nodes(self) -> int:
        assert self.config.num_nodes is not None
        return self.config.num_nodes

    def learn(self, samples: Samples) -> dict[str, float]:
        """Take one step; returns the losses. Items of the samples must have been added."""
        generator = np.random.default_rng([self.seed, 0, self.steps])
        seed_step(int(generator.integers(2**62)), self.network.device)
        targets = samples.targets
        with deterministic(self.network.device):
            losses, users = self.reranker(self._batch(samples), generator)
            nodes = decode_paths(self.paths[targets], self.structure_nodes, self.config.depth)
            losses["structure"] = self.structure(users, torch.from_numpy(nodes), generator)
            self._update_scores(users, targets, nodes)
        np.add.at(self.counts, targets, 1)
        touched = np.unique(targets)
        reassign_items(
            touched,
            self.table,
            self.counts,
            self.paths,
            self.sizes,
            penalty=self.current_penalty,
            penalty_degree=self.config.penalty_degree,
        )
        self.steps += 1
        return losses

    def _batch(self, samples: Samples) -> Batch:
        length = self.config.history_length
        histories = Ragged.from_rows([np.array(one[-length:], np.int32) for one in samples.histories])
        inputs, last = pad_histories(histories, length)
        number = np.arange(len(last))
        return Batch(inputs, number, last, number, samples.targets, np.zeros_like(number))

    @torch.no_grad()
    def _update_scores(self, users: torch.Tensor, targets: NDArray[np.int64], own_nodes: NDArray[np.int64]) -> None:
        config, own = self.config, self.paths[targets]
        structure: Any = self.network.structure
        sums = np.ascontiguousarray(structure.begin(users).numpy()[:, None])
        weights = StructureWeights.from_layers(*structure.layer_arrays())
        codes, scores, own_scores = score_item_paths(sums, weights, config.score_beam, config.score_beam, own_nodes)
        listed = (codes[:, :, None] == own[:, None, :]).any(axis=2)
        codes, scores = np.where(listed, EMPTY, codes), np.where(listed, 0, scores)
        self.table.update(targets, np.hstack([codes, own]), np.hstack([scores, own_scores]), config.decay)

    @property
    def current_penalty(self) -> float:
        """alpha of the last full M-step; before it, the one at which a full path costs a nat per occurrence."""
        if self.config.penalty is not None:
            return self.config.penalty
        if self.penalty is not None:
            return self.penalty
        mean = self.counts[self.used].mean() if self.used.any() else 1.0
        return float(max(mean, 1.0) / first_path_size(self.config) ** (self.config.penalty_degree - 1))

    def full_m_step(self) -> dict[str, Any]:
        """Algorithm 2 over all items, with the penalty for the wanted path size; returns figures for the log."""
        used = np.flatnonzero(self.used)
        if not len(used):
            return {}
        table = ScoreTable(self.table.codes[used], self.table.scores[used])
        seed = int(np.random.default_rng([self.seed, 2, self.steps]).integers(2**31))
        step = m_step(
            table,
            self.counts[used],
            self.paths[used],
            self.config,
            path_size=first_path_size(self.config),
            last_penalty=self.penalty,
            seed=seed,
        )
        self.paths[used], self.penalty = step.paths, step.penalty
        self.sizes = PathSizes(self.paths)
        return step.figures

    def state_dict(self) -> TrainingState:
        """Everything that later steps depend on."""
        weights = {f"network.{name}": one for name, one in self.network.export().items() if name != ITEM_ROWS}
        return TrainingState(
            {"steps": self.steps, "row_steps": self.reranker.rows.steps, "penalty": self.penalty},
            {
                **weights,
                **{f"items.{name}": one.values for name, one in self._arrays.items()},
                **optimizer_arrays("dense-adam", self.reranker.dense),
                **optimizer_arrays("structure-adam", self.structure.optimizer),
            },
        )

    def load_state_dict(self, state: TrainingState) -> None:
        """Restore what `state_dict` returned."""
        for name, array in self._arrays.items():
            array.load(state.arrays[f"items.{name}"])
        self._bind()
        self.load_weights({name.removeprefix("network."): one for name, one in state.arrays.items()})
        load_optimizer_arrays("dense-adam", self.reranker.dense, state.arrays)
        load_optimizer_arrays("structure-adam", self.structure.optimizer, state.arrays)
        self.steps, self.penalty = state.values["steps"], state.values["penalty"]
        self.reranker.rows.steps = state.values["row_steps"]
        self.sizes = PathSizes(self.paths)

    def load_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Load the dense weights among `weights`."""
        own = self.network.state_dict()
        self.network.load_state_dict({name: torch.from_numpy(np.array(weights[name])) for name in own})
