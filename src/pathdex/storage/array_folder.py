"""Folders of arrays: one `.npy` file each, and a `manifest.json` with sizes and checksums, also its own.

A folder is written atomically, and read through handles that are opened at once. Nothing in it is pickled, so opening
one runs no code.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pathdex.errors import PathdexError, StorageError
from pathdex.storage.atomic import atomic_folder
from pathdex.storage.filesystem import write_file
from pathdex.storage.open_folder import OpenFolder, read_plain
from pathdex.storage.staging import has_previous, remove_stale

MANIFEST = "manifest.json"
VERIFY_LIMIT = 256 * 2**20
"""Folders up to this many bytes are checked against their checksums whenever they are opened."""
MANIFEST_LIMIT = 64 * 2**20
"""Bytes of a manifest, at most."""
DIGEST, SIGNED_SCHEMA = "digest", 2
"""The key of the manifest's own checksum, and the first schema that has it."""
ATTEMPTS = 10
"""How often a folder is opened again that was replaced while it was being opened."""
PAUSE = 0.01
"""Seconds between two attempts, times the number of attempts."""

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
    schema: int = 2
    """The newest schema that can be read, and the one that is written."""
    closed: bool = False
    """Whether `keys` and `optional` are all the keys that a manifest may have."""
    optional: Mapping[str, type] = field(default_factory=dict)
    """Further keys of the manifest that may be missing."""


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
        # As it will be read, where a tuple is a list.
        manifest[DIGEST] = manifest_checksum(json.loads(json.dumps(manifest)))
        write_file(folder / MANIFEST, [json.dumps(manifest, indent=2, sort_keys=True).encode() + b"\n"])
        # Whoever opens the folder, such as a server, may run as another user.
        folder.chmod(0o755)
        for file in folder.iterdir():
            file.chmod(0o644)
    return path


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write one `.npy` file per array."""
    for name, array in arrays.items():
        head, data = io.BytesIO(), np.ascontiguousarray(array)
        npy.write_array_header_1_0(head, npy.header_data_from_array_1_0(data))
        write_file(folder / f"{name}.npy", [head.getvalue(), data.reshape(-1).view(np.uint8).data])


def read_stable(path: Path, form: FolderFormat, read: Callable[[], _T]) -> _T:
    """Call `read` until it sees a folder that is not replaced meanwhile.

    For what opens the same files twice: they could be of two saves.
    """
    return _retry(path, form, read, stable=True)


def _retry(path: Path, form: FolderFormat, read: Callable[[], _T], *, stable: bool = False) -> _T:
    """Call `read` again if it fails while the folder is replaced; if `stable`, whenever the folder is replaced."""
    for attempt in range(ATTEMPTS):
        before = _identity(path)
        try:
            found = read()
        except (form.error, OSError):
            if _identity(path) == before and not _is_being_replaced(path):
                raise
        else:
            if not stable or _identity(path) == before:
                return found
        time.sleep(attempt * PAUSE)
    raise form.error(f"{path} was replaced {ATTEMPTS} times while it was opened; replace it less often")


def open_folder(path: Path, form: FolderFormat) -> tuple[OpenFolder, dict[str, Any]]:
    """A folder with all files of its manifest open, so that they are of one save, and the manifest.

    A folder that is replaced while its files are being opened is opened again. The caller closes it.
    """

    def attempt() -> tuple[OpenFolder, dict[str, Any]]:
        folder, manifest = _open_manifest(path, form)
        try:
            check_files(folder, form, manifest["files"])
        except BaseException:
            folder.close()
            raise
        return folder, manifest

    return _retry(path, form, attempt)


def read_folder(path: Path, form: FolderFormat) -> OpenFolder:
    """The folder, with nothing in it opened or checked yet."""
    if not path.exists():
        remove_stale(path)  # A process that was killed while it replaced the folder may have moved it aside.
    try:
        return OpenFolder(path)
    except FileNotFoundError as error:
        raise form.error(f"{path} does not exist; pass the folder that {form.made_by} wrote") from error
    except OSError as error:
        raise form.error(f"{path} is not a {form.noun}: it is no readable folder") from error


def _open_manifest(path: Path, form: FolderFormat) -> tuple[OpenFolder, dict[str, Any]]:
    folder = read_folder(path, form)
    try:
        return folder, manifest_of(folder, form)
    except BaseException:
        folder.close()
        raise


def read_manifest(path: Path, form: FolderFormat) -> dict[str, Any]:
    """The manifest of a folder, with every key that its format requires."""
    folder, manifest = _retry(path, form, lambda: _open_manifest(path, form))
    folder.close()
    return manifest


def manifest_of(folder: OpenFolder, form: FolderFormat) -> dict[str, Any]:
    """The manifest of an open folder, checked against its own digest."""
    path, file = folder.path, folder.path / MANIFEST
    try:
        manifest = json.loads(folder.read(MANIFEST, MANIFEST_LIMIT))
    except OSError as error:
        reason = f" ({error.strerror})" if error.errno not in (None, errno.ENOENT, errno.EACCES) else ""
        raise form.error(f"{path} is not a {form.noun}: it has no readable {MANIFEST}{reason}") from error
    except (ValueError, RecursionError) as error:
        raise form.error(f"{file} is damaged ({error}); {repair(form)}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != form.name:
        raise form.error(f"{path} is not a {form.noun}: {MANIFEST} has another format")
    schema = manifest.get("schema")
    if isinstance(schema, int) and schema > form.schema:
        raise form.error(f"{path} has schema {schema}, newer than this Pathdex reads ({form.schema}); upgrade pathdex")
    rules = {"schema": int, **form.keys, "files": dict}
    broken = [key for key, wanted in rules.items() if not isinstance(manifest.get(key), wanted)]
    broken += [key for key, wanted in form.optional.items() if not isinstance(manifest.get(key, wanted()), wanted)]
    broken += ["schema"] if isinstance(schema, bool) or (isinstance(schema, int) and schema < 1) else []
    if "files" not in broken and not all(_is_entry(*entry) for entry in manifest["files"].items()):
        broken.append("files")
    is_signed = isinstance(schema, int) and schema >= SIGNED_SCHEMA
    known = {"format", DIGEST, *rules, *form.optional}
    broken += [key for key in manifest if key not in known] if is_signed and form.closed else []
    if (is_signed or DIGEST in manifest) and not broken and not _has_digest(manifest):
        broken.append(DIGEST)
    if broken:
        raise form.error(f"{file} is damaged ({', '.join(broken)}); {repair(form)}")
    return manifest


def _has_digest(manifest: Mapping[str, Any]) -> bool:
    try:
        return bool(manifest.get(DIGEST) == manifest_checksum(manifest))
    except RecursionError:  # So deep that it can just be read, but not written.
        return False


def manifest_checksum(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 of a manifest as compact JSON with sorted keys, without its digest."""
    content = {key: value for key, value in manifest.items() if key != DIGEST}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_arrays(
    folder: OpenFolder, form: FolderFormat, files: Mapping[str, Any], *, mmap: bool = True, verify: bool | None = None
) -> dict[str, NDArray[Any]]:
    """The arrays among the files of a manifest, mapped from disk; with `mmap=False`, in memory.

    `verify` also checks the checksums; by default, if the folder is at most `VERIFY_LIMIT` bytes.
    """
    if is_small(files) if verify is None else verify:
        check_sums(folder, form, files)
    arrays = {}
    for name in files:
        if name.endswith(".npy"):
            try:
                arrays[name.removesuffix(".npy")] = folder.array(name, mmap=mmap)
            except (OSError, ValueError) as error:
                raise form.error(f"{folder.path / name} is damaged ({error}); {repair(form)}") from error
    return arrays


def is_small(files: Mapping[str, Any]) -> bool:
    """Whether a folder is checked completely whenever it is opened."""
    return bool(sum(entry["bytes"] for entry in files.values()) <= VERIFY_LIMIT)


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
        manifest = json.loads(read_plain(path, MANIFEST, MANIFEST_LIMIT))
    except OSError:
        return False
    except (ValueError, RecursionError):
        return True
    return isinstance(manifest, dict) and manifest.get("format") == form.name


def _identity(path: Path) -> tuple[int, ...] | None:
    """Differs between any two saves; None while there is no manifest."""
    try:
        state = (path / MANIFEST).stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _is_being_replaced(path: Path) -> bool:
    """Whether the old folder is moved aside for a moment, where the system cannot exchange two folders."""
    return not path.exists() and has_previous(path)


def _is_entry(name: str, entry: object) -> bool:
    # A name with a folder in it would point outside. `isprintable` is false for what no file system takes.
    if Path(name).name != name or not name or name == ".." or not name.isprintable():
        return False
    if not isinstance(entry, dict) or entry.keys() != {"bytes", "sha256"}:
        return False
    size = entry["bytes"]
    return isinstance(size, int) and not isinstance(size, bool) and size >= 0 and isinstance(entry["sha256"], str)


def check_files(folder: OpenFolder, form: FolderFormat, files: Mapping[str, Any]) -> None:
    """Open all files of a manifest; raises unless they are there with their sizes."""
    for problem in file_problems(folder, files):
        raise form.error(f"{folder.path} {problem}; {repair(form)}")


def file_problems(folder: OpenFolder, files: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the files of a manifest, without reading them."""
    for name, expected in files.items():
        try:
            size = folder.size(name)
        except FileNotFoundError:
            yield f"is incomplete: {name} is missing"
        except OSError as error:
            yield f"is damaged: {name} cannot be read ({error.strerror})"
        else:
            if size != expected["bytes"]:
                yield f"is damaged: {name} has {size:,} bytes, not {expected['bytes']:,}"


def check_sums(folder: OpenFolder, form: FolderFormat, files: Mapping[str, Any]) -> None:
    """Raise unless all files of a manifest have their checksums."""
    for problem in sum_problems(folder, files):
        raise form.error(f"{folder.path} {problem}; {repair(form)}")


def sum_problems(folder: OpenFolder, files: Mapping[str, Any]) -> Iterator[str]:
    """The files whose checksums are wrong. Reads every byte."""
    for name, expected in files.items():
        if folder.digest(name) != expected["sha256"]:
            yield f"is damaged: the checksum of {name} is wrong"


def _fingerprint(file: Path) -> dict[str, Any]:
    return {"bytes": file.stat().st_size, "sha256": file_digest(file, "sha256")}
