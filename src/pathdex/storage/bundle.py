"""A saved model: a folder of `manifest.json`, `weights.safetensors`, and one `.npy` file per array."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from pathdex.errors import BundleError
from pathdex.storage import verified
from pathdex.storage.array_folder import (
    MANIFEST,
    MANIFEST_LIMIT,
    FolderFormat,
    check_files,
    is_small,
    manifest_of,
    open_folder,
    read_arrays,
    repair,
    write_arrays,
    write_folder,
)
from pathdex.storage.open_folder import OpenFolder, read_plain
from pathdex.storage.tensor_file import write_tensors

WEIGHTS = "weights.safetensors"
BUNDLE_FORMAT = FolderFormat(
    name="pathdex-bundle",
    noun="Pathdex bundle",
    made_by="`pathdex train`, `pathdex shard` or save()",
    error=BundleError,
    keys={"estimator": str, "settings": dict},
    closed=True,
    optional={"reading": dict, "details": dict},
)


@dataclass(frozen=True)
class Bundle:
    """A saved estimator: its name, its settings, and what it has learned."""

    estimator: str
    settings: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)
    source: str = "the bundle"
    """Where it is from, for messages."""
    version: str | None = None
    """The `bundle_version` of the folder that it is from."""
    key: str | None = None
    """The name of a large bundle in the cache of checked ones."""
    reading: Mapping[str, Any] | None = None
    """How the training data was read, as options of `pathdex.read`."""
    details: Mapping[str, Any] | None = None
    """The columns of the details of items, whose arrays begin with `details.`."""

    def is_verified(self) -> bool:
        """Whether the values of all arrays were checked before. Small bundles are always checked."""
        return self.key is not None and verified.is_checked(self.key, verified.CONTENT)

    def set_verified(self) -> None:
        """Remember that they are valid."""
        if self.key is not None and not self.is_verified():
            verified.set_checked(self.key, verified.CONTENT)


def write_bundle(path: Path, bundle: Bundle, *, overwrite: bool = False) -> Path:
    """Write the bundle to a new folder at `path`; with `overwrite`, replace the bundle there."""

    def write(folder: Path) -> None:
        write_arrays(folder, bundle.arrays)
        if bundle.weights:
            write_tensors(folder / WEIGHTS, bundle.weights)

    facts: dict[str, Any] = {"estimator": bundle.estimator, "settings": bundle.settings}
    if bundle.reading is not None:
        facts["reading"] = dict(bundle.reading)
    if bundle.details is not None:
        facts["details"] = dict(bundle.details)
    return write_folder(path, BUNDLE_FORMAT, facts, write, overwrite=overwrite)


def read_bundle(
    path: Path,
    *,
    estimator: str | None = None,
    verify: bool | None = None,
    handles: Mapping[str, int] | None = None,
) -> Bundle:
    """Open a bundle; arrays are mapped from disk, weights are read.

    File sizes are always checked; `verify` also checks the checksums, by default if the bundle is at most 256 MB.
    `estimator`, if given, is the only one accepted. All files are those of one save, whoever replaces the folder
    meanwhile. `handles` are its files, opened before; the folder itself may be gone.
    """
    if handles is None:
        folder, manifest = open_folder(path, BUNDLE_FORMAT)
    else:
        folder = OpenFolder(path, handles)
        manifest = manifest_of(folder, BUNDLE_FORMAT)
        check_files(folder, BUNDLE_FORMAT, manifest["files"])
    try:
        if estimator is not None and manifest["estimator"] != estimator:
            raise BundleError(
                f"{path} holds a {manifest['estimator']!r} model, not {estimator!r}; open it with pathdex.load"
            )
        return bundle_of(folder, manifest, verify=verify)
    finally:
        if handles is None:
            folder.close()


def bundle_of(folder: OpenFolder, manifest: Mapping[str, Any], *, verify: bool | None = None) -> Bundle:
    """The bundle in an open folder; arrays stay mapped after it is closed."""
    files = manifest["files"]
    arrays = read_arrays(folder, BUNDLE_FORMAT, files, verify=verify)
    weights = _read_weights(folder) if WEIGHTS in files else {}
    key = None if is_small(files) else verified.folder_key(folder, [MANIFEST, *files])
    version = short_digest(folder.read(MANIFEST))
    return Bundle(
        manifest["estimator"],
        manifest["settings"],
        arrays,
        weights,
        str(folder.path),
        version,
        key,
        manifest.get("reading"),
        manifest.get("details"),
    )


def bundle_version(path: Path) -> str:
    """The first 12 digits of the manifest's SHA-256. The manifest holds the SHA-256 of every file."""
    return short_digest(read_plain(path, MANIFEST, MANIFEST_LIMIT))


def short_digest(content: bytes) -> str:
    """The first 12 digits of a SHA-256."""
    return hashlib.sha256(content).hexdigest()[:12]


def _read_weights(folder: OpenFolder) -> dict[str, NDArray[Any]]:
    try:
        return load_file(folder.path_of(WEIGHTS))
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:  # Of dtypes, too.
        raise BundleError(f"{folder.path / WEIGHTS} is damaged ({error}); {repair(BUNDLE_FORMAT)}") from error
