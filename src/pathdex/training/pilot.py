"""Pilot: short trainings that choose `next_items` on held-out queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries
from pathdex.model.network import Network
from pathdex.training.encoder_phase import EncoderPhase
from pathdex.training.held_out import SIZES, exhaustive_f_measures
from pathdex.training.loop import Phase, TrainingState
from pathdex.training.random_streams import RandomStreams, Stream

HORIZONS = (1, 64)
"""The values of `next_items` that are compared."""
SAMPLES, MAX_EPOCHS = 400_000, 4
"""Training samples of a pilot; small data is read up to so many times."""
PREFIX = "pilot."


class PilotPhase(Phase):
    """Trains an encoder per horizon on at most `SAMPLES` interactions and compares them on held-out queries.

    The last record of each horizon has its figures, the record of the last one also the choice.
    """

    name = "pilot"

    def __init__(
        self,
        config: Config,
        data: Interactions,
        held_out: Queries,
        random: RandomStreams,
        records: Sequence[dict[str, Any]],
        *,
        device: str,
        horizons: Sequence[int] = HORIZONS,
    ) -> None:
        self.data, self.held_out, self.random, self.device = sample_users(data, random), held_out, random, device
        self.records, self.horizons = records, tuple(horizons)
        self.each = int(np.clip(round(SAMPLES / self.data.num_interactions), 1, MAX_EPOCHS))
        self.config, self.epochs = config.replace(epochs=self.each), self.each * len(self.horizons)
        self.encoder: EncoderPhase | None = None

    def begin(self) -> None:
        self._start(0)

    def _start(self, number: int) -> None:
        """A new encoder for a horizon, with the same initial weights for each."""
        torch.manual_seed(self.random.seed)
        network = Network(self.config, self.data.num_items).place(self.device)
        config = self.config.replace(next_items=self.horizons[number])
        self.encoder = EncoderPhase(network, config, self.data, self.random)
        self.encoder.begin()

    def begin_epoch(self, epoch: int) -> int:
        return self._encoder.begin_epoch(epoch % self.each)

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        return self._encoder.step(epoch % self.each, step)

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        number, last = divmod(epoch, self.each)
        if last + 1 < self.each:
            return {"next_items": self.horizons[number]}
        f = exhaustive_f_measures(self._encoder.network, self.held_out).mean(axis=0)
        figures = {"next_items": self.horizons[number], "held_out_f": f.tolist()}
        if number + 1 < len(self.horizons):
            self._start(number + 1)
            return figures
        self.encoder = None
        return {**figures, **choose([*self.records, figures], len(self.held_out))}

    @property
    def _encoder(self) -> EncoderPhase:
        assert self.encoder is not None
        return self.encoder

    def state_dict(self) -> TrainingState:
        if self.encoder is None:
            return TrainingState()
        state = self.encoder.state_dict()
        return TrainingState(
            {"pilot": {"next_items": self.encoder.config.next_items, **state.values}},
            {f"{PREFIX}{name}": array for name, array in state.arrays.items()},
        )

    def load_state_dict(self, state: TrainingState) -> None:
        saved = state.values.get("pilot")
        if saved is None:
            return
        self._start(self.horizons.index(saved["next_items"]))
        arrays: dict[str, NDArray[Any]] = {
            name.removeprefix(PREFIX): array for name, array in state.arrays.items() if name.startswith(PREFIX)
        }
        self._encoder.load_state_dict(TrainingState(saved, arrays))


def sample_users(data: Interactions, random: RandomStreams) -> Interactions:
    """At most about `SAMPLES` interactions: all sequences of random users."""
    if data.num_interactions <= SAMPLES:
        return data
    order = random.generator(Stream.ORDER, 0).permutation(data.num_users)
    total = np.cumsum(data.sequences.lengths[order])
    return data.take(np.sort(order[: max(1, int(np.searchsorted(total, SAMPLES)))]))


def choose(records: Sequence[Mapping[str, Any]], num_queries: int) -> dict[str, Any]:
    """The horizon with the best mean F over the sizes, each relative to the first horizon, and why."""
    figures = {record["next_items"]: np.array(record["held_out_f"]) for record in records if "held_out_f" in record}
    first = next(iter(figures.values()))
    relative = {horizon: float(np.mean(f / np.maximum(first, 1e-9))) for horizon, f in figures.items()}
    best = max(relative, key=lambda horizon: relative[horizon])
    listed = ", ".join(f"{horizon}: {_percent(f)}" for horizon, f in figures.items())
    why = f"best F@{' and '.join(map(str, SIZES))} of {num_queries:,} held-out users in short trainings ({listed})"
    return {"choices": {"next_items": best}, "reason": why}


def _percent(f: NDArray[np.float64]) -> str:
    return " and ".join(f"{100 * value:.2f}%" for value in f)
