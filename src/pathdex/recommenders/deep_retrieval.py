"""The Deep Retrieval estimator: the facade over training, index and retrieval.

Only training imports torch; queries do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.config import Config, RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails
from pathdex.data.ragged import Ragged
from pathdex.data.source_table import Source
from pathdex.data.splits import Queries
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import NotFittedError, QueryError
from pathdex.index.health import IndexHealth, health
from pathdex.index.paths import decode_paths, encode_paths
from pathdex.index.postings import NO_PATH, Postings
from pathdex.kernels.query import Answers
from pathdex.recommenders.arguments import check_n, check_positive, known_code, too_few_candidates
from pathdex.recommenders.base import EstimatorState
from pathdex.recommenders.capabilities import CanExplain, ChoosesOnValidation, HasIndex, HasVectors
from pathdex.recommenders.fit_inputs import fit_inputs
from pathdex.recommenders.item_list import ItemList
from pathdex.recommenders.model_state import ModelState
from pathdex.recommenders.online import LearnsOnline, OnlineLearning
from pathdex.recommenders.query import History, Query
from pathdex.recommenders.query_threads import in_threads
from pathdex.retrieval.explain import Explanation, WhyNot, explain, why_not
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.similar import similar_items
from pathdex.retrieval.user_state import UserState
from pathdex.storage.bundle_rules import BundleRules

if TYPE_CHECKING:
    from pathdex.model.network import Network
    from pathdex.training.callbacks import Callback
    from pathdex.training.distributed.group import Group
    from pathdex.training.recording import Recording
    from pathdex.training.stream.options import StreamOptions


class DeepRetrieval(HasVectors, HasIndex, CanExplain, ChoosesOnValidation, LearnsOnline):
    """Learns a K x D path index and retrieves by beam search.

    Every field of `pathdex.config.Config` is a keyword: `DeepRetrieval(path_size=10, epochs=20)`. Keywords override a
    `config`. `seed`, `device` and `threads` are run options.
    """

    name = "deep-retrieval"
    query_options = ("beam", "candidates")
    run_options = ("seed", "device", "threads")
    recording: Recording | None = None
    """Sampled paths by round and sample histories, of `fit(record=True)`; not saved with the model."""

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
        self._requested = self.config
        self.options = RunOptions(seed=seed, device=device, threads=threads)
        self._model_state: ModelState | None = None

    def get_params(self) -> dict[str, Any]:
        return self.config.to_dict()

    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        callbacks: Sequence[Callback] | None = None,
        validation: Queries | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        encoder_of: DeepRetrieval | None = None,
        group: Group | None = None,
        start_from: DeepRetrieval | None = None,
        record: bool = False,
    ) -> Self:
        """Train the network and the paths of all items; returns the estimator.

        Hyper-parameters that are left open are chosen on `validation`, such as `split.valid`, or without it on the
        second halves of some sequences, which are then not trained on. `records` has every choice and its reason.
        `checkpoint` is a file for the training state; `resume=True` continues from it and gives the result of an
        uninterrupted training. `encoder_of` is a model of the same catalogue whose encoder and item vectors are reused;
        only the structure model and the paths are then trained. `record` fills `recording`.

        `start_from` is an earlier model to continue from with new data: known items start with their vectors and paths,
        new ones join, and half of the encoder epochs are trained. Its training users are no fair validation users.
        With a `group` (`pathdex.training.distributed`), every worker calls this with the same arguments, and the first
        one gets the model, without a `recording`.
        """
        from pathdex.recommenders.final_phases import final_phases, is_open
        from pathdex.recommenders.start import warm_start
        from pathdex.training.held_out import hold_out
        from pathdex.training.trainer import Trainer

        data, items = fit_inputs(data, items)
        data = data.shuffled_if_unordered(self.options.seed)
        config, earlier = self._requested, encoder_of or start_from
        if earlier is not None and config.next_items is None:
            config = config.replace(next_items=earlier.config.next_items)
        train, held_out = hold_out(data, validation, self.options.seed, choosing=is_open(config))
        saved, start = None if checkpoint is None else Path(checkpoint), warm_start(start_from, train.items)
        kind: dict[str, Any] = {"group": group, "start": start, "record": record}
        trainer = Trainer(config, self.options, train, held_out=held_out, callbacks=callbacks, checkpoint=saved, **kind)
        if encoder_of is not None:
            trainer.adopt_encoder(encoder_of.config, encoder_of.model_state.all_weights())
        self._learn_from(data, start_from.details if items is None and start_from is not None else items)
        for phase in final_phases(trainer, held_out, self._of_state):
            trainer.loop.append(phase)
        if resume:
            trainer.resume()
        trainer.run()
        trainer.gather()
        if not trainer.is_first:
            return self
        self._adopt(ModelState.from_trainer(trainer, data))
        self.recording = trainer.recording()
        self._online = None
        return self

    @property
    def is_fitted(self) -> bool:
        """Whether it can answer."""
        return self._model_state is not None

    def begin_stream(self, options: StreamOptions | None = None, histories: Path | None = None) -> OnlineLearning:
        given: dict[str, Any] = {"seed": self.options.seed, "histories": histories}
        if self._model_state is None:
            return OnlineLearning.start(self._requested, options, **given)
        return OnlineLearning.resume(self._model_state, self.items, options, **given)

    def take_snapshot(self, online: OnlineLearning) -> None:
        state, self._items = online.snapshot([] if self._model_state is None else self._model_state.records)
        self._adopt(state)
        if self._catalogue_table is not None:
            self.attach(self._catalogue_table)  # Codes have changed.

    @property
    def model_state(self) -> ModelState:
        """The learned arrays."""
        if self._model_state is None:
            raise NotFittedError(self)
        return self._model_state

    def _adopt(self, state: ModelState) -> None:
        self._model_state, self._records = state, state.records
        self.config, self.history_length = state.config, state.config.history_length
        self.__dict__.pop("retriever", None)
        self.__dict__.pop("network", None)

    def without_neighbours(self) -> DeepRetrieval:
        """A copy that uses only the index, without neighbours. Arrays are shared."""
        return self._of_state(self.model_state.without_neighbours())

    @staticmethod
    def of_state(state: ModelState, items: Vocabulary) -> DeepRetrieval:
        """A model with this state and catalogue."""
        model = DeepRetrieval(state.config)
        model._items = items
        model._adopt(state)
        return model

    def _of_state(self, state: ModelState) -> DeepRetrieval:
        """A model with the same catalogue and run options."""
        model = self.of_state(state, self.items)
        model.options, model._reading, model._details = self.options, self._reading, self._details
        return model

    @property
    def paths(self) -> NDArray[np.int64]:
        return self.model_state.paths

    @property
    def postings(self) -> Postings:
        """Maps paths to items."""
        return self.model_state.postings

    @cached_property
    def retriever(self) -> Retriever:
        """The compiled query engine, in codes."""
        return self.model_state.retriever()

    @cached_property
    def network(self) -> Network:
        """The trained network as a torch module."""
        return self.model_state.network()

    @property
    def num_nodes(self) -> int:
        assert self.model_state.config.num_nodes is not None
        return self.model_state.config.num_nodes

    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        """The best `min(n, eligible)` candidates of each history.

        Options: `beam`, the number of paths to follow; `candidates`, the maximum number of items to score per query.
        The score is s(x, v) = x . y_v + b_v, plus `path_weight` times the log of the summed path probability and, with
        `neighbours`, plus `neighbour_weight` times the log of the similarity to the history's items.
        """
        search, count = self.search_options(n, options), len(histories)
        answers = Answers(np.empty((count, n), np.int64), np.empty((count, n), np.float32), np.empty(count, np.int64))
        retriever = self.retriever
        if retriever.answers_at_once(filters):
            in_threads(
                lambda queries: retriever.answer(histories, filters, queries, answers, n=n, **search),
                count,
                self.options.threads,
            )
            return Ranking(*answers)
        items, scores, candidates = answers
        items[:], scores[:] = UNKNOWN, -np.inf

        def answer(queries: range) -> None:
            for query in queries:
                state = retriever.encoder.encode(histories[query])
                best, final, candidates[query] = retriever.best_items(state, filters, query, n=n, **search)
                items[query, : len(best)], scores[query, : len(best)] = best, final

        in_threads(answer, count, self.options.threads)
        return Ranking(*answers)

    def candidate_items(
        self, histories: Ragged, filters: Filters = NO_FILTERS, *, n: int = 1, **options: Any
    ) -> Ragged:
        """The items that `rank` scores for each history, with the same options."""
        search = self.search_options(n, options)
        states = (self.retriever.encoder.encode(history) for history in histories)
        return Ragged.from_rows(
            self.retriever.find_candidates(state, filters, query, min_candidates=n, **search).items
            for query, state in enumerate(states)
        )

    def search_options(self, n: int, options: Mapping[str, Any]) -> dict[str, Any]:
        """The beam size and the candidate budget, if any, from the query options."""
        self._check_query(n, options)
        beam, candidates = options.get("beam"), options.get("candidates")
        if beam is not None:
            beam = check_positive("beam", beam, f"leave it out for the default {self.config.beam_size}")
        if candidates is not None:
            candidates = check_positive("candidates", candidates, "leave it out for no limit")
            if candidates < n:
                raise too_few_candidates(n, candidates)
        if beam is None:
            beam = self.config.beam_size if candidates is None else self.model_state.beam_for(candidates)
        # Beyond all paths and all items, numbers change no answer.
        most = len(self.items)
        return {
            "beam": min(beam, max(1, len(self.postings))),
            "candidates": None if candidates is None else min(candidates, max(1, n, most)),
        }

    def user_vectors(self, histories: Ragged) -> NDArray[np.float32]:
        """User vectors of histories: (query, dim)."""
        vectors = np.empty((len(histories), self.config.embedding_dim), np.float32)

        def encode(queries: range) -> None:
            for query in queries:
                vectors[query] = self.retriever.encoder.encode(histories[query]).vector

        in_threads(encode, len(histories), self.options.threads)
        return vectors

    def state(self, history: History = ()) -> UserState:
        """An encoded history, for `advance` and `recommend_next`."""
        return self.retriever.encoder.encode(self.encode_histories([history])[0])

    def advance(self, state: UserState, item: Id) -> UserState:
        """The state after one more item, without encoding the history again. The old state stays valid."""
        return self.retriever.encoder.advance(state, known_code(self.items, item))

    def recommend_next(
        self,
        state: UserState,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        deny: Iterable[Id] = (),
        allow: Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ItemList:
        """`recommend` for an encoded history."""
        n = check_n(n, len(self.items))
        filters = self.query_filters([Query((), exclude_seen, deny, allow, where)], Ragged.from_rows([state.history]))
        search = self.search_options(n, options)
        items, scores, _ = self.retriever.best_items(state, filters, 0, n=n, **search)
        return self._answer(items, scores)

    def similar_items(self, item: Id, n: int = 10) -> ItemList:
        """Items on the paths of an item, or on paths with a common prefix if too few, by cosine similarity."""
        found = similar_items(self.retriever, known_code(self.items, item), check_n(n, len(self.items)))
        return self._answer(*found)

    @property
    def item_vectors(self) -> NDArray[np.float32]:
        """Item vectors of the reranker: (item, dim)."""
        return self.model_state.rows[:, -self.config.embedding_dim - 1 : -1]

    @property
    def item_bias(self) -> NDArray[np.float32]:
        """Item biases of the reranker: (item,)."""
        return self.model_state.rows[:, -1]

    def item_paths(self, item: Id) -> list[tuple[int, ...]]:
        """The J paths of an item, as nodes; none for a new item that is not placed yet."""
        paths = self.model_state.paths[known_code(self.items, item)]
        nodes = decode_paths(paths[paths != NO_PATH], self.num_nodes, self.config.depth)
        return [tuple(path) for path in nodes.tolist()]

    def path_items(self, path: Sequence[int]) -> list[Id]:
        """The items on a path, given as nodes, in catalogue order; empty if the path is not in use."""
        code = path_code(path, self.num_nodes, self.config.depth)
        return self.items.ids(self.postings.items_on(code))

    def explain(self, history: History, item: Id, *, beam: int | None = None) -> Explanation:
        """Which paths of an item a beam finds for a history, their probabilities, and the item's score."""
        beam = self.search_options(1, {"beam": beam})["beam"]
        found = explain(self.retriever, self.state(history), item, known_code(self.items, item), beam=beam)
        return found.titled(self._details)

    def why_not(
        self, history: History, item: Id, *, n: int = 10, beam: int | None = None, exclude_seen: bool = True
    ) -> WhyNot:
        """Why an item is not in `recommend(history, n)`.

        The layer that lost it and a beam size that finds it, or the score that it lacks.
        """
        n = check_n(n, len(self.items))
        beam = self.search_options(1, {"beam": beam})["beam"]
        state, code = self.state(history), known_code(self.items, item)
        found = why_not(self.retriever, state, item, code, exclude_seen=exclude_seen, n=n, beam=beam)
        return found.titled(self._details)

    def warmup(self) -> Self:
        """Compile or load what queries need, so that the first query is fast; returns the estimator."""
        history = self.items.first_ids(1)
        self.recommend(history, 1)
        if not history:
            return self
        state = self.advance(self.state(history), history[0])
        self.recommend_next(state, 1, candidates=1)
        self.recommend(history, 1, allow=history, exclude_seen=False)
        self.why_not(history, history[0], beam=1)
        self.similar_items(history[0], 1)
        return self

    def health(self) -> IndexHealth:
        """How evenly items are spread over paths and nodes; `QueryError` if all items were removed."""
        if not self.items.num_ids:
            raise QueryError("the model has no items, since all were removed", remedy="add one first")
        paths = np.delete(self.model_state.paths, self.items.removed, axis=0)
        return health(paths, self.num_nodes, self.config.depth)

    def get_state(self) -> EstimatorState:
        return self.model_state.state()

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        return ModelState.rules(settings, num_items)

    def set_state(self, state: EstimatorState) -> None:
        self.options = RunOptions()
        self._adopt(ModelState.from_state(state))
        self._requested = self.config


def path_code(path: Sequence[int], num_nodes: int, depth: int) -> int:
    """The code of a path given as nodes; `QueryError` if it is none."""
    nodes = np.asarray(path)
    valid = nodes.shape == (depth,) and nodes.dtype.kind in "iu"
    if not valid or ((nodes < 0) | (nodes >= num_nodes)).any():
        raise QueryError(
            f"must have {depth} nodes between 0 and {num_nodes - 1}",
            argument="path",
            value=list(path),
            remedy="item_paths(item) shows the paths of an item",
        )
    return int(encode_paths(nodes, num_nodes))
