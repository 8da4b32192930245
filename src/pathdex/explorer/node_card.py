"""One node of any layer, or consecutive nodes that share a cell of the overview: the paths through it."""

from __future__ import annotations

from pathdex.errors import QueryError
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.overview import MAX_CHILDREN, num_pages
from pathdex.explorer.overview_schemas import ExploreNode, NodeQuery, OtherLayer, PrefixChild


def node_card(explorer: Explorer, query: NodeQuery) -> ExploreNode:
    """A page of the paths through a node, and the nodes of the other layers on them."""
    layer, first, last = query.layer, query.node, query.node if query.last is None else query.last
    _check(explorer, layer, first, last)
    facts = explorer.facts
    part = facts.through(layer, first, last)
    others = []
    for other in range(1, explorer.depth + 1):
        if other != layer and len(part):
            found = facts.nodes_of(part, other)
            rows = zip(*(values[:MAX_CHILDREN].tolist() for values in found), strict=True)
            others.append(OtherLayer(other, [PrefixChild(*row) for row in rows], len(found.nodes)))
    positions = facts.ordered(part, query.sort, (query.page - 1) * query.size, query.size)
    return ExploreNode(
        explorer.version,
        layer,
        first,
        last,
        int(facts.sizes[part].sum()),
        int(facts.interactions[part].sum()),
        explorer.label_of(part),
        others,
        explorer.summaries(positions),
        len(part),
        query.page,
        num_pages(len(part), query.size),
    )


def _check(explorer: Explorer, layer: int, first: int, last: int) -> None:
    if layer > explorer.depth:
        rule, remedy = f"must be at most {explorer.depth}, the layers of this model", "choose one of its layers"
        raise QueryError(rule, argument="layer", value=layer, remedy=remedy)
    highest = explorer.num_nodes - 1
    for argument, node in (("node", first), ("last", last)):
        if not first <= node <= highest:
            rule = f"must be between {first if argument == 'last' else 0} and {highest}"
            raise QueryError(rule, argument=argument, value=node, remedy="choose a node of this model")
