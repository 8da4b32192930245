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
from pathdex.index.online_assignment import PathSizes, join_best_path, paths_with_room, place_items, reassign_items
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
from pathdex.training.stream.background_m_step import BackgroundMStep
from pathdex.training.stream.changed_slots import ChangedSlots
from pathdex.training.stream.growing import GrowingArray
from pathdex.training.stream.item_start import mean_length, scale_to, weighted_start
from pathdex.training.stream.negatives import StreamNegatives
from pathdex.training.stream.replay import replay_batch
from pathdex.training.windows import Batch

ITEMS = "items."
"""Prefix of the arrays in a checkpoint that have one row per slot."""
M_STEP = "m_step"
PUBLISHED, SAVED = "published", "saved"
"""Who follows the changed slots: the published model, and the checkpoint."""
LIKE = 3
"""A new item starts near so many of the last items of its first user."""
LIKE_WEIGHT = 0.95
"""The share of their mean in the vector of a new item; the rest is random."""


@dataclass(frozen=True)
class Samples:
    """Events to learn from: the history before each, in slots, and the slot of its item."""

    histories: Sequence[Sequence[int]]
    targets: NDArray[np.int64]
    replayed: Sequence[Sequence[int]] = ()
    """Histories of two items or more whose items are learned from again."""


class StreamLearner:
    """Learns from batches of samples at constant learning rates.

    A batch updates encoder and item vectors on Q_softmax, the structure model on Q_str over the same user vectors, and
    the score table by the streaming update of Section 3. Its items then move to their best paths. Replayed histories
    are gradient steps of their own before that of the new events; they change no scores, counts or paths.

    Differs from the paper: an item's own paths are always among those that are scored. Otherwise they fall out of its
    list wherever the beam does not reach them, and items drift to the paths of popular ones.
    """

    def __init__(self, config: Config, *, seed: int = 0, rate: float = 1.0, replay_steps: int = 1) -> None:
        """`rate` multiplies the learning rates of encoder and item vectors."""
        assert config.num_nodes is not None
        self.config, self.seed, self.rate, self.steps = config, seed, rate, 0
        self.replay_steps = replay_steps
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
        self.changed = ChangedSlots(PUBLISHED, SAVED)
        """The slots whose row, paths, count, scores or item changed."""
        self.penalty: float | None = None
        self.m_step: BackgroundMStep | None = None
        """The full M-step under way."""
        self._moved = ChangedSlots(M_STEP)
        """The slots whose item was placed since the full M-step began."""
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

    def add_item(self, slot: int, like: Sequence[int] = (), weights: Sequence[float] | None = None) -> None:
        """Put a new item in a slot, near the last items in the slots `like`, on or beside the paths of the last.

        With `weights`, best first, it starts near all of them, on the paths that weigh most.
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
            mean, paths, models = self.rows[near, :-1].mean(axis=0), self.paths[near[-1:]], near
            if weights is not None:
                models = list(like)
                mean, paths = weighted_start(self.rows[models, :-1], self.paths[models], weights)
            start = LIKE_WEIGHT * mean + (1 - LIKE_WEIGHT) * self.rows[slot, :-1]
            self.rows[slot, :-1] = scale_to(start, mean_length(self.rows[models, :-1]))
            paths = paths_with_room(
                paths[0],
                self.sizes,
                self.structure_nodes,
                self.config.depth,
                first_path_size(self.config),
                generator,
            )[None]
        self.used[slot] = True
        place_items([slot], paths, self.paths, self.sizes)
        self.changed.mark([slot])
        self._moved.mark([slot])

    def adopt(
        self,
        rows: NDArray[np.float32],
        paths: NDArray[np.int64],
        counts: NDArray[np.int64],
        weights: Mapping[str, NDArray[Any]],
        used: NDArray[np.bool_],
    ) -> None:
        """Continue from a trained model: slot v holds item v if it is `used`. Optimizers start from scratch.

        An item's scores start as if its occurrences so far had been spread evenly over its paths, so that a few events
        do not move a popular item.
        """
        paths = np.where(used[:, None], paths, NO_PATH)
        unplaced = np.flatnonzero(used & (paths == NO_PATH).any(axis=1))
        if len(unplaced):
            drawn = random_paths(len(paths), paths.shape[1], self.structure_nodes, self.config.depth, self.seed)
            paths[unplaced] = drawn[unplaced]
        loaded: dict[str, NDArray[Any]] = {"rows": rows, "paths": paths, "counts": counts, "used": used}
        for name, array in self._arrays.items():
            array.resize(0)
            array.resize(len(rows))
            if name in loaded:
                array.values[:] = loaded[name]
        self._bind()
        self.load_weights(weights)
        most = len(rows) if self.config.decay == 1.0 else 1 / (1 - self.config.decay)
        each = np.minimum(np.maximum(counts, 1), most)[:, None] / paths.shape[1]
        held = np.flatnonzero(self.used)
        scores = np.broadcast_to(each, paths.shape)[held].astype(np.float32)
        self.table.set_rows(held, paths[held], scores)
        self.sizes = PathSizes(self.paths)
        self.changed.mark(np.arange(len(rows)))

    def remove_item(self, slot: int) -> None:
        """Take the item out of a slot: it leaves its paths and is not drawn as a negative any more."""
        self.used[slot] = False
        place_items([slot], np.full((1, self.paths.shape[1]), NO_PATH), self.paths, self.sizes)
        self.changed.mark([slot])
        self._moved.mark([slot])

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
            length, reach = self.config.history_length, self.config.next_items or 1
            for first in range(min(self.replay_steps, len(samples.replayed))):
                part = samples.replayed[first :: self.replay_steps]
                self._step(replay_batch(part, length, reach, generator), generator)
            losses, users, nodes = self._step(self._batch(samples), generator)
            self._update_scores(users, targets, nodes)
        touched = np.unique(targets)
        first_seen = touched[self.counts[touched] == 0]
        np.add.at(self.counts, targets, 1)
        self._moved.mark(touched)
        reassign_items(
            touched,
            self.table,
            self.counts,
            self.paths,
            self.sizes,
            penalty=self.current_penalty,
            penalty_degree=self.config.penalty_degree,
        )
        join_best_path(first_seen, self.table, self.paths, self.sizes)
        self.steps += 1
        return losses

    def _step(
        self, batch: Batch, generator: np.random.Generator
    ) -> tuple[dict[str, float], torch.Tensor, NDArray[np.int64]]:
        """A gradient step; returns the losses, and of each sample the user vector and the nodes of its item's paths."""
        losses, users = self.reranker(batch, generator, rate=self.rate)
        assert self.reranker.updated_rows is not None
        self.changed.mark(self.reranker.updated_rows.numpy())
        nodes = decode_paths(self.paths[batch.targets], self.structure_nodes, self.config.depth)
        losses["structure"] = self.structure(users, torch.from_numpy(nodes), generator)
        return losses, users, nodes

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
        self.finish_m_step()
        self.begin_m_step()
        return self.finish_m_step() or {}

    def begin_m_step(self) -> None:
        """Start a full M-step on the present scores in the background."""
        used = np.flatnonzero(self.used)
        if not len(used):
            return
        self.m_step = BackgroundMStep.begin(
            used,
            self.table,
            self.counts,
            self.paths,
            self.config,
            path_size=first_path_size(self.config),
            last_penalty=self.penalty,
            seed=int(np.random.default_rng([self.seed, 2, self.steps]).integers(2**31)),
        )
        self._moved.clear(M_STEP)

    def finish_m_step(self) -> dict[str, Any] | None:
        """Move items to the paths that the full M-step found; returns its figures, or None if none is under way.

        Items that were placed since it began stay where they are: their scores are newer.
        """
        if self.m_step is None:
            return None
        step, slots, self.m_step = self.m_step.result(), self.m_step.slots, None
        stays = np.isin(slots, self._moved.pending(M_STEP))
        moves = ~stays & (step.paths != self.paths[slots]).any(axis=1)
        place_items(slots[moves], step.paths[moves], self.paths, self.sizes)
        self.changed.mark(slots[moves])
        self.penalty = step.penalty
        return step.figures

    def state_dict(self, slots: NDArray[np.int64] | None = None) -> TrainingState:
        """Everything that later steps depend on; of the slots, all or only these."""
        rows = slice(None) if slots is None else slots
        weights = {f"network.{name}": one for name, one in self.network.export().items() if name != ITEM_ROWS}
        step = TrainingState({}, {}) if self.m_step is None else self.m_step.state_dict()
        moved = self._moved.pending(M_STEP) if self.m_step is not None else np.empty(0, np.int64)
        return TrainingState(
            {"steps": self.steps, "row_steps": self.reranker.rows.steps, "penalty": self.penalty, M_STEP: step.values},
            {
                **{f"{M_STEP}.{name}": one for name, one in step.arrays.items()},
                f"{M_STEP}.moved": moved,
                **weights,
                **{f"{ITEMS}{name}": one.values[rows] for name, one in self._arrays.items()},
                **optimizer_arrays("dense-adam", self.reranker.dense),
                **optimizer_arrays("structure-adam", self.structure.optimizer),
            },
        )

    def load_state_dict(self, state: TrainingState) -> None:
        """Restore what `state_dict` returned."""
        for name, array in self._arrays.items():
            array.load(state.arrays[f"{ITEMS}{name}"])
        self._bind()
        self.load_weights({name.removeprefix("network."): one for name, one in state.arrays.items()})
        load_optimizer_arrays("dense-adam", self.reranker.dense, state.arrays)
        load_optimizer_arrays("structure-adam", self.structure.optimizer, state.arrays)
        self.steps, self.penalty = state.values["steps"], state.values["penalty"]
        self.reranker.rows.steps = state.values["row_steps"]
        self.sizes = PathSizes(self.paths)
        self.m_step = None
        self._moved.clear(M_STEP)
        self._moved.mark(state.arrays[f"{M_STEP}.moved"])
        if state.values[M_STEP]:
            own = {name.removeprefix(f"{M_STEP}."): one for name, one in state.arrays.items()}
            self.m_step = BackgroundMStep.from_state_dict(state.values[M_STEP], own)

    def load_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Load the dense weights among `weights`."""
        own = self.network.state_dict()
        self.network.load_state_dict({name: torch.from_numpy(np.array(weights[name])) for name in own})
