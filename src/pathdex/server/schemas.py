"""The JSON of requests and responses as structs, which decode, encode, and describe themselves to OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from pathdex.data.event_values import MAX_SECONDS
from pathdex.data.item_changes import MAX_LIKE
from pathdex.index.health import IndexHealth
from pathdex.retrieval.explain import Explanation, WhyNot

Id = str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
UserId = Annotated[str, Meta(pattern=r"^[^\u0000]*$")] | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""Of a user to store: data bases and logs end texts at a null character."""
AtLeastOne = Annotated[int, Meta(ge=1)]
History = Annotated[list[Id] | None, Meta(description="Item ids, oldest first. Pass either this or `user`.")]
User = Annotated[Id | None, Meta(description="A user whose history is in the user store.")]
Beam = Annotated[AtLeastOne | None, Meta(description="Paths to keep per layer; by default the model's.")]
Unknown = Annotated[int, Meta(description="History items that are not in the catalogue and were ignored.")]
Time = Annotated[
    Annotated[float, Meta(ge=0, lt=MAX_SECONDS)] | None,
    Meta(description="When it happened, in seconds since 1970; by default, the server's time. For the stream only."),
]
Like = Annotated[list[Id], Meta(max_length=MAX_LIKE, description="Known items that the new one is similar to.")]
AttributeValue = str | int | float | bool
ItemAttributes = Annotated[
    dict[str, AttributeValue | list[AttributeValue]],
    Meta(description="Columns of the new item. It starts near items with the same values."),
]


Title = Annotated[str | None, Meta(description="Its title, if the model was trained with an item table.")]
Details = Annotated[
    dict[str, AttributeValue | list[AttributeValue]] | None, Meta(description="Other columns of the item table.")
]


Missing = Annotated[
    list[int] | None,
    Meta(description="The shards, from 1, whose items the answer lacks because they are down (`--partial`)."),
]


class QueryRequest(Struct, forbid_unknown_fields=True, gc=False):
    """What to recommend for a history, or for a user of the user store."""

    history: History = None
    user: User = None
    n: Annotated[AtLeastOne, Meta(description="Items to recommend.")] = 10
    beam: Beam = None
    candidates: Annotated[AtLeastOne | None, Meta(description="Items to score at most; replaces `beam`.")] = None
    exclude_seen: Annotated[bool, Meta(description="Leave out the items of the history.")] = True
    allow: Annotated[list[Id] | None, Meta(description="Recommend only these items.")] = None
    deny: Annotated[list[Id], Meta(description="Leave out these items.")] = []
    where: Annotated[
        dict[str, Any] | None,
        Meta(description="Conditions on the catalogue table: a value, a list of values, or `min` and `max`."),
    ] = None
    explain: Annotated[bool, Meta(description="Add the paths that found each item.")] = False


class RecommendRequest(QueryRequest, forbid_unknown_fields=True, gc=False):
    """One query, or a batch under `queries`."""

    queries: list[QueryRequest] | None = None


class SimilarRequest(Struct, forbid_unknown_fields=True, gc=False):
    """Which items are most like this one."""

    item: Id
    n: Annotated[AtLeastOne, Meta(description="Items to return.")] = 10


class ExplainRequest(Struct, forbid_unknown_fields=True, gc=False):
    """Which paths lead from a history to an item."""

    item: Id
    history: History = None
    user: User = None
    beam: Beam = None


class WhyNotRequest(ExplainRequest, forbid_unknown_fields=True, gc=False):
    """What keeps an item out of the recommendations."""

    n: Annotated[AtLeastOne, Meta(description="Items that were recommended.")] = 10
    exclude_seen: Annotated[bool, Meta(description="Whether the items of the history were left out.")] = True


class UserEvents(Struct, forbid_unknown_fields=True, gc=False):
    """Items that a user interacted with, oldest first."""

    user: UserId
    items: list[Id]
    time: Time = None


class EventsRequest(Struct, forbid_unknown_fields=True, gc=False):
    """The events of one user, or of many under `events`."""

    user: UserId | None = None
    items: list[Id] | None = None
    time: Time = None
    events: list[UserEvents] | None = None


class NewItem(Struct, forbid_unknown_fields=True, gc=False):
    """An item to add to the stream."""

    id: Id
    like: Like = []
    attributes: ItemAttributes = {}


class AddItemsRequest(Struct, forbid_unknown_fields=True, gc=False):
    """One item, or many under `new_items`."""

    id: Id | None = None
    like: Like = []
    attributes: ItemAttributes = {}
    new_items: list[NewItem] | None = None


class RemoveItemsRequest(Struct, forbid_unknown_fields=True, gc=False):
    """Items to remove."""

    ids: list[Id]


class RecommendedItem(Struct, omit_defaults=True, gc=False):
    """An item and its score; higher is better."""

    id: Id
    score: float
    explanation: Explanation | None = None
    title: Title = None
    details: Details = None


class QueryResult(Struct, omit_defaults=True, gc=False):
    """The result of one query of a batch."""

    items: list[RecommendedItem]
    unknown: Unknown = 0


class RecommendResponse(Struct, omit_defaults=True, gc=False):
    """`items` for one query, or `results` for a batch, in the order of its queries."""

    model: str
    items: list[RecommendedItem] | None = None
    unknown: Unknown = 0
    results: list[QueryResult] | None = None
    missing_shards: Missing = None


class SimilarResponse(Struct, omit_defaults=True, gc=False):
    """The most similar items, best first."""

    model: str
    items: list[RecommendedItem]
    missing_shards: Missing = None


class ExplainResponse(Struct, gc=False):
    """The paths that lead to an item."""

    model: str
    explanation: Explanation


class WhyNotResponse(Struct, gc=False):
    """What keeps an item out."""

    model: str
    why_not: WhyNot


class EventsResponse(Struct, gc=False):
    """The events are stored."""

    model: str
    stored: int


class StoredHistory(Struct, gc=False):
    """What the user store holds of a user: item ids, oldest first; none for an unknown user."""

    model: str
    user: str
    items: list[Id]


class ForgottenUser(Struct, gc=False):
    """The history of the user is removed."""

    model: str
    user: str


class ItemsResponse(Struct, gc=False):
    """The changes are in the stream; the model changes when they are learned and published."""

    model: str
    accepted: int


class ItemInfo(Struct, omit_defaults=True, gc=False):
    """One item of the catalogue."""

    model: str
    id: Id
    paths: Annotated[list[list[int]] | None, Meta(description="Its paths; null if the model has no index.")]
    title: Title = None
    details: Details = None


class PathInfo(Struct, omit_defaults=True, gc=False):
    """One path of the index."""

    model: str
    path: list[int]
    items: list[Id]
    titles: Annotated[list[str | None] | None, Meta(description="Their titles; null if the model has none.")] = None


class ModelInfo(Struct, gc=False):
    """The served model."""

    model: str
    estimator: str
    items: int
    ids: Annotated[str, Meta(description="The type of the item ids: `int` or `str`.")]
    history_length: Annotated[int | None, Meta(description="Latest history items that a query uses; null: all.")]
    loaded: Annotated[str, Meta(description="When this worker loaded it, in UTC.")]
    attributes: Annotated[list[str], Meta(description="Columns that `where` can use.")]
    config: Annotated[dict[str, Any], Meta(description="Hyper-parameters.")]
    health: Annotated[IndexHealth | None, Meta(description="Statistics of the index; null if the model has none.")]


class HealthStatus(Struct, gc=False):
    """`live`, `ready`, `loading`, `draining` or, of a router, `shards missing`."""

    status: str
    model: str | None = None
    missing_shards: Missing | UnsetType = UNSET


class ErrorDetail(Struct, omit_defaults=True, gc=False):
    """Why a request failed."""

    type: Annotated[str, Meta(description="The exception that `pathdex.Client` raises.")]
    message: str
    field: str | None = None
    value: Any = None
    rule: str | None = None
    remedy: str | None = None


class ErrorResponse(Struct, gc=False):
    """The body of every response with a status of 400 or above."""

    error: ErrorDetail
    model: str | None = None
