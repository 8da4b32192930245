"""Two models of the same catalogue: which items moved, and which answers changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pathdex.data.vocabulary import UNKNOWN
from pathdex.errors import QueryError
from pathdex.explorer.change_schemas import ChangedAnswer, CompareQuery, ExploreCompare, HistorySource, MovedItem
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.overview import num_pages
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Floats, Ints

SAMPLE = 5_000
"""Items whose companions are compared: the most popular common ones."""
COMPANIONS = 500
"""Items of a path that count as companions."""
N = 10
"""Items per answer."""
HISTORIES = 300
SHOWN = 50
"""Answers, new items and gone items that are listed."""


@dataclass(frozen=True, eq=False)
class Moves:
    """The common items of two models."""

    here: Ints
    there: Ints
    """Their codes in both."""
    kept: Ints
    """Paths that each has in both."""
    sampled: Ints
    """Positions of the items whose companions were compared, the most popular."""
    companions: Floats
    """The Jaccard similarity of their companions in both."""


def compare(explorer: Explorer, query: CompareQuery) -> ExploreCompare:
    """What changed from `explorer.other` to this model."""
    other = explorer.other
    if other is None:
        raise QueryError("there is no second model", remedy="start it with: pathdex explore A --compare B")
    moves = explorer.once("moves", lambda: _moves(explorer, other))
    answers, histories, same_first = explorer.once("answers", lambda: _answers(explorer, other))
    a, b = explorer.model, other.model
    same = (a.num_nodes, explorer.depth, a.paths.shape[1]) == (b.num_nodes, other.depth, b.paths.shape[1])
    order = _order(explorer, moves, query.sort, same)
    first = (query.page - 1) * query.size
    fresh = np.setdiff1d(explorer.by_popularity, moves.here)
    gone = np.setdiff1d(other.by_popularity, moves.there)
    overlaps = [one.overlap for one in answers]
    return ExploreCompare(
        model=explorer.version,
        other=other.version,
        same_structure=same,
        common_items=len(moves.here),
        only_here=len(fresh),
        only_there=len(gone),
        new_items=explorer.named(explorer.most_popular(fresh, SHOWN)),
        gone_items=other.named(other.most_popular(gone, SHOWN)),
        paths_kept=float(moves.kept.mean() / a.paths.shape[1]) if same and len(moves.kept) else None,
        kept_counts=np.bincount(moves.kept, minlength=a.paths.shape[1] + 1).tolist() if same else [],
        companions_kept=float(moves.companions.mean()) if len(moves.companions) else None,
        sample=len(moves.sampled),
        moved=_moved(explorer, other, moves, order[first : first + query.size]),
        num_moved=len(order),
        page=query.page,
        pages=num_pages(len(order), query.size),
        n=N,
        histories=histories,
        answers=answers[:SHOWN],
        num_answers=len(answers),
        overlap=float(np.mean(overlaps)) if overlaps else None,
        first_same=same_first,
    )


def _moves(explorer: Explorer, other: Explorer) -> Moves:
    here = np.sort(explorer.by_popularity)
    there = other.model.items.codes(explorer.model.items.ids(here))
    here, there = here[there != UNKNOWN], there[there != UNKNOWN]
    mine, theirs = explorer.model.paths, other.model.paths
    kept = np.zeros(len(here), np.int64)
    if (explorer.num_nodes, explorer.depth) == (other.num_nodes, other.depth):
        old = theirs[there]
        for j in range(mine.shape[1]):
            path = mine[here, j]
            kept += (old == path[:, None]).any(axis=1) & (path != NO_PATH)
    sampled = np.argsort(-explorer.counts[here], kind="stable")[:SAMPLE]
    place = np.full(len(other.counts), UNKNOWN, np.int64)
    place[there] = here
    shared = [
        _jaccard(_companions(explorer, int(here[one])), place[_companions(other, int(there[one]))]) for one in sampled
    ]
    return Moves(here, there, kept, sampled, np.array(shared, np.float32))


def _companions(explorer: Explorer, code: int) -> Ints:
    """The other items on an item's paths."""
    paths = explorer.model.paths[code]
    parts = [explorer.items_on(int(path))[:COMPANIONS] for path in paths if path != NO_PATH]
    found: Ints = np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int64)
    others: Ints = found[found != code]
    return others


def _jaccard(mine: Ints, theirs: Ints) -> float:
    theirs = theirs[theirs != UNKNOWN]
    both = len(np.intersect1d(mine, theirs))
    union = len(mine) + len(theirs) - both
    return both / union if union else 1.0


def _order(explorer: Explorer, moves: Moves, sort: str, same: bool) -> Ints:
    """Positions of the common items that moved, as sorted."""
    counts = explorer.counts[moves.here]
    if sort == "companions" or (sort == "paths" and not same):
        rows = np.lexsort((-counts[moves.sampled], moves.companions))
        changed: Ints = moves.sampled[rows[moves.companions[rows] < 1]]
        return changed
    moved = np.flatnonzero(moves.kept < explorer.model.paths.shape[1])
    first = moves.kept[moved] if sort == "paths" else np.zeros(len(moved))
    ordered: Ints = moved[np.lexsort((-counts[moved], first))]
    return ordered


def _moved(explorer: Explorer, other: Explorer, moves: Moves, positions: Ints) -> list[MovedItem]:
    shared = dict(zip(moves.sampled.tolist(), moves.companions.tolist(), strict=True))
    found = []
    for position, one in zip(positions.tolist(), explorer.named(moves.here[positions]), strict=True):
        before, after = other.model.paths[moves.there[position]], explorer.model.paths[moves.here[position]]
        found.append(
            MovedItem(
                one.id,
                int(explorer.counts[moves.here[position]]),
                int(moves.kept[position]),
                shared.get(position),
                decode_paths(before[before != NO_PATH], other.num_nodes, other.depth).tolist(),
                decode_paths(after[after != NO_PATH], explorer.num_nodes, explorer.depth).tolist(),
                one.title,
            )
        )
    return found


def _answers(explorer: Explorer, other: Explorer) -> tuple[list[ChangedAnswer], HistorySource, float | None]:
    """The answers of both to the recorded histories, those that changed most first."""
    recorded = explorer.recording.histories
    if len(recorded):
        source: HistorySource = "recorded"
        histories = [recorded[row].tolist() for row in range(min(HISTORIES, len(recorded)))]
    else:
        source = "popular items"
        histories = [[int(code)] for code in explorer.by_popularity[:HISTORIES]]
    found, same = list[ChangedAnswer](), 0
    for number, history in enumerate(histories):
        ids = explorer.model.items.ids(np.array(history))
        known = [id for id in ids if id in other.model.items]
        if not known:
            continue
        mine = explorer.model.recommend(ids, N)
        theirs = other.model.recommend(known, N)
        after, before = ([one.id for one in answer] for answer in (mine, theirs))
        # Integer ids of one model may be text in the other.
        common = {str(one) for one in after} & {str(one) for one in before}
        same += bool(after and before and str(after[0]) == str(before[0]))
        named = explorer.named(explorer.model.items.codes(after))
        old = other.named(other.model.items.codes(before))
        overlap = len(common) / max(1, min(N, max(len(after), len(before))))
        found.append(ChangedAnswer(number, explorer.named(history), overlap, old, named))
    share = same / len(found) if found else None
    return sorted(found, key=lambda one: (one.overlap, one.number)), source, share
