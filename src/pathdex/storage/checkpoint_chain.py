"""A state that changes in few places, as a chain of files: a full checkpoint, and the changes since.

FOLDER/full-000000040.safetensors       the whole state at checkpoint 40
FOLDER/changes-000000041.safetensors    what changed from checkpoint 40 to 41

Every file is written once, atomically, and holds the SHA-256 of its content. Changes name the link of the checkpoint
before them, so files of two states are never mixed. A full checkpoint that changes were merged into has the link of the
last of them: later changes continue it.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import RunError
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from pathdex.storage.staging import remove_stale_in

FULL, CHANGES = "full", "changes"
_SUFFIX = ".safetensors"
_REMEDY = "restore the folder from a backup, or start in a new one"


@dataclass(frozen=True)
class StoredCheckpoint:
    """The content of one file."""

    number: int
    link: str
    """What the next changes name as their predecessor."""
    values: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class CheckpointChain:
    """The checkpoints of one folder, which one process at a time may write.

    `replace` may be called from another thread than `save`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._links: dict[int, str] = {}
        self._linking = threading.Lock()

    @property
    def is_empty(self) -> bool:
        return not self._numbers(FULL)

    @property
    def num_changes(self) -> int:
        """The number of files with changes."""
        return len(self._numbers(CHANGES))

    @property
    def full_bytes(self) -> int:
        """The size of the full checkpoint."""
        return sum(self._file(FULL, number).stat().st_size for number in self._numbers(FULL)[-1:])

    @property
    def changes_bytes(self) -> int:
        """The size of all changes after it."""
        return sum(self._file(CHANGES, number).stat().st_size for number in self._numbers(CHANGES))

    def save(self, number: int, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, full: bool) -> None:
        """Write checkpoint `number`, whole or as changes of the one before. A repeated number replaces the file."""
        before = "" if full else self._links[number - 1]
        self._write(FULL if full else CHANGES, number, values, arrays, before, None)
        if full:
            self._prune(number)

    def load(self) -> list[StoredCheckpoint]:
        """The full checkpoint and all changes after it; `RunError` if a file is damaged or missing."""
        fulls = self._numbers(FULL)
        if not fulls:
            return []
        found = [self._read(FULL, fulls[-1], None)]
        for number in self._numbers(CHANGES):
            if number <= fulls[-1]:
                continue
            if number != found[-1].number + 1:
                missing = self._file(CHANGES, found[-1].number + 1)
                raise RunError(f"{missing} is missing, but later changes are there; {_REMEDY}")
            found.append(self._read(CHANGES, number, found[-1].link))
        self._links = {one.number: one.link for one in found}
        return found

    def replace(self, merged: StoredCheckpoint) -> None:
        """Write a full checkpoint that later changes continue, and remove the files that it replaces."""
        self._write(FULL, merged.number, merged.values, merged.arrays, "", merged.link)
        self._prune(merged.number)

    def _write(
        self,
        kind: str,
        number: int,
        values: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        before: str,
        link: str | None,
    ) -> None:
        digest = _digest(before, values, arrays)
        link = link or digest
        facts = {"number": number, "before": before, "digest": digest, "link": link, "values": dict(values)}
        save_checkpoint(self._file(kind, number), facts, dict(arrays))
        with self._linking:
            self._links[number] = link

    def _read(self, kind: str, number: int, before: str | None) -> StoredCheckpoint:
        file = self._file(kind, number)
        try:
            facts, arrays = load_checkpoint(file)
        except RunError as error:
            raise RunError(f"{file} is damaged ({error.__cause__}); {_REMEDY}") from error
        try:
            values, digest = facts["values"], _digest(facts["before"], facts["values"], arrays)
            sound = digest == facts["digest"] and facts["number"] == number
            link = str(facts["link"])
        except (KeyError, TypeError) as error:
            raise RunError(f"{file} is not a checkpoint of a stream ({error!r}); {_REMEDY}") from error
        if not sound:
            raise RunError(f"{file} is damaged: its content does not match its checksum; {_REMEDY}")
        if before is not None and facts["before"] != before:
            raise RunError(f"{file} does not continue the checkpoint before it; {_REMEDY}")
        return StoredCheckpoint(number, link, values, arrays)

    def sweep(self) -> None:
        """Remove what killed processes left: every checkpoint has a name of its own, so no later write does it."""
        remove_stale_in(self.folder)

    def _prune(self, number: int) -> None:
        """Remove what a full checkpoint replaces. What cannot be removed, `load` ignores; it is tried again later."""
        for kind, end in ((FULL, number), (CHANGES, number + 1)):
            for old in self._numbers(kind):
                if old < end:
                    with suppress(OSError):
                        self._file(kind, old).unlink()
        self.sweep()
        with self._linking:
            self._links = {old: link for old, link in self._links.items() if old >= number}

    def _file(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number:09d}{_SUFFIX}"

    def _numbers(self, kind: str) -> list[int]:
        names = [entry.name for entry in self.folder.glob(f"{kind}-*{_SUFFIX}")] if self.folder.is_dir() else []
        digits = [name.removeprefix(f"{kind}-").removesuffix(_SUFFIX) for name in names]
        return sorted(int(one) for one in digits if one.isdecimal())


def _digest(before: str, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    content = hashlib.sha256(before.encode())
    content.update(json.dumps(values, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        content.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        content.update(array.reshape(-1).view(np.uint8).data)
    return content.hexdigest()
