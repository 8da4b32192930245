"""Field-aware factorization machine and HNSW: the production baseline of the paper's Section 5.

An FFM (Juan et al. 2016) has one vector per feature and opposite field, and scores a pair of features by the inner
product of their vectors for each other's field. For the features of a user and an item this is

    s(u, v) = sum_f < mean_{i in f} p_{i,f} , q_{v,f} > + b_v        over the user's fields f

which is one inner product of a user vector and an item vector, each concatenated over the fields. So an HNSW graph
(Malkov and Yashunin 2018) can retrieve items by maximum inner product.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pathdex.config import EncoderConfig, RunOptions
from pathdex.data.ragged import Ragged
from pathdex.model.encoders import running_mean
from pathdex.parameters import check_fields, from_keywords, parameter
from pathdex.recommenders.arguments import check_positive
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.bundle_checks import check_names
from pathdex.recommenders.hnsw_graph import graph_kinds, graph_problem
from pathdex.recommenders.vector_model import VectorRecommender
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking, incomplete_rows, replace_rows, top_n_of
from pathdex.storage.array_spec import ArraySpec
from pathdex.storage.bundle_rules import BundleRules
from pathdex.system import USEARCH

FIELDS = 3
"""The last item, the mean of recent items, the mean of the history."""


class FieldEncoder(nn.Module):
    """The user side of the FFM: per field, the mean of its items' vectors for the item's field."""

    def __init__(self, recent: int, dropout: float) -> None:
        super().__init__()
        self.recent = recent
        self.dropout = nn.Dropout(dropout)

    def forward(self, vectors: Tensor) -> Tensor:
        last, recent, history = self.dropout(vectors).chunk(FIELDS, dim=-1)  # each (batch, time, factors)
        return torch.cat([last, self._recent_mean(recent), running_mean(history)], dim=-1)

    def _recent_mean(self, vectors: Tensor) -> Tensor:
        time = vectors.shape[1]
        sums = nn.functional.pad(vectors.cumsum(dim=1), (0, 0, 1, 0))
        upto = torch.arange(1, time + 1, device=vectors.device)
        since = (upto - self.recent).clamp_(min=0)
        return (sums[:, upto] - sums[:, since]) / (upto - since)[:, None]


@dataclass(frozen=True, kw_only=True)
class FFMConfig:
    """Hyper-parameters of the FFM and its graph."""

    factors: int = parameter(32, "dimension of a feature's vector per field", low=1)
    recent: int = parameter(5, "number of latest items in the field 'recent'", low=1)
    history_length: int = parameter(69, "number of latest items in the field 'history'", low=1)
    dropout: float = parameter(0.3, "dropout on the user's vectors", low=0.0, high=0.95)
    loss: str = parameter("logistic", "logistic (Section 5 of the paper) or softmax", choices=("logistic", "softmax"))
    negatives: str = parameter(
        "uniform", "distribution of sampled negatives", choices=("uniform", "popularity", "in-batch", "mixed")
    )
    num_negatives: int = parameter(1000, "sampled negatives per batch", low=1)
    epochs: int = parameter(6, "number of epochs", low=0)
    batch_size: int = parameter(1024, "interactions per step", low=1)
    learning_rate: float = parameter(0.03, "learning rate (lazy Adam)", above=0.0)
    connectivity: int = parameter(16, "M, graph neighbours per item", low=2)
    ef_construction: int = parameter(200, "search width while building the graph", low=1)
    ef_search: int = parameter(200, "default search width of a query", low=1)

    def __post_init__(self) -> None:
        check_fields(self)

    def encoder_config(self) -> EncoderConfig:
        """The corresponding `EncoderConfig`."""
        return EncoderConfig(
            bias_start="zero",
            shared_items=False,
            embedding_dim=FIELDS * self.factors,
            history_length=self.history_length,
            dropout=self.dropout,
            reranker=self.loss,
            softmax="sampled",
            negatives=self.negatives,
            num_negatives=self.num_negatives,
            epochs=self.epochs,
            batch_size=self.batch_size,
            item_learning_rate=self.learning_rate,
        )


class FFMHNSW(VectorRecommender):
    """FFM vectors, retrieved from an HNSW graph (extra `ann`).

    A user has three fields: the last item, the `recent` latest items, the last `history_length` items. Every field of
    `FFMConfig` is a keyword.
    """

    name = "ffm-hnsw"
    query_options = ("ef_search",)

    def __init__(self, *, seed: int = 0, device: str = "cpu", threads: int | None = None, **parameters: Any) -> None:
        USEARCH.require()
        self.settings = from_keywords(FFMConfig, parameters)
        super().__init__(self.settings.encoder_config(), RunOptions(seed=seed, device=device, threads=threads))
        self._graph: Any = None
        self._lock = threading.Lock()

    def get_params(self) -> dict[str, Any]:
        return dataclasses.asdict(self.settings)

    def _encoder(self) -> nn.Module:
        return FieldEncoder(self.settings.recent, self.settings.dropout)

    def _on_fitted(self) -> None:
        """Build the graph, with one thread, so that the same data gives the same graph."""
        points = _points(self.item_vectors, self.item_bias)
        self._graph = _empty_graph(points.shape[1], self.settings)
        self._graph.add(np.arange(len(points)), points, threads=1)

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        """The best `min(n, eligible)` of the items that the graph returns, by exact score.

        Option: `ef_search`, the search width and the number of items that the graph returns.
        """
        self._check_query(n, options)
        default = self.settings.ef_search
        ef = check_positive("ef_search", options.get("ef_search", default), f"leave it out for the default {default}")
        users = self.user_vectors(histories)
        rows, num_items = np.arange(len(histories)), len(self.items)
        ranking = self._search(users, n, filters, max(ef, n))
        while len(rows := incomplete_rows(ranking, filters, num_items)):
            ef = 4 * max(ef, n)
            if ef >= num_items:
                exact = super().rank(histories.take(rows), n, filters.take(rows))
                return replace_rows(ranking, rows, exact)
            ranking = replace_rows(ranking, rows, self._search(users[rows], n, filters.take(rows), ef))
        return ranking

    def _search(self, users: NDArray[np.float32], n: int, filters: Filters, ef: int) -> Ranking:
        """Rank the `ef` items that the graph returns for each user."""
        ones = np.ones(len(users), np.float32)
        points = np.column_stack([users, ones, 0 * ones])
        found = Ragged.from_rows(np.sort(keys) for keys in self._nearest(points, min(ef, len(self.items))))
        vectors, bias = self.item_vectors, self.item_bias
        scores = [vectors[row] @ user + bias[row] for row, user in zip(found, users, strict=True)]
        return top_n_of(found, np.concatenate([np.empty(0, np.float32), *scores]), len(self.items), n, filters)

    def _nearest(self, points: NDArray[np.float32], ef: int) -> list[NDArray[np.int64]]:
        if not len(points):
            return []
        # The search width is a property of the graph, and servers query from several threads.
        with self._lock:
            self._graph.expansion_search = ef
            answer = self._graph.search(points, ef, threads=1)
        keys, counts = np.atleast_2d(answer.keys).astype(np.int64), np.atleast_1d(getattr(answer, "counts", ef))
        return [row[:count] for row, count in zip(keys, counts, strict=True)]

    def get_state(self) -> EstimatorState:
        state = super().get_state()
        graph = np.frombuffer(self._graph.save(), np.uint8)
        return EstimatorState(state.settings, {"graph": graph}, state.weights)

    @classmethod
    def bundle_config(cls, settings: Mapping[str, Any]) -> EncoderConfig:
        check_names("settings", settings, [spec.name for spec in dataclasses.fields(FFMConfig)])
        return from_keywords(FFMConfig, settings).encoder_config()

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        vectors, config = super().bundle_rules(settings, num_items), from_keywords(FFMConfig, settings)
        dim = FIELDS * config.factors + 2

        def relation(arrays: Mapping[str, NDArray[Any]]) -> list[str]:
            USEARCH.require()
            kinds = graph_kinds(np.frombuffer(_empty_graph(dim, config).save(), np.uint8))
            problem = graph_problem(arrays["graph"], num_items, dim, config.connectivity, kinds)
            return [] if problem is None else [f"graph: {problem}"]

        weights = {name: one for name, one in vectors.weights.items() if not name.startswith("encoder.")}
        graph = {"graph": ArraySpec(dtype="uint8", shape=("bytes",))}
        return replace(vectors, arrays=graph, weights=weights, relation=relation)

    def set_state(self, state: EstimatorState) -> None:
        FFMHNSW.__init__(self, **state.settings)
        super().set_state(state)
        self._graph = _empty_graph(self.config.embedding_dim + 2, self.settings)
        self._graph.load(np.asarray(state.arrays["graph"]).tobytes())


def _points(vectors: NDArray[np.float32], bias: NDArray[np.float32]) -> NDArray[np.float32]:
    """Items as points of equal norm, [y_v, b_v, rest], so that the nearest to [x, 1, 0] has the highest score.

    In a graph of plain inner products, many items with small vectors are unreachable.
    """
    squares = (vectors**2).sum(axis=1) + bias**2
    return np.column_stack([vectors, bias, np.sqrt(squares.max() - squares)]).astype(np.float32)


def _empty_graph(dim: int, settings: FFMConfig) -> Any:
    from usearch.index import Index

    return Index(
        ndim=dim,
        metric="l2sq",
        dtype="f32",
        connectivity=settings.connectivity,
        expansion_add=settings.ef_construction,
        expansion_search=settings.ef_search,
    )
