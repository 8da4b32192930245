"""The folder that a saved model is: `manifest.json`, `weights.safetensors`, and one `.npy` file per array.

A bundle is written beside its final place and renamed into it, so a reader sees all of it or nothing. Nothing in it is
pickled, so opening one runs no code.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from pathdex.errors import BundleError, StorageError

FORMAT = "pathdex-bundle"
SCHEMA = 1
MANIFEST = "manifest.json"
WEIGHTS = "weights.safetensors"
VERIFY_LIMIT = 256 * 2**20
"""Bundles up to this many bytes are checked against their checksums whenever they are opened."""


@dataclass(frozen=True)
class Bundle:
    """A saved estimator: its name, its settings, and what it learned."""

    estimator: str
    settings: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)


def write_bundle(path: Path, bundle: Bundle, *, overwrite: bool = False) -> Path:
    """Write the bundle to a new folder at `path`; with `overwrite`, replace a bundle that is there."""
    if path.exists():
        if not overwrite:
            raise StorageError(f"{path} exists; choose another path, remove it, or save with overwrite=True")
        if not (path / MANIFEST).is_file():
            raise StorageError(f"{path} is not a bundle, so it is not overwritten; choose another path")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise StorageError(f"cannot write beside {path}: {error.strerror}; choose another path") from error
    try:
        _write_files(staging, bundle)
        staging.chmod(0o755)
        _swap_in(staging, path)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"cannot write {path}: {reason}; free space or choose another path; nothing was changed"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return path


def read_bundle(path: Path, *, estimator: str | None = None, verify: bool | None = None) -> Bundle:
    """Open a bundle; arrays are mapped from disk, not read.

    `verify` checks every file against its checksum; by default, where the bundle is at most 256 MB. Sizes are always
    checked. `estimator`, if given, is the only kind accepted.
    """
    manifest = _read_manifest(path)
    if estimator is not None and manifest["estimator"] != estimator:
        raise BundleError(
            f"{path} holds a {manifest['estimator']!r} model, not {estimator!r}; open it with pathdex.load"
        )
    total = sum(entry["bytes"] for entry in manifest["files"].values())
    _check_files(path, manifest["files"], verify=total <= VERIFY_LIMIT if verify is None else verify)
    arrays = {
        name.removesuffix(".npy"): _open_array(path / name) for name in manifest["files"] if name.endswith(".npy")
    }
    weights = _open_weights(path / WEIGHTS) if WEIGHTS in manifest["files"] else {}
    return Bundle(manifest["estimator"], manifest["settings"], arrays, weights)


def bundle_version(path: Path) -> str:
    """A short name for exactly this content: a digest of the manifest, which holds the digest of every file."""
    return hashlib.sha256((path / MANIFEST).read_bytes()).hexdigest()[:12]


def _write_files(folder: Path, bundle: Bundle) -> None:
    for name, array in bundle.arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
    if bundle.weights:
        save_file({name: np.ascontiguousarray(array) for name, array in bundle.weights.items()}, folder / WEIGHTS)
    for file in folder.iterdir():
        file.chmod(0o644)  # A server may run as another user than the one who trained.
    manifest = {
        "format": FORMAT,
        "schema": SCHEMA,
        "estimator": bundle.estimator,
        "settings": bundle.settings,
        "files": {file.name: _fingerprint(file) for file in sorted(folder.iterdir())},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")


def _swap_in(staging: Path, path: Path) -> None:
    if not path.exists():
        staging.rename(path)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
    path.rename(old / path.name)
    try:
        staging.rename(path)
    except OSError:
        (old / path.name).rename(path)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _read_manifest(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise BundleError(f"{path} does not exist; pass the folder that save() or `pathdex train` wrote")
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except OSError as error:
        raise BundleError(f"{path} is not a Pathdex bundle: it has no readable {MANIFEST}") from error
    except ValueError as error:
        raise BundleError(f"{path / MANIFEST} is damaged ({error}); save the model again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise BundleError(f"{path} is not a Pathdex bundle: {MANIFEST} has another format")
    schema = manifest.get("schema")
    if isinstance(schema, int) and schema > SCHEMA:
        raise BundleError(f"{path} has schema {schema}, newer than this Pathdex reads ({SCHEMA}); upgrade pathdex")
    broken = [key for key, whole in _MANIFEST_RULES.items() if not whole(manifest.get(key))]
    if broken:
        raise BundleError(f"{path / MANIFEST} is damaged ({', '.join(broken)}); save the model again")
    return manifest


def _is_file_list(files: object) -> bool:
    return isinstance(files, dict) and all(
        Path(name).name == name and isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys()
        for name, entry in files.items()
    )


_MANIFEST_RULES: dict[str, Callable[[object], bool]] = {
    "schema": lambda schema: isinstance(schema, int),
    "estimator": lambda name: isinstance(name, str),
    "settings": lambda settings: isinstance(settings, dict),
    "files": _is_file_list,
}


def _open_array(file: Path) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise BundleError(f"{file} is damaged ({error}); copy the bundle again") from error
    return array


def _open_weights(file: Path) -> dict[str, NDArray[Any]]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise BundleError(f"{file} is damaged ({error}); copy the bundle again") from error


def _check_files(path: Path, files: dict[str, Any], *, verify: bool) -> None:
    for name, expected in files.items():
        file = path / name
        if not file.is_file():
            raise BundleError(f"{path} is incomplete: {name} is missing; copy the bundle again or save it anew")
        size = file.stat().st_size
        if size != expected["bytes"]:
            raise BundleError(
                f"{path} is damaged: {name} has {size:,} bytes, not {expected['bytes']:,}; copy the bundle again"
            )
        if verify and _fingerprint(file)["sha256"] != expected["sha256"]:
            raise BundleError(f"{path} is damaged: the checksum of {name} is wrong; copy the bundle again")


def _fingerprint(file: Path) -> dict[str, Any]:
    with file.open("rb") as stream:
        digest = hashlib.sha256()
        while block := stream.read(2**20):
            digest.update(block)
    return {"bytes": file.stat().st_size, "sha256": digest.hexdigest()}
