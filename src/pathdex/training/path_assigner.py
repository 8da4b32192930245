"""The discrete half of EM: score table, assignments and penalty."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries
from pathdex.errors import IndexHealthWarning
from pathdex.index.initialization import random_paths
from pathdex.index.scores import ScoreTable
from pathdex.kernels.paths import split_codes
from pathdex.model.network import Network
from pathdex.training.beam_recall import beam_recall
from pathdex.training.candidate_target import QUERIES, TOLERANCE, TRIALS, candidates_per_query, first_path_size
from pathdex.training.health_checks import index_warnings
from pathdex.training.loop import TrainingState
from pathdex.training.m_step import MStep, m_step
from pathdex.training.position_vectors import PositionVectors
from pathdex.training.random_streams import RandomStreams, Stream
from pathdex.training.recording import Recorder
from pathdex.training.sample_order import draw_few
from pathdex.training.scoring import ItemSamples, collect_item_scores, stream_scores


class PathAssigner:
    """Owns the paths of all items and updates them in M-steps. `records` is the training log."""

    def __init__(
        self,
        network: Network,
        config: Config,
        data: Interactions,
        records: Sequence[dict[str, Any]],
        *,
        seed: int,
        record: bool = False,
        held_out: Queries | None = None,
    ) -> None:
        """`record` keeps the paths of sampled items, and how many of the `held_out` items the beam reaches."""
        assert config.num_nodes is not None
        self.network, self.config, self.data, self.records = network, config, data, records
        self.counts = data.item_counts()
        self.table = ScoreTable.empty(data.num_items, config.candidate_paths)
        self.paths = random_paths(data.num_items, config.paths_per_item, config.num_nodes, config.depth, seed)
        """(item, path)"""
        self.penalty: float | None = None
        self.recorder = Recorder(data, config.num_nodes, config.depth, seed) if record else None
        self.held_out = held_out

    def nodes(self, items: NDArray[np.integer]) -> Tensor:
        """Paths of items as nodes: (item, path, layer)."""
        assert self.config.num_nodes is not None
        codes = self.paths[items]
        nodes = np.empty((*codes.shape, self.config.depth), np.int64)
        split_codes(codes, self.config.num_nodes, nodes)
        return torch.from_numpy(nodes).to(self.network.device)

    def stream_scores(self, users: Tensor, targets: NDArray[np.int64]) -> None:
        """Merge one beam per sample into the score table: the streaming update of Section 3."""
        config = self.config
        stream_scores(self.network.structure, users, targets, self.table, config.score_beam, config.decay)

    def collect_scores(self, vectors: PositionVectors, generator: np.random.Generator) -> float:
        """Score paths for all items under the current network, from the user vector of each interaction.

        Returns the elapsed seconds.
        """
        started, config, targets = time.monotonic(), self.config, self.data.sequences.values
        samples = ItemSamples(targets, self.data.num_items)
        if config.scoring == "item":
            collect_item_scores(
                self.network.structure,
                vectors,
                samples,
                self.table,
                self.paths,
                beam_size=config.score_beam,
                max_samples=config.score_samples,
                generator=generator,
                device=self.network.device,
            )
            return time.monotonic() - started
        chosen = np.concatenate([places.ravel() for _, places in samples.draw(config.score_samples, generator)])
        chosen = generator.permutation(chosen)
        size = config.structure_batch_size
        assert size is not None
        for part, found in vectors.parts(chosen, size):
            users = torch.from_numpy(found).to(self.network.device)
            self.stream_scores(users, targets[chosen[part]].astype(np.int64))
        return time.monotonic() - started

    def m_step(self, random: RandomStreams, epoch: int, vectors: NDArray[np.float32] | None = None) -> dict[str, Any]:
        """Move every item to its best paths; returns figures for the record.

        `candidates_per_query` needs `vectors`, the user vector of each interaction.
        """
        started = time.monotonic()
        step, path_size, figures = self._assign(random, epoch, vectors)
        if self.recorder is not None:
            if self.recorder.is_empty:
                self.recorder.add(self.paths)
            self.recorder.measured(self.recall())
            self.recorder.add(step.paths)
        self.paths, self.penalty = step.paths, step.penalty
        before = next((record for record in reversed(self.records) if "used_paths" in record), None)
        found = index_warnings(step.figures, before, path_size if self.config.penalty is None else None)
        for text in found:
            warnings.warn(text, IndexHealthWarning, stacklevel=2)
        if found:
            figures["warnings"] = found
        return {**figures, **step.figures, "m_step_seconds": time.monotonic() - started}

    def recall(self) -> float | None:
        """The recall of the beam for the held-out queries, if there are any."""
        if self.held_out is None or not len(self.held_out):
            return None
        return beam_recall(self.network, self.held_out, self.paths, self.config)

    def _assign(
        self, random: RandomStreams, epoch: int, vectors: NDArray[np.float32] | None
    ) -> tuple[MStep, float, dict[str, Any]]:
        """New paths, their target path size and, with `candidates_per_query`, figures about candidates.

        Candidates are about proportional to the path size, so the M-step is repeated with a path size scaled by the
        measured deviation.
        """
        config, wanted = self.config, self.config.candidates_per_query
        path_size = first_path_size(config) if wanted is None else self._last_path_size()
        seed = int(random.generator(Stream.ASSIGNMENT, epoch).integers(2**31))
        for trial in range(TRIALS):
            step = m_step(
                self.table,
                self.counts,
                self.paths,
                config,
                path_size=path_size,
                last_penalty=self.penalty,
                seed=seed,
            )
            if wanted is None or vectors is None:
                return step, path_size, {}
            generator = random.generator(Stream.PROBE_QUERIES, epoch)
            chosen = draw_few(self.data.num_interactions, QUERIES, generator)
            found = candidates_per_query(self.network.structure, vectors[chosen], step.paths, config)
            if abs(found - wanted) <= TOLERANCE * wanted or trial == TRIALS - 1:
                break
            path_size = max(1.0, path_size * wanted / max(found, 1.0))
        return step, path_size, {"candidates_per_query": found, "wanted_path_size": path_size}

    def _last_path_size(self) -> float:
        sizes = [record["wanted_path_size"] for record in self.records if "wanted_path_size" in record]
        return float(sizes[-1]) if sizes else first_path_size(self.config)

    def state_dict(self) -> TrainingState:
        arrays: dict[str, NDArray[Any]] = {
            "paths": self.paths,
            "table.codes": self.table.codes,
            "table.scores": self.table.scores,
            **({} if self.recorder is None else self.recorder.arrays()),
        }
        return TrainingState({"penalty": self.penalty}, arrays)

    def load_state_dict(self, state: TrainingState) -> None:
        self.paths, self.penalty = state.arrays["paths"], state.values["penalty"]
        self.table = ScoreTable(state.arrays["table.codes"], state.arrays["table.scores"])
        if self.recorder is not None:
            self.recorder.restore(state.arrays)
