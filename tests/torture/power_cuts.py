"""What may be on disk after a power cut, given the changes that a process made before it.

The model, stricter than ext4 in its default mode:

- `fsync` of a file makes its content and its length durable, not its name.
- `fsync` of a folder makes the names in it durable: every create, mkdir, unlink and rename *into* it before that. A
  rename is durable with its new folder, and atomic, also between two folders; so is an exchange of two folders.
- Changes of names that are not durable are kept or lost independently, in any combination; only changes of the same
  name keep their order.
- Writes that are not durable are kept, lost, cut at any byte, or replaced by zeros, each on its own, in any
  combination; a length may be on disk without its content.
- Modes and times are not modelled. Memory-mapped writes are lost: SQLite rebuilds its index of the log from the log.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.torture.io_calls import Change

Entry = tuple[int, str]
"""A name in a folder, which has a number."""


@dataclass(frozen=True)
class NameChange:
    """Names that change together: the number of what each leads to afterwards, or None."""

    entries: tuple[tuple[Entry, int | None], ...]
    folder: int
    """The folder whose sync makes it durable."""


@dataclass(frozen=True)
class DataChange:
    """A write to a file, or a new length (`data` is None)."""

    file: int
    offset: int
    data: bytes | None


@dataclass
class Disk:
    """Files and folders by number; 0 is the root. A file is its content, a folder the numbers of its names."""

    files: dict[int, bytearray] = field(default_factory=dict)
    names: dict[Entry, int] = field(default_factory=dict)
    folders: set[int] = field(default_factory=lambda: {0})
    last: int = 0

    @classmethod
    def read(cls, root: Path) -> Disk:
        disk = cls()
        for path in sorted(root.rglob("*")):
            folder = disk.find(path.parent.relative_to(root).parts)
            assert folder is not None
            number = disk.add(is_folder=path.is_dir())
            disk.names[folder, path.name] = number
            if path.is_file():
                disk.files[number] = bytearray(path.read_bytes())
        return disk

    def copy(self) -> Disk:
        files = {number: bytearray(content) for number, content in self.files.items()}
        return Disk(files, dict(self.names), set(self.folders), self.last)

    def add(self, *, is_folder: bool) -> int:
        self.last += 1
        if is_folder:
            self.folders.add(self.last)
        else:
            self.files[self.last] = bytearray()
        return self.last

    def find(self, parts: Sequence[str]) -> int | None:
        number: int | None = 0
        for part in parts:
            number = None if number is None else self.names.get((number, part))
        return number

    def apply(self, change: NameChange | DataChange) -> None:
        if isinstance(change, NameChange):
            for entry, number in change.entries:
                if number is None:
                    self.names.pop(entry, None)
                else:
                    self.names[entry] = number
            return
        content = self.files[change.file]
        if change.data is None:
            del content[change.offset :]
            content.extend(bytes(change.offset - len(content)))
        else:
            content.extend(bytes(max(0, change.offset - len(content))))
            content[change.offset : change.offset + len(change.data)] = change.data

    def write(self, root: Path) -> None:
        """Create the files and folders below an empty folder. Some may be in two places."""
        self._write(root, 0, ())

    def _write(self, path: Path, number: int, above: tuple[int, ...]) -> None:
        if number in self.files:
            path.write_bytes(self.files[number])
        elif number not in above:
            path.mkdir(exist_ok=True)
            for (folder, name), inner in self.names.items():
                if folder == number:
                    self._write(path / name, inner, (*above, number))


@dataclass
class Recording:
    """What a process did to a folder: changes of names and of data, syncs, and steps that it acknowledged."""

    before: Disk
    events: list[NameChange | DataChange | int | None] = field(default_factory=list)
    """A number is a sync of that file or folder, None the end of a step."""

    @classmethod
    def of(cls, before: Disk, root: Path, changes: Sequence[Change]) -> Recording:
        recording, live = cls(before.copy()), before.copy()
        prefix = str(root)
        for change in changes:
            if change.kind == "done":
                recording.events.append(None)
                continue
            paths = [Path(path).relative_to(prefix).parts for path in (change.path, change.other) if path]
            for event in _events(live, change, paths):
                recording.events.append(event)
                if isinstance(event, NameChange | DataChange):
                    live.apply(event)
        # Every file that was ever there has a place for its content.
        recording.before.folders, recording.before.last = live.folders, live.last
        for number in live.files:
            recording.before.files.setdefault(number, bytearray())
        return recording

    def states(self, draws: random.Random, samples: int) -> Iterator[tuple[int, int, Disk]]:
        """(changes before the cut, steps acknowledged before it, what is on disk), `samples` times for every cut."""
        for cut in range(len(self.events) + 1):
            for sample in range(samples):
                yield cut, self.events[:cut].count(None), self.cut(cut, draws, sample)

    def cut(self, cut: int, draws: random.Random, sample: int) -> Disk:
        """A state after a power cut that follows the first `cut` changes."""
        disk, events, synced = self.before.copy(), self.events[:cut], _synced(self.events[:cut])
        chance = (1.0, 0.0, 0.5, 0.1, 0.9)[sample % 5]
        kept: list[NameChange | DataChange] = []
        needed: set[Entry] = set()
        for place, event in reversed(list(enumerate(events))):
            if isinstance(event, NameChange):
                touched = {entry for entry, _ in event.entries}
                if place < synced.get(event.folder, -1) or touched & needed or draws.random() < chance:
                    kept.append(event)
                    needed |= touched
            elif isinstance(event, DataChange):
                if place < synced.get(event.file, -1) or draws.random() < chance:
                    kept.append(event)
                elif draws.random() < 0.5:
                    kept.append(_torn(event, draws))
        for event in reversed(kept):
            disk.apply(event)
        return disk


def _synced(events: Sequence[object]) -> dict[int, int]:
    """The place of the last sync of every file and folder."""
    return {event: place for place, event in enumerate(events) if isinstance(event, int)}


def _torn(event: DataChange, draws: random.Random) -> DataChange:
    """A part of a write, or its length without its content."""
    if event.data is None:
        return event
    kept = draws.randint(0, len(event.data))
    rest = bytes(len(event.data) - kept) if draws.random() < 0.5 else b""
    return DataChange(event.file, event.offset, event.data[:kept] + rest)


def _events(live: Disk, change: Change, paths: list[tuple[str, ...]]) -> Iterator[NameChange | DataChange | int]:
    """The effects of a call on the files and folders that the process sees."""
    first, *_ = paths
    number = live.find(first)
    if change.kind in ("open", "create", "mkdir") and number is None:
        folder = live.find(first[:-1])
        if folder is not None:
            new = live.add(is_folder=change.kind == "mkdir")
            yield NameChange((((folder, first[-1]), new),), folder)
    if number is None:  # Deleted while it was open.
        return
    if change.kind == "create":
        yield DataChange(number, 0, None)
    elif change.kind == "write":
        yield DataChange(number, change.offset, change.data)
    elif change.kind == "truncate":
        yield DataChange(number, change.size, None)
    elif change.kind == "sync":
        yield number
    elif change.kind == "unlink":
        folder = live.find(first[:-1])
        assert folder is not None
        yield NameChange((((folder, first[-1]), None),), folder)
    elif change.kind in ("rename", "exchange", "link"):
        source, target = live.find(first[:-1]), live.find(paths[1][:-1])
        assert source is not None
        assert target is not None
        old = live.find(paths[1]) if change.kind == "exchange" else None
        entries = [((target, paths[1][-1]), number)]
        if change.kind != "link":
            entries.append(((source, first[-1]), old))  # type: ignore[arg-type]
        yield NameChange(tuple(entries), target)
