"""What steps share: the data, its splits, and the fitted models on disk."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pathdex.data.interactions import Interactions
from pathdex.data.readers import read
from pathdex.data.splits import Split
from pathdex.errors import DataError, Problem
from pathdex.experiments.report_request import ReportRequest
from pathdex.experiments.splitting import prepare_split
from pathdex.experiments.steps import ReportProgress, StepStore
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.capabilities import ChoosesOnValidation, HasVectors, require
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.registry import load, make_estimator
from pathdex.training.callbacks import Callback, StepProgress


class Context:
    """The data of a request and the folder of its report."""

    def __init__(self, request: ReportRequest, store: StepStore, progress: ReportProgress) -> None:
        self.request, self.store, self.progress = request, store, progress
        self._split: tuple[int, Split] | None = None

    @cached_property
    def data(self) -> Interactions:
        data = read(self.request.source, **self.request.reading)
        limit = self.request.budget.max_users
        if limit is not None and data.num_users > limit:
            data = data.take(np.sort(np.random.default_rng(0).permutation(data.num_users)[:limit]))
        return data

    def split(self, seed: int) -> Split:
        """The training data and held-out users of a seed; other kinds than `users` are the same for all seeds."""
        if self._split is None or self._split[0] != seed:
            request = self.request
            split = prepare_split(self.data, request.split, seed=seed, max_held_out=request.budget.max_held_out)
            if not len(split.test) or (request.tuned and not len(split.valid)):
                rule = f"leaves {len(split.valid):,} validation and {len(split.test):,} test users, and both are needed"
                raise DataError(Problem(rule, "split", request.split["kind"], "hold out more of each"))
            self._split = seed, split
        return self._split[1]

    def fit(self, name: str, parameters: Mapping[str, Any], seed: int) -> tuple[Recommender, dict[str, Any]]:
        """A fitted model, with its training time and records."""
        request, split = self.request, self.split(seed)
        started = time.monotonic()
        if self._is_shared(name):
            return self.model(name, seed), {"fit_seconds": time.monotonic() - started, "records": []}
        model = make_estimator(name, parameters, seed=seed, device=request.device, threads=request.threads)
        progress = [TrainingProgress(self.progress)]
        if isinstance(model, ChoosesOnValidation):
            model.fit(split.train, callbacks=progress, validation=split.valid)
        else:
            model.fit(split.train, callbacks=progress)
        return model, {"fit_seconds": time.monotonic() - started, "records": model.records}

    def keep(self, name: str, seed: int, model: Recommender) -> None:
        """Save a model for later steps. Brute force over Deep Retrieval's vectors is not saved again."""
        if not self._is_shared(name):
            model.save(self._path(name, seed), overwrite=True)

    def model(self, name: str, seed: int) -> Recommender:
        """A model that `keep` saved."""
        if self._is_shared(name):
            return BruteForce(require(self.model(DeepRetrieval.name, seed), HasVectors))
        return load(self._path(name, seed))

    def keep_trial(self, trial: str, model: Recommender) -> None:
        """Save the model of a tuning trial in case it is selected."""
        model.save(self.store.models / trial, overwrite=True)

    def take_trial(self, trial: str) -> Recommender | None:
        """The model that `keep_trial` saved; None if it was deleted."""
        path = self.store.models / trial
        return load(path) if path.exists() else None

    def forget_trials(self, trials: Sequence[str]) -> None:
        """Delete the models of finished trials."""
        for trial in trials:
            shutil.rmtree(self.store.models / trial, ignore_errors=True)

    def _is_shared(self, name: str) -> bool:
        """Whether the method searches the vectors of the report's Deep Retrieval."""
        return name == BruteForce.name and DeepRetrieval.name in self.request.methods

    def _path(self, name: str, seed: int) -> Path:
        return self.store.models / f"{name}-seed{seed}"


class TrainingProgress(Callback):
    """Reports training steps as progress of the running step."""

    def __init__(self, progress: ReportProgress) -> None:
        self.progress = progress

    def on_step_end(self, progress: StepProgress) -> None:
        part = f"{progress.phase} {progress.epoch}/{progress.epochs}"
        self.progress.on_step_progress(part, progress.step, progress.steps)
