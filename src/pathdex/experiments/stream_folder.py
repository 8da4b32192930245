"""The folder of a stream: its checkpoint, its histories and the model it publishes.

STREAM/stream.json                    the request: source, configuration, options
STREAM/state/checkpoint.safetensors   position, network, optimizers, scores, paths and recent histories, as one file
STREAM/state/histories.sqlite         the histories of all users, never ahead of the checkpoint
STREAM/state/dead-letters.jsonl       malformed events with the reason
STREAM/bundle/                        the published model
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typing_extensions import Self

from pathdex.errors import RunError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.online import OnlineLearning
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from pathdex.storage.filesystem import make_folders
from pathdex.storage.folder_lock import folder_lock
from pathdex.storage.json_file import write_json
from pathdex.storage.run_folder import BUNDLE, CHECKPOINT

REQUEST, STATE = "stream.json", "state"


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
            else:
                if any(one.name != "LOCK" for one in folder.iterdir()):
                    raise RunError(f"{folder} is not empty and holds no stream; choose another folder")
                make_folders(folder / STATE)
                write_json(file, dict(request))
            yield cls(folder, request)

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
            return False
        from pathdex.training.loop import TrainingState

        online.state.load_state_dict(TrainingState(*load_checkpoint(self._checkpoint)))
        return True

    def checkpoint(self, online: OnlineLearning) -> None:
        state = online.state.state_dict()
        save_checkpoint(self._checkpoint, state.values, state.arrays)
        online.state.committed()

    def publish(self, model: DeepRetrieval) -> None:
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
    differing = [name for name in now if name in before and before[name] != now[name]]
    if differing:
        name = differing[0]
        raise RunError(
            f"{folder} was started with {name} {before[name]!r}, not {now[name]!r}; "
            "continue with the same, or stream into a new folder"
        )
