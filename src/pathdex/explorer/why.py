"""Why an item is in the answer to a query, or why not: the layer, the limit or the score that kept it out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from pathdex.data.vocabulary import UNKNOWN, Id
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.query_schemas import ExploreWhy, LostLayer, WhyPath, WhyQuery
from pathdex.explorer.query_view import parts_of, prepare
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Floats, Ints
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.retriever import Retriever
from pathdex.retrieval.trace import QueryTrace, trace_beam, trace_query

MOST_BEAM = 1024
"""The largest beam that is tried for an item that a beam has lost."""
TEXTS = {
    "recommended": "It is recommended at rank {rank}.",
    "seen": "It is in the history, and items of the history are left out.",
    "denied": "It is in the list of denied items.",
    "not allowed": "It is not in the list of allowed items.",
    "where": "Its attributes do not match the conditions.",
    "no path": "It is on no path yet.",
    "beam": "The beam of {beam} paths lost the last of its paths at layer {layer}; {remedy}.",
    "candidates": "The beam finds it, but the limit of {limit} candidates keeps more probable items.",
    "score": "It is candidate {rank} of {count} by score; the first {n} score {needed:.3f} or more.",
}


def why(explorer: Explorer, query: WhyQuery, hidden: Sequence[Id] = ()) -> ExploreWhy:
    """What the answer to a query says of one item."""
    model, code = explorer.model, explorer.code_of(query.item)
    if query.where:
        model.attach_details()
    with model.unchanging():
        histories, filters, n = prepare(explorer, query, hidden)
        options = model.search_options(n, {"beam": query.beam, "candidates": query.candidates})
        state = model.retriever.encoder.encode(histories[0])
        trace = trace_query(
            model.retriever, state, filters, n=n, beam=options["beam"], candidates=options["candidates"]
        )
        beam = options["beam"] if trace.beams is None else min(trace.beams.max_beam, len(model.postings))
        if trace.beams is None:
            trace.layers.extend(trace_beam(model.retriever, state.vector, beam))
        paths = _paths(explorer, trace, code)
        placed = model.paths[code][model.paths[code] != NO_PATH]
        found = np.flatnonzero(trace.items == code)
        [item] = explorer.named([code])
        place = int(found[0]) if len(found) else None
        reason = _filtered(explorer, query, filters, code, hidden)
        if reason is None:
            reason = _reason(place, n, paths)
        lost = reason == "beam"
        smallest = beam_that_finds(model.retriever, state.vector, placed, beam) if lost else None
    layer = max(one.lost_at or 0 for one in paths) if lost else None
    has_n = len(trace.items) >= n
    needed = float(trace.scores[n - 1]) if has_n else None
    facts: dict[str, Any] = {
        "rank": None if place is None else place + 1,
        "beam": beam,
        "layer": layer,
        "remedy": f"a beam of {smallest} finds it"
        if smallest
        else f"a beam of {max(MOST_BEAM, beam):,} does not find it",
        "limit": options["candidates"],
        "count": len(trace.items),
        "n": n,
        "needed": needed or 0.0,
    }
    return ExploreWhy(
        explorer.version,
        item.id,
        item.title,
        reason,  # type: ignore[arg-type]
        TEXTS[reason].format(**facts),
        facts["rank"],
        None if place is None else float(trace.scores[place]),
        needed,
        None if place is None else parts_of(trace.parts, place),
        parts_of(trace.parts, n - 1) if has_n else None,
        layer,
        smallest,
        paths,
    )


def beam_that_finds(retriever: Retriever, user: Floats, paths: Ints, beam: int) -> int | None:
    """The smallest beam up to `MOST_BEAM` that finds one of the paths; None if there is none. `beam` finds none."""

    def finds(width: int) -> bool:
        return bool(np.isin(paths, retriever.search_paths(user, width)[0]).any())

    most = min(MOST_BEAM, len(retriever.postings))
    if most <= beam or not finds(most):
        return None
    return bisect_left(range(most + 1), True, lo=beam + 1, key=finds)


def _reason(place: int | None, n: int, paths: Sequence[WhyPath]) -> str:
    if place is not None:
        return "recommended" if place < n else "score"
    if not paths:
        return "no path"
    return "candidates" if any(one.rank is not None for one in paths) else "beam"


def _filtered(explorer: Explorer, query: WhyQuery, filters: Filters, code: int, hidden: Sequence[Id]) -> str | None:
    """The filter that an item does not pass, if there is one."""
    items = explorer.model.items
    if query.exclude_seen and code in items.codes(query.history):
        return "seen"
    denied = items.codes([*query.deny, *hidden])
    if code in denied[denied != UNKNOWN]:
        return "denied"
    if query.allow is not None and code not in items.codes(query.allow):
        return "not allowed"
    mask = filters.where_of(0)
    return "where" if mask is not None and not mask[code] else None


def _paths(explorer: Explorer, trace: QueryTrace, code: int) -> list[WhyPath]:
    """The item's paths layer by layer, the most probable first."""
    model = explorer.model
    placed = model.paths[code][model.paths[code] != NO_PATH]
    if not len(placed):
        return []
    log_p = model.retriever.path_log_probabilities(trace.state.vector, placed).astype(np.float64)
    nodes = decode_paths(placed, explorer.num_nodes, explorer.depth)
    found = []
    for row, path in enumerate(placed.tolist()):
        layers, lost_at = list[LostLayer](), None
        for depth, layer in enumerate(trace.layers, start=1):
            prefix = path // explorer.num_nodes ** (explorer.depth - depth)
            kept = bool((layer.kept == prefix).any())
            lost_at = depth if lost_at is None and not kept else lost_at
            lowest = float(np.exp(layer.log_probability[-1])) if len(layer.kept) else None
            probability, step = float(np.exp(log_p[row, :depth].sum())), float(np.exp(log_p[row, depth - 1]))
            layers.append(LostLayer(depth, int(nodes[row, depth - 1]), probability, step, lowest, kept))
        ranks = np.flatnonzero(trace.layers[-1].kept == path) if trace.layers else np.empty(0, np.int64)
        rank = int(ranks[0]) + 1 if len(ranks) and lost_at is None else None
        size = len(model.postings.items_on(path))
        found.append(WhyPath(nodes[row].tolist(), float(np.exp(log_p[row].sum())), rank, lost_at, size, layers))
    return sorted(found, key=lambda one: -one.probability)
