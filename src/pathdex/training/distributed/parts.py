"""The parts of a training on several workers: those of one process, over shards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.splits import Queries
from pathdex.errors import ConfigError, Problem
from pathdex.model.network import ITEM_ROWS, Network
from pathdex.training.checkpointing import Checkpointer
from pathdex.training.distributed.agreement import check_agreement, facts
from pathdex.training.distributed.checkpointing import ShardedCheckpointer
from pathdex.training.distributed.group import Group
from pathdex.training.distributed.item_table import ShardedItemTable
from pathdex.training.distributed.path_assigner import ShardedPathAssigner
from pathdex.training.distributed.rows import gather_items
from pathdex.training.distributed.structure_phase import ShardedStructurePhase
from pathdex.training.encoder_phase import EncoderPhase
from pathdex.training.random_streams import RandomStreams
from pathdex.training.warm_start import WarmStart


def check_parameters(
    config: Config,
    workers: int,
    num_items: int | None = None,
    *,
    starts: bool = False,
    records: bool | None = None,
    sharded: bool = False,
) -> None:
    """`ConfigError` with everything that several workers cannot train.

    `starts` says whether from an earlier model, `records` whether a recording for the explorer is asked for, `sharded`
    whether each worker is to write a shard.
    """
    if workers == 1:
        if sharded:
            rule = "--sharded-bundle writes a shard per worker, so it is for several workers"
            raise ConfigError([Problem(rule, remedy="set --workers, or split the finished model with `pathdex shard`")])
        return
    problems = []
    if num_items is not None and workers > num_items:
        problems.append(Problem(f"must be at most the number of items, {num_items:,}", "workers", workers, "use fewer"))
    if config.schedule != "warm":
        rule = "is trained by one process only, since its joint epochs score paths after every step"
        problems.append(Problem(rule, "schedule", config.schedule, "use 'warm', or train with one worker"))
    if config.candidates_per_query is not None:
        rule = "needs the whole index at every M-step, so it is for one process"
        problems.append(
            Problem(rule, "candidates_per_query", config.candidates_per_query, "set path_size, or use one worker")
        )
    if starts:
        rule = "a start from an earlier model (--from, start_from) needs that whole model, so it is for one process"
        problems.append(Problem(rule, remedy="train from scratch, or use one worker"))
    if records:
        rule = "several workers write no recording for the explorer (--recording)"
        problems.append(Problem(rule, remedy="leave it out, or use one worker"))
    if problems:
        raise ConfigError(problems)


def sharded_parts(
    config: Config,
    options: RunOptions,
    data: Interactions,
    held_out: Queries | None,
    records: list[dict[str, Any]],
    group: Group,
    start: WarmStart | None,
) -> tuple[Network, ShardedPathAssigner, EncoderPhase, ShardedStructurePhase]:
    """Network, paths and phases of one worker."""
    check_agreement(group, facts(config, options, data, held_out))
    check_parameters(config, group.size, data.num_items, starts=start is not None)

    def sharded_table(num_items: int, dim: int, shared: bool) -> ShardedItemTable:
        return ShardedItemTable(group, num_items, dim, shared=shared)

    network = Network(config, data.num_items, config, items=sharded_table).place(options.device)
    assigner = ShardedPathAssigner(network, config, data, records, group, seed=options.seed)
    first, second = (RandomStreams(options.seed, phase) for phase in range(2))
    encoder = EncoderPhase(network, config, data, first, records, held_out, group)
    structure = ShardedStructurePhase(network, config, data, second, assigner, group, seed=options.seed)
    return network, assigner, encoder, structure


def sharded_checkpointer(plain: Checkpointer | None, group: Group, total: int) -> ShardedCheckpointer | None:
    """The checkpointer of one worker, with the file and the identity of one for a single process."""
    return None if plain is None else ShardedCheckpointer(plain.path, plain.identity, group, total)


def gather_model(
    group: Group, network: Network, paths: NDArray[np.int64]
) -> tuple[dict[str, NDArray[np.float32]], NDArray[np.int64]] | None:
    """All weights and the paths of all items, on the first worker."""
    rows = gather_items(group, network.items.rows.cpu().numpy(), network.num_items)
    whole = gather_items(group, paths, network.num_items)
    if rows is None or whole is None:
        return None
    return {**network.export(), ITEM_ROWS: rows}, whole
