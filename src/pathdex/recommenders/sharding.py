"""Split a Deep Retrieval model into shards by item."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pathdex.config import EncoderConfig
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import take_slices
from pathdex.data.reading import Reading
from pathdex.data.vocabulary import UNKNOWN, Vocabulary
from pathdex.errors import BundleError, ConfigError, Problem, StorageError
from pathdex.index.postings import Postings
from pathdex.kernels.encoders import ENCODERS
from pathdex.kernels.neighbours import NO_NEIGHBOURS, Neighbours
from pathdex.kernels.types import Ints
from pathdex.progress import Progress
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.model_state import ModelState
from pathdex.recommenders.registry import load
from pathdex.recommenders.shard import MOST_SHARDS, DeepRetrievalShard, ShardFacts
from pathdex.retrieval.retriever import log_path_weights
from pathdex.storage.array_folder import MANIFEST
from pathdex.storage.atomic import atomic_folder
from pathdex.storage.bundle import bundle_version
from pathdex.storage.live_folder import is_live_folder
from pathdex.storage.run_folder import find_bundle

LISTING = "shards.json"
"""In a folder of shards: the version of the whole model and the number of shards."""
MOST_NAMED = 3


@dataclass(frozen=True)
class ShardedModel:
    """A folder of shards."""

    folders: list[Path]
    version: str
    replaced: int | None = None
    """The number of shards that the folder held before; None if it is new."""


def write_shards(
    model: Path, shards: int, out: Path, *, overwrite: bool = False, progress: Progress | None = None
) -> ShardedModel:
    """Write the shards of a saved model to `out/shard-1` .. `out/shard-N`, all or none.

    `overwrite` replaces a folder of shards that holds nothing else. `progress(done, total)` is called after each shard.
    """
    if not 1 <= shards <= MOST_SHARDS:
        raise ConfigError([Problem(f"must be between 1 and {MOST_SHARDS}", "shards", shards)])
    if is_live_folder(model):
        raise ConfigError(
            [Problem("is a live folder, whose deltas shards cannot follow", "model", str(model), "shard a saved model")]
        )
    found = load(model)
    if not isinstance(found, DeepRetrieval) or isinstance(found, DeepRetrievalShard):
        rule = f"holds a {found.name} model, and only deep-retrieval models have shards"
        raise ConfigError([Problem(rule, "model", str(model), "pass a whole deep-retrieval model")])
    if shards > max(1, len(found.items)):
        rule = f"must be at most the number of items, {len(found.items)}"
        raise ConfigError([Problem(rule, "shards", shards, "use fewer shards")])
    if out.exists() and not overwrite:
        raise StorageError(f"{out} exists; choose another folder, remove it, or replace it with --overwrite")
    replaced = _replaceable(out)
    version = bundle_version(find_bundle(model))
    with atomic_folder(out, overwrite=overwrite) as folder:
        for number, shard in enumerate(split_model(found, shards, version), start=1):
            shard.save(folder / f"shard-{number}")
            if progress is not None:
                progress(number, shards)
        write_listing(folder, version, shards)
        _replaceable(out)  # Writing takes long: something may have been put there meanwhile.
    return ShardedModel([out / f"shard-{number}" for number in range(1, shards + 1)], version, replaced)


def write_listing(folder: Path, version: str, shards: int) -> None:
    """Complete a folder of shards."""
    (folder / LISTING).write_text(json.dumps({"version": version, "shards": shards}) + "\n")
    folder.chmod(0o755)


def read_listing(folder: Path) -> tuple[str, int]:
    """The version and the number of the shards in a folder; `BundleError` if it is none."""
    try:
        listing = json.loads((folder / LISTING).read_bytes())
        return str(listing["version"]), min(int(listing["shards"]), MOST_SHARDS)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise BundleError(
            f"{folder} is no complete folder of shards ({LISTING} cannot be read: {error}); pass what `pathdex shard` "
            "or `pathdex train --sharded-bundle` has written"
        ) from error


def _replaceable(out: Path) -> int | None:
    """The number of shards in a folder, None if there is no folder; `StorageError` if it holds anything else."""
    if not out.exists():
        return None
    listing = out / LISTING
    if not listing.is_file():
        raise StorageError(f"{out} is not a folder of shards, so it is not overwritten; choose another folder")
    try:
        shards = json.loads(listing.read_bytes())["shards"]
        own = {LISTING, *(f"shard-{number}" for number in range(1, min(shards, MOST_SHARDS) + 1))}
    except (ValueError, LookupError, TypeError) as error:
        raise StorageError(f"{listing} cannot be read, so {out} is not overwritten; choose another folder") from error
    foreign = [path for path in out.iterdir() if path.name not in own]
    for name in own - {LISTING}:
        foreign += _not_of_bundle(out / name)
    if foreign:
        shown = ", ".join(sorted(str(path.relative_to(out)) for path in foreign)[:MOST_NAMED])
        more = f" and {len(foreign) - MOST_NAMED} more" if len(foreign) > MOST_NAMED else ""
        raise StorageError(
            f"{out} holds files that are no shards ({shown}{more}), so it is not overwritten; move them away, or "
            "choose another folder"
        )
    return int(shards)


def _not_of_bundle(folder: Path) -> list[Path]:
    """The files in the folder of a shard that its manifest does not list; the whole folder if it has no manifest."""
    if not folder.exists():
        return []
    try:
        own = {MANIFEST, *json.loads((folder / MANIFEST).read_bytes())["files"]}
        return [path for path in folder.iterdir() if path.name not in own]
    except (OSError, ValueError, LookupError, TypeError):
        return [folder]


def split_model(model: DeepRetrieval, count: int, version: str) -> Iterator[DeepRetrievalShard]:
    """The shards of a model, one after the other."""
    state = model.model_state
    if problems := shard_problems(state.config):
        raise ConfigError(problems)
    if state.neighbours is not None and len(state.neighbours.hidden):
        raise ConfigError([Problem("has changed since it was loaded", "model", model.name, "save it and load it")])
    whole = _Whole.of(model)
    for index in range(count):
        facts = ShardFacts(
            index=index,
            count=count,
            version=version,
            num_codes=len(model.items),
            num_ids=model.items.num_ids,
            num_entries=whole.postings.num_entries,
            neighbours=state.neighbours is not None,
            details=model.details is not None,
            separators=whole.separators,
            health=model.health().to_dict() if model.items.num_ids else None,
        )
        yield _shard(model, whole, facts)


def shard_problems(config: EncoderConfig) -> list[Problem]:
    """Why a model has no shards."""
    if config.encoder in ENCODERS:
        return []
    rule = "has no compiled version, which a router needs"
    return [Problem(rule, "encoder", config.encoder, f"use one of {', '.join(ENCODERS)}")]


@dataclass(frozen=True)
class _Whole:
    """What all shards share."""

    postings: Postings
    log_shares: Any
    weights: Any
    separators: dict[str, str | None]

    @classmethod
    def of(cls, model: DeepRetrieval) -> _Whole:
        state = model.model_state
        postings, log_shares = state.postings.packed(state.log_shares)
        weights = log_path_weights(postings, state.counts, log_shares, np.arange(len(postings)))
        return cls(postings, log_shares, np.asarray(weights, np.float64), text_separators(model.details))


def text_separators(details: ItemDetails | None) -> dict[str, str | None]:
    """What separates the values of a cell in each text column of the whole table."""
    if details is None:
        return {}
    table = details.attributes()
    return {name: one.separator for name, one in table.values.items() if one.kind == "text" and _is_text(one)}


def _is_text(column: Any) -> bool:
    """Whether the cells are text, split or not, rather than lists."""
    return column.owners is None or column.separator is not None


def _shard(model: DeepRetrieval, whole: _Whole, facts: ShardFacts) -> DeepRetrievalShard:
    state, own = model.model_state, np.arange(facts.index, facts.num_codes, facts.count)
    held = whole.postings.items % facts.count == facts.index
    ends = np.concatenate([[0], np.cumsum(held)])
    offsets = ends[np.append(whole.postings.starts, whole.postings.ends[-1:] if len(whole.postings) else 0)]
    postings = Postings.from_sorted(
        np.asarray(whole.postings.paths),
        offsets.astype(np.int64),
        (whole.postings.items[held] // facts.count).astype(np.int32),
        len(own),
        whole.postings.num_nodes,
        whole.postings.depth,
    )
    part = ModelState(
        state.config,
        state.weights,
        state.rows[own],
        state.paths[own],
        state.counts[own],
        postings,
        whole.log_shares[held],
        [],
    )
    shard = DeepRetrievalShard(state.config)
    shard.facts, shard.near = facts, NO_NEIGHBOURS
    if state.neighbours is not None:
        shard.near = _near(state.neighbours, own)
    shard.path_sizes, shard.path_weights = whole.postings.sizes.astype(np.int64), whole.weights
    describe_shard(shard, model.items, model.details, model.reading)
    shard._adopt(part)
    return shard


def describe_shard(
    shard: DeepRetrievalShard, items: Vocabulary, details: ItemDetails | None, reading: Reading | None
) -> None:
    """Give a shard its part of the whole catalogue."""
    own = np.arange(shard.facts.index, shard.facts.num_codes, shard.facts.count)
    shard._items, shard._details = _items(items, own, shard.facts), _details(details, items, own)
    shard._reading = reading


def _near(neighbours: Neighbours, own: Ints) -> Neighbours:
    starts, lengths = neighbours.offsets[:-1][own], np.diff(neighbours.offsets)[own]
    items, offsets = take_slices(neighbours.items, starts, lengths)
    return Neighbours.pack(offsets, items, take_slices(neighbours.similarities, starts, lengths)[0])


def _items(items: Vocabulary, own: Ints, facts: ShardFacts) -> Vocabulary:
    arrays = items.take(own).arrays(index=False)
    gone = facts.own(items.removed)
    return Vocabulary.from_arrays({**arrays, "removed": gone} if len(gone) else arrays)


def _details(details: ItemDetails | None, items: Vocabulary, own: Ints) -> ItemDetails | None:
    """The rows of a shard's items; at least one row, so that all shards have the same columns."""
    if details is None:
        return None
    codes = items.codes(details.ids.ids(range(len(details.ids))))
    rows = np.isin(codes, own) & (codes != UNKNOWN)
    rows[0] |= not rows.any()
    return ItemDetails.from_frame(details.to_frame().filter(rows), details.title_column)
