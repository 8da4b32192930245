"""A query as `recommend` answers it, with every step of the way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN, Id
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.query_schemas import BeamLayer, BeamPrefix, ExploreQuery, ExploreTrace, FollowedPath, RankedItem
from pathdex.explorer.schemas import ScoreParts
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Ints, Mask
from pathdex.recommenders.arguments import check_n
from pathdex.recommenders.query import Query
from pathdex.retrieval.filters import Filters
from pathdex.retrieval.trace import LayerTrace, QueryTrace, ScoreSummands, trace_query

KEPT, PRUNED = 60, 40
"""Prefixes of a layer that are listed: those kept and those pruned, the most probable ones."""
MAX_PATHS = 100
"""Paths that are listed."""
LABELLED = 20
"""Paths that have a label; those of the others are on their cards."""
MORE_ITEMS = 50
"""Candidates that are listed after the recommended ones."""


def query_view(explorer: Explorer, query: ExploreQuery, hidden: Sequence[Id] = ()) -> ExploreTrace:
    """The steps of a query; items of `hidden` are denied too."""
    model = explorer.model
    if query.where:
        model.attach_details()
    with model.unchanging():
        histories, filters, n = prepare(explorer, query, hidden)
        options = model.search_options(n, {"beam": query.beam, "candidates": query.candidates})
        state = model.retriever.encoder.encode(histories[0])
        trace = trace_query(
            model.retriever, state, filters, n=n, beam=options["beam"], candidates=options["candidates"]
        )
        layers = [_layer(explorer, depth, layer) for depth, layer in enumerate(trace.layers, start=1)]
        followed = trace.layers[-1].kept if trace.layers else np.empty(0, np.int64)
        on_paths = np.isin(model.paths[trace.items], followed) & (model.paths[trace.items] != NO_PATH)
        paths = _paths(explorer, trace, followed)
        items = _items(explorer, trace, on_paths, n)
        history = explorer.named(histories[0].tolist())
    listed = trace.beams is None
    from_paths = int(on_paths.any(axis=1).sum())
    for one in paths[:LABELLED]:
        one.label = explorer.label(one.path)
    return ExploreTrace(
        model=explorer.version,
        history=history,
        unknown=len(query.history) - len(histories[0]),
        used=min(len(histories[0]), model.config.history_length),
        n=n,
        beam=0 if trace.beams is None else min(trace.beams.max_beam, len(model.postings)),
        requested_beam=options["beam"],
        candidates_limit=options["candidates"],
        mode="listed" if listed else "beam",
        layers=layers,
        paths=paths,
        num_paths=len(followed),
        num_candidates=len(trace.items),
        from_paths=from_paths,
        from_neighbours=0 if listed else len(trace.items) - from_paths,
        items=items,
    )


def prepare(explorer: Explorer, query: ExploreQuery, hidden: Sequence[Id] = ()) -> tuple[Ragged, Filters, int]:
    """The history in codes, the filters and n, as `recommend_batch` has them."""
    model = explorer.model
    codes = model.items.codes(query.history)
    known = codes[codes != UNKNOWN]
    if len(codes) and not len(known):
        model.encode_histories([query.history])  # Raises.
    histories = Ragged.from_rows([known])
    asked = Query(query.history, query.exclude_seen, [*query.deny, *hidden], query.allow, query.where)
    return histories, model.query_filters([asked], histories), check_n(query.n, len(model.items))


def parts_of(summands: ScoreSummands, row: int) -> ScoreParts:
    """The parts of one score."""
    return ScoreParts(
        float(summands.reranker[row]),
        float(summands.bias[row]),
        float(summands.path[row]),
        float(summands.neighbours[row]),
    )


def _layer(explorer: Explorer, depth: int, layer: LayerTrace) -> BeamLayer:
    total = layer.compared_log_probability
    is_kept = np.isin(layer.compared, layer.kept)
    pruned = np.flatnonzero(~is_kept)
    if len(pruned) > PRUNED:
        pruned = pruned[np.argpartition(-total[pruned], PRUNED)[:PRUNED]]
    pruned = pruned[np.argsort(-total[pruned], kind="stable")]
    kept = np.searchsorted(layer.compared, layer.kept)[:KEPT]
    shown = np.concatenate([kept, pruned])
    nodes = decode_paths(layer.compared[shown], explorer.num_nodes, depth).tolist()
    sizes = explorer.facts.items_under(layer.compared[shown], depth).tolist()
    ranks = [*range(1, len(kept) + 1), *range(len(layer.kept) + 1, len(layer.kept) + len(pruned) + 1)]
    log_p = np.concatenate([layer.log_probability[:KEPT], total[pruned]])
    return BeamLayer(
        depth,
        len(layer.kept),
        len(layer.compared),
        float(np.exp(layer.log_probability.astype(np.float64)).sum()),
        float(np.exp(total.astype(np.float64)).sum()),
        float(np.exp(layer.log_probability[-1])) if len(layer.kept) else None,
        [
            BeamPrefix(prefix, float(p), float(step), place < len(kept), rank, size)
            for place, (prefix, p, step, rank, size) in enumerate(
                zip(nodes, np.exp(log_p), np.exp(layer.steps[shown]), ranks, sizes, strict=True)
            )
        ],
    )


def _paths(explorer: Explorer, trace: QueryTrace, followed: Ints) -> list[FollowedPath]:
    found, candidates = list[FollowedPath](), np.sort(trace.items)
    nodes = decode_paths(followed[:MAX_PATHS], explorer.num_nodes, explorer.depth).tolist()
    for rank, (path, code) in enumerate(zip(nodes, followed[:MAX_PATHS].tolist(), strict=True), start=1):
        items = explorer.items_on(code)
        places = np.searchsorted(candidates, items)
        known = places < len(candidates)
        scored = int((candidates[places[known]] == items[known]).sum())
        log_p = trace.layers[-1].log_probability[rank - 1]
        found.append(FollowedPath(path, rank, float(np.exp(log_p)), len(items), scored))
    return found


def _items(explorer: Explorer, trace: QueryTrace, on_paths: Mask, n: int) -> list[RankedItem]:
    shown = trace.items[: n + MORE_ITEMS]
    paths = explorer.model.paths[shown]
    rows = []
    for row, (id, title, details) in enumerate(explorer.catalogue.described(shown)):
        near, reached = trace.similarity[row] > 0, bool(on_paths[row].any())
        source = (
            "listed" if trace.beams is None else "both" if near and reached else "paths" if reached else "neighbours"
        )
        rows.append(
            RankedItem(
                id,
                row + 1,
                float(trace.scores[row]),
                parts_of(trace.parts, row),
                float(np.exp(trace.log_probability[row])),
                source,  # type: ignore[arg-type]
                decode_paths(paths[row][on_paths[row]], explorer.num_nodes, explorer.depth).tolist(),
                row < n,
                title,
                details,
            )
        )
    return rows
