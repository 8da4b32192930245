"""Encoder training on the reranker's loss, alone or jointly with the structure model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
from pathdex.training.early_stopping import BestWeights
from pathdex.training.held_out import exhaustive_f_measures
from pathdex.training.horizon import AHEAD, choose_horizon, decision_epoch, draw_horizons
from pathdex.training.loop import Phase, TrainingState
from pathdex.training.path_assigner import PathAssigner
from pathdex.training.random_streams import RandomStreams, Stream
from pathdex.training.schedule import cosine_rate
from pathdex.training.warm_start import WarmStart
from pathdex.training.windows import cut_windows

if TYPE_CHECKING:
    from pathdex.training.distributed.group import Group

HORIZON = "other_horizon."


class EncoderPhase(Phase):
    """Trains encoder and item vectors on Q_softmax, with cosine decay of the learning rate over the phase.

    With held-out queries, training stops early when they get no better, and the weights of the best epoch are kept.
    """

    name = "encoder"
    epoch_cost = 3.0

    def __init__(
        self,
        network: Network,
        config: EncoderConfig,
        data: Interactions,
        random: RandomStreams,
        records: Sequence[dict[str, Any]] = (),
        held_out: Queries | None = None,
        group: Group | None = None,
        start: WarmStart | None = None,
    ) -> None:
        """If `next_items` is not set, the first epochs learn both horizons, and `held_out` decides.

        `records` is the training log, which then holds the choice. With `start`, only the second half of the epochs is
        trained.
        """
        self.network, self.config, self.data, self.random, self.records = network, config, data, random, records
        self.start, self.held_out = start, held_out
        self.skipped = 0 if start is None else config.epochs // 2
        self.epochs = config.epochs - self.skipped
        self.decided_after = decision_epoch(self.epochs, data.num_interactions)
        self.best = BestWeights(network)
        self.reranker = RerankerStep(network, config, data.item_counts(), group)

    def begin(self) -> None:
        bias = centred_log_counts(self.data.item_counts()) if self.config.bias_start == "log-count" else None
        if self.start is not None:
            self.start.restore(self.network, bias)
            self.reranker.rows.table = self.network.items.rows
        elif bias is not None:
            self.network.items.set_bias(bias)

    def begin_epoch(self, epoch: int) -> int:
        config, sequences = self.config, self.data.sequences
        self.windows = cut_windows(sequences, config.history_length, self.random.generator(Stream.ORDER, epoch))
        self.batches = self.windows.batches(config.batch_size, self.random.generator(Stream.BATCHES, epoch))
        deciding = self._is_open and epoch < self.decided_after
        reach = AHEAD if deciding else next_items(config, self.records)
        self.readers, near = draw_horizons(sequences, reach, self.random.generator(Stream.TARGETS, epoch))
        self.mapped = ~near if deciding and near is not None else near
        return len(self.batches)

    @property
    def _is_open(self) -> bool:
        return self.config.next_items is None and self.held_out is not None and self.epochs > 1

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        if self.held_out is None:
            return {}
        figure = float(exhaustive_f_measures(self.network, self.held_out).mean())
        self.best.update(figure, epoch)
        if self._is_open and epoch + 1 == self.decided_after:
            choice = choose_horizon(self.network, self.reranker.other_horizon, self.held_out)
            self.reranker.other_horizon.reset()
            if choice["choices"]["next_items"] > 1:
                # The user vector has predicted the next item so far, and starts on the longer horizon now.
                self.best = BestWeights(self.network)
            return {"held_out_f": figure, **choice, **self._kept(epoch)}
        return {"held_out_f": figure, **self._kept(epoch)}

    def _kept(self, epoch: int) -> dict[str, Any]:
        """The epoch whose weights are kept, if this one is the last."""
        over = epoch + 1 == self.epochs or self.is_finished(epoch + 1)
        return {"kept_epoch": self.best.epoch + 1} if over else {}

    def is_finished(self, epoch: int) -> bool:
        undecided = self._is_open and epoch < self.decided_after
        return not undecided and self.best.stops(epoch)

    def end(self) -> None:
        self.best.restore()
        self.reranker.rows.table = self.network.items.rows

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        random = self._seeded(epoch, step)
        batch = self.windows.batch(self.batches[step]).read_earlier(self.readers, self.mapped)
        rate = cosine_rate((self.skipped + epoch + step / len(self.batches)) / self.config.epochs)
        return self.reranker(batch, random, rate=rate)[0]

    def _seeded(self, epoch: int, step: int) -> np.random.Generator:
        """The generator of a step. Seeds torch from it, for dropout."""
        random = self.random.generator(Stream.STEP, epoch, step)
        seed_step(int(random.integers(2**62)), self.network.device)
        return random

    def state_dict(self) -> TrainingState:
        rows, best, horizon = self.reranker.rows, self.best.state_dict(), self.reranker.other_horizon.state_dict()
        return TrainingState(
            {"row_steps": rows.steps, **best.values},
            {
                **best.arrays,
                **{f"network.{name}": value for name, value in self.network.export().items()},
                "rows.first": rows.first.cpu().numpy(),
                "rows.second": rows.second.cpu().numpy(),
                **{f"{HORIZON}{name}": value.cpu().numpy() for name, value in horizon.items()},
                **optimizer_arrays("dense-adam", self.reranker.dense),
                **(optimizer_arrays("joint-adam", self.reranker.structure) if self.reranker.structure else {}),
            },
        )

    def load_state_dict(self, state: TrainingState) -> None:
        arrays, device, rows = state.arrays, self.network.device, self.reranker.rows
        prefix = "network."
        self.network.restore({name.removeprefix(prefix): arrays[name] for name in arrays if name.startswith(prefix)})
        rows.table, rows.steps = self.network.items.rows, state.values["row_steps"]
        self.best.load_state_dict(state)
        rows.first = torch.from_numpy(arrays["rows.first"]).to(device)
        rows.second = torch.from_numpy(arrays["rows.second"]).to(device)
        horizon = {name.removeprefix(HORIZON): arrays[name] for name in arrays if name.startswith(HORIZON)}
        if horizon:  # Checkpoints of earlier versions have none.
            self.reranker.other_horizon.load_state_dict(
                {name: torch.from_numpy(array) for name, array in horizon.items()}
            )
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
        start: WarmStart | None = None,
    ) -> None:
        super().__init__(network, config, data, random, assigner.records, start=start)
        self.assigner = assigner
        samples = assigner.config.score_samples * data.num_items / data.num_interactions
        self.scored_share = min(1.0, samples)

    def begin(self) -> None:
        super().begin()
        if self.start is not None:
            vectors = self.network.items.outputs(self.network.items.rows).cpu().numpy()
            self.assigner.paths = self.start.place(self.assigner.paths, vectors)

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        random = self._seeded(epoch, step)
        batch = self.windows.batch(self.batches[step]).read_earlier(self.readers, self.mapped)
        losses, users = self.reranker(batch, random, self.assigner.nodes(batch.targets))
        chosen = random.permutation(len(users))[: int(np.ceil(self.scored_share * len(users)))]
        self.assigner.stream_scores(users[torch.from_numpy(chosen)], batch.targets[chosen])
        return losses

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        return self.assigner.m_step(self.random, epoch)

    def end(self) -> None:
        """The structure model has been trained with the last weights."""


def centred_log_counts(counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """log(N_v + 1), minus its mean."""
    logs = np.log(counts + 1.0)
    centred: NDArray[np.float32] = (logs - logs.mean()).astype(np.float32)
    return centred
