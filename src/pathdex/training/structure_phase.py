"""EM rounds: E-steps on the structure model over frozen user vectors, each followed by an M-step."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.index.initialization import residual_kmeans_paths
from pathdex.model.network import Network
from pathdex.training.checkpointing import load_optimizer_arrays, optimizer_arrays
from pathdex.training.choices import next_items
from pathdex.training.e_step import StructureStep, position_vectors
from pathdex.training.loop import Phase, TrainingState
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.position_vectors import BatchVectors, PositionVectors
from pathdex.training.random_streams import RandomStreams, Stream
from pathdex.training.sample_order import draw_order
from pathdex.training.schedule import cosine_rate
from pathdex.training.warm_start import WarmStart
from pathdex.training.windows import draw_readers


class StructurePhase(Phase):
    """`rounds` EM rounds of `structure_epochs` epochs, then `final_epochs` with assignments fixed.

    Differs from the paper: the final epochs train the structure model on the paths of the last M-step, with cosine
    decay of the learning rate.
    """

    name = "structure"

    def __init__(
        self,
        network: Network,
        config: Config,
        data: Interactions,
        random: RandomStreams,
        assigner: PathAssigner,
        *,
        seed: int,
        start: WarmStart | None = None,
    ) -> None:
        self.network, self.config, self.data, self.start = network, config, data, start
        self.random, self.assigner, self.seed = random, assigner, seed
        each = config.structure_epochs
        self.m_steps = range(each - 1, config.rounds * each, each)
        """Epochs that end with an M-step."""
        self.final = range(config.rounds * each, config.rounds * each + (config.final_epochs if config.rounds else 0))
        self.epochs = self.final.stop
        assert config.structure_batch_size is not None
        self.batch_size = config.structure_batch_size
        self.e_step = StructureStep(network, config)

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """The user vector before each interaction. The encoder is frozen in this phase."""
        return position_vectors(self.network, self.data, self.batch_size)

    def begin(self) -> None:
        config = self.config
        vectors = self.network.items.outputs(self.network.items.rows).cpu().numpy()
        if self.start is not None and config.schedule == "warm":
            self.assigner.paths = self.start.place(self.assigner.paths, vectors)
        elif config.start == "residual-kmeans":
            assert config.num_nodes is not None
            self.assigner.paths = residual_kmeans_paths(
                vectors, config.paths_per_item, config.num_nodes, config.depth, seed=self.seed
            )

    def begin_epoch(self, epoch: int) -> int:
        targets = self.data.sequences.values
        self.readers = self._readers(Stream.TARGETS, epoch)
        self.order = draw_order(len(targets), self.random.generator(Stream.ORDER, epoch))
        self.batches: BatchVectors | None = None
        self.num_steps = -(-len(targets) // self.batch_size)
        return self.num_steps

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        size = self.batch_size
        chosen = self.order[step * size : (step + 1) * size]
        done = (epoch - self.final.start + step / self.num_steps) / max(1, self.config.final_epochs)
        rate = cosine_rate(done) if epoch in self.final else 1.0
        if self.batches is None:
            self.batches = BatchVectors(PositionVectors(self.vectors, self.readers), self.order, size)
        users = torch.from_numpy(self.batches[step]).to(self.network.device)
        paths = self.assigner.nodes(self.data.sequences.values[chosen])
        random = self.random.generator(Stream.STEP, epoch, step)
        return {"structure": self.e_step(users, paths, random, rate)}

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        self.batches = None
        if epoch not in self.m_steps:
            return {}
        readers = None
        if next_items(self.config, self.assigner.records) > 1:
            readers = self._readers(Stream.SCORE_TARGETS, epoch)
        vectors = PositionVectors(self.vectors, readers)
        seconds = self.assigner.collect_scores(vectors, self.random.generator(Stream.SCORE_SAMPLES, epoch))
        return {**self.assigner.m_step(self.random, epoch, self.vectors), "score_seconds": seconds}

    def _readers(self, stream: Stream, epoch: int) -> NDArray[np.int64]:
        """For each interaction, the one whose history predicts it: itself if `next_items` is 1."""
        reach = next_items(self.config, self.assigner.records)
        return draw_readers(self.data.sequences, reach, self.random.generator(stream, epoch))

    def state_dict(self) -> TrainingState:
        own = self.assigner.state_dict()
        return TrainingState(own.values, {**own.arrays, **optimizer_arrays("structure-adam", self.e_step.optimizer)})

    def load_state_dict(self, state: TrainingState) -> None:
        self.assigner.load_state_dict(state)
        load_optimizer_arrays("structure-adam", self.e_step.optimizer, state.arrays)
