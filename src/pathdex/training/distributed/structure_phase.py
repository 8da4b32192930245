"""EM rounds on several workers: samples stay with their users, paths and scores with their items."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.index.initialization import default_max_size, place_items, placed_codes
from pathdex.index.residual_kmeans import draw_sample, fit_sample, nearest_codes
from pathdex.kernels.gather import take_rows
from pathdex.model.network import Network
from pathdex.training.choices import next_items
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.path_assigner import ShardedPathAssigner
from pathdex.training.distributed.positions import PositionShard, ShardedPositionVectors, sharded_position_vectors
from pathdex.training.distributed.rows import RowShard, gather_items
from pathdex.training.e_step import draw_offsets, sum_gradients
from pathdex.training.random_streams import RandomStreams, Stream
from pathdex.training.schedule import cosine_rate
from pathdex.training.structure_phase import StructurePhase

KMEANS_ITERATIONS = 10


class ShardedStructurePhase(StructurePhase):
    """`StructurePhase` whose steps take the samples of the global batch that are of own users."""

    def __init__(
        self,
        network: Network,
        config: Config,
        data: Interactions,
        random: RandomStreams,
        assigner: ShardedPathAssigner,
        group: Group,
        *,
        seed: int,
    ) -> None:
        super().__init__(network, config, data, random, assigner, seed=seed)
        self.group, self.sharded = group, assigner
        self.positions = PositionShard.of(data.sequences, group.rank, group.size)

    @cached_property
    def sharded_vectors(self) -> ShardedPositionVectors:
        """The user vectors of own users."""
        return sharded_position_vectors(self.network, self.data, self.batch_size, self.group, self.positions)

    def begin(self) -> None:
        if self.config.start == "residual-kmeans":
            self.sharded.paths = sharded_kmeans_paths(self.network, self.config, self.group, seed=self.seed)

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        size, vectors = self.batch_size, self.sharded_vectors.own
        chosen = self.order[step * size : (step + 1) * size]
        done = (epoch - self.final.start + step / self.num_steps) / max(1, self.config.final_epochs)
        rate = cosine_rate(done) if epoch in self.final else 1.0
        offsets = draw_offsets(len(chosen), self.random.generator(Stream.STEP, epoch, step))
        own = np.flatnonzero(self.positions.owns(chosen))
        paths = self.sharded.nodes(self.data.sequences.values[chosen[own]])
        users = torch.empty(len(own), vectors.shape[1])
        take_rows(vectors, self.readers[chosen[own]] - self.positions.first, users.numpy())
        weight, parameters = len(own) / len(chosen), list(self.network.structure.parameters())

        def combine(loss: float) -> float:
            for parameter in parameters:
                if parameter.grad is not None:
                    parameter.grad = parameter.grad * weight
            return sum_gradients(self.group, parameters, {"structure": loss * weight})["structure"]

        if not len(own):
            return {"structure": self._idle_step(combine, rate)}
        device = self.network.device
        return {"structure": self.e_step.step(users.to(device), paths, offsets[own], rate, combine)}

    def _idle_step(self, combine: Any, rate: float) -> float:
        """A step without own samples."""
        optimizer = self.e_step.optimizer
        optimizer.zero_grad()
        optimizer.param_groups[0]["lr"] = self.e_step.rate * rate
        loss: float = combine(0.0)
        optimizer.step()
        return loss

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        if epoch not in self.m_steps:
            return {}
        ahead = next_items(self.config, self.sharded.records) > 1
        readers = self._readers(Stream.SCORE_TARGETS, epoch) if ahead else None
        generator = self.random.generator(Stream.SCORE_SAMPLES, epoch)
        seconds = self.sharded.collect(self.sharded_vectors, readers, generator)
        return {**self.sharded.m_step(self.random, epoch), "score_seconds": seconds}


def sharded_kmeans_paths(network: Network, config: Config, group: Group, *, seed: int) -> NDArray[np.int64]:
    """`residual_kmeans_paths` of own items.

    The centroids are fitted on a sample of bounded size. Items then take their places one after the other on the first
    worker, since each place depends on those before it.
    """
    assert config.num_nodes is not None
    J, K, depth, total = config.paths_per_item, config.num_nodes, config.depth, network.num_items
    random = np.random.default_rng(seed)
    sample = torch.from_numpy(draw_sample(total, K, random)).to(network.device)
    drawn = network.items.outputs(network.items.take(sample)).cpu().numpy()
    codebooks = group.stack(fit_sample(drawn, K, depth, KMEANS_ITERATIONS, random))[0]
    vectors = np.ascontiguousarray(network.items.outputs(network.items.rows).cpu().numpy())
    near = gather_items(group, nearest_codes(vectors, codebooks, beam=placed_codes(J)), total)

    def place() -> NDArray[np.int64]:
        assert near is not None
        paths = place_items(near, J, K, depth, default_max_size(total * J / K**depth), random)
        return np.concatenate([paths[rank :: group.size] for rank in range(group.size)])

    placed = group.first_only(place)
    if placed is None:
        nothing = torch.empty(0, J, dtype=torch.long)
        return group.exchange(nothing, [0] * group.size)[0].numpy()
    lengths = [RowShard(rank, group.size, total).length for rank in range(group.size)]
    return group.exchange(torch.from_numpy(placed), lengths)[0].numpy()
