"""Encoder training on the reranker's loss, alone or jointly with the structure model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import EncoderConfig
from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries
from pathdex.model.network import Network
from pathdex.training.checkpointing import load_optimizer_arrays, optimizer_arrays
from pathdex.training.choices import next_items
from pathdex.training.determinism import seed_step
from pathdex.training.e_step import RerankerStep
from pathdex.training.horizon import AHEAD, choose_horizon, decision_epoch, draw_horizons
from pathdex.training.loop import Phase, TrainingState
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.random_streams import RandomStreams, Stream
from pathdex.training.schedule import cosine_rate
from pathdex.training.windows import cut_windows


class EncoderPhase(Phase):
    """Trains encoder and item vectors on Q_softmax, with cosine decay of the learning rate over the phase."""

    name = "encoder"

    def __init__(
        self,
        network: Network,
        config: EncoderConfig,
        data: Interactions,
        random: RandomStreams,
        records: Sequence[dict[str, Any]] = (),
        held_out: Queries | None = None,
    ) -> None:
        """If `next_items` is not set, the first epochs learn both horizons, and `held_out` decides.

        `records` is the training log, which then holds the choice.
        """
        self.network, self.config, self.data, self.random, self.records = network, config, data, random, records
        self.epochs, self.held_out = config.epochs, held_out
        self.decided_after = decision_epoch(self.epochs, data.num_interactions)
        self.reranker = RerankerStep(network, config, data.item_counts())

    def begin(self) -> None:
        if self.config.bias_start == "log-count":
            self.network.items.set_bias(centred_log_counts(self.data.item_counts()))

    def begin_epoch(self, epoch: int) -> int:
        config, sequences = self.config, self.data.sequences
        self.windows = cut_windows(sequences, config.history_length, self.random.generator(Stream.ORDER, epoch))
        self.batches = self.windows.batches(config.batch_size, self.random.generator(Stream.BATCHES, epoch))
        deciding = self._is_open and epoch < self.decided_after
        reach = AHEAD if deciding else next_items(config, self.records)
        self.readers, self.near = draw_horizons(sequences, reach, self.random.generator(Stream.TARGETS, epoch))
        return len(self.batches)

    @property
    def _is_open(self) -> bool:
        return self.config.next_items is None and self.held_out is not None

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        if not self._is_open or epoch + 1 != self.decided_after:
            return {}
        assert self.held_out is not None
        return choose_horizon(self.network, self.reranker.near, self.held_out)

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        random = self._seeded(epoch, step)
        batch = self.windows.batch(self.batches[step]).read_earlier(self.readers, self.near)
        rate = cosine_rate((epoch + step / len(self.batches)) / self.epochs)
        return self.reranker(batch, random, rate=rate)[0]

    def _seeded(self, epoch: int, step: int) -> np.random.Generator:
        """The generator of a step. Seeds torch from it, for dropout."""
        random = self.random.generator(Stream.STEP, epoch, step)
        seed_step(int(random.integers(2**62)), self.network.device)
        return random

    def state_dict(self) -> TrainingState:
        rows = self.reranker.rows
        return TrainingState(
            {"row_steps": rows.steps},
            {
                **{f"network.{name}": value for name, value in self.network.export().items()},
                "rows.first": rows.first.cpu().numpy(),
                "rows.second": rows.second.cpu().numpy(),
                **{f"near.{name}": value.cpu().numpy() for name, value in self.reranker.near.state_dict().items()},
                **optimizer_arrays("dense-adam", self.reranker.dense),
                **(optimizer_arrays("joint-adam", self.reranker.structure) if self.reranker.structure else {}),
            },
        )

    def load_state_dict(self, state: TrainingState) -> None:
        arrays, device, rows = state.arrays, self.network.device, self.reranker.rows
        prefix = "network."
        self.network.restore({name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)})
        rows.table, rows.steps = self.network.items.rows, state.values["row_steps"]
        rows.first = torch.from_numpy(arrays["rows.first"]).to(device)
        rows.second = torch.from_numpy(arrays["rows.second"]).to(device)
        near = {name.removeprefix("near."): arrays[name] for name in arrays if name.startswith("near.")}
        if near:  # Checkpoints of earlier versions have none.
            self.reranker.near.load_state_dict({name: torch.from_numpy(array) for name, array in near.items()})
        load_optimizer_arrays("dense-adam", self.reranker.dense, arrays)
        if self.reranker.structure is not None:
            load_optimizer_arrays("joint-adam", self.reranker.structure, arrays)


class JointPhase(EncoderPhase):
    """Joint epochs (Section 4): Q_softmax + Q_str at a constant learning rate, with an M-step after each."""

    name = "joint"

    def __init__(
        self,
        network: Network,
        config: EncoderConfig,
        data: Interactions,
        random: RandomStreams,
        assigner: PathAssigner,
        held_out: Queries | None = None,
    ) -> None:
        super().__init__(network, config, data, random, assigner.records, held_out)
        self.assigner = assigner
        samples = assigner.config.score_samples * data.num_items / data.num_interactions
        self.scored_share = min(1.0, samples)

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        random = self._seeded(epoch, step)
        batch = self.windows.batch(self.batches[step]).read_earlier(self.readers, self.near)
        losses, users = self.reranker(batch, random, self.assigner.nodes(batch.targets))
        chosen = random.permutation(len(users))[: int(np.ceil(self.scored_share * len(users)))]
        self.assigner.stream_scores(users[torch.from_numpy(chosen)], batch.targets[chosen])
        return losses

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        return {**super().end_epoch(epoch), **self.assigner.m_step(self.random, epoch)}


def centred_log_counts(counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """log(N_v + 1), minus its mean."""
    logs = np.log(counts + 1.0)
    centred: NDArray[np.float32] = (logs - logs.mean()).astype(np.float32)
    return centred
