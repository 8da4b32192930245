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
    DamagedCurrentError,
    LiveVersion,
    delta_folder,
    is_live_folder,
    manifest_digest,
    read_current,
    write_current,
    write_delta,
)
from pathdex.storage.staging import remove_stale_in


class LiveWriter:
    """Adds deltas and bases to a live folder. Holds its lock until it is closed or its process ends.

    Methods can be called from several threads: a base may be written while deltas are appended.
    """

    def __init__(
        self, path: str | Path, *, keep: int = 2, is_locked: bool = False, replaces_damaged: bool = False
    ) -> None:
        """`keep` is the number of bases to keep, the current one included; `is_locked` if the caller holds the lock.

        With `replaces_damaged`, a folder whose `CURRENT` is damaged counts as one without a base, and `damage` says
        what is wrong. What is there stays until the first base is published.
        """
        self.path, self.keep = Path(path), max(1, keep)
        with storage_errors(self.path):
            make_folders(self.path / DELTAS)
            self._lock = None if is_locked else hold_folder(self.path, "a publisher", "stop it first")
        self._is_open = True
        self._is_settled = True
        """False after a failure: `CURRENT` may hold a version that counts as not published."""
        self._changing = threading.Lock()
        self.version: LiveVersion | None = None
        self.damage: str | None = None
        try:
            try:
                self.version = read_current(self.path) if is_live_folder(self.path) else None
                self._clean()
            except DamagedCurrentError as error:
                if not replaces_damaged:
                    raise
                self.damage = str(error)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let another process publish, unless the caller holds the lock."""
        self._is_open = False
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
            version = self._settled()
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
            version = self._settled()
            older = [one for one in version.bases if one.number < version.base.number]
            wanted = older[-1:] if number is None else [one for one in version.bases if one.number == number]
            if not wanted:
                kept = ", ".join(str(one.number) for one in version.bases)
                if number is None:
                    rule = f"{self.path} keeps no base before the current one, {version.base.number}"
                    raise BundleError(f"{rule}; there is nothing to go back to")
                raise BundleError(f"{self.path} keeps no base {number}; choose one of: {kept}")
            base, last = wanted[0], version.last_delta
            self._publish(replace(version, base=base, first_delta=last + 1, digest=base.digest))
            return base

    def _current(self) -> LiveVersion:
        if not self._is_open:
            raise StorageError(f"{self.path} is closed for this publisher; open it again")
        if self.version is None:
            raise BundleError(f"{self.path} has no base yet; publish a model first")
        return self.version

    def _settled(self) -> LiveVersion:
        """The current version, which `CURRENT` holds for certain.

        After a failed publish it may hold another one, whose delta must not be replaced while it counts.
        """
        version = self._current()
        if not self._is_settled:
            write_current(self.path, version)
            self._is_settled = True
        return version

    def _publish(self, version: LiveVersion) -> None:
        self._is_settled = False
        write_current(self.path, version)
        self.version, self._is_settled = version, True

    def _clean(self) -> None:
        """Remove what no version needs: of pruned bases, and of a process that was killed.

        Deltas since the base before the current one are kept for readers that lag behind.
        """
        with storage_errors(self.path, "check the disk"):
            self._remove_unused()

    def _remove_unused(self) -> None:
        version = self.version
        names = {one.name for one in version.bases} if version else set()
        for number in _bases_in(self.path):
            if f"base-{number:06d}" not in names:
                shutil.rmtree(self.path / f"base-{number:06d}", ignore_errors=True)
        for folder in (self.path, self.path / DELTAS):
            remove_stale_in(folder)
        oldest = min((one.delta for one in version.bases[-2:]), default=0) if version else 0
        last = version.last_delta if version else 0
        for entry in list((self.path / DELTAS).iterdir()):
            if entry.name.isdecimal() and not oldest < int(entry.name) <= last:
                shutil.rmtree(delta_folder(self.path, int(entry.name)), ignore_errors=True)


def _bases_in(path: Path) -> list[int]:
    names = [entry.name.removeprefix("base-") for entry in path.iterdir() if entry.name.startswith("base-")]
    return [int(name) for name in names if name.isdecimal()]
