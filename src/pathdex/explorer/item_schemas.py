"""The answers about items."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from pathdex.explorer.overview_schemas import LeadingHistory
from pathdex.explorer.schemas import Id, Interactions, ItemEntry, Nodes, Page, PageSize, PathLabel


class ItemsQuery(Struct, forbid_unknown_fields=True, gc=False):
    """Which items to list."""

    search: Annotated[
        str, Meta(max_length=200, description="An id, or beginnings of words of the title; empty: all items.")
    ] = ""
    page: Page = 1
    size: PageSize = 20


class ExploreItems(Struct, gc=False):
    """Items, the most popular first; an exact id comes before all."""

    model: str
    search: str
    items: list[ItemEntry]
    total: int
    page: int
    pages: int
    searched: Annotated[
        int, Meta(description="Items whose titles are searched, the most popular; the others are found by id only.")
    ]


class PathNeighbour(Struct, omit_defaults=True, gc=False):
    """Another item on the same path."""

    id: Id
    similarity: Annotated[float, Meta(description="Cosine of the vectors of both items.")]
    interactions: Interactions
    title: str | None = None


class ItemPath(Struct, omit_defaults=True, gc=False):
    """One of an item's paths."""

    path: Nodes
    items: int
    interactions: Interactions
    share: Annotated[float, Meta(description="The item's share of the path's interactions.")]
    neighbours: Annotated[list[PathNeighbour], Meta(description="The most similar items on the path.")]
    label: PathLabel | None = None


class ItemRound(Struct, omit_defaults=True, gc=False):
    """The paths of an item after an M-step or publish."""

    number: int
    paths: list[list[int]]
    time: Annotated[float | None, Meta(description="Of a publish, in seconds since 1970.")] = None


class ItemQuery(Struct, forbid_unknown_fields=True, gc=False):
    """Which item."""

    id: Annotated[str, Meta(max_length=256)]


class ItemCard(Struct, omit_defaults=False, gc=False):
    """One item."""

    model: str
    id: Id
    title: str | None
    details: dict[str, Any] | None
    interactions: Interactions
    popularity_rank: Annotated[int, Meta(description="From 1, the most popular item.")]
    num_items: int
    paths: list[ItemPath]
    similar: Annotated[list[PathNeighbour], Meta(description="The answer of /v1/similar.")]
    histories: Annotated[
        list[LeadingHistory] | None,
        Meta(description="Recorded histories whose answer has the item; null if no histories were recorded."),
    ]
    num_histories: int
    rounds: Annotated[list[ItemRound] | None, Meta(description="Null if they were not recorded for this item.")]
    round_sample: Annotated[int, Meta(description="Items whose paths were recorded.")]
