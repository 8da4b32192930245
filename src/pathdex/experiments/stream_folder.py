"""The folder of a stream: its checkpoint, its histories and the model it publishes.

STREAM/stream.json                    the request: source, configuration, options
STREAM/state/checkpoint.safetensors   position, network, optimizers, scores, paths and recent histories, as one file
STREAM/state/histories.sqlite         the histories of all users, never ahead of the checkpoint
STREAM/state/dead-letters.jsonl       malformed events with the reason
STREAM/state/start/                   a copy of the model that the stream continues from, if any
STREAM/bundle/                        the published model
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from typing_extensions import Self

from pathdex.errors import RunError
from pathdex.recommenders.capabilities import require
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.online import LearnsOnline, OnlineLearning
from pathdex.recommenders.registry import load
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from pathdex.storage.filesystem import make_folders
from pathdex.storage.folder_lock import LOCK, folder_lock
from pathdex.storage.json_file import write_json
from pathdex.storage.run_folder import BUNDLE, CHECKPOINT
from pathdex.storage.run_folder import STREAM_REQUEST as REQUEST

STATE = "state"


class StreamFolder:
    """Keeps the state of one stream. The checkpoint is one file, replaced atomically: it is the moment of truth.

    A model is published after its checkpoint or before; both are complete at any time.
    """

    def __init__(self, folder: Path, request: Mapping[str, Any]) -> None:
        self.folder, self.request = folder, dict(request)

    @classmethod
    @contextmanager
    def open(cls, folder: Path, request: Mapping[str, Any]) -> Iterator[Self]:
        """Create the folder or continue in it. One process at a time; another request than the first is rejected."""
        with folder_lock(folder, "pathdex stream"):
            file = folder / REQUEST
            if file.exists():
                _check_request(folder, _read_request(file), request)
            elif any(one.name not in (LOCK, STATE) for one in folder.iterdir()):
                raise RunError(f"{folder} is not empty and holds no stream; choose another folder")
            make_folders(folder / STATE)
            yield cls(folder, request)

    def record_request(self) -> None:
        """Note what the stream is, once its source has been opened: a mistyped source leaves nothing behind."""
        if not (self.folder / REQUEST).exists():
            write_json(self.folder / REQUEST, self.request)

    def first_model(self, path: Path) -> DeepRetrieval:
        """The model that the stream continues from. It is copied, since the one at `path` may be replaced later."""
        copy = self.folder / STATE / "start"
        if not copy.exists():
            model = require(load(path), LearnsOnline)
            model.save(copy)
        found = load(copy)
        assert isinstance(found, DeepRetrieval)
        return found

    @property
    def histories(self) -> Path:
        return self.folder / STATE / "histories.sqlite"

    @property
    def dead_letters(self) -> Path:
        return self.folder / STATE / "dead-letters.jsonl"

    @property
    def _checkpoint(self) -> Path:
        return self.folder / STATE / CHECKPOINT

    @property
    def has_checkpoint(self) -> bool:
        return self._checkpoint.exists()

    def restore(self, online: OnlineLearning) -> bool:
        if not self.has_checkpoint:
            if online.state.histories.committed is not None:
                raise RunError(
                    f"{self._checkpoint} is missing, but {self.histories.name} belongs to one; "
                    "restore both from one backup, or stream into a new folder"
                )
            return False
        from pathdex.training.loop import TrainingState

        values, arrays = load_checkpoint(self._checkpoint)
        damaged = [name for name, one in arrays.items() if one.dtype == np.float32 and not np.isfinite(one).all()]
        if damaged:
            raise RunError(
                f"{self._checkpoint} is damaged: {damaged[0]} holds NaN or infinity; "
                "restore the folder from a backup, or stream into a new one"
            )
        online.state.load_state_dict(TrainingState(values, arrays))
        return True

    def checkpoint(self, online: OnlineLearning) -> None:
        self.record_request()
        state = online.state.state_dict()
        save_checkpoint(self._checkpoint, state.values, state.arrays)
        online.state.committed()

    def publish(self, model: DeepRetrieval) -> None:
        self.record_request()
        model.save(self.folder / BUNDLE, overwrite=True)


def _read_request(file: Path) -> dict[str, Any]:
    try:
        request = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{file} cannot be read ({error}); stream into a new folder") from error
    if not isinstance(request, dict):
        raise RunError(f"{file} is not the request of a stream; stream into a new folder")
    return request


def _check_request(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    differing = [name for name in now if before.get(name) != now[name]]
    if differing:
        name = differing[0]
        raise RunError(
            f"{folder} was started with {name} {before.get(name)!r}, not {now[name]!r}; "
            "continue with the same, or stream into a new folder"
        )
