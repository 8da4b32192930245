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
from safetensors.numpy import load_file

from pathdex.errors import BundleError
from pathdex.storage.array_folder import MANIFEST, FolderFormat, check_files, read_manifest, repair, write_folder
from pathdex.storage.json_file import write_json
from pathdex.storage.tensor_file import write_tensors

CURRENT, DELTAS = "CURRENT", "deltas"
FORMAT, SCHEMA = "pathdex-live", 1
TENSORS = "delta.safetensors"
DELTA_FORMAT = FolderFormat(
    name="pathdex-delta",
    noun="Pathdex delta",
    made_by="publish()",
    error=BundleError,
    keys={"number": int, "before": str, "settings": dict},
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


def read_current(path: Path) -> LiveVersion:
    """What counts now; `BundleError` if the folder is not a live folder."""
    file = path / CURRENT
    try:
        content = json.loads(file.read_text())
    except OSError as error:
        raise BundleError(f"{path} is not a live folder: it has no readable {CURRENT}") from error
    except ValueError as error:
        raise BundleError(f"{file} is damaged ({error}); copy the folder again, or publish to a new one") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise BundleError(f"{path} is not a live folder: {CURRENT} has another format")
    if isinstance(content.get("schema"), int) and content["schema"] > SCHEMA:
        raise BundleError(f"{path} has schema {content['schema']}, newer than this Pathdex reads; upgrade pathdex")
    try:
        bases = tuple(BaseVersion(**one) for one in content["bases"])
        (base,) = (one for one in bases if one.name == content["base"])
        return LiveVersion(base, content["first_delta"], content["last_delta"], content["digest"], bases)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(f"{file} is damaged ({error!r}); copy the folder again, or publish to a new one") from error


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
    write_json(path / CURRENT, content)


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
    return _digest(before, folder)


def read_delta(path: Path, number: int, *, before: str | None = None) -> StoredDelta:
    """Read and verify a delta. `before` is the digest of the state that it must change, if given."""
    folder = delta_folder(path, number)
    manifest = read_manifest(folder, DELTA_FORMAT)
    check_files(folder, DELTA_FORMAT, manifest["files"], verify=True)
    if manifest["number"] != number or (before is not None and manifest["before"] != before):
        raise BundleError(f"{folder} does not continue the chain of {path}; read the base again")
    try:
        tensors = load_file(folder / TENSORS)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{folder / TENSORS} is damaged ({error}); {repair(DELTA_FORMAT)}") from error
    return StoredDelta(
        number,
        manifest["before"],
        _digest(manifest["before"], folder),
        manifest["settings"],
        {name: array for name, array in tensors.items() if not name.startswith(_WEIGHT)},
        {name.removeprefix(_WEIGHT): array for name, array in tensors.items() if name.startswith(_WEIGHT)},
    )


def manifest_digest(folder: Path) -> str:
    """The SHA-256 of a manifest, which holds the SHA-256 of every file."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _digest(before: str, folder: Path) -> str:
    return hashlib.sha256(before.encode() + (folder / MANIFEST).read_bytes()).hexdigest()
