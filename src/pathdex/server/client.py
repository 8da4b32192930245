"""A client with the methods of a `Recommender`."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from typing_extensions import Self

from pathdex.data.vocabulary import Id
from pathdex.errors import MissingExtraError, QueryError, did_you_mean
from pathdex.progress import quantity
from pathdex.recommenders.arguments import check_ids, id_list
from pathdex.recommenders.item_list import DescribedItem, GivenDetails, ItemList, ItemLists, ScoredItem
from pathdex.recommenders.query import History, Query

try:
    from pathdex.server.connection_pool import ConnectionPool
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), "client", "the HTTP client (pathdex.Client)") from error

from pathdex.index.health import IndexHealth
from pathdex.retrieval.explain import Explanation, WhyNot
from pathdex.server import routes
from pathdex.server.schemas import (
    AddItemsRequest,
    EventsRequest,
    ExplainRequest,
    ModelInfo,
    NewItem,
    QueryRequest,
    RecommendedItem,
    RecommendRequest,
    RemoveItemsRequest,
    SimilarRequest,
    WhyNotRequest,
)

BATCH = 100
"""Queries per request, at most."""
RESULTS = 10_000
"""Recommended items per request, at most."""
OPTIONS = ("beam", "candidates")
"""Query options of the API besides filters."""


class Client:
    """Queries a Pathdex server as if its model were local.

    Methods, results and errors are those of a `Recommender`. A server that is unreachable, overloaded or requires a
    token raises `ServerError`. Thread-safe. Needs the extra `client`.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 10.0) -> None:
        self._pool = ConnectionPool(url, token, timeout)

    def __repr__(self) -> str:
        return f"Client({self._pool.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    @property
    def url(self) -> str:
        """The address of the server."""
        return self._pool.url

    def model(self) -> ModelInfo:
        """The served model: version (`model`), estimator, number of items, hyper-parameters, index health."""
        return self._pool.call(routes.model, None)

    @property
    def version(self) -> str:
        """The version of the model."""
        return self.model().model

    @property
    def name(self) -> str:
        """The estimator's name."""
        return self.model().estimator

    @property
    def history_length(self) -> int | None:
        """How many of the latest items a query uses; None: all."""
        return self.model().history_length

    @property
    def items(self) -> RemoteItems:
        """The catalogue: its size, and whether it contains an item."""
        return RemoteItems(self)

    def health(self) -> IndexHealth:
        """How well items are spread over the paths."""
        model = self.model()
        if model.health is None:
            raise _no_paths(model.estimator)
        return model.health

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
        """The best `min(n, eligible)` items for a history, best first; for many histories, one list each.

        Options of Deep Retrieval: `beam` or `candidates`.
        """
        check_ids("history", history)
        many = not _is_id(next(iter(history), ""))
        histories: Any = history if many else [history]
        found = self.recommend_batch(
            histories, n, exclude_seen=exclude_seen, deny=deny, allow=allow, where=where, **options
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
        """`recommend` for many histories, in as few requests as possible."""
        deny, allow = id_list("deny", deny), None if allow is None else id_list("allow", allow)
        queries = [one if isinstance(one, Query) else Query(one, exclude_seen, deny, allow, where) for one in histories]
        found = ItemLists()
        unknown = 0
        for part in _parts(queries, n):
            request = RecommendRequest(queries=[_request(query, n, options) for query in part])
            for result in self._pool.call(routes.recommend, request).results or []:
                found.append(_scored(result.items))
                unknown += result.unknown
        if unknown:
            warnings.warn(
                f"left out {quantity(unknown, 'history item')} that the catalogue does not have", stacklevel=2
            )
        return found

    def recommend_user(
        self,
        user: Id,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        deny: Iterable[Id] = (),
        allow: Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> ItemList:
        """`recommend` for a user's history in the server's user store."""
        query = _request(Query((), exclude_seen, deny, allow, where), n, options)
        query.history, query.user = None, user
        [result] = self._pool.call(routes.recommend, RecommendRequest(queries=[query])).results or []
        return _scored(result.items)

    def add_events(self, user: Id, items: Iterable[Id], *, time: float | None = None) -> int:
        """Append items to a user's history in the server's user store and stream, durably; returns how many.

        If the connection breaks, `ServerError` is raised and the events may or may not be stored. They are never sent
        twice. `time` (seconds since 1970) is that of the events in the stream, by default the server's; a single event
        that you send again with the same time is recognised as a duplicate there.
        """
        request = EventsRequest(user=user, items=id_list("items", items), time=time)
        return self._pool.call(routes.events, request).stored

    def user_history(self, user: Id) -> list[Id]:
        """The history of a user in the server's user store, oldest first."""
        return self._pool.call(routes.user, str(user)).items

    def forget_user(self, user: Id) -> None:
        """Remove the history of a user from the server's user store, durably."""
        self._pool.call(routes.forget_user, str(user))

    def add_items(
        self,
        ids: Iterable[Id],
        *,
        like: Mapping[Id, Sequence[Id]] | None = None,
        attributes: Mapping[Id, Mapping[str, Any]] | None = None,
    ) -> int:
        """Add items to the server's stream, durably; returns how many. They can be recommended once the trainer has
        published them.

        `like` names similar known items for some of them, `attributes` their columns.
        """
        like, attributes = like or {}, attributes or {}
        items = [NewItem(one, list(like.get(one, ())), dict(attributes.get(one, {}))) for one in id_list("ids", ids)]
        parts = (items[first : first + BATCH] for first in range(0, len(items), BATCH))
        return sum(self._pool.call(routes.add_items, AddItemsRequest(new_items=part)).accepted for part in parts)

    def remove_items(self, ids: Iterable[Id]) -> int:
        """Remove items from the server's stream, durably; returns how many. Unknown ones are ignored by the trainer."""
        listed = id_list("ids", ids)
        parts = (listed[first : first + BATCH] for first in range(0, len(listed), BATCH))
        return sum(self._pool.call(routes.remove_items, RemoveItemsRequest(part)).accepted for part in parts)

    def similar_items(self, item: Id, n: int = 10) -> ItemList:
        """The items most similar to an item."""
        return _scored(self._pool.call(routes.similar, SimilarRequest(item, n)).items)

    def explain(self, history: History, item: Id, *, beam: int | None = None) -> Explanation:
        """Which of an item's paths a beam finds for a history, how likely each is, and how the item scores."""
        request = ExplainRequest(item, _ids(history), beam=beam)
        return self._pool.call(routes.explain, request).explanation

    def why_not(
        self, history: History, item: Id, *, n: int = 10, beam: int | None = None, exclude_seen: bool = True
    ) -> WhyNot:
        """What keeps an item out of `recommend(history, n)`."""
        request = WhyNotRequest(item, _ids(history), beam=beam, n=n, exclude_seen=exclude_seen)
        return self._pool.call(routes.why_not, request).why_not

    def item_paths(self, item: Id) -> list[tuple[int, ...]]:
        """The paths of an item, each as its nodes."""
        paths = self._pool.call(routes.item, str(item)).paths
        if paths is None:
            raise _no_paths(self.name)
        return [tuple(path) for path in paths]

    def path_items(self, path: Sequence[int]) -> list[Id]:
        """The items on a path, given as its nodes."""
        return self._pool.call(routes.path, "-".join(str(node) for node in path)).items

    def has_item(self, item: Id) -> bool:
        """Whether the catalogue contains an item."""
        try:
            self._pool.call(routes.item, str(item))
        except QueryError:
            return False
        return True


class RemoteItems:
    """The catalogue of a served model."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __len__(self) -> int:
        return self._client.model().items

    def __contains__(self, one: object) -> bool:
        return isinstance(one, str | numbers.Integral) and one != "" and self._client.has_item(one)  # type: ignore[arg-type]

    @property
    def kind(self) -> str:
        """`"int"` or `"str"`."""
        return self._client.model().ids


def _is_id(one: object) -> bool:
    return isinstance(one, str | numbers.Integral)


def _ids(ids: Any) -> list[Id]:
    # A string passes unchanged: the server reports what is wrong with it.
    return ids if isinstance(ids, str) else list(ids)  # type: ignore[return-value]


def _request(query: Query, n: int, options: Mapping[str, Any]) -> QueryRequest:
    for name, value in options.items():
        if name not in OPTIONS:
            hint = did_you_mean(name, OPTIONS)
            rule = f"the server has no such option{hint}"
            raise QueryError(rule, argument=name, value=value, remedy=None if hint else "leave it out")
    return QueryRequest(
        history=_ids(query.history),
        n=n,
        exclude_seen=query.exclude_seen,
        allow=None if query.allow is None else list(query.allow),
        deny=list(query.deny),
        where=None if query.where is None else dict(query.where),
        **options,
    )


def _parts(queries: Sequence[Query], n: Any) -> Iterator[Sequence[Query]]:
    size = max(1, min(BATCH, RESULTS // n)) if isinstance(n, int) and n > 0 else BATCH
    for first in range(0, len(queries), size):
        yield queries[first : first + size]


def _scored(items: Sequence[RecommendedItem]) -> ItemList:
    if not any(item.title is not None or item.details is not None for item in items):
        return ItemList(ScoredItem(item.id, item.score) for item in items)
    given = GivenDetails({item.id: item.title for item in items}, {item.id: item.details or {} for item in items})
    return ItemList(DescribedItem.make(item.id, item.score, given) for item in items)


def _no_paths(estimator: str) -> QueryError:
    return QueryError(f"a {estimator} model has no paths", remedy="serve a deep-retrieval model")
