"""Items like an item: neighbours by paths, in the order of their vectors' cosine."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pathdex.retrieval.retriever import Retriever


def similar_items(retriever: Retriever, code: int, n: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The n items with the largest cosine among those that share a path with an item, best first, ties by item.

    Where fewer share a whole path, those that share a prefix of a path count as well: all but the last node, and so on
    up to the root, under which every item lies.
    """
    candidates = _neighbours(retriever, code, n)
    width = len(retriever.start)
    vectors = retriever.data.table[candidates][:, -width - 1 : -1]
    own = retriever.data.table[code, -width - 1 : -1]
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(own)
    cosine = (vectors @ own / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    best = np.lexsort((candidates, -cosine))[:n]
    return candidates[best], cosine[best]


def _neighbours(retriever: Retriever, code: int, least: int) -> NDArray[np.int64]:
    postings = retriever.postings
    for depth in range(postings.depth, -1, -1):
        step = postings.num_nodes ** (postings.depth - depth)
        prefixes = np.unique(retriever.paths[code] // step)
        first, last = (np.searchsorted(postings.paths, edge * step) for edge in (prefixes, prefixes + 1))
        pieces = [postings.items[postings.offsets[a] : postings.offsets[b]] for a, b in zip(first, last, strict=True)]
        found = np.unique(np.concatenate(pieces)).astype(np.int64)
        found = found[found != code]
        if len(found) >= least:
            break
    return found
