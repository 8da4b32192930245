"""Fit a sharded model on several workers. No worker ever has the rows of all items, also while it is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.data.splits import Queries
from pathdex.errors import ConfigError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.final_phases import ComparisonPhase, DefaultsPhase, ScorePhase, has_open_score, is_open
from pathdex.recommenders.score_pools import LIMIT, Pools, join_rows, pool_row
from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.recommenders.shard_search import ShardSearch
from pathdex.recommenders.sharding import shard_problems
from pathdex.recommenders.trained_shard import GroupShards, complete_shard, trained_shard
from pathdex.training.callbacks import Callback
from pathdex.training.distributed.group import Group
from pathdex.training.encoder_phase import centred_log_counts
from pathdex.training.held_out import SIZES, hold_out
from pathdex.training.loop import Phase
from pathdex.training.trainer import Trainer


def fit_shard(
    config: Config,
    options: RunOptions,
    data: Interactions,
    group: Group,
    *,
    details: ItemDetails | None = None,
    callbacks: Sequence[Callback] | None = None,
    validation: Queries | None = None,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> DeepRetrievalShard:
    """`DeepRetrieval.fit` with a group, which all workers call; each gets the shard of its own items."""
    if problems := shard_problems(config):
        raise ConfigError(problems)
    data = data.shuffled_if_unordered(options.seed)
    train, held_out = hold_out(data, validation, options.seed, choosing=is_open(config))
    trainer = Trainer(
        config, options, train, held_out=held_out, callbacks=callbacks, checkpoint=checkpoint, group=group
    )
    for phase in sharded_phases(trainer, group, held_out):
        trainer.loop.append(phase)
    if resume:
        trainer.resume()
    trainer.run()
    shard = trained_shard(trainer, data)
    complete_shard(shard, group, data, details)
    return shard


def sharded_phases(trainer: Trainer, group: Group, held_out: Queries | None) -> list[Phase]:
    """The phases that follow EM: those of `final_phases`, over shards."""
    if held_out is None:
        return [DefaultsPhase(trainer)] if is_open(trainer.config) else []
    scores: list[Phase] = [ShardedScorePhase(trainer, group, held_out)] if has_open_score(trainer.config) else []
    return [*scores, ShardedComparisonPhase(trainer, group, held_out)]


class ShardedScorePhase(ScorePhase):
    """Every worker finds the candidates among its own items; the first one fits the weights."""

    def __init__(self, trainer: Trainer, group: Group, held_out: Queries) -> None:
        super().__init__(trainer, held_out)
        self.group = group

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        pools = self.collect(self.tried)
        record = self.group.first_only(lambda: self.choose(pools))
        found: dict[str, Any] = self.group.describe(record)[0]
        return found

    def collect(self, tried: Sequence[float]) -> dict[float, Pools]:
        """The pools by recency, on the first worker."""
        search = sharded_search(self.trainer, self.group)
        log_counts, asked = centred_log_counts(self.trainer.assigner.counts), self.held_out
        beam, pools = search.whole.beam_of(1, None, LIMIT)[0], {}
        for recency in tried:
            rows = []
            for parts, truth in zip(search.pool_parts(asked.history, recency, beam), asked.truth, strict=True):
                if self.group.is_first:
                    rows.append(pool_row(parts, truth, log_counts))
            if rows:
                pools[recency] = join_rows(rows, asked)
        return pools


class ShardedComparisonPhase(ComparisonPhase):
    """Every worker answers from its own items; the first one fits the baselines."""

    def __init__(self, trainer: Trainer, group: Group, held_out: Queries) -> None:
        self.trainer, self.group, self.held_out = trainer, group, held_out

    def end_epoch(self, epoch: int) -> dict[str, Any]:
        search, history = sharded_search(self.trainer, self.group), self.held_out.history
        ranked = search.rank(history, max(SIZES), history, candidates=LIMIT).items
        record = self.group.first_only(lambda: self.compare(DeepRetrieval.name, ranked))
        found: dict[str, Any] = self.group.describe(record)[0]
        return found


def sharded_search(trainer: Trainer, group: Group) -> ShardSearch:
    """A search over what all workers have learned so far; collective."""
    shard = trained_shard(trainer)
    return ShardSearch.of(shard, GroupShards(group, shard))
