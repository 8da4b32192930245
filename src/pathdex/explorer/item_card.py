"""Lists of items, and one item with its paths side by side."""

from __future__ import annotations

import numpy as np

from pathdex.data.vocabulary import UNKNOWN
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.item_schemas import ExploreItems, ItemCard, ItemPath, ItemsQuery, PathNeighbour
from pathdex.explorer.overview import num_pages
from pathdex.explorer.rounds import item_rounds
from pathdex.explorer.samples import answered_with, cosine_to
from pathdex.explorer.schemas import ItemEntry
from pathdex.explorer.search import MAX_INDEXED
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Floats, Ints
from pathdex.retrieval.similar import similar_items

NEIGHBOURS = 8
"""Items shown beside an item on each of its paths."""
COMPARED = 2_000
"""The most popular items on a path that are compared with an item."""
SIMILAR = 12
"""Similar items."""


def find_items(explorer: Explorer, query: ItemsQuery) -> ExploreItems:
    """A page of the items that a search finds, or of all items."""
    order, text = explorer.by_popularity, query.search.strip()
    first = (query.page - 1) * query.size
    if text:
        found = order[explorer.search.find(text)]
        exact = explorer.model.items.code(text)
        if exact != UNKNOWN:
            found = np.concatenate([[exact], found[found != exact]])
    else:
        found = order
    shown = found[first : first + query.size]
    entries = [
        ItemEntry(id, int(count), title, details)
        for (id, title, details), count in zip(explorer.catalogue.described(shown), explorer.counts[shown], strict=True)
    ]
    return ExploreItems(
        explorer.version,
        query.search,
        entries,
        len(found),
        query.page,
        num_pages(len(found), query.size),
        min(len(order), MAX_INDEXED),
    )


def item_card(explorer: Explorer, code: int) -> ItemCard:
    """Everything about an item."""
    model = explorer.model
    with model.unchanging():
        [(id, title, details)] = explorer.catalogue.described([code])
        similar, scores = similar_items(model.retriever, code, SIMILAR)
        own = [int(path) for path in model.paths[code] if path != NO_PATH]
    ranks = explorer.popularity_rank
    paths = [_item_path(explorer, code, path) for path in own]
    histories, num_histories = answered_with(explorer, code)
    rounds, sample = item_rounds(explorer, code)
    return ItemCard(
        model=explorer.version,
        id=id,
        title=title,
        details=details,
        interactions=int(explorer.counts[code]),
        popularity_rank=int(ranks[code]) if code < len(ranks) else len(ranks) + 1,
        num_items=model.items.num_ids,
        paths=paths,
        similar=_neighbours(explorer, similar, scores),
        histories=histories,
        num_histories=num_histories,
        rounds=rounds,
        round_sample=sample,
    )


def _item_path(explorer: Explorer, code: int, path: int) -> ItemPath:
    model, nodes = explorer.model, explorer.nodes_of(path)
    with model.unchanging():
        codes = explorer.items_on(path)
        counts = explorer.counts[codes]
        others = explorer.most_popular(codes[codes != code], COMPARED)
        cosine = cosine_to(model.item_vectors[others], model.item_vectors[code])
    best = np.lexsort((others, -cosine))[:NEIGHBOURS]
    own = int(explorer.counts[code])
    return ItemPath(
        nodes,
        len(codes),
        int(counts.sum()),
        (own + 1) / max(1, int(counts.sum()) + len(codes)),
        _neighbours(explorer, others[best], cosine[best]),
        explorer.label(nodes),
    )


def _neighbours(explorer: Explorer, codes: Ints, scores: Floats) -> list[PathNeighbour]:
    return [
        PathNeighbour(one.id, float(score), int(count), one.title)
        for one, score, count in zip(explorer.named(codes), scores, explorer.counts[codes], strict=True)
    ]
