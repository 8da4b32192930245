"""Folders of arrays: one `.npy` file each, and a `manifest.json` with sizes and checksums.

A folder is written atomically. Nothing in it is pickled, so opening one runs no code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pathdex.errors import PathdexError, StorageError
from pathdex.storage.atomic import atomic_folder

MANIFEST = "manifest.json"
VERIFY_LIMIT = 256 * 2**20
"""Folders up to this many bytes are checked against their checksums whenever they are opened."""
ATTEMPTS = 10
"""How often a folder is opened again that was replaced while it was being read."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class FolderFormat:
    """A kind of array folder, and the words of the errors about it."""

    name: str
    """`format` in the manifest."""
    noun: str
    """The folder in messages, such as "Pathdex bundle"."""
    made_by: str
    """The function or command that writes the folder."""
    error: type[PathdexError]
    """Raised where a folder cannot be opened."""
    keys: Mapping[str, type] = field(default_factory=dict)
    """Required keys of the manifest besides `format`, `schema` and `files`."""
    schema: int = 1
    """The newest schema that can be read, and the one that is written."""


def write_folder(
    path: Path, form: FolderFormat, facts: Mapping[str, Any], write: Callable[[Path], None], *, overwrite: bool = False
) -> Path:
    """Let `write` fill a new folder, and add the manifest; with `overwrite`, replace a folder of the same format."""
    if path.exists():
        if not overwrite:
            raise StorageError(f"{path} exists; choose another path, remove it, or save with overwrite=True")
        if not _may_replace(path, form):
            raise StorageError(f"{path} is not a {form.noun}, so it is not overwritten; choose another path")
    with atomic_folder(path, overwrite=overwrite) as folder:
        write(folder)
        files = {file.name: _fingerprint(file) for file in sorted(folder.iterdir())}
        manifest = {"format": form.name, "schema": form.schema, **facts, "files": files}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True) + "\n")
        # Whoever opens the folder, such as a server, may run as another user.
        folder.chmod(0o755)
        for file in folder.iterdir():
            file.chmod(0o644)
    return path


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one `.npy` file per array."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)


def read_stable(path: Path, form: FolderFormat, read: Callable[[], _T]) -> _T:
    """Call `read` until it sees a folder that is not replaced meanwhile.

    A folder that is overwritten while it is read could give files of two saves, or lack one of them.
    """
    for _ in range(ATTEMPTS):
        before = _identity(path)
        try:
            found = read()
        except (form.error, OSError):
            if _identity(path) == before:
                raise
        else:
            if _identity(path) == before:
                return found
    raise form.error(f"{path} was replaced {ATTEMPTS} times while it was opened; replace it less often")


def read_manifest(path: Path, form: FolderFormat) -> dict[str, Any]:
    """The manifest of a folder, with every key that its format requires."""
    if not path.exists():
        raise form.error(f"{path} does not exist; pass the folder that {form.made_by} wrote")
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except OSError as error:
        raise form.error(f"{path} is not a {form.noun}: it has no readable {MANIFEST}") from error
    except ValueError as error:
        raise form.error(f"{path / MANIFEST} is damaged ({error}); {repair(form)}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != form.name:
        raise form.error(f"{path} is not a {form.noun}: {MANIFEST} has another format")
    schema = manifest.get("schema")
    if isinstance(schema, int) and schema > form.schema:
        raise form.error(f"{path} has schema {schema}, newer than this Pathdex reads ({form.schema}); upgrade pathdex")
    rules = {"schema": int, **form.keys, "files": dict}
    broken = [key for key, wanted in rules.items() if not isinstance(manifest.get(key), wanted)]
    if "files" not in broken and not all(_is_entry(*entry) for entry in manifest["files"].items()):
        broken.append("files")
    if broken:
        raise form.error(f"{path / MANIFEST} is damaged ({', '.join(broken)}); {repair(form)}")
    return manifest


def read_arrays(
    path: Path, form: FolderFormat, files: Mapping[str, Any], *, mmap: bool = True, verify: bool | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays among the files of a manifest, mapped from disk; with `mmap=False`, in memory.

    File sizes are always checked. `verify` also checks the checksums; by default, if the folder is at most
    `VERIFY_LIMIT` bytes.
    """
    if verify is None:
        verify = sum(entry["bytes"] for entry in files.values()) <= VERIFY_LIMIT
    check_files(path, form, files, verify=verify)
    arrays = {}
    for name in files:
        if name.endswith(".npy"):
            try:
                array = np.load(path / name, mmap_mode="r" if mmap else None, allow_pickle=False)
            except (OSError, ValueError) as error:
                raise form.error(f"{path / name} is damaged ({error}); {repair(form)}") from error
            arrays[name.removesuffix(".npy")] = array
    return arrays


def repair(form: FolderFormat) -> str:
    """The remedy for a damaged folder."""
    return f"copy it again, or write it again with {form.made_by}"


def file_digest(file: Path, algorithm: str) -> str:
    """The checksum of a file in hex, read block by block."""
    digest = hashlib.new(algorithm)
    with file.open("rb") as stream:
        while block := stream.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def _may_replace(path: Path, form: FolderFormat) -> bool:
    """Whether the folder has this format. A manifest that is not JSON counts as a damaged one of this format."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except OSError:
        return False
    except ValueError:
        return True
    return isinstance(manifest, dict) and manifest.get("format") == form.name


def _identity(path: Path) -> tuple[int, ...] | None:
    """Differs between any two saves; None while there is no manifest."""
    try:
        state = (path / MANIFEST).stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _is_entry(name: str, entry: object) -> bool:
    # A name with a folder in it would point outside.
    return Path(name).name == name and isinstance(entry, dict) and {"bytes", "sha256"} <= entry.keys()


def check_files(path: Path, form: FolderFormat, files: Mapping[str, Any], *, verify: bool) -> None:
    """Raise unless all files of a manifest are there with their sizes and, with `verify`, their checksums."""
    for name, expected in files.items():
        _check_file(path / name, form, expected, verify=verify)


def _check_file(file: Path, form: FolderFormat, expected: Mapping[str, Any], *, verify: bool) -> None:
    folder, remedy = file.parent, repair(form)
    if not file.is_file():
        raise form.error(f"{folder} is incomplete: {file.name} is missing; {remedy}")
    size = file.stat().st_size
    if size != expected["bytes"]:
        raise form.error(f"{folder} is damaged: {file.name} has {size:,} bytes, not {expected['bytes']:,}; {remedy}")
    if verify and _fingerprint(file)["sha256"] != expected["sha256"]:
        raise form.error(f"{folder} is damaged: the checksum of {file.name} is wrong; {remedy}")


def _fingerprint(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "sha256": file_digest(file, "sha256")}
