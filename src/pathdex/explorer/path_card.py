"""One path: its items and how they relate, its neighbours, who is led to it, and how it came to be."""

from __future__ import annotations

import numpy as np

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.overview import num_pages
from pathdex.explorer.overview_schemas import (
    Cohesion,
    NearPath,
    PathCard,
    PathMember,
    PathQuery,
    SharedValue,
)
from pathdex.explorer.rounds import path_rounds
from pathdex.explorer.samples import cosine_to, led_to_path
from pathdex.index.paths import decode_paths, encode_paths
from pathdex.kernels.types import Ints

SAMPLE = 500
"""Items that cohesion is measured on."""
NEAR = 12
"""Neighbouring paths."""


def path_card(explorer: Explorer, query: PathQuery) -> PathCard:
    """Everything about a path. One that is not in use has no items."""
    nodes = explorer.parse_path(query.path)
    code = int(encode_paths(np.array(nodes), explorer.num_nodes))
    model = explorer.model
    with model.unchanging():
        codes = explorer.items_on(code)
        codes = codes[np.lexsort((codes, -explorer.counts[codes]))]
        weights = explorer.counts[codes] + 1
        vectors = model.item_vectors
        centre = vectors[codes].mean(axis=0) if len(codes) else np.zeros(vectors.shape[1], np.float32)
        first = (query.page - 1) * query.size
        shown = codes[first : first + query.size]
        similarity = cosine_to(vectors[shown], centre)
        members = [
            PathMember(id, int(count), float(share), float(cosine), title, details)
            for (id, title, details), count, share, cosine in zip(
                explorer.catalogue.described(shown),
                explorer.counts[shown],
                weights[first : first + query.size] / max(1, weights.sum()),
                similarity,
                strict=True,
            )
        ]
    histories, num_histories = led_to_path(explorer, code)
    rounds, sample = path_rounds(explorer, code)
    return PathCard(
        explorer.version,
        list(nodes),
        len(codes),
        int(explorer.counts[codes].sum()),
        explorer.label(nodes) if len(codes) else None,
        members,
        query.page,
        num_pages(len(codes), query.size),
        _cohesion(explorer, codes),
        near_paths(explorer, nodes),
        histories,
        num_histories,
        rounds,
        sample,
    )


def _cohesion(explorer: Explorer, codes: Ints) -> Cohesion | None:
    if len(codes) < 2:
        return None
    codes, model = codes[:SAMPLE], explorer.model
    by_popularity = explorer.by_popularity
    drawn = by_popularity[np.random.default_rng(0).integers(0, len(by_popularity), len(codes))]
    with model.unchanging():
        own, others = model.item_vectors[codes], model.item_vectors[drawn]
    labels = explorer.labels
    shared = [] if labels.is_silent else [SharedValue(*one) for one in labels.shared_values(codes)]
    return Cohesion(
        float(cosine_to(own, own.mean(axis=0)).mean()),
        float(cosine_to(others, others.mean(axis=0)).mean()),
        len(codes),
        shared,
    )


def near_paths(explorer: Explorer, nodes: tuple[int, ...]) -> list[NearPath]:
    """Paths with the longest common prefix, the largest first among those that share as much."""
    facts, found, seen = explorer.facts, list[NearPath](), {nodes}
    for common in range(explorer.depth - 1, 0, -1):
        part = facts.range_of(nodes[:common])
        positions = facts.ordered(part, "items", 0, NEAR + len(seen))
        for position, path in zip(
            positions.tolist(), decode_paths(facts.paths[positions], explorer.num_nodes, explorer.depth), strict=True
        ):
            key = tuple(path.tolist())
            if key not in seen:
                seen.add(key)
                found.append(NearPath(list(key), common, int(facts.sizes[position]), explorer.label(key)))
            if len(found) == NEAR:
                return found
    return found
