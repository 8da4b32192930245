"""Folders of arrays: one `.npy` file each, and a `manifest.json` with sizes and checksums.

A folder is written beside its final place and renamed into it, so a reader sees all of it or nothing. Nothing in it is
pickled, so opening one runs no code.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import DataError, StorageError

SCHEMA = 1
MANIFEST = "manifest.json"
VERIFY_LIMIT = 256 * 2**20
"""Folders up to this many bytes are checked against their checksums whenever they are opened."""


def write_folder(
    path: Path,
    kind: str,
    facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    *,
    overwrite: bool = False,
) -> Path:
    """Write the arrays to a new folder; with `overwrite`, replace a folder of the same kind."""
    if path.exists():
        if not overwrite:
            raise StorageError(f"{path} exists; choose another path, remove it, or save with overwrite=True")
        if _kind_of(path) != kind:
            raise StorageError(f"{path} is no {kind} folder, so it is not overwritten; choose another path")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise StorageError(f"cannot write beside {path}: {error.strerror}; choose another path") from error
    try:
        fresh = staging / path.name
        fresh.mkdir()
        for name, array in arrays.items():
            np.save(fresh / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
        files = {file.name: _fingerprint(file) for file in sorted(fresh.iterdir())}
        manifest = {"format": kind, "schema": SCHEMA, **facts, "files": files}
        (fresh / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        if path.exists():
            path.rename(staging / "old")
        try:
            fresh.rename(path)
        except OSError:
            if (staging / "old").exists():
                (staging / "old").rename(path)
            raise
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another path; nothing was changed"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return path


def read_folder(path: Path, kind: str, *, mmap: bool = True) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and the arrays of a folder; mapped from disk, or with `mmap=False` read.

    Sizes are always checked, checksums where the folder is small or is read anyway.
    """
    manifest = _read_manifest(path, kind)
    files: dict[str, dict[str, Any]] = manifest["files"]
    verify = not mmap or sum(entry["bytes"] for entry in files.values()) <= VERIFY_LIMIT
    arrays = {}
    for name, expected in files.items():
        _check_file(path / name, expected, verify=verify)
        try:
            arrays[name.removesuffix(".npy")] = np.load(
                path / name, mmap_mode="r" if mmap else None, allow_pickle=False
            )
        except (OSError, ValueError) as error:
            raise DataError(f"{path / name} is damaged ({error}); write the folder again") from error
    return manifest, arrays


def _kind_of(path: Path) -> str | None:
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        return str(manifest["format"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _read_manifest(path: Path, kind: str) -> dict[str, Any]:
    if not path.exists():
        raise DataError(f"{path} does not exist; pass a folder that holds a saved {kind}")
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except OSError as error:
        raise DataError(f"{path} holds no saved {kind}: it has no readable {MANIFEST}") from error
    except ValueError as error:
        raise DataError(f"{path / MANIFEST} is damaged ({error}); write the folder again") from error
    if not isinstance(manifest, dict) or manifest.get("format") != kind:
        raise DataError(f"{path} holds no saved {kind}: {MANIFEST} has another format")
    schema = manifest.get("schema")
    files = manifest.get("files")
    if not (isinstance(schema, int) and isinstance(files, dict) and all(_is_entry(entry) for entry in files.values())):
        raise DataError(f"{path / MANIFEST} is damaged (keys are missing); write the folder again")
    if schema > SCHEMA:
        raise DataError(f"{path} has schema {schema}, newer than this Pathdex reads ({SCHEMA}); upgrade pathdex")
    return manifest


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys()


def _check_file(file: Path, expected: Mapping[str, Any], *, verify: bool) -> None:
    if not file.is_file():
        raise DataError(f"{file.parent} is incomplete: {file.name} is missing; copy the folder again or write it anew")
    size = file.stat().st_size
    if size != expected["bytes"]:
        raise DataError(
            f"{file.parent} is damaged: {file.name} has {size:,} bytes, not {expected['bytes']:,}; "
            "copy the folder again"
        )
    if verify and _fingerprint(file)["sha256"] != expected["sha256"]:
        raise DataError(f"{file.parent} is damaged: the checksum of {file.name} is wrong; copy the folder again")


def _fingerprint(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "sha256": file_digest(file, "sha256")}


def file_digest(file: Path, algorithm: str) -> str:
    """The checksum of a file in hex, read block by block."""
    digest = hashlib.new(algorithm)
    with file.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()
