"""What follows EM: fit the final score on held-out queries, then compare the result with simple baselines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config
from pathdex.data.splits import Queries
from pathdex.errors import AccuracyWarning
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.item_cf import ItemCF
from pathdex.recommenders.model_state import NEIGHBOURS_KEPT, ModelState, with_defaults
from pathdex.recommenders.popularity import Popularity
from pathdex.recommenders.score_fitting import fit_weights, free_weights, recencies
from pathdex.recommenders.score_pools import LIMIT, Pools, collect_pools
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.score_weights import PARAMETERS, ScoreWeights
from pathdex.training.encoder_phase import centred_log_counts
from pathdex.training.held_out import (
    HELD_OUT_SHARE,
    MIN_QUERIES,
    SIZES,
    describe_sizes,
    f_measures,
    percent,
)
from pathdex.training.loop import Phase, TrainingState
from pathdex.training.trainer import Trainer

if TYPE_CHECKING:
    from pathdex.training.distributed.group import Group

MAX_SIMILARITIES = 50_000_000
"""Item-CF, with which the result is compared, keeps fewer neighbours per item in large catalogues."""
TOLERATED_LOSS = 0.005
"""A smaller loss against a baseline is no reason to warn."""


class _FinalPhase(Phase):
    """One step after the last gradient step. Its result is its record."""

    epochs = 1

    def begin_epoch(self, epoch: int) -> int:
        return 1

    def step(self, epoch: int, step: int) -> Mapping[str, float]:
        return {}

    def state_dict(self) -> TrainingState:
        return TrainingState()

    def load_state_dict(self, state: TrainingState) -> None:
        """The record holds the result."""


class FirstWorkerPhase(_FinalPhase):
    """A final phase that the first worker runs for all, on the whole model; others wait and get its record."""

    def __init__(self, trainer: Trainer, phase: Phase, group: Group) -> None:
        self.trainer, self.phase, self.group, self.name = trainer, phase, group, phase.name

    def begin_epoch(self, epoch: int) -> int:
        self.trainer.gather()
        return 1

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        record = self.group.first_only(lambda: self.phase.end_epoch(epoch))
        found: dict[str, Any] = self.group.describe(record)[0]
        return found


class ScorePhase(_FinalPhase):
    """Fits the weights that the configuration leaves open."""

    name = "scores"

    def __init__(self, trainer: Trainer, held_out: Queries) -> None:
        self.trainer, self.held_out = trainer, held_out

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        return self.choose(self.collect(self.tried))

    @property
    def tried(self) -> tuple[float, ...]:
        """The recencies for which pools are needed."""
        config = self.trainer.chosen_config
        return recencies(ScoreWeights.from_config(config), free_weights(config))

    def collect(self, tried: Sequence[float]) -> dict[float, Pools]:
        """The pools of the held-out queries by recency."""
        state = ModelState.from_trainer(self.trainer)
        retriever, log_counts = state.retriever(), centred_log_counts(state.counts)
        beam = state.beam_for(LIMIT)
        return {
            recency: collect_pools(retriever, self.held_out, log_counts, beam=beam, recency=recency)
            for recency in tried
        }

    def choose(self, pools: Mapping[float, Pools]) -> dict[str, Any]:
        """The record with the choices."""
        config = self.trainer.chosen_config
        start, free = ScoreWeights.from_config(config), free_weights(config)
        fitted = fit_weights(pools, start, free, neighbours_fixed=config.neighbours is not None)
        choices: dict[str, Any] = {
            name: value for name, value in fitted.weights.to_config().items() if getattr(config, name) is None
        }
        if config.neighbours is None:
            choices["neighbours"] = NEIGHBOURS_KEPT if fitted.neighbours else 0
        listed = ", ".join(f"{name} {percent(f)}" for name, f in fitted.figures.items())
        why = f"best {describe_sizes()} on {len(self.held_out):,} held-out users ({listed})"
        return {"choices": choices, "reason": why}


class ComparisonPhase(_FinalPhase):
    """Compares the model with popularity and Item-CF on the held-out queries, and warns if it is below one of them."""

    name = "comparison"

    def __init__(self, trainer: Trainer, held_out: Queries, model_of: Callable[[ModelState], Recommender]) -> None:
        self.trainer, self.held_out, self.model_of = trainer, held_out, model_of

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        model = self.model_of(ModelState.from_trainer(self.trainer))
        return self.compare(model.name, self._ranked(model, candidates=LIMIT))

    def compare(self, name: str, ranked: NDArray[np.integer]) -> dict[str, Any]:
        """The record, for what the model recommends: (query, item), best first."""
        data = self.trainer.data
        found = {name: f_measures(ranked, self.held_out)}
        neighbours = int(np.clip(MAX_SIMILARITIES // data.num_items, 50, 500))
        item_cf = ItemCF(neighbours=neighbours).fit_for(self.held_out.history, data)
        for baseline in (Popularity().fit(data, callbacks=()), item_cf):
            found[baseline.name] = f_measures(self._ranked(baseline), self.held_out)
        means = {name: f.mean(axis=0).tolist() for name, f in found.items()}
        texts = accuracy_warnings(found)
        for text in texts:
            warnings.warn(text, AccuracyWarning, stacklevel=2)
        listed = ", ".join(f"{name} {percent(f)}" for name, f in means.items())
        line = f"{describe_sizes()} on {len(self.held_out):,} held-out users: {listed}"
        return {"comparison": means, "reason": line, **({"warnings": texts} if texts else {})}

    def _ranked(self, model: Recommender, **options: Any) -> NDArray[np.integer]:
        history = self.held_out.history
        return model.rank(history, max(SIZES), Filters(exclude=history), **options).items


class DefaultsPhase(_FinalPhase):
    """Records the defaults in use where the data has too few users to choose by."""

    name = "defaults"

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        config = self.trainer.chosen_config
        used = {**with_defaults(config).to_dict(), "next_items": config.next_items}
        names = ("next_items", "neighbours", *PARAMETERS.values())
        choices = {name: used[name] for name in names if getattr(self.trainer.config, name) is None}
        wanted = MIN_QUERIES * HELD_OUT_SHARE
        why = f"defaults: choosing takes {wanted} users or {MIN_QUERIES} validation users"
        return {"choices": choices, "reason": why}


def final_phases(
    trainer: Trainer, held_out: Queries | None, model_of: Callable[[ModelState], Recommender]
) -> list[Phase]:
    """The phases that follow EM. `model_of` makes a model of a state."""
    phases: list[Phase]
    if held_out is None:
        phases = [DefaultsPhase(trainer)] if is_open(trainer.config) else []
    else:
        phases = [ScorePhase(trainer, held_out)] if has_open_score(trainer.config) else []
        phases.append(ComparisonPhase(trainer, held_out, model_of))
    group = trainer.group
    return phases if group is None else [FirstWorkerPhase(trainer, one, group) for one in phases]


def is_open(config: Config) -> bool:
    """Whether a configuration leaves something to choose on held-out queries."""
    return config.next_items is None or has_open_score(config)


def has_open_score(config: Config) -> bool:
    """Whether a configuration leaves a part of the final score open."""
    return config.neighbours is None or bool(free_weights(config))


def accuracy_warnings(found: Mapping[str, NDArray[np.float64]]) -> list[str]:
    """One text for each baseline that the first method is below, by more than `TOLERATED_LOSS` and a standard error.

    F by method, (query, size). docs/warnings.md explains the codes.
    """
    (name, own), *baselines = found.items()
    codes = {Popularity.name: "W201", ItemCF.name: "W202"}
    texts = []
    for other, f in baselines:
        scale = np.maximum(f.mean(axis=0), 1e-9)
        loss = ((f - own) / scale).mean(axis=1)
        if loss.mean() > max(TOLERATED_LOSS, loss.std() / np.sqrt(len(loss))):
            texts.append(
                f"{codes[other]}: {name} is {loss.mean():.1%} below {other} on {len(loss):,} held-out users; "
                "docs/warnings.md says what to try"
            )
    return texts
