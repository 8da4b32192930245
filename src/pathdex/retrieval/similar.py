"""Items similar to an item: those on its paths, ordered by the cosine of their vectors."""

from __future__ import annotations

import numpy as np

from pathdex.index.postings import NO_PATH
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
    vectors, own = retriever.item_vectors[others], retriever.item_vectors[item]
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(own)
    cosine = (vectors @ own / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    best = np.lexsort((others, -cosine))[:n]
    return others[best], cosine[best]


def _items_near(retriever: Retriever, item: int, at_least: int) -> Ints:
    """The other items under the longest prefixes of the item's paths that hold enough of them."""
    postings = retriever.postings
    for depth in range(postings.depth, -1, -1):
        step = postings.num_nodes ** (postings.depth - depth)
        prefixes = np.unique(retriever.paths[item] // step)
        first, last = (np.searchsorted(postings.paths, edge * step) for edge in (prefixes, prefixes + 1))
        parts = [postings.items_at(np.arange(a, b)) for a, b in zip(first, last, strict=True)]
        found = np.unique(np.concatenate(parts)).astype(np.int64)
        found = found[found != item]
        if len(found) >= at_least:
            break
    return found
