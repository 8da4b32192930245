"""A run: the folder in which a model is trained, with what is needed to repeat, resume and evaluate it.

`pathdex.storage.run_folder` describes its files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pathdex.config import Config, RunOptions
from pathdex.data.item_details import ItemDetails
from pathdex.data.reading import Reading
from pathdex.data.serialization import load_split, save_split
from pathdex.data.splits import Split
from pathdex.errors import RunError
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.storage.array_folder import MANIFEST
from pathdex.storage.atomic import atomic_folder, atomic_write
from pathdex.storage.checkpoint import load_checkpoint
from pathdex.storage.folder_lock import folder_lock
from pathdex.storage.json_file import write_json
from pathdex.storage.run_folder import BUNDLE, CHECKPOINT, ITEMS, LOG, RECORDING, REQUEST, SHARDS, SPLIT, find_bundle
from pathdex.training.callbacks import Callback, JsonLines, default_callbacks
from pathdex.training.trackers import make_tracker

if TYPE_CHECKING:
    from pathdex.training.distributed.group import Group


def training_reading(folder: str | Path, model: Recommender) -> Reading | None:
    """How the training data of a model was read; None if neither the model nor its run folder says."""
    if model.reading is not None or not (Path(folder) / REQUEST).exists():
        return model.reading
    stored = Run.open(folder).request.get("reading")
    return None if stored is None else Reading.from_dict(stored)


@dataclass(frozen=True)
class Run:
    """A run folder and its request."""

    path: Path
    request: dict[str, Any]

    @property
    def bundle(self) -> Path:
        return self.path / BUNDLE

    @property
    def shards(self) -> Path:
        return self.path / SHARDS

    @property
    def is_sharded(self) -> bool:
        """Whether each worker writes a shard, instead of one of them a bundle."""
        return bool(self.request.get("sharded", False))

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT

    @property
    def log(self) -> Path:
        return self.path / LOG

    @property
    def finished(self) -> bool:
        return self.bundle.exists() or self.shards.exists()

    @classmethod
    def create(
        cls,
        path: str | Path,
        split: Split,
        config: Config,
        options: RunOptions,
        *,
        details: ItemDetails | None = None,
        **source: Any,
    ) -> Run:
        """Create the folder with the split, the details of items and the request, atomically.

        An existing folder is an error. `source` is recorded in the request.
        """
        path = cls.check_new(path)
        request = {"config": config.to_dict(), "options": vars(options), **source}
        with atomic_folder(path) as folder:
            save_split(folder / SPLIT, split)
            if details is not None:
                request["title"] = details.title_column
                details.to_frame().write_parquet(folder / ITEMS)
            write_json(folder / REQUEST, request)
        return cls(path, request)

    @staticmethod
    def check_new(path: str | Path) -> Path:
        """The path; raises `RunError` if it exists."""
        path = Path(path)
        if (path / REQUEST).exists():
            raise RunError(f"{path} exists; continue it with --resume, or choose another folder")
        if path.exists():
            raise RunError(f"{path} exists and is not a run folder; choose another folder")
        return path

    @classmethod
    def open(cls, path: str | Path) -> Run:
        path = Path(path)
        if not path.is_dir():
            raise RunError(f"{path} is not a run folder; pass the --out of `pathdex train`")
        try:
            return cls(path, json.loads((path / REQUEST).read_text()))
        except OSError as error:
            kind = "a saved model" if (path / MANIFEST).exists() else "not a run folder: it has no run.json"
            raise RunError(f"{path} is {kind}; pass the --out of `pathdex train`") from error
        except ValueError as error:
            raise RunError(f"{path / REQUEST} is damaged ({error}); remove the folder and train again") from error

    def split(self) -> Split:
        return load_split(self.path / SPLIT)

    def details(self) -> ItemDetails | None:
        """Titles and other details of items; None if the run has none."""
        file = self.path / ITEMS
        if not file.exists():
            return None
        try:
            return ItemDetails.from_frame(pl.read_parquet(file), self.request.get("title"))
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RunError(f"{file} is damaged ({error}); remove the folder and train again") from error

    def _start(self) -> DeepRetrieval | None:
        """The model that the run starts from, if any; its folder is needed until the run is finished."""
        earlier = self.request.get("from")
        return None if earlier is None else DeepRetrieval.load(find_bundle(Path(earlier)))

    def model(self) -> DeepRetrieval:
        """The finished model."""
        return DeepRetrieval.load(find_bundle(self.path))

    def train(
        self,
        split: Split | None = None,
        *,
        callbacks: Sequence[Callback] | None = None,
        trackers: Sequence[str] = (),
        owned: bool = False,
    ) -> DeepRetrieval:
        """Train to the end, from the checkpoint if there is one, and save the bundle.

        `callbacks` are called in addition to the log writer; None means `default_callbacks()`. `trackers` are names:
        tensorboard, mlflow, wandb. If another process trains in this folder, a `StorageError` names it; `owned` says
        that the caller has locked the folder.
        """
        if self.finished:
            return self.model()
        if self.is_sharded:
            raise RunError(f"{self.path} is trained with --sharded-bundle, which takes several workers; set --workers")
        with self._lock(owned):
            if self.bundle.exists():
                return self.model()
            resume = self.checkpoint.exists()
            model, split = self._estimator(self.request["options"]), split or self.split()
            self._fit(model, split, self._callbacks(callbacks, trackers, resume), resume)
            model.save(self.bundle)
            return model

    def train_share(
        self,
        group: Group,
        threads: int,
        *,
        callbacks: Sequence[Callback] | None = None,
        trackers: Sequence[str] = (),
        owned: bool = False,
    ) -> None:
        """`train` as one of several workers, which all call this. The folder must be on storage that they share.

        The first worker writes the log and calls `callbacks` and `trackers`.
        """
        with self._lock(owned or not group.is_first):
            if group.agree(self.finished):
                return
            resume = group.agree(self.checkpoint.exists())
            options = {**self.request["options"], "threads": self.request["options"].get("threads") or threads}
            following = self._callbacks(callbacks, trackers, resume) if group.is_first else []
            if self.is_sharded:
                self._train_shards(options, following, resume, group)
                return
            model = self._estimator(options)
            self._fit(model, self.split(), following, resume, group)
            group.first_only(lambda: model.save(self.bundle))

    def _lock(self, owned: bool) -> AbstractContextManager[None]:
        return nullcontext() if owned else folder_lock(self.path, "pathdex train")

    def _train_shards(
        self, options: Mapping[str, Any], callbacks: Sequence[Callback], resume: bool, group: Group
    ) -> None:
        from pathdex.recommenders.sharded_fit import fit_shard
        from pathdex.recommenders.trained_shard import save_shards

        split = self.split()
        shard = fit_shard(
            Config.from_stored(self.request["config"]),
            RunOptions(**options),
            split.train,
            group,
            details=self.details(),
            callbacks=callbacks,
            validation=split.valid,
            checkpoint=self.checkpoint,
            resume=resume,
        )
        save_shards(group, shard, self.shards)

    def _estimator(self, options: Mapping[str, Any]) -> DeepRetrieval:
        return DeepRetrieval(Config.from_stored(self.request["config"]), **options)

    def _callbacks(self, callbacks: Sequence[Callback] | None, trackers: Sequence[str], resume: bool) -> list[Callback]:
        if resume:
            # A kill between checkpoint and log can lose or truncate a line; the checkpoint holds all records.
            records = load_checkpoint(self.checkpoint)[0]["records"]
            with atomic_write(self.log) as stream:
                stream.writelines(f"{json.dumps(record)}\n".encode() for record in records)
        following: list[Callback] = [JsonLines(self.log)]
        following += default_callbacks() if callbacks is None else callbacks
        following += [make_tracker(tracker, self.path, self.request["config"]) for tracker in trackers]
        return following

    def _fit(
        self, model: DeepRetrieval, split: Split, callbacks: list[Callback], resume: bool, group: Group | None = None
    ) -> None:
        model.fit(
            split.train,
            items=self.details(),
            validation=split.valid,
            start_from=self._start(),
            callbacks=callbacks,
            checkpoint=self.checkpoint,
            resume=resume,
            record=self.request.get("recording", True),
            group=group,
        )
        if model.recording is not None:
            model.recording.save(self.path / RECORDING)
