"""A model that changes: a base bundle, a chain of small deltas, and one file that says which of them count.

LIVE/CURRENT              JSON, replaced atomically: the base, the deltas that follow it, older bases
LIVE/base-000007/         an ordinary bundle
LIVE/deltas/000001043/    the changes of one publish, see `DELTA_FORMAT`
LIVE/LOCK                 held by the process that publishes

Every delta names the digest of the state before it, so a reader notices a chain that broke. The digest of a state is
the SHA-256 of the digest before and the manifest of the delta. A new base continues the chain: it holds the state after
some delta, and the digest of that state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from pathdex.errors import BundleError
from pathdex.storage.array_folder import (
    MANIFEST,
    MANIFEST_LIMIT,
    FolderFormat,
    check_sums,
    open_folder,
    repair,
    write_folder,
)
from pathdex.storage.json_file import write_json
from pathdex.storage.open_folder import read_plain
from pathdex.storage.run_folder import STREAM_REQUEST
from pathdex.storage.tensor_file import write_tensors

CURRENT, DELTAS = "CURRENT", "deltas"
FORMAT, SCHEMA = "pathdex-live", 1
CHECKSUM = "checksum"
"""The SHA-256 of the rest of `CURRENT`."""
CURRENT_LIMIT = 2**20
"""Bytes of `CURRENT`, at most."""
MAX_COUNT = 10**15
"""Numbers of bases and deltas are below it."""
TENSORS = "delta.safetensors"
DELTA_FORMAT = FolderFormat(
    name="pathdex-delta",
    noun="Pathdex delta",
    made_by="`pathdex stream`",
    error=BundleError,
    keys={"number": int, "before": str, "settings": dict},
    closed=True,
)
_WEIGHT = "weights/"


@dataclass(frozen=True)
class BaseVersion:
    """A base bundle in a live folder."""

    number: int
    delta: int
    """The last delta that it contains."""
    digest: str
    """The digest of its state."""
    manifest: str
    """The SHA-256 of its manifest."""

    @property
    def name(self) -> str:
        return f"base-{self.number:06d}"


@dataclass(frozen=True)
class LiveVersion:
    """What `CURRENT` says: a base and the deltas that follow it."""

    base: BaseVersion
    first_delta: int
    last_delta: int
    """Below `first_delta` if no delta follows the base."""
    digest: str
    """The digest of the state after the last delta."""
    bases: tuple[BaseVersion, ...]
    """All bases that are kept, oldest first; the current one is among them."""

    @property
    def deltas(self) -> range:
        return range(self.first_delta, self.last_delta + 1)


@dataclass(frozen=True)
class StoredDelta:
    """The content of one delta folder."""

    number: int
    before: str
    """The digest of the state that it changes."""
    digest: str
    """The digest of the state after it."""
    settings: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)


def is_live_folder(path: Path) -> bool:
    """Whether a path is a live folder."""
    return (path / CURRENT).is_file()


def delta_folder(path: Path, number: int) -> Path:
    return path / DELTAS / f"{number:09d}"


class DamagedCurrentError(BundleError):
    """`CURRENT` is there and cannot be used; bases and deltas may be whole."""


def read_current(path: Path) -> LiveVersion:
    """What counts now; `BundleError` if the folder is no live folder, `DamagedCurrentError` if `CURRENT` is broken."""
    file = path / CURRENT
    try:
        content = json.loads(read_plain(path, CURRENT, CURRENT_LIMIT))
    except OSError as error:
        raise BundleError(f"{path} is not a live folder: it has no readable {CURRENT}") from error
    except (ValueError, RecursionError) as error:
        raise DamagedCurrentError(f"{file} is damaged ({error}); {_way_out(path)}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DamagedCurrentError(f"{path} is not a live folder: {CURRENT} has another format; {_way_out(path)}")
    if _is_count(content.get("schema")) and content["schema"] > SCHEMA:
        raise BundleError(f"{path} has schema {content['schema']}, newer than this Pathdex reads; upgrade pathdex")
    try:
        if content.pop(CHECKSUM, None) != _checksum(content):
            raise DamagedCurrentError(f"{file} is damaged (its checksum is wrong); {_way_out(path)}")
        bases = tuple(BaseVersion(**one) for one in content["bases"])
        (base,) = (one for one in bases if one.name == content["base"])
        version = LiveVersion(base, content["first_delta"], content["last_delta"], content["digest"], bases)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedCurrentError(f"{file} is damaged ({error!r}); {_way_out(path)}") from error
    counts = [version.first_delta, version.last_delta, *(one for base in bases for one in (base.number, base.delta))]
    texts = [version.digest, *(one for base in bases for one in (base.digest, base.manifest))]
    if not all(map(_is_count, [content.get("schema"), *counts])) or not all(isinstance(one, str) for one in texts):
        raise DamagedCurrentError(f"{file} is damaged (numbers or digests are none); {_way_out(path)}")
    return version


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_COUNT


def _way_out(path: Path) -> str:
    """What to do about a folder whose `CURRENT` is broken."""
    if (path / STREAM_REQUEST).exists():
        return "run `pathdex stream` again, it publishes again"
    bases = sorted(entry.name for entry in path.glob("base-*"))
    alone = f"; {path / bases[-1]} is a model of its own that can be used meanwhile" if bases else ""
    return f"restore {CURRENT} or the folder from a backup, or remove {CURRENT} and publish a model again{alone}"


def write_current(path: Path, version: LiveVersion) -> None:
    """Make a version the current one."""
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "base": version.base.name,
        "first_delta": version.first_delta,
        "last_delta": version.last_delta,
        "digest": version.digest,
        "bases": [asdict(one) for one in version.bases],
    }
    write_json(path / CURRENT, {**content, CHECKSUM: _checksum(content)})


def write_delta(
    path: Path,
    number: int,
    before: str,
    settings: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    weights: Mapping[str, NDArray[Any]],
) -> str:
    """Write a delta folder; returns the digest of the state after it."""
    tensors = {**arrays, **{f"{_WEIGHT}{name}": array for name, array in weights.items()}}
    facts = {"number": number, "before": before, "settings": dict(settings)}
    folder = delta_folder(path, number)
    # A killed publish may have left this delta behind, without it being in `CURRENT`.
    write_folder(folder, DELTA_FORMAT, facts, lambda new: write_tensors(new / TENSORS, tensors), overwrite=True)
    return _digest(before, (folder / MANIFEST).read_bytes())


def read_delta(path: Path, number: int, *, before: str | None = None) -> StoredDelta:
    """Read and verify a delta. `before` is the digest of the state that it must change, if given."""
    folder, manifest = open_folder(delta_folder(path, number), DELTA_FORMAT)
    with folder:
        check_sums(folder, DELTA_FORMAT, manifest["files"])
        if manifest["number"] != number or (before is not None and manifest["before"] != before):
            raise BundleError(f"{folder.path} does not continue the chain of {path}; read the base again")
        try:
            tensors = load(folder.read(TENSORS))
        except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise BundleError(f"{folder.path / TENSORS} is damaged ({error}); {repair(DELTA_FORMAT)}") from error
        digest = _digest(manifest["before"], folder.read(MANIFEST))
    return StoredDelta(
        number,
        manifest["before"],
        digest,
        manifest["settings"],
        {name: array for name, array in tensors.items() if not name.startswith(_WEIGHT)},
        {name.removeprefix(_WEIGHT): array for name, array in tensors.items() if name.startswith(_WEIGHT)},
    )


def manifest_digest(folder: Path) -> str:
    """The SHA-256 of a manifest, which holds the SHA-256 of every file."""
    return hashlib.sha256(read_plain(folder, MANIFEST, MANIFEST_LIMIT)).hexdigest()


def _digest(before: str, manifest: bytes) -> str:
    return hashlib.sha256(before.encode() + manifest).hexdigest()


def _checksum(content: Mapping[str, Any]) -> str:
    """The checksum of `CURRENT`, without the one in it."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
