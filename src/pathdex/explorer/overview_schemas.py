"""The answers about the whole index and its prefixes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from pathdex.explorer.schemas import Interactions, NamedItem, Nodes, Page, PageSize, PathLabel, PathSummary, Round
from pathdex.index.health import IndexHealth


class LayerLoad(Struct, gc=False):
    """How many items each node of a layer holds; an item counts once for each of its paths."""

    layer: Annotated[int, Meta(description="From 1.")]
    items: Annotated[list[int], Meta(description="By node, or by group of `nodes_per_cell` consecutive nodes.")]
    paths: Annotated[list[int], Meta(description="Paths in use by node, in the same cells.")]
    nodes_per_cell: int
    dead: Annotated[int, Meta(description="Nodes on no path in use.")]
    entropy_share: Annotated[float, Meta(description="1 if all nodes are used evenly, 0 if one takes everything.")]


class PrefixFlow(Struct, omit_defaults=True, gc=False):
    """A busy prefix: a band from its parent, the prefix without its last node."""

    prefix: Nodes
    items: int
    paths: int
    label: PathLabel | None = None


class SizeClass(Struct, gc=False):
    """Paths with so many items."""

    low: int
    high: int
    paths: int
    items: int


class ExploreWarning(Struct, omit_defaults=True, gc=False):
    """What a health check found."""

    code: str
    message: str
    advice: str | None = None
    docs: Annotated[str | None, Meta(description="The page and heading of the documentation.")] = None
    round: Annotated[int | None, Meta(description="The M-step after which it was found.")] = None


class Abilities(Struct, gc=False):
    """Which parts of the page have something to show."""

    titles: bool
    attributes: Annotated[list[str], Meta(description="Columns that `where` can use.")]
    neighbours: Annotated[bool, Meta(description="Whether items with common users join the candidates.")]
    rounds: Annotated[bool, Meta(description="Whether the paths of sampled items were recorded round by round.")]
    histories: Annotated[bool, Meta(description="Whether sample histories were recorded.")]
    comparison: Annotated[bool, Meta(description="Whether a second model is given.")]
    live: Annotated[bool, Meta(description="Whether the model changes while it is served.")]


class ExploreStatus(Struct, gc=False):
    """Which model the answers are about, and what is still being prepared."""

    model: str
    live: Annotated[bool, Meta(description="Whether the model changes while it is served.")]
    preparing: Annotated[str | None, Meta(description="What is computed at present; null if all is ready.")]
    seconds: Annotated[float | None, Meta(description="For how long it has been prepared.")]


class ExploreOverview(Struct, gc=False):
    """The index at a glance."""

    model: str
    estimator: str
    items: int
    interactions: Interactions
    num_nodes: Annotated[int, Meta(description="K, nodes per layer.")]
    depth: Annotated[int, Meta(description="D, layers.")]
    paths_per_item: Annotated[int, Meta(description="J.")]
    used_paths: int
    entries: Annotated[int, Meta(description="Items on all paths, each counted once per path.")]
    beam: Annotated[int, Meta(description="The default beam of a query.")]
    history_length: Annotated[int | None, Meta(description="Latest history items that a query uses.")]
    layers: list[LayerLoad]
    flows: Annotated[list[PrefixFlow], Meta(description="The busiest prefixes, parents before their children.")]
    sizes: list[SizeClass]
    largest: Annotated[list[PathSummary], Meta(description="The paths with the most items.")]
    health: IndexHealth
    warnings: list[ExploreWarning]
    rounds: list[Round]
    choices: Annotated[list[str], Meta(description="What training chose, and why.")]
    abilities: Abilities
    config: Annotated[dict[str, Any], Meta(description="Hyper-parameters.")]


class PrefixChild(Struct, gc=False):
    """A node below a prefix."""

    node: int
    items: int
    paths: int
    interactions: Interactions


Sort = Literal["items", "interactions", "path"]


class PathsQuery(Struct, forbid_unknown_fields=True, gc=False):
    """Which paths to list."""

    prefix: Annotated[
        str, Meta(pattern="^([0-9]{1,9}(-[0-9]{1,9})*)?$", description="Nodes joined by hyphens, as 3-17; empty: all.")
    ] = ""
    sort: Annotated[Sort, Meta(description="The order of the paths: the largest first, or by nodes.")] = "items"
    page: Page = 1
    size: PageSize = 50


class ExplorePaths(Struct, gc=False):
    """The nodes and paths under a prefix."""

    model: str
    prefix: Nodes
    items: Annotated[int, Meta(description="Items on these paths, each counted once per path.")]
    interactions: Interactions
    label: PathLabel | None
    children: Annotated[list[PrefixChild], Meta(description="The busiest nodes of the next layer, largest first.")]
    num_children: int
    paths: list[PathSummary]
    num_paths: int
    page: int
    pages: int


class NodeQuery(Struct, forbid_unknown_fields=True, gc=False):
    """Which node, and which of its paths."""

    node: Annotated[int, Meta(ge=0, lt=1_000_000_000, description="From 0.")]
    layer: Annotated[int, Meta(ge=1, le=1_000, description="From 1.")]
    last: Annotated[
        Annotated[int, Meta(ge=0, lt=1_000_000_000)] | None,
        Meta(description="The last of several consecutive nodes, from `node` on."),
    ] = None
    sort: Annotated[Sort, Meta(description="The order of the paths: the largest first, or by nodes.")] = "interactions"
    page: Page = 1
    size: PageSize = 50


class OtherLayer(Struct, gc=False):
    """The nodes of another layer on the same paths."""

    layer: Annotated[int, Meta(description="From 1.")]
    nodes: Annotated[list[PrefixChild], Meta(description="The busiest, largest first.")]
    num_nodes: int


class ExploreNode(Struct, gc=False):
    """The paths through a node, or through consecutive nodes, of any layer."""

    model: str
    layer: int
    first: Annotated[int, Meta(description="The node.")]
    last: Annotated[int, Meta(description="The last node; the same as `first` for one.")]
    items: Annotated[int, Meta(description="Items on these paths, each counted once per path.")]
    interactions: Interactions
    label: PathLabel | None
    others: Annotated[list[OtherLayer], Meta(description="The other layers: where these paths are from and lead to.")]
    paths: list[PathSummary]
    num_paths: int
    page: int
    pages: int


class PathMember(Struct, omit_defaults=True, gc=False):
    """An item on a path."""

    id: int | str
    interactions: Interactions
    share: Annotated[float, Meta(description="Its share of the path's interactions, p(item | path).")]
    similarity: Annotated[float, Meta(description="Cosine of its vector and the mean of the path's vectors.")]
    title: str | None = None
    details: Annotated[dict[str, Any] | None, Meta(description="Other columns of the item table.")] = None


class SharedValue(Struct, gc=False):
    """An attribute value that items of a path have in common."""

    column: str
    value: str
    items: Annotated[int, Meta(description="Items of the sample that have it.")]
    sample: int
    catalogue_share: Annotated[float, Meta(description="The share of a sample of the catalogue that has it.")]


class Cohesion(Struct, gc=False):
    """How the items of a path relate."""

    similarity: Annotated[float, Meta(description="Mean cosine of item vectors and their mean.")]
    random_similarity: Annotated[float, Meta(description="The same of as many items drawn from the catalogue.")]
    sample: int
    shared: list[SharedValue]


class NearPath(Struct, omit_defaults=True, gc=False):
    """A path with a common prefix."""

    path: Nodes
    common: Annotated[int, Meta(description="Layers that both share.")]
    items: int
    label: PathLabel | None = None


class LeadingHistory(Struct, omit_defaults=True, gc=False):
    """A recorded history whose beam finds a path, or that an item is retrieved for."""

    number: Annotated[int, Meta(description="Its number in the record.")]
    history: list[NamedItem]
    rank: Annotated[int, Meta(description="The rank of the path in the beam, or of the item in the answer; from 1.")]
    probability: Annotated[float | None, Meta(description="p(path | history).")] = None
    score: Annotated[float | None, Meta(description="The item's final score.")] = None
    next: Annotated[NamedItem | None, Meta(description="What the user took next.")] = None


class PathRound(Struct, omit_defaults=True, gc=False):
    """A path after an M-step or publish, among the sampled items."""

    number: int
    items: int
    entered: int
    left: int
    time: Annotated[float | None, Meta(description="Of a publish, in seconds since 1970.")] = None


class PathQuery(Struct, forbid_unknown_fields=True, gc=False):
    """Which path, and which of its items."""

    path: Annotated[str, Meta(pattern="^[0-9]{1,9}(-[0-9]{1,9})*$")]
    page: Page = 1
    size: PageSize = 50


class PathCard(Struct, gc=False):
    """One path."""

    model: str
    path: Nodes
    num_items: int
    interactions: Interactions
    label: PathLabel | None
    items: Annotated[list[PathMember], Meta(description="A page of its items, the most popular first.")]
    page: int
    pages: int
    cohesion: Cohesion | None
    neighbours: list[NearPath]
    histories: Annotated[
        list[LeadingHistory] | None, Meta(description="Who is led here; null if no histories were recorded.")
    ]
    num_histories: Annotated[int, Meta(description="Recorded histories that are led here; the first are listed.")]
    rounds: Annotated[list[PathRound] | None, Meta(description="Null if rounds were not recorded.")]
    round_sample: Annotated[int, Meta(description="Items whose paths were recorded.")]
