"""The shared parts of the explorer's answers, which describe themselves to JSON and OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

Id = str | int
Nodes = Annotated[list[int], Meta(description="The nodes of a path or of a prefix, one per layer.")]
Interactions = Annotated[int, Meta(description="Interactions in the training data.")]
Page = Annotated[int, Meta(ge=1, le=1_000_000, description="The page, from 1.")]
PageSize = Annotated[int, Meta(ge=1, le=200, description="Entries per page.")]


class NamedItem(Struct, omit_defaults=True, gc=False):
    """An item with its title, if it has one."""

    id: Id
    title: str | None = None


class ItemEntry(Struct, omit_defaults=True, gc=False):
    """An item in a list."""

    id: Id
    interactions: Interactions
    title: str | None = None
    details: Annotated[dict[str, Any] | None, Meta(description="Other columns of the item table.")] = None


class LabelTerm(Struct, omit_defaults=True, gc=False):
    """A word or a value that is frequent here and rare elsewhere."""

    term: str
    column: Annotated[str, Meta(description="The column that it is from; `title` for words of titles.")]
    items: Annotated[int, Meta(description="Items of the sample that have it.")]
    score: Annotated[float, Meta(description="Its class-based TF-IDF.")]


class PathLabel(Struct, gc=False):
    """A name for a path or a prefix, made from the titles and attributes of its items."""

    text: str
    terms: list[LabelTerm]
    sample: Annotated[int, Meta(description="The number of items that it was made from, the most popular ones.")]


class PathSummary(Struct, omit_defaults=True, gc=False):
    """A path in a list."""

    path: Nodes
    items: int
    interactions: Interactions
    label: PathLabel | None = None
    first: Annotated[list[NamedItem], Meta(description="Its most popular items.")] = []


class ScoreParts(Struct, gc=False):
    """The summands of a final score."""

    reranker: Annotated[float, Meta(description="Inner product of the vectors of user and item.")]
    bias: Annotated[float, Meta(description="The item's bias, which grows with its popularity.")]
    path: Annotated[float, Meta(description="The path weight times log p(item | history).")]
    neighbours: Annotated[float, Meta(description="From items with common users; 0 without neighbours.")]


class Round(Struct, omit_defaults=True, gc=False):
    """One M-step of the training, or one publish of a live model."""

    number: Annotated[int, Meta(description="From 1; 0 is the state before the first.")]
    figures: Annotated[
        dict[str, float],
        Meta(description="What was recorded, such as `objective`, `structure` (the loss), `used_paths`, `overlap`."),
    ]
    warnings: list[str] = []
