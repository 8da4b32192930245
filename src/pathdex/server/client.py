"""A server's model with the methods of a `Recommender`."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from pathdex.data.vocabulary import Id
from pathdex.errors import QueryError
from pathdex.recommenders.base import History, Query, ScoredItem
from pathdex.server.transport import Transport

if TYPE_CHECKING:
    from pathdex.index.health import IndexHealth
    from pathdex.retrieval.explain import Explanation, WhyNot

BATCH = 100
"""Queries that are sent in one request, at most."""
RESULTS = 10_000
"""Items that are asked for in one request of many queries, at most."""


class Client:
    """Asks a Pathdex server as if its model were here.

    The methods, their answers and their errors are those of a `Recommender`. A server that cannot be reached, is busy
    or wants a token raises `ServerError`. Threads may share a client.
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 10.0) -> None:
        self._transport = Transport(url, token, timeout)

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections that are kept open for the next request."""
        self._transport.close()

    def model(self) -> dict[str, Any]:
        """What is served: version (`model`), estimator, number of items, configuration, health of the index."""
        return self._transport.get("v1", "model")

    @property
    def version(self) -> str:
        """The version of the model that is served."""
        return str(self.model()["model"])

    @property
    def name(self) -> str:
        """The estimator's name."""
        return str(self.model()["estimator"])

    @property
    def history_length(self) -> int | None:
        """How many of the latest items a query uses; None: all."""
        length: int | None = self.model()["history_length"]
        return length

    @property
    def items(self) -> RemoteItems:
        """The catalogue: its size, and whether it holds an item."""
        return RemoteItems(self._transport)

    def health(self) -> IndexHealth:
        """How well the items are spread over the paths."""
        from pathdex.index.health import IndexHealth

        facts = self.model()
        if facts["health"] is None:
            raise _no_paths(facts["estimator"])
        return IndexHealth(**_with_tuples(facts["health"]))

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
        many = not isinstance(history, str | bytes) and not _is_id(next(iter(history), ""))
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
    ) -> list[list[ScoredItem]]:
        """`recommend` for many histories, in as few requests as the server takes them in."""
        deny, allow = list(deny), None if allow is None else list(allow)
        asked = [one if isinstance(one, Query) else Query(one, exclude_seen, deny, allow, where) for one in histories]
        answers: list[list[ScoredItem]] = []
        unknown = 0
        for part in _parts(asked, n):
            queries = [_query(query, n, options) for query in part]
            for result in self._transport.post("/v1/recommend", {"queries": queries})["results"]:
                answers.append(_scored(result))
                unknown += result.get("unknown", 0)
        if unknown:
            warnings.warn(f"{unknown} history items are not in the catalogue and were left out", stacklevel=2)
        return answers

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
    ) -> list[ScoredItem]:
        """`recommend` for the history that the server's user store has of a user."""
        query = _query(Query((), exclude_seen, deny, allow, where), n, options)
        del query["history"]
        return _scored(self._transport.post("/v1/recommend", {**query, "user": user}))

    def add_events(self, user: Id, items: Iterable[Id]) -> int:
        """Append items to a user's history in the server's user store; when this returns, they are safe.

        A connection that breaks meanwhile raises `ServerError`, and the events may or may not be stored.
        """
        body = {"user": user, "items": list(items)}
        return int(self._transport.post("/v1/events", body, repeat=False)["stored"])

    def similar_items(self, item: Id, n: int = 10) -> list[ScoredItem]:
        """The items most like one item."""
        return _scored(self._transport.post("/v1/similar", {"item": item, "n": n}))

    def explain(self, history: History, item: Id, *, beam: int | None = None) -> Explanation:
        """Which of an item's paths a beam finds for a history, how likely each is, and how the item scores."""
        body = {"history": _ids(history), "item": item, "beam": beam}
        return _explanation(self._transport.post("/v1/explain", body)["explanation"])

    def why_not(
        self, history: History, item: Id, *, n: int = 10, beam: int | None = None, exclude_seen: bool = True
    ) -> WhyNot:
        """What keeps an item out of `recommend(history, n)`."""
        from pathdex.retrieval.explain import WhyNot

        body = {"history": _ids(history), "item": item, "n": n, "beam": beam, "exclude_seen": exclude_seen}
        found = self._transport.post("/v1/why-not", body)["why_not"]
        return WhyNot(**{**found, "explanation": _explanation(found["explanation"])})

    def item_paths(self, item: Id) -> list[tuple[int, ...]]:
        """The paths that an item lives on, each as its nodes."""
        facts = self._transport.get("v1", "items", str(item))
        if facts["paths"] is None:
            raise _no_paths(self.name)
        return [tuple(path) for path in facts["paths"]]

    def path_items(self, path: Sequence[int]) -> list[Id]:
        """The items on a path, given as its nodes."""
        items: list[Id] = self._transport.get("v1", "paths", "-".join(str(node) for node in path))["items"]
        return items


class RemoteItems:
    """The catalogue of a served model."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __len__(self) -> int:
        return int(self._transport.get("v1", "model")["items"])

    def __contains__(self, one: object) -> bool:
        if not _is_id(one) or one == "":
            return False
        try:
            self._transport.get("v1", "items", str(one))
        except QueryError:
            return False
        return True

    @property
    def kind(self) -> str:
        """`"int"` or `"str"`."""
        return str(self._transport.get("v1", "model")["ids"])


def _is_id(one: object) -> bool:
    return isinstance(one, str | numbers.Integral)


def _ids(ids: Any) -> Any:
    # The server says what is wrong with a text in the place of a list.
    return ids if isinstance(ids, str) else list(ids)


def _query(query: Query, n: int, options: Mapping[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = {"history": _ids(query.history), "n": n, **options}
    if not query.exclude_seen:
        asked["exclude_seen"] = False
    if deny := list(query.deny):
        asked["deny"] = deny
    if query.allow is not None:
        asked["allow"] = list(query.allow)
    if query.where is not None:
        asked["where"] = dict(query.where)
    return asked


def _parts(queries: Sequence[Query], n: Any) -> Iterator[Sequence[Query]]:
    size = max(1, min(BATCH, RESULTS // n)) if isinstance(n, int) and n > 0 else BATCH
    for first in range(0, len(queries), size):
        yield queries[first : first + size]


def _scored(answer: Mapping[str, Any]) -> list[ScoredItem]:
    return [ScoredItem(item["id"], item["score"]) for item in answer["items"]]


def _explanation(found: Mapping[str, Any]) -> Explanation:
    from pathdex.retrieval.explain import Explanation, PathExplanation

    paths = tuple(PathExplanation(**_with_tuples(path)) for path in found["paths"])
    return Explanation(found["item"], paths, found["score"])


def _with_tuples(found: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has lists where the library has tuples."""
    return {key: tuple(value) if isinstance(value, list) else value for key, value in found.items()}


def _no_paths(estimator: str) -> QueryError:
    return QueryError(f"a {estimator} model has no paths; serve a deep-retrieval model")
