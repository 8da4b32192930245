"""A folder of shards as one model in this process, to evaluate it without servers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import BundleError, ConfigError, Problem
from pathdex.recommenders.base import EstimatorState, Recommender
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.registry import load
from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.recommenders.shard_search import ShardSearch, ShardWork
from pathdex.recommenders.sharding import read_listing
from pathdex.recommenders.whole_model import WholeModel
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking


class LocalShards(Recommender):
    """All shards of a Deep Retrieval model, with the answers of the whole model.

    It cannot be fitted or saved, and the only filter is `exclude_seen`: serve the shards for more.
    """

    name = DeepRetrieval.name
    query_options = DeepRetrieval.query_options

    def __init__(self, shards: Sequence[DeepRetrievalShard]) -> None:
        self.shards = list(shards)
        self.search = ShardSearch.of(self.shards[0], self)
        self._reading = self.shards[0].reading

    @classmethod
    def open(cls, folder: Path) -> LocalShards:
        """The shards in a folder; `BundleError` if they are not all those of one model."""
        version, count = read_listing(folder)
        shards = []
        for number in range(1, count + 1):
            shard = load(folder / f"shard-{number}")
            key = (version, number - 1, count)
            if not isinstance(shard, DeepRetrievalShard) or shard.facts.key != key:
                held = shard.facts.key if isinstance(shard, DeepRetrievalShard) else f"a {shard.name} model"
                raise BundleError(
                    f"{folder / f'shard-{number}'} holds {held}, not shard {number} of {count} of model {version}; "
                    "copy or write the shards again"
                )
            shards.append(shard)
        return cls(shards)

    @property
    def whole(self) -> WholeModel:
        """The network and the paths in use."""
        return self.search.whole

    @cached_property
    def _whole_items(self) -> Vocabulary:
        ids = [shard.items.ids(range(len(shard.items))) for shard in self.shards]
        merged: list[Any] = [None] * self.whole.facts.num_codes
        for index, own in enumerate(ids):
            merged[index :: len(ids)] = own
        return Vocabulary(np.array(merged))

    @property
    def items(self) -> Vocabulary:
        return self._whole_items

    def ask(self, work: ShardWork) -> list[tuple[NDArray[Any], ...]]:
        """What `work` returns for each shard."""
        return [work(shard) for shard in self.shards]

    def get_params(self) -> dict[str, Any]:
        return self.whole.config.to_dict()

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        self._check_query(n, options)
        if filters.allow is not None or filters.where is not None:
            rule = "several shards in one process know only exclude_seen and deny"
            raise ConfigError([Problem(rule, remedy="serve them with `pathdex serve --shards`")])
        return self.search.rank(histories, n, filters.exclude, **options)

    def fit(self, data: Interactions | Any, **others: Any) -> Self:
        raise _unable("be fitted")

    def get_state(self) -> EstimatorState:
        raise _unable("be saved")

    def set_state(self, state: EstimatorState) -> None:
        raise _unable("be loaded from a bundle")


def _unable(what: str) -> ConfigError:
    return ConfigError([Problem(f"shards cannot {what} together", remedy="train and save a whole model")])
