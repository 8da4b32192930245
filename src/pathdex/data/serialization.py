"""Interactions, queries and splits on disk, so that a run keeps its held-out data.

Arrays are mapped on loading. A split stores the item vocabulary once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.splits import Queries, Split
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError
from pathdex.storage.array_folder import (
    FolderFormat,
    read_arrays,
    read_manifest,
    read_stable,
    repair,
    write_arrays,
    write_folder,
)

INTERACTIONS_FORMAT = FolderFormat("pathdex-interactions", "folder of interactions", "save_interactions()", DataError)
QUERIES_FORMAT = FolderFormat("pathdex-queries", "folder of queries", "save_queries()", DataError)
SPLIT_FORMAT = FolderFormat("pathdex-split", "folder of a split", "save_split()", DataError)

Arrays = dict[str, NDArray[Any]]
AnyPath = str | os.PathLike[str]


def save_interactions(path: AnyPath, data: Interactions, *, overwrite: bool = False) -> Path:
    """Write the interactions to a new folder at `path`."""
    arrays = {**_interactions_arrays(data), **_nested("items", data.items.arrays(index=False))}
    return _write(path, INTERACTIONS_FORMAT, _facts(data), arrays, overwrite=overwrite)


def load_interactions(path: AnyPath, *, mmap: bool = True) -> Interactions:
    """Open what `save_interactions` wrote."""
    manifest, arrays = _read(path, INTERACTIONS_FORMAT, mmap=mmap)
    with _complete(path, INTERACTIONS_FORMAT):
        return _interactions(manifest, arrays, Vocabulary.from_arrays(_inner("items", arrays)))


def save_queries(path: AnyPath, queries: Queries, *, overwrite: bool = False) -> Path:
    """Write the queries to a new folder at `path`. The item vocabulary is not included."""
    return _write(path, QUERIES_FORMAT, {}, _queries_arrays(queries), overwrite=overwrite)


def load_queries(path: AnyPath, *, mmap: bool = True) -> Queries:
    """Open what `save_queries` wrote."""
    _, arrays = _read(path, QUERIES_FORMAT, mmap=mmap)
    with _complete(path, QUERIES_FORMAT):
        return _queries(arrays)


def save_split(path: AnyPath, split: Split, *, overwrite: bool = False) -> Path:
    """Write the split to a new folder at `path`."""
    arrays = {
        **_nested("items", split.train.items.arrays(index=False)),
        **_nested("train", _interactions_arrays(split.train)),
        **_nested("valid", _queries_arrays(split.valid)),
        **_nested("test", _queries_arrays(split.test)),
    }
    return _write(path, SPLIT_FORMAT, _facts(split.train), arrays, overwrite=overwrite)


def load_split(path: AnyPath, *, mmap: bool = True) -> Split:
    """Open what `save_split` wrote."""
    manifest, arrays = _read(path, SPLIT_FORMAT, mmap=mmap)
    with _complete(path, SPLIT_FORMAT):
        items = Vocabulary.from_arrays(_inner("items", arrays))
        return Split(
            _interactions(manifest, _inner("train", arrays), items),
            _queries(_inner("valid", arrays)),
            _queries(_inner("test", arrays)),
        )


def _write(path: AnyPath, form: FolderFormat, facts: dict[str, Any], arrays: Arrays, *, overwrite: bool) -> Path:
    return write_folder(Path(path), form, facts, lambda folder: write_arrays(folder, arrays), overwrite=overwrite)


def _read(path: AnyPath, form: FolderFormat, *, mmap: bool) -> tuple[dict[str, Any], Arrays]:
    """The manifest and the arrays. Checksums are also verified where the arrays are read into memory."""
    folder = Path(path)

    def read() -> tuple[dict[str, Any], Arrays]:
        manifest = read_manifest(folder, form)
        return manifest, read_arrays(folder, form, manifest["files"], mmap=mmap, verify=None if mmap else True)

    return read_stable(folder, form, read)


@contextmanager
def _complete(path: AnyPath, form: FolderFormat) -> Iterator[None]:
    """Turn a missing fact or array into a `DataError`."""
    try:
        yield
    except KeyError as error:
        raise DataError(f"{path} is damaged: its manifest lacks {error}; {repair(form)}") from error


def _facts(data: Interactions) -> dict[str, Any]:
    return {"ordered": data.ordered, "notes": dict(data.notes)}


def _interactions_arrays(data: Interactions) -> Arrays:
    times = {} if data.times is None else {"times": data.times}
    return {**_ragged_arrays(data.sequences), **_nested("users", data.users.arrays(index=False)), **times}


def _interactions(manifest: dict[str, Any], arrays: Arrays, items: Vocabulary) -> Interactions:
    return Interactions(
        _ragged(arrays),
        Vocabulary.from_arrays(_inner("users", arrays)),
        items,
        arrays.get("times"),
        manifest["ordered"],
        manifest["notes"],
    )


def _queries_arrays(queries: Queries) -> Arrays:
    return {
        **_nested("users", queries.users.arrays(index=False)),
        **_nested("history", _ragged_arrays(queries.history)),
        **_nested("truth", _ragged_arrays(queries.truth)),
    }


def _queries(arrays: Arrays) -> Queries:
    users = Vocabulary.from_arrays(_inner("users", arrays))
    return Queries(users, _ragged(_inner("history", arrays)), _ragged(_inner("truth", arrays)))


def _ragged_arrays(rows: Ragged) -> Arrays:
    return {"values": rows.values, "offsets": rows.offsets}


def _ragged(arrays: Arrays) -> Ragged:
    return Ragged(arrays["values"], arrays["offsets"])


def _nested(name: str, arrays: Arrays) -> Arrays:
    return {f"{name}.{inner}": array for inner, array in arrays.items()}


def _inner(name: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin with `name.`; a `KeyError` if there are none."""
    inner = {one.removeprefix(f"{name}."): array for one, array in arrays.items() if one.startswith(f"{name}.")}
    if not inner:
        raise KeyError(name)
    return inner
