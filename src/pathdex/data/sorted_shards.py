"""Ranges of users to shards: sequences in arrays, one small folder each, which `prepare` joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pathdex.data.readers import compact, frequent, in_order
from pathdex.data.user_ranges import Range, Report, remove_files, small_ranges, stored_batches
from pathdex.data.vocabulary import Vocabulary
from pathdex.storage.array_folder import write_arrays
from pathdex.storage.npy_file import write_npy


@dataclass(frozen=True)
class ShardOptions:
    """What all shards have in common."""

    rows: int
    """About how many rows a shard has at most."""
    num_items: int
    min_interactions: int | None
    time_unit: str | None


@dataclass(frozen=True)
class Shard:
    """A shard on disk, and what was counted."""

    folder: Path
    users: int
    rows: int
    text: int
    """Bytes of the ids of users, if they are text."""
    all_users: int
    """With those that were dropped."""
    duplicates: int


def sorted_shards(found: Range, folder: Path, options: ShardOptions, report: Report) -> list[Shard]:
    """The shards of a range of users in order. The files of the range are removed."""
    shards: list[Shard] = []
    for part in small_ranges(found, options.rows, folder / "parts", lambda rows: None):
        target = folder / str(len(shards))
        target.mkdir(parents=True)
        shards.append(_sorted_shard(part, target, options))
        remove_files(part)
        report(part.rows)
    return shards


def _sorted_shard(found: Range, folder: Path, options: ShardOptions) -> Shard:
    rows = pl.concat(list(stored_batches(found)))
    user_codes, users = Vocabulary.encode(rows["user"])
    item_codes = rows["item"].to_numpy()
    times = rows["time"] if "time" in rows.columns else None
    del rows
    keep = item_codes >= 0
    stay = frequent(user_codes[keep], len(users), options.min_interactions)
    keep &= stay[user_codes]
    all_users = len(users)
    user_codes, users = compact(user_codes[keep], users)
    kept_times = None if times is None else times.filter(pl.Series(keep))
    sorted_rows = in_order(user_codes, len(users), item_codes[keep], options.num_items, kept_times, options.time_unit)
    sequences, ids = sorted_rows.sequences, users.arrays(index=False)
    arrays: dict[str, NDArray[Any]] = {"values": sequences.values, "ends": sequences.offsets[1:]}
    arrays |= {} if sorted_rows.times is None else {"times": sorted_rows.times}
    write_arrays(folder, {**arrays, **{f"users.{name}": one for name, one in ids.items()}})
    text = len(ids["text"]) if "text" in ids else 0
    return Shard(folder, len(users), len(sequences.values), text, all_users, sorted_rows.duplicates)


def join_shards(shards: Sequence[Shard], items: Vocabulary, folder: Path) -> Vocabulary:
    """Write the arrays of all shards one after the other; returns the items that occur, by their final codes."""
    rows, users = (sum(getattr(shard, name) for shard in shards) for name in ("rows", "users"))
    present = np.zeros(len(items), np.bool_)
    for values in _arrays(shards, "values"):
        present[values] = True
    renumbered = np.cumsum(present, dtype=np.int32) - np.int32(1)
    write_npy(folder / "values.npy", rows, np.int32, (renumbered[values] for values in _arrays(shards, "values")))
    _join_offsets(folder / "offsets.npy", shards, "ends", [shard.rows for shard in shards])
    if (shards[0].folder / "times.npy").exists():
        write_npy(folder / "times.npy", rows, np.float64, _arrays(shards, "times"))
    if (shards[0].folder / "users.ids.npy").exists():
        write_npy(folder / "users.ids.npy", users, np.int64, _arrays(shards, "users.ids"))
    else:
        text = [shard.text for shard in shards]
        write_npy(folder / "users.text.npy", sum(text), np.uint8, _arrays(shards, "users.text"))
        _join_offsets(folder / "users.offsets.npy", shards, "users.offsets", text)
    begins = np.concatenate([[0], np.cumsum([shard.users for shard in shards if shard.users])])
    kept = items if present.all() else items.take(np.flatnonzero(present))
    catalogue = {f"items.{name}": one for name, one in kept.arrays(index=False).items()}
    write_arrays(folder, {**catalogue, "shards": begins.astype(np.int64)})
    return kept


def _arrays(shards: Sequence[Shard], name: str) -> Iterator[NDArray[Any]]:
    for shard in shards:
        yield np.load(shard.folder / f"{name}.npy", mmap_mode="r")


def _join_offsets(file: Path, shards: Sequence[Shard], name: str, sizes: Sequence[int]) -> None:
    """Offsets of all shards as one array, which begins with 0."""

    def parts() -> Iterator[NDArray[np.int64]]:
        yield np.zeros(1, np.int64)
        base = 0
        for shard, found, size in zip(shards, _arrays(shards, name), sizes, strict=True):
            yield found[len(found) - shard.users :] + base
            base += size

    write_npy(file, 1 + sum(shard.users for shard in shards), np.int64, parts())
