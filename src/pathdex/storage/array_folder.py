"""Folders of arrays: one `.npy` file each, and a `manifest.json` with sizes and checksums.

A folder is written beside its final place and renamed into it, so a reader sees all of it or nothing. Nothing in it is
pickled, so opening one runs no code.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import PathdexError, StorageError

MANIFEST = "manifest.json"
VERIFY_LIMIT = 256 * 2**20
"""Folders up to this many bytes are checked against their checksums whenever they are opened."""


@dataclass(frozen=True)
class Kind:
    """What a folder holds, and the words of the errors about it."""

    format: str
    schema: int
    error: type[PathdexError]
    """Raised where a folder cannot be opened."""
    noun: str
    alien: str
    """Said of a folder that is not overwritten, since it is something else."""
    unlike: str
    """Said of a folder that is not opened, since it is something else."""
    wanted: str
    again: str
    """The way out where the manifest is damaged."""
    anew: str
    """The way out where a file is missing, besides copying."""
    unreadable: str
    """The way out where an array cannot be read."""
    keys: Mapping[str, type] = field(default_factory=dict)
    """What the manifest must hold besides the schema and the files; an error names the keys that are broken."""
    replaces_damaged: bool = False
    """Whether any folder with a manifest may be overwritten, so also one whose manifest cannot be read."""


def write_folder(
    path: Path, kind: Kind, facts: Mapping[str, Any], write: Callable[[Path], None], *, overwrite: bool = False
) -> Path:
    """Let `write` fill a new folder and add the manifest; with `overwrite`, replace a folder of the same kind."""
    if path.exists():
        if not overwrite:
            raise StorageError(f"{path} exists; choose another path, remove it, or save with overwrite=True")
        if not _may_replace(path, kind):
            raise StorageError(f"{path} {kind.alien}, so it is not overwritten; choose another path")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise StorageError(f"cannot write beside {path}: {error.strerror}; choose another path") from error
    try:
        fresh = staging / path.name
        fresh.mkdir()
        write(fresh)
        files = {file.name: _fingerprint(file) for file in sorted(fresh.iterdir())}
        manifest = {"format": kind.format, "schema": kind.schema, **facts, "files": files}
        (fresh / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        _swap_in(fresh, path, staging / f".old.{path.name}")
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another path; nothing was changed"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return path


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """One `.npy` file for each array."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)


def read_manifest(path: Path, kind: Kind) -> dict[str, Any]:
    """The manifest of a folder, which holds all that its kind asks for."""
    if not path.exists():
        raise kind.error(f"{path} does not exist; {kind.wanted}")
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except OSError as error:
        raise kind.error(f"{path} {kind.unlike}: it has no readable {MANIFEST}") from error
    except ValueError as error:
        raise kind.error(f"{path / MANIFEST} is damaged ({error}); {kind.again}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != kind.format:
        raise kind.error(f"{path} {kind.unlike}: {MANIFEST} has another format")
    schema = manifest.get("schema")
    if isinstance(schema, int) and schema > kind.schema:
        raise kind.error(f"{path} has schema {schema}, newer than this Pathdex reads ({kind.schema}); upgrade pathdex")
    rules = {"schema": int, **kind.keys, "files": dict}
    broken = [key for key, wanted in rules.items() if not isinstance(manifest.get(key), wanted)]
    if "files" not in broken and not all(_is_entry(*entry) for entry in manifest["files"].items()):
        broken.append("files")
    if broken:
        reason = ", ".join(broken) if kind.keys else "keys are missing"
        raise kind.error(f"{path / MANIFEST} is damaged ({reason}); {kind.again}")
    return manifest


def read_arrays(
    path: Path, kind: Kind, files: Mapping[str, Any], *, mmap: bool = True, verify: bool | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays among the files of a manifest; mapped from disk, or with `mmap=False` read.

    Sizes of all files are always checked. `verify` checks their checksums; by default, where they are small.
    """
    if verify is None:
        verify = sum(entry["bytes"] for entry in files.values()) <= VERIFY_LIMIT
    for name, expected in files.items():
        _check_file(path / name, kind, expected, verify=verify)
    arrays = {}
    for name in files:
        if name.endswith(".npy"):
            try:
                array = np.load(path / name, mmap_mode="r" if mmap else None, allow_pickle=False)
            except (OSError, ValueError) as error:
                raise kind.error(f"{path / name} is damaged ({error}); {kind.unreadable}") from error
            arrays[name.removesuffix(".npy")] = array
    return arrays


def file_digest(file: Path, algorithm: str) -> str:
    """The checksum of a file in hex, read block by block."""
    digest = hashlib.new(algorithm)
    with file.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _may_replace(path: Path, kind: Kind) -> bool:
    if kind.replaces_damaged:
        return (path / MANIFEST).is_file()
    try:
        return bool(json.loads((path / MANIFEST).read_text())["format"] == kind.format)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _swap_in(fresh: Path, path: Path, old: Path) -> None:
    if path.exists():
        path.rename(old)
    try:
        fresh.rename(path)
    except OSError:
        if old.exists():
            old.rename(path)
        raise


def _is_entry(name: str, entry: object) -> bool:
    # A name with a folder in it would point outside.
    return Path(name).name == name and isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys()


def _check_file(file: Path, kind: Kind, expected: Mapping[str, Any], *, verify: bool) -> None:
    folder, copy = file.parent, f"copy the {kind.noun} again"
    if not file.is_file():
        raise kind.error(f"{folder} is incomplete: {file.name} is missing; {copy} or {kind.anew}")
    size = file.stat().st_size
    if size != expected["bytes"]:
        raise kind.error(f"{folder} is damaged: {file.name} has {size:,} bytes, not {expected['bytes']:,}; {copy}")
    if verify and _fingerprint(file)["sha256"] != expected["sha256"]:
        raise kind.error(f"{folder} is damaged: the checksum of {file.name} is wrong; {copy}")


def _fingerprint(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "sha256": file_digest(file, "sha256")}
