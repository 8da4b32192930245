"""Deep Retrieval as an estimator: the facade over training, index and retrieval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN, Id
from pathdex.errors import NotFittedError, QueryError
from pathdex.index.health import IndexHealth, health
from pathdex.index.paths import decode_paths
from pathdex.index.postings import Postings
from pathdex.model.network import Network
from pathdex.retrieval.contract import NO_FILTERS, Filters, History, Ranking, Recommender, State
from pathdex.retrieval.explain import Explanation, explain
from pathdex.retrieval.retriever import Candidates, Retriever
from pathdex.training.progress import Listener, Listeners, ProgressBar, interactive
from pathdex.training.trainer import Trainer, set_threads


@dataclass(frozen=True)
class Learned:
    """What training leaves behind."""

    config: Config
    network: Network
    paths: NDArray[np.int64]
    counts: NDArray[np.int64]
    records: list[dict[str, Any]]


class DeepRetrieval(Recommender):
    """Learn a K x D path index and retrieve by beam search.

    Every hyper-parameter of `pathdex.config.Config` is a keyword: `DeepRetrieval(path_size=10, epochs=20)`. A finished
    `Config` can be passed instead, and keywords change it. `seed`, `device` and `threads` say how it is run.
    """

    name = "deep-retrieval"

    def __init__(
        self,
        config: Config | None = None,
        *,
        seed: int = 0,
        device: str = "cpu",
        threads: int | None = None,
        **parameters: Any,
    ) -> None:
        self.config = (config or Config()).replace(**parameters)
        self.options = RunOptions(seed=seed, device=device, threads=threads)
        self._learned: Learned | None = None

    def fit(
        self,
        data: Interactions,
        *,
        progress: bool | None = None,
        listener: Listener | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
    ) -> Self:
        """Learn the network and the paths of all items.

        `progress` shows a bar (default: where standard error is a terminal). With `checkpoint`, the state is kept in
        that file, and `resume=True` goes on from it to the result that an undisturbed run would have had.
        """
        bar = ProgressBar() if (interactive() if progress is None else progress) else None
        heard = [one for one in (listener, bar) if one is not None]
        trainer = Trainer(
            self.config,
            self.options,
            data,
            checkpoint=None if checkpoint is None else Path(checkpoint),
            listener=Listeners(*heard),
        )
        if resume:
            trainer.resume()
        if bar is None:
            trainer.run()
        else:
            with bar:
                trainer.run()
        self._items = data.items
        self._adopt(Learned(trainer.config, trainer.network, trainer.paths, trainer.counts, trainer.records))
        return self

    @property
    def learned(self) -> Learned:
        if self._learned is None:
            raise NotFittedError(self)
        return self._learned

    def _adopt(self, learned: Learned) -> None:
        learned.network.eval()
        self._learned = learned
        self.config, self.history_length = learned.config, learned.config.history_length
        for name in ("postings", "retriever"):
            self.__dict__.pop(name, None)

    @cached_property
    def postings(self) -> Postings:
        """Path -> items."""
        return Postings.from_paths(self.learned.paths, self.num_nodes, self.config.depth)

    @cached_property
    def retriever(self) -> Retriever:
        return Retriever(self.learned.network.structure, self.postings, self.learned.counts)

    @property
    def num_nodes(self) -> int:
        assert self.learned.config.num_nodes is not None
        return self.learned.config.num_nodes

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        """The best `min(n, eligible)` items of each history's candidates.

        Options: `beam`, the paths to follow, or `candidates`, the most items to score per query. The score is the
        reranker's, s(x, v) = x . y_v + b_v, plus `path_weight` times the log of the summed path probability.
        """
        users = self.learned.network.user_vectors(histories)
        found = self._candidates(users, n, filters, **options)
        items = np.full((len(histories), n), UNKNOWN, np.int64)
        scores = np.full((len(histories), n), -np.inf, np.float32)
        for query, (user, one) in enumerate(zip(users, found, strict=True)):
            final = self._final_scores(user, one)
            order = np.lexsort((one.items, -final))[:n]
            items[query, : len(order)], scores[query, : len(order)] = one.items[order], final[order]
        return Ranking(items, scores, np.array([len(one.items) for one in found], np.int64))

    def candidate_items(
        self, histories: Ragged, filters: Filters = NO_FILTERS, *, n: int = 1, **options: Any
    ) -> Ragged:
        """The items that `rank` would score for each history, with the same options."""
        users = self.learned.network.user_vectors(histories)
        return Ragged.from_rows(one.items for one in self._candidates(users, n, filters, **options))

    def _candidates(
        self,
        users: torch.Tensor,
        n: int,
        filters: Filters,
        *,
        beam: int | None = None,
        candidates: int | None = None,
    ) -> list[Candidates]:
        if beam is not None and beam < 1:
            raise QueryError(f"beam={beam}: must be at least 1; leave it out for the default {self.config.beam_size}")
        if candidates is not None and candidates < n:
            raise QueryError(
                f"candidates={candidates}: must be at least n={n}, or n items cannot be found; "
                "ask for fewer items or allow more candidates"
            )
        if beam is None:
            size = max(1.0, self.postings.num_items * self.config.paths_per_item / len(self.postings))
            beam = self.config.beam_size if candidates is None else max(1, round(2 * candidates / size))
        return self.retriever.candidates(users, filters, beam=beam, budget=candidates, least=n)

    def _final_scores(self, user: torch.Tensor, found: Candidates) -> NDArray[np.float32]:
        table = self.learned.network.items
        rows = table.rows[torch.from_numpy(found.items).to(user.device)]
        reranked = (table.outputs(rows) @ user + table.bias(rows)).cpu().numpy()
        mixed: NDArray[np.float32] = reranked + np.float32(self.config.path_weight) * found.log_probability
        return mixed

    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]:
        """The encoder's vector of each history: (query, dim)."""
        return self.learned.network.user_vectors(histories).cpu().numpy()

    @property
    def item_vectors(self) -> NDArray[np.float32]:
        """The reranker's item vectors (item, dim)."""
        table = self.learned.network.items
        return table.outputs(table.rows).cpu().numpy()

    @property
    def item_bias(self) -> NDArray[np.float32]:
        """The reranker's item biases (item,)."""
        table = self.learned.network.items
        return table.bias(table.rows).cpu().numpy()

    def item_paths(self, item: Id) -> list[tuple[int, ...]]:
        """The J paths that an item lives on, each as its nodes."""
        nodes = decode_paths(self.learned.paths[self._code(item)], self.num_nodes, self.config.depth)
        return [tuple(path) for path in nodes.tolist()]

    def explain(self, history: History, item: Id, *, beam: int | None = None) -> Explanation:
        """Which of an item's paths a beam finds for a history, how likely each is, and how the item scores."""
        histories = self.encode_histories([history])
        user = self.learned.network.user_vectors(histories)
        return explain(
            self.retriever,
            user,
            self.learned.paths[self._code(item)],
            item=item,
            beam=beam or self.config.beam_size,
            score=self._final_scores,
            code=self._code(item),
        )

    def _code(self, item: Id) -> int:
        code = self.items.code(item)
        if code == UNKNOWN:
            raise QueryError(f"item={item!r}: is not in the catalogue of {len(self.items):,} items; pass a known id")
        return code

    def health(self) -> IndexHealth:
        """How well the items are spread over the paths."""
        return health(self.learned.paths, self.num_nodes, self.config.depth)

    def _state(self) -> State:
        learned = self.learned
        # The same training gives the same bundle, however long it took.
        records = [{name: value for name, value in one.items() if name != "seconds"} for one in learned.records]
        return State(
            settings={"config": learned.config.to_dict(), "records": records},
            arrays={"paths": learned.paths, "counts": learned.counts},
            weights=dict(learned.network.export()),
        )

    def _restore(self, state: State) -> None:
        config = Config.from_dict(state.settings["config"])
        self.options = RunOptions()
        set_threads(self.options.threads)
        paths, counts = np.array(state.arrays["paths"]), np.array(state.arrays["counts"])
        network = Network(config, len(counts))
        network.restore(state.weights)
        self._adopt(Learned(config, network, paths, counts, state.settings["records"]))


def with_index(model: Recommender) -> DeepRetrieval:
    """The model as one that has a path index; an error for any other."""
    if not isinstance(model, DeepRetrieval):
        raise QueryError(f"a {model.name} model has no paths; pass a {DeepRetrieval.name} model")
    return model
