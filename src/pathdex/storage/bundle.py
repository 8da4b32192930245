"""A saved model: a folder of `manifest.json`, `weights.safetensors`, and one `.npy` file per array."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from pathdex.errors import BundleError
from pathdex.storage.array_folder import (
    MANIFEST,
    FolderFormat,
    read_arrays,
    read_manifest,
    read_stable,
    repair,
    write_arrays,
    write_folder,
)
from pathdex.storage.tensor_file import write_tensors

WEIGHTS = "weights.safetensors"
BUNDLE_FORMAT = FolderFormat(
    name="pathdex-bundle",
    noun="Pathdex bundle",
    made_by="save() or `pathdex train`",
    error=BundleError,
    keys={"estimator": str, "settings": dict},
)


@dataclass(frozen=True)
class Bundle:
    """A saved estimator: its name, its settings, and what it has learned."""

    estimator: str
    settings: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)


def write_bundle(path: Path, bundle: Bundle, *, overwrite: bool = False) -> Path:
    """Write the bundle to a new folder at `path`; with `overwrite`, replace the bundle there."""

    def write(folder: Path) -> None:
        write_arrays(folder, bundle.arrays)
        if bundle.weights:
            write_tensors(folder / WEIGHTS, bundle.weights)

    facts = {"estimator": bundle.estimator, "settings": bundle.settings}
    return write_folder(path, BUNDLE_FORMAT, facts, write, overwrite=overwrite)


def read_bundle(path: Path, *, estimator: str | None = None, verify: bool | None = None) -> Bundle:
    """Open a bundle; arrays are mapped from disk, weights are read.

    File sizes are always checked; `verify` also checks the checksums, by default if the bundle is at most 256 MB.
    `estimator`, if given, is the only one accepted. A bundle that is replaced meanwhile is opened again.
    """

    def read() -> Bundle:
        manifest = read_manifest(path, BUNDLE_FORMAT)
        if estimator is not None and manifest["estimator"] != estimator:
            raise BundleError(
                f"{path} holds a {manifest['estimator']!r} model, not {estimator!r}; open it with pathdex.load"
            )
        arrays = read_arrays(path, BUNDLE_FORMAT, manifest["files"], verify=verify)
        weights = _read_weights(path / WEIGHTS) if WEIGHTS in manifest["files"] else {}
        return Bundle(manifest["estimator"], manifest["settings"], arrays, weights)

    return read_stable(path, BUNDLE_FORMAT, read)


def bundle_version(path: Path) -> str:
    """The first 12 digits of the manifest's SHA-256. The manifest holds the SHA-256 of every file."""
    return hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()[:12]


def _read_weights(file: Path) -> dict[str, NDArray[Any]]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{file} is damaged ({error}); {repair(BUNDLE_FORMAT)}") from error
