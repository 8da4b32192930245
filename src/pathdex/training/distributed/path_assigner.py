"""The discrete half of EM with items on several workers: each has the paths and the score table of its own items."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.index.coordinate_descent import scored_rows, summed_scores
from pathdex.index.initialization import random_paths
from pathdex.index.penalty import search_penalty
from pathdex.index.scores import ScoreTable
from pathdex.index.sharded_assignment import ShardedProblem
from pathdex.kernels.paths import split_codes
from pathdex.model.network import Network
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.health import sharded_health
from pathdex.training.distributed.positions import ShardedPositionVectors
from pathdex.training.distributed.rows import RowShard, interleave, item_lookup
from pathdex.training.m_step import MStep, m_step
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.random_streams import RandomStreams, Stream
from pathdex.training.scoring import ItemSamples, chunk_size, compiled_structure, score_lists

GATHERED = 65_536
"""Items up to which every worker gets the whole score table, some 40 MB, for an M-step."""
STREAMED = 65_536
"""Beams of the streaming update that are merged at once."""


class ShardedPathAssigner(PathAssigner):
    """`paths` and `table` have the rows of own items. All methods are collective."""

    def __init__(
        self,
        network: Network,
        config: Config,
        data: Interactions,
        records: Sequence[dict[str, Any]],
        group: Group,
        *,
        seed: int,
    ) -> None:
        assert config.num_nodes is not None
        self.network, self.config, self.data, self.records, self.group = network, config, data, records, group
        self.shard = RowShard(group.rank, group.size, data.num_items)
        self.counts = data.item_counts()
        self.table = ScoreTable.empty(self.shard.length, config.candidate_paths)
        start = random_paths(data.num_items, config.paths_per_item, config.num_nodes, config.depth, seed)
        self.paths = start[self.shard.rank :: self.shard.size].copy()
        self.penalty: float | None = None
        self.recorder = None  # The explorer's recording is for one process.

    def nodes(self, items: NDArray[np.integer]) -> Tensor:
        assert self.config.num_nodes is not None
        used, place = np.unique(items.astype(np.int64), return_inverse=True)
        own = torch.from_numpy(self.paths)
        codes = item_lookup(self.group, used).fetch(lambda places: own[places]).numpy()[place]
        nodes = np.empty((*codes.shape, self.config.depth), np.int64)
        split_codes(codes, self.config.num_nodes, nodes)
        return torch.from_numpy(nodes).to(self.network.device)

    def collect(
        self, vectors: ShardedPositionVectors, readers: NDArray[np.int64] | None, generator: np.random.Generator
    ) -> float:
        """`collect_scores` for own items; the vector of sample i is that at `readers[i]`. Returns the seconds."""
        started, config = time.monotonic(), self.config
        values, num_items = self.data.sequences.values, self.data.num_items

        def at(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
            return chosen if readers is None else readers[chosen]

        if config.scoring == "item":
            own = np.arange(num_items) % self.shard.size == self.shard.rank
            for items, chosen in ItemSamples(values, num_items, own).draw(config.score_samples, generator):
                self._score(items, at(chosen), vectors)
        else:
            groups = ItemSamples(values, num_items).draw(config.score_samples, generator)
            drawn = generator.permutation(np.concatenate([places.ravel() for _, places in groups]))
            targets = values[drawn].astype(np.int64)
            mine = self.shard.owns(targets)
            self._stream(targets[mine], at(drawn[mine]), vectors)
        return time.monotonic() - started

    def _score(self, items: NDArray[np.int64], positions: NDArray[np.int64], vectors: ShardedPositionVectors) -> None:
        structure, beam = self.network.structure, self.config.score_beam
        compiled = compiled_structure(structure)
        chunk = chunk_size(positions.shape[1], beam, compiled)
        for _ in range(self.group.largest(-(-len(items) // chunk))):
            part, items = items[:chunk], items[chunk:]
            wanted, positions = positions[:chunk], positions[chunk:]
            found = vectors.at(wanted.ravel()).reshape(*wanted.shape, vectors.own.shape[1])
            if len(part):
                own, device = part // self.shard.size, self.network.device
                lists = score_lists(structure, compiled, found, self.paths[own], beam, self.table, device)
                self.table.set_rows(own, *lists)

    def _stream(
        self, targets: NDArray[np.int64], positions: NDArray[np.int64], vectors: ShardedPositionVectors
    ) -> None:
        for round_number in range(self.group.largest(-(-len(targets) // STREAMED))):
            part = slice(round_number * STREAMED, (round_number + 1) * STREAMED)
            found = torch.from_numpy(vectors.at(positions[part]))
            size = self.config.structure_batch_size
            assert size is not None
            own = targets[part] // self.shard.size
            for begin in range(0, len(own), size):
                users = found[begin : begin + size].to(self.network.device)
                self.stream_scores(users, own[begin : begin + size])

    def _assign(
        self, random: RandomStreams, epoch: int, vectors: NDArray[np.float32] | None
    ) -> tuple[MStep, float, dict[str, Any]]:
        config, group, table = self.config, self.group, self.table
        assert config.num_nodes is not None
        seed = int(random.generator(Stream.ASSIGNMENT, epoch).integers(2**31))
        if self.data.num_items <= GATHERED:
            return self._assign_gathered(seed), config.path_size, {}
        problem = ShardedProblem(group, table.codes, table.scores, self.counts, self.paths, seed)
        degree, iterations = float(config.penalty_degree), config.descent_iterations
        if config.penalty is None:
            penalty, solved, _ = search_penalty(problem, config.path_size, degree, iterations, self.penalty)
        else:
            penalty, solved = config.penalty, problem.solve(config.penalty, degree, iterations)
        scored = scored_rows(table.scores)
        counts = self.counts[self.shard.rank :: self.shard.size]
        with np.errstate(divide="ignore"):
            sums = summed_scores(table.codes, table.scores, solved.paths)[scored]
            likelihood = float(group.total(float(np.sum(counts[scored] * np.log(sums)))))
        objective = likelihood - penalty * solved.penalty_term(degree) / degree
        state = sharded_health(group, solved.paths, self.paths, config.num_nodes, config.depth)
        figures = {"objective": objective, "penalty": penalty, **state}
        return MStep(solved.paths, penalty, figures), config.path_size, {}

    def _assign_gathered(self, seed: int) -> MStep:
        """The M-step of a small catalogue, by every worker for all items: that is faster than thousands of messages."""
        total, own = self.data.num_items, slice(self.shard.rank, None, self.shard.size)
        codes, scores, paths = (
            interleave(self.group.gather(one), total) for one in (self.table.codes, self.table.scores, self.paths)
        )
        step = m_step(
            ScoreTable(codes, scores),
            self.counts,
            paths,
            self.config,
            path_size=self.config.path_size,
            last_penalty=self.penalty,
            seed=seed,
        )
        return replace(step, paths=step.paths[own].copy())
