"""What steps work with: the data, its splits, and models that are made once and opened again."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pathdex.data.interactions import Interactions
from pathdex.data.readers import read
from pathdex.data.splits import Queries, Split, make_split
from pathdex.errors import DataError
from pathdex.experiments.report_request import Request
from pathdex.experiments.run_request import default_held_out
from pathdex.experiments.steps import Store, Watcher
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.registry import load, make_estimator
from pathdex.storage.array_folder import file_digest
from pathdex.training.callbacks import Callback, StepProgress


class Context:
    """The data of a request, and the folder of its report."""

    def __init__(self, request: Request, store: Store, watcher: Watcher) -> None:
        self.request, self.store, self.watcher = request, store, watcher
        self._split: tuple[int, Split] | None = None

    @cached_property
    def data(self) -> Interactions:
        data = read(self.request.source, **self.request.reading)
        most = self.request.effort.most_users
        if most is not None and data.num_users > most:
            data = data.take(np.sort(np.random.default_rng(0).permutation(data.num_users)[:most]))
        return data

    def split(self, seed: int) -> Split:
        """The training data and the held-out users of a seed; a split in time is the same for all seeds."""
        if self._split is None or self._split[0] != seed:
            options = dict(self.request.split)
            kind = options.pop("kind")
            if kind == "users":
                held_out = {**default_held_out(self.data), **options}
                most = self.request.effort.most_held_out
                if most is not None:
                    held_out = {name: min(most, count) for name, count in held_out.items()}
                options = {**held_out, "seed": seed}
            split = make_split(self.data, kind, **options)
            if self.request.effort.most_held_out is not None:
                most = self.request.effort.most_held_out
                split = Split(split.train, _first(split.valid, most), _first(split.test, most))
            if not len(split.test) or (self.request.tuned and not len(split.valid)):
                raise DataError(
                    f"split={kind!r}: leaves {len(split.valid):,} validation and {len(split.test):,} test users, and "
                    "both are asked; hold out more of each"
                )
            self._split = seed, split
        return self._split[1]

    def fit(self, name: str, parameters: Mapping[str, Any], seed: int) -> tuple[Recommender, dict[str, Any]]:
        """A fitted model, and how long it took with the records of its training."""
        request, train = self.request, self.split(seed).train
        started, told = time.monotonic(), self.listener()
        if name == BruteForce.name and DeepRetrieval.name in request.methods:
            model: Recommender = BruteForce(self.model(DeepRetrieval.name, seed))  # type: ignore[arg-type]
        else:
            model = make_estimator(name, parameters, seed=seed, device=request.device, threads=request.threads)
            model.fit(train, callbacks=[told])
        return model, {"fit_seconds": time.monotonic() - started, "records": told.records}

    def listener(self) -> RecordingCallback:
        """Hears of a training, for the watcher and for the record."""
        return RecordingCallback(self.watcher)

    def keep(self, name: str, seed: int, model: Recommender) -> None:
        """Save a model for later steps; brute force is Deep Retrieval's own."""
        if not self._is_shared(name):
            model.save(self._place(name, seed), overwrite=True)

    def model(self, name: str, seed: int) -> Recommender:
        """A model that `keep` saved."""
        if self._is_shared(name):
            return BruteForce(self.model(DeepRetrieval.name, seed))  # type: ignore[arg-type]
        return load(self._place(name, seed))

    def keep_trial(self, trial: str, model: Recommender) -> None:
        """Save a model that was tuned, in case that it is chosen."""
        model.save(self._trial(trial), overwrite=True)

    def take_trial(self, trial: str) -> Recommender | None:
        """The model that `keep_trial` saved; None where somebody has removed it."""
        return load(self._trial(trial)) if self._trial(trial).exists() else None

    def forget_trials(self, trials: Sequence[str]) -> None:
        """Remove the models of trials that are over."""
        for trial in trials:
            shutil.rmtree(self._trial(trial), ignore_errors=True)

    def _trial(self, trial: str) -> Path:
        return self.store.models / trial

    def _is_shared(self, name: str) -> bool:
        return name == BruteForce.name and DeepRetrieval.name in self.request.methods

    def _place(self, name: str, seed: int) -> Path:
        return self.store.models / f"{name}-seed{seed}"


class RecordingCallback(Callback):
    """Keeps the records of a training, and passes on how it comes along."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.records: list[dict[str, Any]] = []

    def on_step_end(self, progress: StepProgress) -> None:
        title = f"{progress.phase} {progress.epoch}/{progress.epochs}"
        self.watcher.advanced(title, progress.step, progress.steps)

    def on_epoch_end(self, record: dict[str, Any]) -> None:
        self.records.append(record)


def checksum(source: Path) -> str:
    """SHA-256 of a file, or of the names and checksums of all files of a folder."""
    if source.is_file():
        return file_digest(source, "sha256")
    if not source.is_dir():
        raise DataError(f"{source} does not exist; check the path")
    digest = hashlib.sha256()
    for file in sorted(file for file in source.rglob("*") if file.is_file()):
        digest.update(f"{file.relative_to(source)} {file_digest(file, 'sha256')}\n".encode())
    return digest.hexdigest()


def _first(queries: Queries, most: int) -> Queries:
    rows = np.arange(min(most, len(queries)))
    return Queries(queries.users.take(rows), queries.history.take(rows), queries.truth.take(rows))
