"""The shard of one worker of a training: its own items, without the whole model on any worker.

It is what `split_model` makes of the whole model, except for the version, which follows from all shards here.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.index.health import health_of_sizes
from pathdex.index.postings import Postings
from pathdex.kernels.neighbours import NO_NEIGHBOURS, Neighbours
from pathdex.kernels.types import Floats, Ints
from pathdex.model.network import ITEM_ROWS
from pathdex.recommenders.model_state import ModelState, learn_neighbours, with_defaults
from pathdex.recommenders.shard import DeepRetrievalShard, ShardFacts
from pathdex.recommenders.shard_search import ShardWork
from pathdex.recommenders.sharding import describe_shard, text_separators, write_listing
from pathdex.storage.atomic import atomic_folder
from pathdex.storage.bundle import Bundle, short_digest
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.rows import RowShard
from pathdex.training.distributed.used_paths import UsedPaths, used_paths
from pathdex.training.encoder_phase import centred_log_counts
from pathdex.training.trainer import Trainer

NO_VERSION = "0" * 12
"""Until the shard is saved."""


class GroupShards:
    """The shards of a model, each with one worker."""

    def __init__(self, group: Group, shard: DeepRetrievalShard) -> None:
        self.group, self.shard = group, shard

    def ask(self, work: ShardWork) -> list[tuple[NDArray[Any], ...]]:
        """What `work` returns for each shard; collective."""
        return list(zip(*(self.group.gather(array) for array in work(self.shard)), strict=True))


def trained_shard(trainer: Trainer, data: Interactions | None = None) -> DeepRetrievalShard:
    """The shard of this worker, without its catalogue; collective. Neighbours are those in `data`."""
    group, network, assigner = trainer.group, trainer.network, trainer.assigner
    assert group is not None
    config, own = with_defaults(trainer.chosen_config), RowShard(group.rank, group.size, trainer.data.num_items)
    assert config.num_nodes is not None
    weights = network.export()
    rows = weights.pop(ITEM_ROWS)
    if config.popularity_weight:
        rows = rows.copy()
        rows[:, -1] += np.float32(config.popularity_weight) * centred_log_counts(assigner.counts)[own.codes]
    used = used_paths(group, assigner.paths, assigner.counts)
    counts = assigner.counts[own.codes]
    postings, log_shares = own_postings(used, assigner.paths, counts, config.num_nodes, config.depth)
    lists = learn_neighbours(data or trainer.data, config.neighbours, trainer.options.threads, own.codes)
    shard = DeepRetrievalShard(config)
    shard.options = trainer.options
    shard.facts = ShardFacts(
        index=group.rank,
        count=group.size,
        version=NO_VERSION,
        num_codes=own.total,
        num_ids=own.total,
        num_entries=int(used.sizes.sum()),
        neighbours=lists is not None,
        details=False,
        separators={},
        health=health_of_sizes(
            used.codes,
            used.sizes,
            config.num_nodes,
            config.depth,
            num_items=own.total,
            paths_per_item=config.paths_per_item,
            distinct_paths=float(config.paths_per_item),
            unreachable_items=0,
            overlap=None,
        ).to_dict(),
    )
    shard.near = NO_NEIGHBOURS if lists is None else Neighbours.pack(*lists[:3])
    shard.path_sizes, shard.path_weights = used.sizes, path_weights(used, assigner.counts)
    # The first worker's: a router takes the network from any shard.
    weights = {name: group.stack(one)[0] for name, one in sorted(weights.items())}
    shard._adopt(ModelState(config, weights, rows, assigner.paths, counts, postings, log_shares, []))
    return shard


def own_postings(used: UsedPaths, paths: Ints, counts: Ints, num_nodes: int, depth: int) -> tuple[Postings, Floats]:
    """All paths in use with the own items on each, and the log shares of these; `counts` are those of own items."""
    entries = paths.ravel()
    order = np.argsort(entries, kind="stable")
    items, entries = (order // paths.shape[1]).astype(np.int32), entries[order]
    offsets = np.append(np.searchsorted(entries, used.codes), len(entries))
    place = np.repeat(np.arange(len(used.codes)), np.diff(offsets))
    shares = _log_shares(counts[items], used.weights[place])
    return Postings.from_sorted(used.codes, offsets, items, len(paths), num_nodes, depth), shares


def path_weights(used: UsedPaths, counts: Ints) -> NDArray[Any]:
    """The `log_path_weights` of all paths in use, from the counts of all items."""
    first = counts[used.first]
    return np.asarray(np.log(first + 1.0) - _log_shares(first, used.weights), np.float64)


def _log_shares(counts: Ints, totals: Ints) -> Floats:
    shares: Floats = np.log((counts.astype(np.float64) + 1) / totals).astype(np.float32)
    return shares


def complete_shard(shard: DeepRetrievalShard, group: Group, data: Interactions, details: ItemDetails | None) -> None:
    """Add the catalogue and the version; collective."""
    shard.facts = replace(shard.facts, details=details is not None, separators=text_separators(details))
    describe_shard(shard, data.items, details, data.reading)
    digests = group.describe(_digest(shard.to_bundle()))
    shard.facts = replace(shard.facts, version=short_digest("".join(digests).encode()))


def _digest(bundle: Bundle) -> str:
    """Of everything that is learned."""
    content = hashlib.sha256(json.dumps(bundle.settings, sort_keys=True).encode())
    for name, array in sorted({**bundle.arrays, **bundle.weights}.items()):
        content.update(name.encode())
        content.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return content.hexdigest()


def save_shards(group: Group, shard: DeepRetrievalShard, out: Path) -> None:
    """Write a folder of shards as `write_shards` does, all or none; collective. The folder must be shared."""
    with ExitStack() as stack:
        opened = group.first_only(lambda: stack.enter_context(atomic_folder(out)))
        folder = Path(group.describe(str(opened))[0])
        group.together(lambda: shard.save(folder / f"shard-{group.rank + 1}"), f"cannot write to {folder}")

        def publish() -> None:
            write_listing(folder, shard.facts.version, group.size)
            stack.close()

        group.first_only(publish)
