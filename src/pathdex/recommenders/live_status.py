"""What a live folder holds, for people."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import BundleError
from pathdex.recommenders.bundle_checks import split_arrays
from pathdex.storage.array_folder import MANIFEST
from pathdex.storage.bundle import read_bundle
from pathdex.storage.live_folder import CURRENT, read_current


@dataclass(frozen=True)
class BaseStatus:
    """One base that is kept."""

    number: int
    name: str
    written: str | None
    """When its files were written, in UTC; None if it cannot be read."""
    items: int | None
    """The items in it, without deltas; None if it cannot be read."""
    delta: int
    """The last delta that it contains."""
    digest: str
    is_current: bool

    def __str__(self) -> str:
        """In the words of a message."""
        if self.written is None or self.items is None:
            return f"{self.name} (it cannot be read)"
        return f"{self.name}, written {self.written}, {self.items:,} item{'' if self.items == 1 else 's'}"


@dataclass(frozen=True)
class LiveStatus:
    """The current version of a live folder, and the bases that are kept."""

    base: str
    first_delta: int
    last_delta: int
    """Below `first_delta` if no delta follows the base."""
    digest: str
    published: str
    """When something was published last, in UTC."""
    bases: tuple[BaseStatus, ...]
    """Oldest first."""

    @property
    def current(self) -> BaseStatus:
        return next(one for one in self.bases if one.is_current)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "bases": [asdict(one) for one in self.bases]}


def live_status(path: Path) -> LiveStatus:
    """The status of a live folder; `BundleError` if it is none. Arrays are mapped, not read."""
    version = read_current(path)
    bases = []
    for one in version.bases:
        written, items = _facts(path / one.name)
        bases.append(BaseStatus(one.number, one.name, written, items, one.delta, one.digest, one == version.base))
    published = _time(path / CURRENT)
    return LiveStatus(
        version.base.name, version.first_delta, version.last_delta, version.digest, published, tuple(bases)
    )


def _facts(folder: Path) -> tuple[str | None, int | None]:
    """When a base was written, and its number of items."""
    try:
        ids, *_ = split_arrays(read_bundle(folder, verify=False).arrays)
        return _time(folder / MANIFEST), Vocabulary.from_arrays(ids).num_ids
    except (BundleError, OSError, KeyError, ValueError):
        return None, None


def _time(file: Path) -> str:
    written = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)
    return f"{written:%Y-%m-%d %H:%M:%S} UTC"
