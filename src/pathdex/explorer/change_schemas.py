"""The answers about change: replay over rounds, comparison of two models."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from pathdex.explorer.schemas import Id, NamedItem, Page, PageSize, Round

HistorySource = Literal["recorded", "popular items"]


class ReplayQuery(Struct, forbid_unknown_fields=True, gc=False):
    """Which items to follow."""

    items: Annotated[int, Meta(ge=0, le=2000, description="Items to follow, the most popular recorded ones.")] = 200


class ReplayItem(Struct, omit_defaults=True, gc=False):
    """An item and its paths after each round."""

    id: Id
    interactions: int
    paths: Annotated[list[list[list[int]]], Meta(description="By round, in the order of `rounds`.")]
    title: str | None = None


class ReplayRound(Struct, omit_defaults=True, gc=False):
    """The sampled items after a round."""

    number: int
    moved: Annotated[float | None, Meta(description="The share of the paths that the round before did not have.")]
    used_paths: Annotated[int, Meta(description="Paths with a sampled item.")]
    loads: Annotated[list[list[int]], Meta(description="Sampled items by layer and node, in cells as in the overview.")]
    sizes: Annotated[dict[str, int], Meta(description="Paths by number of sampled items.")]
    figures: dict[str, float]
    warnings: list[str] = []
    time: Annotated[float | None, Meta(description="Of a publish, in seconds since 1970.")] = None


class ExploreReplay(Struct, gc=False):
    """How the index came to be."""

    model: str
    recorded: Annotated[bool, Meta(description="Whether paths were recorded; if not, only figures are known.")]
    source: Annotated[Literal["training", "live"], Meta(description="EM rounds, or publishes of a live model.")]
    note: Annotated[str | None, Meta(description="What is missing, and how to record it.")]
    sample: Annotated[int, Meta(description="Items whose paths were recorded.")]
    rounds: list[ReplayRound]
    items: list[ReplayItem]
    losses: Annotated[list[Round], Meta(description="All epochs of the training, with their losses.")]


class CompareQuery(Struct, forbid_unknown_fields=True, gc=False):
    """Which page of the items that moved."""

    sort: Annotated[
        Literal["companions", "paths", "interactions"],
        Meta(description="First those that kept the fewest companions or paths, or the most popular."),
    ] = "companions"
    page: Page = 1
    size: PageSize = 50


class MovedItem(Struct, omit_defaults=True, gc=False):
    """An item in both models."""

    id: Id
    interactions: int
    kept: Annotated[int, Meta(description="Paths that it has in both.")]
    companions_kept: Annotated[
        float | None, Meta(description="Share of the items on its paths that share a path with it in both (Jaccard).")
    ]
    before: Annotated[list[list[int]], Meta(description="Its paths in the other model.")]
    after: list[list[int]]
    title: str | None = None


class ChangedAnswer(Struct, gc=False):
    """The answers of both models to a history."""

    number: int
    history: list[NamedItem]
    overlap: Annotated[float, Meta(description="Share of the first n items that both recommend.")]
    before: Annotated[list[NamedItem], Meta(description="The answer of the other model.")]
    after: list[NamedItem]


class ExploreCompare(Struct, gc=False):
    """What changed from the other model to this one."""

    model: str
    other: str
    same_structure: Annotated[bool, Meta(description="Whether K, D and J agree, so that paths can be compared.")]
    common_items: int
    only_here: int
    only_there: int
    new_items: list[NamedItem]
    gone_items: list[NamedItem]
    paths_kept: Annotated[float | None, Meta(description="Share of the paths of common items that both have.")]
    kept_counts: Annotated[list[int], Meta(description="Common items by the number of paths kept: 0, 1, .. J.")]
    companions_kept: Annotated[float | None, Meta(description="The mean over the sampled items.")]
    sample: Annotated[int, Meta(description="Items whose companions were compared.")]
    moved: list[MovedItem]
    num_moved: int
    page: int
    pages: int
    n: Annotated[int, Meta(description="Items per answer.")]
    histories: Annotated[HistorySource, Meta(description="Recorded histories, or single popular items.")]
    answers: Annotated[list[ChangedAnswer], Meta(description="Those that changed most.")]
    num_answers: int
    overlap: Annotated[float | None, Meta(description="The mean over all histories.")]
    first_same: Annotated[float | None, Meta(description="Share of the histories with the same first item.")]
