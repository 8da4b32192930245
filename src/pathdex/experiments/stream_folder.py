"""The folder of a stream: its checkpoint, its histories and the model it publishes.

STREAM/stream.json                    the request: source, configuration, options
STREAM/state/full-*, changes-*        position, network, optimizers, scores, paths and recent histories
STREAM/state/histories.sqlite         the histories of all users, never ahead of the checkpoint
STREAM/state/dead-letters.jsonl       malformed events with the reason
STREAM/state/start/                   a copy of the model that the stream continues from, if any
STREAM/CURRENT, base-*/, deltas/      the published model, a live folder (`storage/live_folder.py`)
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from pathdex.errors import PathdexError, RunError
from pathdex.recommenders.capabilities import require
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.online import LearnsOnline, OnlineLearning
from pathdex.recommenders.registry import load
from pathdex.recommenders.stream_verification import merge_stored
from pathdex.storage.atomic import storage_errors
from pathdex.storage.checkpoint_chain import CheckpointChain, StoredCheckpoint
from pathdex.storage.filesystem import make_folders
from pathdex.storage.folder_lock import LOCK, folder_lock
from pathdex.storage.json_file import write_json
from pathdex.storage.live_folder import CURRENT, DELTAS
from pathdex.storage.run_folder import STREAM_HISTORIES, STREAM_START
from pathdex.storage.run_folder import STREAM_REQUEST as REQUEST
from pathdex.storage.run_folder import STREAM_STATE as STATE
from pathdex.storage.staging import is_staging
from pathdex.training.malloc import return_freed_memory

if TYPE_CHECKING:
    from pathdex.training.loop import TrainingState

MAX_CHANGES = 100
"""Checkpoints after which changes are merged: a stream that starts reads all of them."""
LEAST_MERGED_BYTES = 1 << 26
"""Changes of so many bytes are kept in any case, since a small model changes as a whole within seconds."""


class StreamFolder:
    """Keeps the state of one stream. A checkpoint is one file, which appears atomically: it is the moment of truth.

    It holds what changed since the one before; changes are merged into a full checkpoint in the background. A model is
    published after its checkpoint or before; both are complete at any time.
    """

    def __init__(self, folder: Path, request: Mapping[str, Any], live: LivePublisher) -> None:
        self.folder, self.request, self.live = folder, dict(request), live
        self.checkpoints = CheckpointChain(folder / STATE)
        self._merging: threading.Thread | None = None
        self._failure: PathdexError | None = None
        self._inode = _inode(folder / LOCK)

    @classmethod
    @contextmanager
    def open(cls, folder: Path, request: Mapping[str, Any]) -> Iterator[Self]:
        """Create the folder or continue in it. One process at a time; another request than the first is rejected.

        If the block fails before the first checkpoint, nothing is left that was not there before.
        """
        new_folders = [one for one in (folder, *folder.parents) if not one.exists()]
        has_lock = (folder / LOCK).exists()
        try:
            with folder_lock(folder, "pathdex stream"):
                before = set(_files_in(folder)) - (set() if has_lock else {folder / LOCK})
                try:
                    with cls._open(folder, request) as keeper:
                        yield keeper
                except BaseException:
                    if folder / REQUEST not in before and CheckpointChain(folder / STATE).is_empty:
                        _remove(one for one in _files_in(folder) if one not in before)
                    raise
        except BaseException:
            _remove(new_folders)
            raise

    @classmethod
    @contextmanager
    def _open(cls, folder: Path, request: Mapping[str, Any]) -> Iterator[Self]:
        file = folder / REQUEST
        if file.exists():
            _check_request(folder, _read_request(file), request)
        elif any(one.name not in (LOCK, STATE, DELTAS) and not is_staging(one.name) for one in folder.iterdir()):
            raise RunError(f"{folder} is not empty and holds no stream; choose another folder")
        with storage_errors(folder):
            make_folders(folder / STATE)
        with LivePublisher(folder, is_locked=True, replaces_damaged=True) as live:
            keeper = cls(folder, request, live)
            keeper.checkpoints.sweep()
            try:
                yield keeper
            finally:
                keeper.finish_merging()

    def record_request(self) -> None:
        """Note what the stream is, once its source has been opened."""
        if not (self.folder / REQUEST).exists():
            write_json(self.folder / REQUEST, self.request)

    def first_model(self, path: Path) -> DeepRetrieval:
        """The model that the stream continues from. It is copied, since the one at `path` may be replaced later."""
        copy = self.folder / STATE / STREAM_START
        if not copy.exists():
            model = require(load(path), LearnsOnline)
            model.save(copy)
        found = load(copy)
        assert isinstance(found, DeepRetrieval)
        return found

    @property
    def histories(self) -> Path:
        return self.folder / STATE / STREAM_HISTORIES

    @property
    def dead_letters(self) -> Path:
        return self.folder / STATE / "dead-letters.jsonl"

    @property
    def has_checkpoint(self) -> bool:
        return not self.checkpoints.is_empty

    def restore(self, online: OnlineLearning) -> bool:
        if not self.has_checkpoint:
            if online.state.histories.committed is not None:
                raise RunError(
                    f"the checkpoint in {self.folder / STATE} is missing, but {self.histories.name} belongs to one; "
                    "restore both from one backup, or stream into a new folder"
                )
            if self.live.damage is not None:
                raise RunError(
                    f"{self.folder} has neither a checkpoint nor a readable {CURRENT}; "
                    "restore the folder from a backup, or stream into a new one"
                )
            if self.live.has_base:
                raise RunError(
                    f"{self.folder} has a published model, but no checkpoint; restore the folder from a backup, "
                    f"or start a new stream --from {self.folder}"
                )
            return False
        from pathdex.training.stream.checkpoint_merge import not_finite

        state = merge_stored(self.checkpoints.load())
        for name in not_finite(state):
            raise RunError(
                f"the checkpoint in {self.folder / STATE} is damaged: {name} holds NaN or infinity; "
                "restore the folder from a backup, or stream into a new one"
            )
        online.state.load_state_dict(state)
        return True

    def checkpoint(self, online: OnlineLearning) -> None:
        if _inode(self.folder / LOCK) != self._inode:
            raise RunError(
                f"{self.folder} was moved or removed while the stream was running; "
                "move it back and run the command again: it continues from its last checkpoint"
            )
        self.record_request()
        full = self.checkpoints.is_empty
        state = online.state.state_dict() if full else online.state.changes_dict()
        self.checkpoints.save(online.state.checkpoints + 1, state.values, state.arrays, full=full)
        online.state.committed()
        self._merge_if_due(online.state.checkpoints)

    def _merge_if_due(self, committed: int) -> None:
        """Merge changes in the background once there are many of them."""
        chain = self.checkpoints
        if self._merging is not None and self._merging.is_alive():
            return
        self.finish_merging()
        if chain.num_changes >= MAX_CHANGES or chain.changes_bytes > max(chain.full_bytes, LEAST_MERGED_BYTES):
            self._merging = threading.Thread(target=self._merge, args=(committed,), name="pathdex-merge")
            self._merging.start()

    def _merge(self, committed: int) -> None:
        try:
            # Another object, since the trainer appends to this one meanwhile. What it appends may be written again, if
            # its histories cannot be committed, so that is not merged.
            found = [one for one in CheckpointChain(self.folder / STATE).load() if one.number <= committed]
            state = merge_stored(found)
            self.checkpoints.replace(StoredCheckpoint(found[-1].number, found[-1].link, state.values, state.arrays))
            del found, state
        except PathdexError as error:
            self._failure = error
        finally:
            return_freed_memory()

    def finish_merging(self) -> None:
        """Wait until changes are merged. A failure is raised: it is tried again after the next checkpoint."""
        if self._merging is not None:
            self._merging.join()
            self._merging = None
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure


def _inode(file: Path) -> int | None:
    try:
        return file.stat().st_ino
    except OSError:
        return None


def read_stream_state(folder: Path) -> TrainingState:
    """The last checkpoint of the stream in a folder."""
    found = CheckpointChain(folder / STATE).load()
    if not found:
        raise RunError(f"{folder} has no checkpoint yet; wait for the first")
    return merge_stored(found)


def _read_request(file: Path) -> dict[str, Any]:
    try:
        request = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise RunError(f"{file} cannot be read ({error}); stream into a new folder") from error
    if not isinstance(request, dict):
        raise RunError(f"{file} is not the request of a stream; stream into a new folder")
    return request


def _check_request(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """`RunError` that names each option that differs, except those that the version that wrote `before` lacked."""
    known, options = before.get("options", {}), now.get("options", {})
    if isinstance(known, Mapping) and isinstance(options, Mapping):
        now = {**now, "options": {name: value for name, value in options.items() if name in known}}
    first, second = _by_option(before), _by_option(now)
    changes = [
        f"{name} {_shown('was', first.get(name))} and {_shown('is', second.get(name))} now"
        for name in dict.fromkeys([*second, *first])
        if first.get(name) != second.get(name)
    ]
    if changes:
        raise RunError(
            f"{folder} was started otherwise: {', '.join(changes)}; continue with the same, or stream into a new folder"
        )


def _by_option(request: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a request by the names that the command line has for them."""
    values: dict[str, Any] = {}
    for name, value in request.items():
        values |= value if isinstance(value, Mapping) else {name: value}
    return {
        "the source" if name == "source" else f"--{name.replace('_', '-')}": value for name, value in values.items()
    }


def _shown(verb: str, value: object) -> str:
    return f"{verb} not given" if value is None else f"{verb} {value}"


def _files_in(folder: Path) -> list[Path]:
    """What is in the folder of a stream without its bases, folders after their content, `LOCK` last."""
    top = [one for one in folder.iterdir() if one.name != LOCK]
    inner = [one for name in (STATE, DELTAS) for one in sorted((folder / name).rglob("*"), reverse=True)]
    return [*inner, *top, folder / LOCK]


def _remove(paths: Iterable[Path]) -> None:
    """Remove files and empty folders; what cannot be removed stays."""
    for one in paths:
        with suppress(OSError):
            one.rmdir() if one.is_dir() else one.unlink()
