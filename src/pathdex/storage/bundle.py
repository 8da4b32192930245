"""The folder that a saved model is: `manifest.json`, `weights.safetensors`, and one `.npy` file per array."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from pathdex.errors import BundleError
from pathdex.storage.array_folder import MANIFEST, Kind, read_arrays, read_manifest, write_arrays, write_folder

WEIGHTS = "weights.safetensors"
KIND = Kind(
    format="pathdex-bundle",
    schema=1,
    error=BundleError,
    noun="bundle",
    alien="is not a bundle",
    unlike="is not a Pathdex bundle",
    wanted="pass the folder that save() or `pathdex train` wrote",
    again="save the model again",
    anew="save it anew",
    unreadable="copy the bundle again",
    keys={"estimator": str, "settings": dict},
    replaces_damaged=True,
)


@dataclass(frozen=True)
class Bundle:
    """A saved estimator: its name, its settings, and what it learned."""

    estimator: str
    settings: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)


def write_bundle(path: Path, bundle: Bundle, *, overwrite: bool = False) -> Path:
    """Write the bundle to a new folder at `path`; with `overwrite`, replace a bundle that is there."""

    def write(folder: Path) -> None:
        write_arrays(folder, bundle.arrays)
        if bundle.weights:
            _write_weights(folder / WEIGHTS, bundle.weights)
        # A server may run as another user than the one who trained.
        folder.chmod(0o755)
        for file in folder.iterdir():
            file.chmod(0o644)

    facts = {"estimator": bundle.estimator, "settings": bundle.settings}
    return write_folder(path, KIND, facts, write, overwrite=overwrite)


def read_bundle(path: Path, *, estimator: str | None = None, verify: bool | None = None) -> Bundle:
    """Open a bundle; arrays are mapped from disk, not read.

    `verify` checks every file against its checksum; by default, where the bundle is at most 256 MB. Sizes are always
    checked. `estimator`, if given, is the only kind accepted.
    """
    manifest = read_manifest(path, KIND)
    if estimator is not None and manifest["estimator"] != estimator:
        raise BundleError(
            f"{path} holds a {manifest['estimator']!r} model, not {estimator!r}; open it with pathdex.load"
        )
    arrays = read_arrays(path, KIND, manifest["files"], verify=verify)
    weights = _read_weights(path / WEIGHTS) if WEIGHTS in manifest["files"] else {}
    return Bundle(manifest["estimator"], manifest["settings"], arrays, weights)


def bundle_version(path: Path) -> str:
    """A short name for exactly this content: a digest of the manifest, which holds the digest of every file."""
    return hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()[:12]


def _write_weights(file: Path, weights: dict[str, NDArray[Any]]) -> None:
    try:
        save_file({name: np.ascontiguousarray(array) for name, array in weights.items()}, file)
    except SafetensorError as error:
        raise OSError(str(error)) from error


def _read_weights(file: Path) -> dict[str, NDArray[Any]]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{file} is damaged ({error}); copy the bundle again") from error
