"""The one process that may change a live folder."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.errors import BundleError, StorageError
from pathdex.storage.array_folder import read_manifest
from pathdex.storage.atomic import storage_errors
from pathdex.storage.filesystem import make_folders
from pathdex.storage.folder_lock import hold_folder
from pathdex.storage.live_folder import (
    DELTA_FORMAT,
    DELTAS,
    BaseVersion,
    LiveVersion,
    delta_folder,
    is_live_folder,
    manifest_digest,
    read_current,
    write_current,
    write_delta,
)
from pathdex.storage.staging import SUFFIX, remove_stale


class LiveWriter:
    """Adds deltas and bases to a live folder. Holds its lock until it is closed or its process ends.

    Methods can be called from several threads: a base may be written while deltas are appended.
    """

    def __init__(self, path: str | Path, *, keep: int = 2) -> None:
        """`keep` is the number of bases to keep, the current one included."""
        self.path, self.keep = Path(path), max(1, keep)
        with storage_errors(self.path):
            make_folders(self.path / DELTAS)
            self._lock: int | None = hold_folder(self.path, "a publisher")
        self._changing = threading.Lock()
        try:
            self.version = read_current(self.path) if is_live_folder(self.path) else None
            self._clean()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let another process publish."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def append(
        self,
        settings: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        weights: Mapping[str, NDArray[Any]],
    ) -> int:
        """Publish a delta; returns its number. When this returns, the delta is on disk."""
        with self._changing:
            version = self._current()
            number = version.last_delta + 1
            digest = write_delta(self.path, number, version.digest, settings, arrays, weights)
            self._publish(replace(version, last_delta=number, digest=digest))
            return number

    def add_base(self, write: Callable[[Path], Any], *, at: LiveVersion | None = None) -> BaseVersion:
        """Publish a base. `write` writes the bundle of the state of version `at`; None starts a new chain.

        Deltas after `at` stay, and readers that know the state of `at` need not read the base.
        """
        known = self.version
        number = max([0, *(one.number for one in known.bases)] if known else [0]) + 1
        number = max(number, *(one + 1 for one in _bases_in(self.path)), 1)
        folder = self.path / f"base-{number:06d}"
        write(folder)
        manifest = manifest_digest(folder)
        with self._changing:
            last = self.version.last_delta if self.version else 0
            base = BaseVersion(number, at.last_delta if at else last, at.digest if at else manifest, manifest)
            bases = (*(self.version.bases if self.version else ()), base)[-self.keep :]
            if at is None:
                version = LiveVersion(base, last + 1, last, manifest, bases)
            elif self._holds(at):
                version = replace(self._current(), base=base, first_delta=at.last_delta + 1, bases=bases)
            else:
                shutil.rmtree(folder, ignore_errors=True)
                raise StorageError(f"{self.path} was rolled back while a base was written; compact it again")
            self._publish(version)
            self._clean()
        return base

    def _holds(self, at: LiveVersion) -> bool:
        """Whether the current chain goes through the state of `at`."""
        now, after = self._current(), at.last_delta + 1
        if after > now.last_delta:
            return at.digest == now.digest
        manifest = read_manifest(delta_folder(self.path, after), DELTA_FORMAT)
        return after >= now.first_delta and manifest["before"] == at.digest

    def roll_back(self, number: int | None = None) -> BaseVersion:
        """Make an older base current, by default the newest one before the current. Later deltas no longer count."""
        with self._changing:
            version = self._current()
            older = [one for one in version.bases if one.number < version.base.number]
            wanted = older[-1:] if number is None else [one for one in version.bases if one.number == number]
            if not wanted:
                kept = ", ".join(str(one.number) for one in version.bases)
                raise BundleError(
                    f"{self.path} holds no base {'' if number is None else f'{number} '}to go back to; it keeps: {kept}"
                )
            base, last = wanted[0], version.last_delta
            self._publish(replace(version, base=base, first_delta=last + 1, digest=base.digest))
            return base

    def _current(self) -> LiveVersion:
        if self._lock is None:
            raise StorageError(f"{self.path} is closed for this publisher; open it again")
        if self.version is None:
            raise BundleError(f"{self.path} has no base yet; publish a model first")
        return self.version

    def _publish(self, version: LiveVersion) -> None:
        write_current(self.path, version)
        self.version = version

    def _clean(self) -> None:
        """Remove what no version needs: of pruned bases, and of a process that was killed.

        Deltas since the base before the current one are kept for readers that lag behind.
        """
        version = self.version
        names = {one.name for one in version.bases} if version else set()
        for number in _bases_in(self.path):
            if f"base-{number:06d}" not in names:
                shutil.rmtree(self.path / f"base-{number:06d}", ignore_errors=True)
        for folder in (self.path, self.path / DELTAS):
            for entry in list(folder.iterdir()):
                if entry.name.startswith(".") and entry.name.endswith(SUFFIX):
                    remove_stale(folder / entry.name[1:].rsplit(".", 2)[0])
        oldest = min((one.delta for one in version.bases[-2:]), default=0) if version else 0
        last = version.last_delta if version else 0
        for entry in list((self.path / DELTAS).iterdir()):
            if entry.name.isdecimal() and not oldest < int(entry.name) <= last:
                shutil.rmtree(delta_folder(self.path, int(entry.name)), ignore_errors=True)


def _bases_in(path: Path) -> list[int]:
    names = [entry.name.removeprefix("base-") for entry in path.iterdir() if entry.name.startswith("base-")]
    return [int(name) for name in names if name.isdecimal()]
