"""Interactions, queries and splits on disk, so that a run keeps its held-out data.

Arrays are mapped on loading. A split stores the item vocabulary once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.reading import Reading
from pathdex.data.splits import Queries, Split
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError
from pathdex.storage.array_folder import (
    FolderFormat,
    open_folder,
    read_arrays,
    repair,
    write_arrays,
    write_folder,
)

INTERACTIONS_FORMAT = FolderFormat(
    "pathdex-interactions", "folder of interactions", "`pathdex data prepare` or save_interactions()", DataError
)
QUERIES_FORMAT = FolderFormat("pathdex-queries", "folder of queries", "save_queries()", DataError)
SPLIT_FORMAT = FolderFormat("pathdex-split", "folder of a split", "save_split()", DataError)

Arrays = dict[str, NDArray[Any]]
Facts = dict[str, Any]
AnyPath = str | os.PathLike[str]
_T = TypeVar("_T")


def save_interactions(path: AnyPath, data: Interactions, *, overwrite: bool = False) -> Path:
    """Write the interactions to a new folder at `path`."""
    return _save(path, INTERACTIONS_FORMAT, {**_parts(data), "items": data.items}, _facts(data), overwrite)


def load_interactions(path: AnyPath, *, mmap: bool = True) -> Interactions:
    """Open what `save_interactions` wrote."""
    return _load(
        path,
        INTERACTIONS_FORMAT,
        lambda facts, arrays: _interactions(facts, arrays, _vocabulary("items", arrays)),
        mmap,
    )


def save_queries(path: AnyPath, queries: Queries, *, overwrite: bool = False) -> Path:
    """Write the queries to a new folder at `path`. The item vocabulary is not included."""
    return _save(path, QUERIES_FORMAT, vars(queries), {}, overwrite)


def load_queries(path: AnyPath, *, mmap: bool = True) -> Queries:
    """Open what `save_queries` wrote."""
    return _load(path, QUERIES_FORMAT, lambda _, arrays: _queries(arrays), mmap)


def save_split(path: AnyPath, split: Split, *, overwrite: bool = False) -> Path:
    """Write the split to a new folder at `path`."""
    train = split.train
    parts = {"items": train.items, "train": _parts(train), "valid": vars(split.valid), "test": vars(split.test)}
    return _save(path, SPLIT_FORMAT, parts, _facts(train), overwrite)


def load_split(path: AnyPath, *, mmap: bool = True) -> Split:
    """Open what `save_split` wrote."""

    def build(facts: Facts, arrays: Arrays) -> Split:
        train = _interactions(facts, _inner("train", arrays), _vocabulary("items", arrays))
        return Split(train, _queries(_inner("valid", arrays)), _queries(_inner("test", arrays)))

    return _load(path, SPLIT_FORMAT, build, mmap)


def _save(path: AnyPath, form: FolderFormat, parts: Mapping[str, Any], facts: Facts, overwrite: bool) -> Path:
    arrays = _flat(parts)
    return write_folder(Path(path), form, facts, lambda folder: write_arrays(folder, arrays), overwrite=overwrite)


def _load(path: AnyPath, form: FolderFormat, build: Callable[[Facts, Arrays], _T], mmap: bool) -> _T:
    """What `build` makes of the manifest and the arrays. Arrays read into memory are always verified."""
    folder, manifest = open_folder(Path(path), form)
    with folder:
        arrays = read_arrays(folder, form, manifest["files"], mmap=mmap, verify=None if mmap else True)
    try:
        return build(manifest, arrays)
    except KeyError as error:
        raise DataError(f"{path} is damaged: its manifest lacks {error}; {repair(form)}") from error


def _facts(data: Interactions) -> Facts:
    reading = {} if data.reading is None else {"reading": data.reading.to_dict()}
    return {"ordered": data.ordered, "notes": dict(data.notes), **reading}


def _parts(data: Interactions) -> dict[str, Any]:
    """The interactions without their items, which a split stores once."""
    return {**vars(data.sequences), "users": data.users, "times": data.times}


def _flat(parts: Mapping[str, Any]) -> Arrays:
    """Nested parts as arrays with dotted names."""
    arrays: Arrays = {}
    for name, part in parts.items():
        if isinstance(part, np.ndarray):
            arrays[name] = part
        elif part is not None:
            inner = part.arrays(index=False) if isinstance(part, Vocabulary) else part
            inner = _flat(inner if isinstance(inner, Mapping) else vars(inner))
            arrays |= {f"{name}.{key}": array for key, array in inner.items()}
    return arrays


def _interactions(facts: Facts, arrays: Arrays, items: Vocabulary) -> Interactions:
    rows, times = _ragged(arrays), arrays.get("times")
    reading = Reading.from_dict(facts["reading"]) if "reading" in facts else None
    return Interactions(rows, _vocabulary("users", arrays), items, times, facts["ordered"], facts["notes"], reading)


def _queries(arrays: Arrays) -> Queries:
    history, truth = (_ragged(_inner(name, arrays)) for name in ("history", "truth"))
    return Queries(_vocabulary("users", arrays), history, truth)


def _ragged(arrays: Arrays) -> Ragged:
    return Ragged(arrays["values"], arrays["offsets"])


def _vocabulary(name: str, arrays: Arrays) -> Vocabulary:
    return Vocabulary.from_arrays(_inner(name, arrays))


def _inner(name: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin with `name.`; a `KeyError` if there are none."""
    inner = {one.removeprefix(f"{name}."): array for one, array in arrays.items() if one.startswith(f"{name}.")}
    if not inner:
        raise KeyError(name)
    return inner
