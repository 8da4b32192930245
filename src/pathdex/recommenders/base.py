"""The contract of Deep Retrieval and all baselines.

An estimator implements `get_params`, `fit`, `rank` (codes in, codes out), and `get_state` / `set_state` for bundles.
The public methods, which use external ids, are implemented once here.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import BundleError, ConfigError, NotFittedError, QueryError, did_you_mean
from pathdex.kernels.types import Ints, Mask
from pathdex.recommenders.arguments import check_ids, check_n, check_width, id_list
from pathdex.recommenders.bundle_checks import bundle_problems, check_names, split_ids
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking
from pathdex.storage.bundle import Bundle, read_bundle, write_bundle
from pathdex.storage.bundle_rules import BundleRules, listed

if TYPE_CHECKING:
    from pathdex.data.attributes import AlignedAttributes, Attributes
    from pathdex.training.callbacks import Callback

History: TypeAlias = Sequence[Id]


class ScoredItem(NamedTuple):
    """A recommended item. Scores order the items of one answer and are not comparable across answers, unless the
    estimator says so."""

    id: Id
    score: float


@dataclass(frozen=True)
class Query:
    """A history and its filters, in ids. Use it for batches whose queries have different filters."""

    history: History
    exclude_seen: bool = True
    """Exclude the items of the history."""
    deny: Iterable[Id] = ()
    """Items to exclude."""
    allow: Iterable[Id] | None = None
    """The only items to recommend; None for all."""
    where: Mapping[str, Any] | None = None
    """Conditions on columns of the attached catalogue table; all must match."""

    def __post_init__(self) -> None:
        check_ids("deny", self.deny)
        if self.allow is not None:
            check_ids("allow", self.allow)
        if not isinstance(self.exclude_seen, bool | np.bool_):
            raise QueryError("must be true or false", argument="exclude_seen", value=self.exclude_seen)


@dataclass(frozen=True)
class EstimatorState:
    """A fitted estimator as stored in a bundle."""

    settings: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)


class Recommender(ABC):
    """Fits on interactions and recommends for any history, including those of new users.

    Hyper-parameters and run options are keywords of the constructor.
    """

    name: ClassVar[str]
    """The estimator's name in tables, JSON and bundles."""
    query_options: ClassVar[tuple[str, ...]] = ()
    """Options of `recommend` and `rank` besides filters, such as `beam`."""
    run_options: ClassVar[tuple[str, ...]] = ()
    """Which of `seed`, `device` and `threads` the constructor accepts."""
    history_length: int | None = None
    """Number of latest items that a query uses; None for all."""
    options: RunOptions = RunOptions()
    _items: Vocabulary | None = None
    _attributes: AlignedAttributes | None = None
    _catalogue_table: Attributes | None = None
    """The table that is attached."""
    _records: Sequence[dict[str, Any]] = ()

    @abstractmethod
    def get_params(self) -> dict[str, Any]:
        """The hyper-parameters by name, as accepted by `from_params`."""

    @classmethod
    def from_params(
        cls,
        params: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        device: str = "cpu",
        threads: int | None = None,
    ) -> Self:
        """An unfitted estimator. Ignores run options that the estimator does not have, so callers can pass all."""
        given = {"seed": seed, "device": device, "threads": threads}
        try:
            return cls(**{name: given[name] for name in cls.run_options}, **(params or {}))
        except TypeError as error:
            raise ConfigError([f"{cls.name}: {error}; docs/baselines.md lists its hyper-parameters"]) from error

    @property
    def items(self) -> Vocabulary:
        """The catalogue."""
        if self._items is None:
            raise NotFittedError(self)
        return self._items

    @property
    def records(self) -> list[dict[str, Any]]:
        """The training log: one record per epoch; empty for estimators without epochs."""
        return list(self._records)

    @abstractmethod
    def fit(self, data: Interactions, *, callbacks: Sequence[Callback] | None = None) -> Self:
        """Fit on the sequences of all users; returns the estimator.

        `callbacks` observe the training. The default is a progress bar if standard error is a terminal; pass an empty
        list for none.
        """

    @abstractmethod
    def rank(self, histories: Ragged, n: int, filters: Filters = NO_FILTERS, **options: Any) -> Ranking:
        """The best `min(n, eligible)` items for each history, in codes. All other query methods call this one."""

    @abstractmethod
    def get_state(self) -> EstimatorState:
        """The learned state for a bundle; raises `NotFittedError` before `fit`."""

    @abstractmethod
    def set_state(self, state: EstimatorState) -> None:
        """Restore what `get_state` returned. `items` is already set, and `__init__` has not run."""

    @classmethod
    def bundle_rules(cls, settings: Mapping[str, Any], num_items: int) -> BundleRules:
        """What the arrays and weights of a bundle with these settings must look like; `ConfigError` for bad settings.

        Bundles are checked when they are written and before `set_state` sees them, so compiled code may trust them.
        """
        check_names("settings", settings, ())
        return BundleRules()

    def set_threads(self, threads: int | None) -> None:
        """Set the number of threads for batches; None for all cores."""
        self.options = replace(self.options, threads=threads)

    def warmup(self) -> Self:
        """Compile or load what queries need, so that the first query is fast; returns the estimator."""
        self.recommend(self.items.first_ids(1), 1, exclude_seen=False)
        return self

    def recommend(
        self,
        history: History | Sequence[History],
        n: int = 10,
        *,
        exclude_seen: bool = True,
        deny: Iterable[Id] = (),
        allow: Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[Any]:
        """The best `min(n, eligible)` items for a history of item ids, best first, as `ScoredItem`s.

        Several histories give one list per history. Unknown ids are ignored with a warning; a history of only unknown
        ids is an error; an empty history is a new user. `exclude_seen` excludes the items of the history, `deny`
        excludes further items, `allow` restricts the answer to its items, and `where` to items with matching
        attributes, as in `where={"category": ["a", "b"]}` (see `attach`).
        """
        check_ids("history", history)
        many = _is_many(history)
        found = self.recommend_batch(
            history if many else [history],  # type: ignore[arg-type, list-item]
            n,
            exclude_seen=exclude_seen,
            deny=deny,
            allow=allow,
            where=where,
            **options,
        )
        return found if many else found[0]

    def recommend_batch(
        self,
        histories: Sequence[History | Query],
        n: int = 10,
        *,
        exclude_seen: bool = True,
        deny: Iterable[Id] = (),
        allow: Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[list[ScoredItem]]:
        """`recommend` for many histories, with the same answers. A `Query` instead of a history has its own filters."""
        n = check_n(n, len(self.items))
        # Iterators can be read only once.
        deny, allow = id_list("deny", deny), None if allow is None else id_list("allow", allow)
        queries = [one if isinstance(one, Query) else Query(one, exclude_seen, deny, allow, where) for one in histories]
        known = self.encode_histories([query.history for query in queries])
        ranking = self.rank(known, n, self._filters(queries, known), **options)
        return [self._answer(items, scores) for items, scores in zip(ranking.items, ranking.scores, strict=True)]

    def _answer(self, items: Ints, scores: NDArray[np.float32]) -> list[ScoredItem]:
        """The ranking of one query, in ids."""
        count = int(np.count_nonzero(items != UNKNOWN))  # Unknown items come last.
        return list(map(ScoredItem._make, zip(self.items.ids(items[:count]), scores[:count].tolist(), strict=True)))

    def attach(self, attributes: Attributes | None) -> Self:
        """Use a catalogue table for `where`; None removes it. The table is not saved in bundles."""
        self._attributes = None if attributes is None else attributes.align(self.items)
        self._catalogue_table = attributes
        return self

    def similar_items(self, item: Id, n: int = 10) -> list[ScoredItem]:
        """Items similar to an item: by default, recommendations for a history of only that item."""
        return self.recommend([item], n)

    def encode_histories(self, histories: Sequence[History]) -> Ragged:
        """Ids to codes; ignores unknown ids with one warning."""
        rows, missing = [], 0
        for number, history in enumerate(histories):
            check_ids("history", history)
            codes = self.items.codes(history)
            known = codes[codes != UNKNOWN]
            if len(codes) and not len(known):
                raise QueryError(
                    f"history {number} ({_preview(history)}) has no item of the catalogue of "
                    f"{self.items.num_ids:,} items",
                    remedy="pass at least one known id, or an empty history for a new user",
                )
            missing += len(codes) - len(known)
            rows.append(known)
        if missing:
            warnings.warn(f"{missing} history items are not in the catalogue and were left out", stacklevel=3)
        return Ragged.from_rows(rows)

    def _filters(self, queries: Sequence[Query], histories: Ragged) -> Filters:
        """Filters of queries in codes. Queries that share a list share its codes."""
        codes: dict[int, Ints] = {}
        none = np.empty(0, np.int64)

        def known(ids: Iterable[Id]) -> Ints:
            if isinstance(ids, list | tuple) and not ids:
                return none
            if id(ids) not in codes:
                found = self.items.codes(ids)
                codes[id(ids)] = np.unique(found[found != UNKNOWN])
            return codes[id(ids)]

        deny = [known(query.deny) for query in queries]
        if all(query.exclude_seen for query in queries) and not any(map(len, deny)):
            excluded = histories
        else:
            excluded = Ragged.from_rows(
                np.concatenate([history, denied]) if query.exclude_seen else denied
                for query, history, denied in zip(queries, histories, deny, strict=True)
            )
        allow = [None if query.allow is None else known(query.allow) for query in queries]
        where = [self._where(query.where) for query in queries]
        return Filters(
            excluded if len(excluded.values) else None,
            allow if any(one is not None for one in allow) else None,
            where if any(one is not None for one in where) else None,
        )

    def _where(self, where: Mapping[str, Any] | None) -> Mask | None:
        if where is None or (isinstance(where, Mapping) and not where):
            return None
        if not isinstance(where, Mapping):
            raise QueryError(
                "must map columns to values, as in {'category': ['a', 'b']}", argument="where", value=where
            )
        if self._attributes is None:
            raise QueryError(
                "needs a catalogue table",
                argument="where",
                value=dict(where),
                remedy="attach one with attach(Attributes.read(...))",
            )
        return self._attributes.mask(where)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a bundle, a folder that `pathdex.load` opens without the training data; returns its path."""
        return write_bundle(Path(path), self.checked_bundle(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a bundle written by `save` of the same class."""
        return cls.from_bundle(read_bundle(Path(path), estimator=cls.name))

    def to_bundle(self) -> Bundle:
        """The fitted estimator as a bundle in memory."""
        state = self.get_state()
        vocabulary = {f"items.{key}": array for key, array in self.items.arrays().items()}
        return Bundle(self.name, state.settings, {**state.arrays, **vocabulary}, state.weights)

    def checked_bundle(self) -> Bundle:
        """`to_bundle`, or a `BundleError` if the model could not be opened again, such as after a diverged training."""
        bundle = self.to_bundle()
        if problems := self.bundle_problems(bundle):
            raise BundleError(f"the {self.name!r} model cannot be saved: {listed(problems)}; train it again")
        return bundle

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Self:
        """The estimator in a bundle from `to_bundle`; `BundleError` if its content breaks the rules."""
        if problems := cls.bundle_problems(bundle, values=not bundle.is_verified()):
            raise BundleError(f"{bundle.source} is damaged: {listed(problems)}; copy or save the model again")
        bundle.set_verified()
        vocabulary, arrays = split_ids(bundle.arrays)
        estimator = cls.__new__(cls)
        estimator._items = Vocabulary.from_arrays(vocabulary)
        estimator.set_state(EstimatorState(bundle.settings, arrays, bundle.weights))
        return estimator

    @classmethod
    def bundle_problems(cls, bundle: Bundle, *, values: bool = True) -> list[str]:
        """Everything that is wrong with the content of a bundle; without `values`, only what takes no time to check."""
        return bundle_problems(bundle, cls.bundle_rules, values=values)

    def _check_query(self, n: int, options: Mapping[str, Any]) -> None:
        """Raise `QueryError` for a wrong number of items, or options that are not in `query_options`."""
        check_width(n, 0 if self._items is None else len(self._items))
        for name, value in options.items():
            if name not in self.query_options:
                hint = did_you_mean(name, self.query_options)
                rule = f"{self.name} takes no such option{hint}"
                raise QueryError(rule, argument=name, value=value, remedy=None if hint else "leave it out")


def _is_many(history: Sequence[Any]) -> bool:
    return isinstance(next(iter(history), None), list | tuple | np.ndarray | Query)


def _preview(history: Sequence[Id]) -> str:
    shown = ", ".join(repr(one) for one in history[:3])
    return shown + (", ..." if len(history) > 3 else "")
