"""Items similar to an item: those on its paths, ordered by the cosine of their vectors."""

from __future__ import annotations

import numpy as np

from pathdex.index.postings import NO_PATH, Postings
from pathdex.kernels.candidates import dot_items
from pathdex.kernels.types import Floats, Ints
from pathdex.retrieval.retriever import Retriever


def similar_items(retriever: Retriever, item: int, n: int) -> tuple[Ints, Floats]:
    """The n items with the largest cosine among those that share a path with an item, best first, ties by item.

    If fewer than n share a whole path, items that share a shorter prefix count too, down to the root, which all share.
    An item that is on no path has no similar items.
    """
    if retriever.paths[item, 0] == NO_PATH:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    others = _items_near(retriever, item, n)
    cosine = cosines(retriever, retriever.item_vectors[item], others)
    best = np.lexsort((others, -cosine))[:n]
    return others[best], cosine[best]


def cosines(retriever: Retriever, vector: Floats, items: Ints) -> Floats:
    """The cosine of a vector with those of some items. Each is the same whatever the other items are."""
    lengths = np.linalg.norm(retriever.item_vectors[items], axis=1) * np.linalg.norm(vector)
    products = dot_items(retriever.table, np.ascontiguousarray(vector), items)
    found: Floats = (products / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    return found


def items_under(postings: Postings, paths: Ints, depth: int) -> Ints:
    """The distinct items under the prefixes of `depth` nodes of some paths."""
    step = postings.num_nodes ** (postings.depth - depth)
    prefixes = np.unique(paths // step)
    first, last = (np.searchsorted(postings.paths, edge * step) for edge in (prefixes, prefixes + 1))
    parts = [postings.items_at(np.arange(a, b)) for a, b in zip(first, last, strict=True)]
    found: Ints = np.unique(np.concatenate(parts)).astype(np.int64)
    return found


def _items_near(retriever: Retriever, item: int, at_least: int) -> Ints:
    """The other items under the longest prefixes of the item's paths that hold enough of them."""
    for depth in range(retriever.postings.depth, -1, -1):
        found = items_under(retriever.postings, retriever.paths[item], depth)
        found = found[found != item]
        if len(found) >= at_least:
            break
    return found
