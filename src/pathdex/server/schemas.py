"""The JSON of requests and answers. The structs decode, encode, and describe themselves in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from pathdex.data.vocabulary import Id
from pathdex.retrieval.explain import Explanation, WhyNot

AtLeastOne = Annotated[int, Meta(ge=1)]


class Query(Struct, forbid_unknown_fields=True, gc=False):
    """One question: what to recommend after a history, or to a user of the user store."""

    history: Annotated[list[Id] | None, Meta(description="Item ids, oldest first. Either this or `user`.")] = None
    user: Annotated[Id | None, Meta(description="A user whose history is in the user store.")] = None
    n: Annotated[AtLeastOne, Meta(description="How many items to recommend.")] = 10
    beam: Annotated[AtLeastOne | None, Meta(description="Paths to follow; by default the model's.")] = None
    candidates: Annotated[AtLeastOne | None, Meta(description="In place of a beam: the most items to score.")] = None
    exclude_seen: Annotated[bool, Meta(description="Leave out the history's own items.")] = True
    allow: Annotated[list[Id] | None, Meta(description="The only items to recommend.")] = None
    deny: Annotated[list[Id], Meta(description="Items to leave out.")] = []
    where: Annotated[
        dict[str, Any] | None,
        Meta(description="Conditions on the catalogue table: a value, a list of values, or `min` and `max`."),
    ] = None
    explain: Annotated[bool, Meta(description="Add to each item the paths that found it.")] = False


class RecommendRequest(Query, forbid_unknown_fields=True, gc=False):
    """One query, or many under `queries`."""

    queries: list[Query] | None = None


class SimilarRequest(Struct, forbid_unknown_fields=True, gc=False):
    """Which items are like this one?"""

    item: Id
    n: Annotated[AtLeastOne, Meta(description="How many items to return.")] = 10


class ExplainRequest(Struct, forbid_unknown_fields=True, gc=False):
    """Which paths lead from a history to an item?"""

    item: Id
    history: Annotated[list[Id] | None, Meta(description="Item ids, oldest first. Either this or `user`.")] = None
    user: Annotated[Id | None, Meta(description="A user whose history is in the user store.")] = None
    beam: Annotated[AtLeastOne | None, Meta(description="Paths to follow; by default the model's.")] = None


class WhyNotRequest(ExplainRequest, forbid_unknown_fields=True, gc=False):
    """What kept an item out of the answer?"""

    n: Annotated[AtLeastOne, Meta(description="How many items the answer had.")] = 10
    exclude_seen: Annotated[bool, Meta(description="Whether it left out the history's own items.")] = True


class Event(Struct, forbid_unknown_fields=True, gc=False):
    """Items that a user took, oldest first."""

    user: Id
    items: list[Id]


class EventsRequest(Struct, forbid_unknown_fields=True, gc=False):
    """What one user took, or many under `events`."""

    user: Id | None = None
    items: list[Id] | None = None
    events: list[Event] | None = None


class Item(Struct, omit_defaults=True, gc=False):
    """A recommended item; a higher score is better."""

    id: Id
    score: float
    explanation: Explanation | None = None


class Result(Struct, omit_defaults=True, gc=False):
    """The answer to one of many queries."""

    items: list[Item]
    unknown: Annotated[int, Meta(description="History items that are not in the catalogue and were left out.")] = 0


class Answer(Struct, omit_defaults=True, gc=False):
    """The answer to one query."""

    model: str
    items: list[Item]
    unknown: Annotated[int, Meta(description="History items that are not in the catalogue and were left out.")] = 0


class Answers(Struct, gc=False):
    """The answers to many queries, in their order."""

    model: str
    results: list[Result]


class Explained(Struct, gc=False):
    """The paths that lead to an item."""

    model: str
    explanation: Explanation


class WhyNotAnswer(Struct, gc=False):
    """What kept an item out."""

    model: str
    why_not: WhyNot


class Stored(Struct, gc=False):
    """Events are safe in the user store."""

    model: str | None
    stored: int


class ItemFacts(Struct, gc=False):
    """One item of the catalogue."""

    model: str
    id: Id
    paths: Annotated[list[list[int]] | None, Meta(description="Its paths; null where the model has none.")]


class PathFacts(Struct, gc=False):
    """One path of the index."""

    model: str
    path: list[int]
    items: list[Id]


class ModelFacts(Struct, gc=False):
    """What is served."""

    model: str
    estimator: str
    items: int
    ids: Annotated[str, Meta(description="`int` or `str`: the kind of the item ids.")]
    history_length: Annotated[int | None, Meta(description="Latest items of a history that are read; null: all.")]
    loaded: Annotated[str, Meta(description="When this worker opened it, in UTC.")]
    attributes: Annotated[list[str], Meta(description="Columns that `where` knows.")]
    config: Annotated[dict[str, Any] | None, Meta(description="Hyper-parameters, where the estimator has them.")]
    health: Annotated[dict[str, Any] | None, Meta(description="Figures of the index, where there is one.")]


class Health(Struct, gc=False):
    """Whether the worker lives, or is ready."""

    status: str
    model: str | None = None


class Error(Struct, omit_defaults=True, gc=False):
    """Why a request was refused."""

    type: Annotated[str, Meta(description="The exception that `pathdex.Client` raises.")]
    message: str
    field: str | None = None
    value: Any = None
    rule: str | None = None


class Refusal(Struct, gc=False):
    """The body of every status of 400 and above."""

    error: Error
    model: str | None = None


RULES = {
    "n": "must be a whole number of at least 1; ask for one item or more",
    "beam": "must be a whole number of at least 1; leave it out for the model's own",
    "candidates": "must be a whole number of at least 1; leave it out for no budget",
    "history": "must be a list of ids (text or whole numbers), oldest first",
    "allow": "must be a list of ids (text or whole numbers); leave it out to allow all items",
    "deny": "must be a list of ids (text or whole numbers)",
    "items": "must be a list of ids (text or whole numbers), oldest first",
    "user": "must be an id: text or a whole number",
    "item": "must be an id: text or a whole number",
    "exclude_seen": "must be true or false",
    "explain": "must be true or false",
    "where": 'must be an object of conditions by column, such as {"category": ["a", "b"]}',
    "queries": "must be a list of queries",
    "events": 'must be a list of events such as {"user": "ada", "items": [1, 2]}',
}
"""What a field must be, for the error of a value that is not."""

recommend_decoder = msgspec.json.Decoder(RecommendRequest)
similar_decoder = msgspec.json.Decoder(SimilarRequest)
explain_decoder = msgspec.json.Decoder(ExplainRequest)
why_not_decoder = msgspec.json.Decoder(WhyNotRequest)
events_decoder = msgspec.json.Decoder(EventsRequest)
