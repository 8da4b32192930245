"""The contract of Deep Retrieval and all baselines.

An estimator implements `get_params`, `fit`, `rank` (codes in, codes out), and `get_state` / `set_state` for bundles.
The public methods, which use external ids, are implemented once here.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from pathdex.config import RunOptions
from pathdex.data.interactions import Interactions
from pathdex.data.item_details import ItemDetails, as_details
from pathdex.data.ragged import Ragged
from pathdex.data.reading import Reading
from pathdex.data.source_table import Source
from pathdex.data.vocabulary import UNKNOWN, Id, Vocabulary
from pathdex.errors import BundleError, ConfigError, NotFittedError, PathdexError, QueryError, did_you_mean
from pathdex.kernels.types import Ints, Mask
from pathdex.progress import quantity
from pathdex.recommenders.arguments import check_ids, check_n, check_width, id_list, unknown_history
from pathdex.recommenders.bundle_checks import bundle_problems, check_names, split_arrays
from pathdex.recommenders.item_list import DescribedItem, ItemList, ItemLists, ScoredItem
from pathdex.recommenders.query import History, Query, code_filters
from pathdex.retrieval.filters import NO_FILTERS, Filters
from pathdex.retrieval.ranking import Ranking
from pathdex.storage.bundle import Bundle, read_bundle, write_bundle
from pathdex.storage.bundle_rules import BundleRules, listed

if TYPE_CHECKING:
    from pathdex.data.attributes import AlignedAttributes, Attributes
    from pathdex.training.callbacks import Callback


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
    _reading: Reading | None = None
    _details: ItemDetails | None = None
    _where_details = False
    """Whether the details are what is attached."""

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

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._set_params().items())
        return f"{type(self).__name__}({shown}): {self._fitted_text()}"

    def _repr_html_(self) -> str:
        rows = {"state": self._fitted_text(), **self._set_params()}
        cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(one))}</td></tr>" for name, one in rows.items())
        return f"<table><caption>{escape(type(self).__name__)}</caption>{cells}</table>"

    def _set_params(self) -> dict[str, Any]:
        """The hyper-parameters that differ from those of the estimator without arguments."""
        given = self.get_params()
        try:
            plain = type(self)().get_params()
        except (TypeError, PathdexError):  # It cannot be made without arguments.
            return given
        return {name: value for name, value in given.items() if value != plain.get(name)}

    def _fitted_text(self) -> str:
        if self._items is None:
            return "not fitted"
        titles = "" if self._details is None else " with details"
        return f"fitted on {self._items.num_ids:,} items{titles}"

    @property
    def records(self) -> list[dict[str, Any]]:
        """The training log: one record per epoch; empty for estimators without epochs."""
        return list(self._records)

    @property
    def reading(self) -> Reading | None:
        """How the training data was read; `pathdex.read(file, like=model.reading)` reads a later file like it."""
        return self._reading

    @property
    def details(self) -> ItemDetails | None:
        """Titles and other details of items, from `fit(..., items=)` or `describe_items`; saved in bundles."""
        return self._details

    def describe_items(self, items: ItemDetails | Source | None) -> Self:
        """Set the titles and other details of items; None removes them. Returns the estimator."""
        self._details = None if items is None else as_details(items)
        if self._where_details:
            self.attach(None)
        return self

    def _learn_from(self, data: Interactions, items: ItemDetails | Source | None = None) -> None:
        """Take over the catalogue of the training data, how it was read, and the details of its items."""
        self._items, self._reading = data.items, data.reading
        self.describe_items(items)
        if self._catalogue_table is not None:
            self.attach(self._catalogue_table)  # Codes have changed.

    @abstractmethod
    def fit(
        self,
        data: Interactions | Source,
        *,
        items: ItemDetails | Source | None = None,
        callbacks: Sequence[Callback] | None = None,
    ) -> Self:
        """Fit on the sequences of all users; returns the estimator.

        `data` is what `pathdex.read` returns, or anything that it reads without options, such as a frame. `items` is a
        table with one row per item; titles and other columns come back with every answer and are saved in bundles.
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
    ) -> ItemLists:
        """`recommend` for many histories, with the same answers. A `Query` instead of a history has its own filters."""
        n = check_n(n, len(self.items))
        # Iterators can be read only once.
        deny, allow = id_list("deny", deny), None if allow is None else id_list("allow", allow)
        queries = [one if isinstance(one, Query) else Query(one, exclude_seen, deny, allow, where) for one in histories]
        known = self.encode_histories([query.history for query in queries])
        ranking = self.rank(known, n, self.query_filters(queries, known), **options)
        answers = zip(ranking.items, ranking.scores, strict=True)
        return ItemLists(self._answer(items, scores) for items, scores in answers)

    def _answer(self, items: Ints, scores: NDArray[np.float32]) -> ItemList:
        """The ranking of one query, in ids."""
        count = int(np.count_nonzero(items != UNKNOWN))  # Unknown items come last.
        pairs = zip(self.items.ids(items[:count]), scores[:count].tolist(), strict=True)
        if self._details is None:
            return ItemList(map(ScoredItem._make, pairs))
        return ItemList(DescribedItem.make(id, score, self._details) for id, score in pairs)

    def attach(self, attributes: Attributes | None) -> Self:
        """Use a catalogue table for `where`; None removes it. The table is not saved in bundles."""
        self._attributes = None if attributes is None else attributes.align(self.items)
        self._catalogue_table, self._where_details = attributes, False
        return self

    def similar_items(self, item: Id, n: int = 10) -> ItemList:
        """Items similar to an item: by default, recommendations for a history of only that item."""
        return self.recommend_batch([[item]], n)[0]

    def encode_histories(self, histories: Sequence[History]) -> Ragged:
        """Ids to codes; ignores unknown ids with one warning."""
        rows, missing = [], 0
        for number, history in enumerate(histories):
            check_ids("history", history)
            codes = self.items.codes(history)
            known = codes[codes != UNKNOWN]
            if len(codes) and not len(known):
                raise unknown_history(number, history, self.items.num_ids)
            missing += len(codes) - len(known)
            rows.append(known)
        if missing:
            warnings.warn(
                f"left out {quantity(missing, 'history item')} that the catalogue does not have", stacklevel=3
            )
        return Ragged.from_rows(rows)

    def query_filters(self, queries: Sequence[Query], histories: Ragged) -> Filters:
        """The filters of queries in codes; `histories` are those of the queries."""
        where = [self._where(query.where) for query in queries]
        return code_filters(queries, histories, self.items, where)

    def _where(self, where: Mapping[str, Any] | None) -> Mask | None:
        if where is None or (isinstance(where, Mapping) and not where):
            return None
        if not isinstance(where, Mapping):
            raise QueryError(
                "must map columns to values, as in {'category': ['a', 'b']}", argument="where", value=where
            )
        self.attach_details()
        if self._attributes is None:
            raise QueryError(
                "needs a catalogue table",
                argument="where",
                value=dict(where),
                remedy="attach one with attach(Attributes.read(...)), or fit with items=",
            )
        return self._attributes.mask(where)

    def attach_details(self) -> tuple[str, ...]:
        """Use the details of items for `where`, unless a table is attached; returns the columns that it can use.

        The first query with `where` does this.
        """
        if self._attributes is None and self._details is not None:
            self.attach(self._details.attributes())
            self._where_details = True
        return () if self._attributes is None else self._attributes.columns

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
        reading = None if self._reading is None else self._reading.to_dict()
        details = {} if self._details is None else self._details.arrays()
        return Bundle(
            self.name,
            state.settings,
            {**state.arrays, **vocabulary, **{f"details.{key}": array for key, array in details.items()}},
            state.weights,
            reading=reading,
            details=None if self._details is None else self._details.description(),
        )

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
        vocabulary, details, arrays = split_arrays(bundle.arrays)
        estimator = cls.__new__(cls)
        estimator._items = Vocabulary.from_arrays(vocabulary)
        estimator.set_state(EstimatorState(bundle.settings, arrays, bundle.weights))
        estimator._reading = None if bundle.reading is None else Reading.from_dict(bundle.reading)
        estimator._details = None if bundle.details is None else ItemDetails.from_arrays(bundle.details, details)
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
