"""Opening a live folder, and following what is published there."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pathdex.errors import BundleError, DataError, PathdexError
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.delta_merge import merge_deltas, mergeable_groups
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.model_delta import ModelDelta
from pathdex.storage.live_folder import LiveVersion, StoredDelta, manifest_digest, read_current, read_delta

ATTEMPTS = 10
"""How often to open a folder whose base was pruned meanwhile."""
MERGED = 64
"""Deltas that are read and applied together, which bounds the memory for them."""


class LivePosition(NamedTuple):
    """The state that a reader has."""

    delta: int
    """The last delta that it holds."""
    digest: str


class LiveReader:
    """Opens the model of a live folder and brings it up to date.

    `update` applies new deltas; it returns None where the model has to be loaded again:

        reader = LiveReader("live/")
        model = reader.load()
        while True:
            if reader.update(model) is None:
                model = reader.load()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.position: LivePosition | None = None

    def load(self) -> LiveModel:
        """The base and all deltas. A damaged delta and those after it are left out, with a warning."""
        for attempt in range(ATTEMPTS):
            version = read_current(self.path)
            try:
                model, self.position = open_version(self.path, version, strict=False)
            except (PathdexError, OSError):
                # A base may be pruned while it is opened.
                if attempt == ATTEMPTS - 1 or read_current(self.path) == version:
                    raise
            else:
                return model
        raise AssertionError

    def poll(self) -> list[StoredDelta] | None:
        """The deltas published since `position`; None if they do not lead from there to the current state.

        A delta that cannot be read ends the list. The next call tries it again, or finds a base that contains it.
        """
        version, position = read_current(self.path), self.position
        if position is None:
            return None
        found, digest = [], position.digest
        for number in range(position.delta + 1, version.last_delta + 1):
            try:
                found.append(read_delta(self.path, number, before=digest))
            except (BundleError, OSError):
                lost = number < version.first_delta or self._is_of_another_chain(number, digest)
                return None if lost else found
            digest = found[-1].digest
        return found if digest == version.digest else None

    def _is_of_another_chain(self, number: int, digest: str) -> bool:
        try:
            return read_delta(self.path, number).before != digest
        except (BundleError, OSError):
            return False

    def update(self, model: LiveModel) -> int | None:
        """Apply what was published since; the number of deltas, or None if the model has to be loaded again."""
        deltas = self.poll()
        if deltas is None:
            return None
        for first in range(0, len(deltas), MERGED):
            block = deltas[first : first + MERGED]
            count, error = apply_together(model, block)
            if count:
                self.position = LivePosition(block[count - 1].number, block[count - 1].digest)
            if isinstance(error, BundleError):
                warnings.warn(f"{error}; it is left out until {self.path} is compacted", stacklevel=2)
                return first + count
            if error is not None:
                return None
        return len(deltas)


def open_version(path: Path, version: LiveVersion, *, strict: bool = True) -> tuple[LiveModel, LivePosition]:
    """The model of a version, and where it is in the chain.

    A delta that cannot be read is an error; if not `strict`, it and those after it are left out, with a warning.
    """
    folder = path / version.base.name
    model = LiveModel.open(folder)
    if manifest_digest(folder) != version.base.manifest:
        raise BundleError(f"{folder} is not the base that {path} was published with; roll back to another base")
    position = LivePosition(version.first_delta - 1, version.base.digest)
    number = version.first_delta
    while number <= version.last_delta:
        block, unread = _read_deltas(path, range(number, min(number + MERGED, version.last_delta + 1)), position.digest)
        count, error = apply_together(model, block)
        if count:
            position = LivePosition(block[count - 1].number, block[count - 1].digest)
        number, error = number + count, error or unread
        if error is None:
            continue
        if strict:
            raise error
        left_out = version.last_delta - number + 1
        warnings.warn(f"{error}; the last {left_out} publishes are left out until {path} is compacted", stacklevel=3)
        break
    return model, position


def apply_together(model: LiveModel, deltas: Sequence[StoredDelta]) -> tuple[int, BundleError | DataError | None]:
    """Apply deltas as few changes; returns how many were applied, and what is wrong with the next one."""
    changes: list[ModelDelta] = []
    damage, done = None, 0
    for delta in deltas:
        try:
            changes.append(from_stored(delta))
        except BundleError as error:
            damage = error
            break
    for group in mergeable_groups(changes):
        try:
            model.apply(merge_deltas(group))
            done += len(group)
        except DataError:  # One of them does not fit the model; those before it do.
            for change in group:
                try:
                    model.apply(change)
                except DataError as error:
                    return done, error
                done += 1
    return done, damage


def _read_deltas(path: Path, numbers: range, before: str) -> tuple[list[StoredDelta], BundleError | None]:
    """Deltas that continue the chain from `before`, and what is wrong with the next one."""
    found: list[StoredDelta] = []
    for number in numbers:
        try:
            found.append(read_delta(path, number, before=found[-1].digest if found else before))
        except BundleError as error:
            return found, error
    return found, None


def load_live(path: str | Path) -> LiveModel:
    """The current model of a live folder."""
    return LiveReader(path).load()


def from_stored(delta: StoredDelta) -> ModelDelta:
    """The delta in a live folder; `BundleError` if its content breaks the rules."""
    try:
        return ModelDelta.from_state(EstimatorState(delta.settings, delta.arrays, delta.weights))
    except DataError as error:
        raise BundleError(f"delta {delta.number} is damaged: {error}; publish a new base") from error
