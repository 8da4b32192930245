"""The course of a query: the beam layer by layer, candidates and final scores."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pathdex.explorer.schemas import Id, NamedItem, Nodes, PathLabel, ScoreParts

QueryId = str | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=1)]


class ExploreQuery(Struct, forbid_unknown_fields=True, gc=False):
    """A query of /v1/recommend, to be followed step by step."""

    history: Annotated[list[QueryId], Meta(description="Item ids, oldest first.")]
    n: Annotated[Count, Meta(description="Items to recommend.")] = 10
    beam: Annotated[Count | None, Meta(description="Paths to keep per layer; by default the model's.")] = None
    candidates: Annotated[Count | None, Meta(description="Items to score at most; replaces `beam`.")] = None
    exclude_seen: Annotated[bool, Meta(description="Leave out the items of the history.")] = True
    allow: Annotated[list[QueryId] | None, Meta(description="Recommend only these items.")] = None
    deny: Annotated[list[QueryId], Meta(description="Leave out these items.")] = []
    where: Annotated[
        dict[str, Any] | None,
        Meta(description="Conditions on the catalogue table: a value, a list of values, or `min` and `max`."),
    ] = None


class WhyQuery(ExploreQuery, forbid_unknown_fields=True, kw_only=True, gc=False):
    """A query, and the item to ask about."""

    item: QueryId


class BeamPrefix(Struct, omit_defaults=True, gc=False):
    """A prefix that the beam compared on a layer."""

    prefix: Nodes
    probability: Annotated[float, Meta(description="p(prefix | history).")]
    step: Annotated[float, Meta(description="p(last node | history, nodes before).")]
    kept: bool
    rank: Annotated[int, Meta(description="From 1, among all that were compared.")]
    items: Annotated[int, Meta(description="Items under it, each counted once per path.")]


class BeamLayer(Struct, gc=False):
    """What the beam did on a layer."""

    layer: int
    kept: Annotated[int, Meta(description="Prefixes that it kept.")]
    compared: Annotated[int, Meta(description="Prefixes in use below those that it kept on the layer before.")]
    mass: Annotated[float, Meta(description="The probability of the kept prefixes together.")]
    compared_mass: Annotated[float, Meta(description="The probability of all that were compared.")]
    threshold: Annotated[float | None, Meta(description="The lowest probability kept.")]
    prefixes: Annotated[list[BeamPrefix], Meta(description="The most probable ones kept, then those pruned.")]


class FollowedPath(Struct, omit_defaults=True, gc=False):
    """A path that the beam followed to the end."""

    path: Nodes
    rank: int
    probability: float
    items: int
    candidates: Annotated[int, Meta(description="Its items that were scored.")]
    label: PathLabel | None = None


class RankedItem(Struct, omit_defaults=True, gc=False):
    """A candidate with the parts of its score."""

    id: Id
    rank: int
    score: float
    parts: ScoreParts
    probability: Annotated[float, Meta(description="p(item | history) over the paths that were followed.")]
    source: Annotated[
        Literal["paths", "neighbours", "both", "listed"],
        Meta(description="What brought it; `listed` if few items are eligible and each is scored."),
    ]
    paths: Annotated[list[list[int]], Meta(description="Its paths that the beam found.")]
    recommended: bool
    title: str | None = None
    details: dict[str, Any] | None = None


class ExploreTrace(Struct, gc=False):
    """How a query was answered. The first `n` items are those of /v1/recommend."""

    model: str
    history: list[NamedItem]
    unknown: Annotated[int, Meta(description="History items that are not in the catalogue and were ignored.")]
    used: Annotated[int, Meta(description="Latest history items that the query uses.")]
    n: int
    beam: Annotated[int, Meta(description="The beam that was used in the end.")]
    requested_beam: Annotated[int, Meta(description="The beam before it doubled to find enough items.")]
    candidates_limit: int | None
    mode: Annotated[
        Literal["beam", "listed"], Meta(description="`listed`: so few items are eligible that each is scored.")
    ]
    layers: list[BeamLayer]
    paths: list[FollowedPath]
    num_paths: int
    num_candidates: int
    from_paths: Annotated[int, Meta(description="Candidates on paths that were followed.")]
    from_neighbours: Annotated[int, Meta(description="Candidates that only neighbours brought.")]
    items: Annotated[list[RankedItem], Meta(description="The recommended items, then the next ones.")]


class LostLayer(Struct, gc=False):
    """A layer of an item's path in the beam."""

    layer: int
    node: int
    probability: Annotated[float, Meta(description="p(prefix | history).")]
    step: Annotated[float, Meta(description="p(node | history, nodes before).")]
    threshold: Annotated[float | None, Meta(description="The lowest probability that the beam kept; null if empty.")]
    kept: Annotated[bool, Meta(description="Whether the beam kept the prefix.")]


class WhyPath(Struct, gc=False):
    """One of the item's paths."""

    path: Nodes
    probability: float
    rank: Annotated[int | None, Meta(description="Its rank in the beam, from 1; null if the beam lost it.")]
    lost_at: Annotated[int | None, Meta(description="The layer, from 1, at which the beam lost it.")]
    items: int
    layers: list[LostLayer]


class ExploreWhy(Struct, gc=False):
    """Why an item is in the answer to a query, or why not."""

    model: str
    item: Id
    title: str | None
    reason: Annotated[
        Literal["recommended", "seen", "denied", "not allowed", "where", "no path", "beam", "candidates", "score"],
        Meta(
            description="`beam`: all its paths were lost; `candidates`: found, but beyond the candidate limit; "
            "`score`: others score higher."
        ),
    ]
    text: Annotated[str, Meta(description="The reason in a sentence.")]
    rank: Annotated[int | None, Meta(description="Its rank among the candidates, from 1.")]
    score: float | None
    needed: Annotated[float | None, Meta(description="The score of the n-th item.")]
    parts: ScoreParts | None
    needed_parts: Annotated[ScoreParts | None, Meta(description="The parts of the score of the n-th item.")]
    layer: Annotated[int | None, Meta(description="The layer at which the last of its paths was lost.")]
    smallest_beam: Annotated[
        int | None, Meta(description="The smallest beam that finds it; null if it is above 1,024.")
    ]
    paths: list[WhyPath]
