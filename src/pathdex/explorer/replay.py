"""How the index came to be: sampled items on their paths after every M-step, or after publishes of a live model."""

from __future__ import annotations

import numpy as np

from pathdex.explorer.change_schemas import ExploreReplay, ReplayItem, ReplayQuery, ReplayRound
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.facts import MAX_CELLS
from pathdex.explorer.live_rounds import LiveRounds
from pathdex.explorer.overview import figures_of, m_step_rounds
from pathdex.explorer.rounds import live_rounds_of
from pathdex.explorer.schemas import Round
from pathdex.index.health import health
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Ints

NOT_RECORDED = (
    "The paths of each round were not recorded. `pathdex train` records them in the run folder, unless it is "
    "called with --no-recording; open the run folder, not a copy of its bundle."
)


NO_PUBLISHES = (
    "The live folder keeps only the present state, so there is nothing to replay. It keeps the publishes since the "
    "base before the current one; look again after the next publish."
)
LEFT_OUT = "The {count:,} latest publishes are left out; they are part of the replay after the next compaction."


def replay(explorer: Explorer, query: ReplayQuery) -> ExploreReplay:
    """The recorded rounds, or the publishes that a live folder keeps; only figures where there are neither."""
    if explorer.is_live:
        return _live_replay(explorer, query)
    recording = explorer.recording
    recorded = recording.num_rounds > 0
    return ExploreReplay(
        explorer.version,
        recorded,
        "training",
        None if recorded else NOT_RECORDED,
        len(recording.items) if recorded else 0,
        explorer.once("replay", lambda: _rounds(explorer)),
        _items(explorer, recording.items, recording.rounds, query.items) if recorded else [],
        _losses(explorer),
    )


def _live_replay(explorer: Explorer, query: ReplayQuery) -> ExploreReplay:
    found = live_rounds_of(explorer)
    if found is None:
        return ExploreReplay(explorer.version, False, "live", NO_PUBLISHES, 0, [], [], _losses(explorer))
    return ExploreReplay(
        explorer.version,
        True,
        "live",
        LEFT_OUT.format(count=found.left_out) if found.left_out else None,
        len(found.items),
        explorer.once("replay", lambda: _publishes(explorer, found)),
        _items(explorer, found.items, found.rounds, query.items),
        _losses(explorer),
    )


def _publishes(explorer: Explorer, found: LiveRounds) -> list[ReplayRound]:
    rounds, before = list[ReplayRound](), None
    for number, paths, time in zip(found.publishes.tolist(), found.rounds, found.times, strict=True):
        rounds.append(_round(explorer, number, paths, before, time=time))
        before = paths
    return rounds


def _losses(explorer: Explorer) -> list[Round]:
    epochs = [figures for one in explorer.model.records if (figures := figures_of(one))]
    return [Round(number, figures) for number, figures in enumerate(epochs, start=1)]


def _round(
    explorer: Explorer, number: int, paths: Ints, before: Ints | None, step: Round | None = None, **more: float
) -> ReplayRound:
    state = health(paths, explorer.num_nodes, explorer.depth, previous=before)
    return ReplayRound(
        number,
        None if state.overlap is None else 1 - state.overlap,
        state.used_paths,
        _loads(paths, explorer.num_nodes, explorer.depth),
        state.size_histogram,
        {} if step is None else dict(step.figures),
        [] if step is None else step.warnings,
        **more,
    )


def _rounds(explorer: Explorer) -> list[ReplayRound]:
    recording, steps = explorer.recording, m_step_rounds(explorer.model.records)
    if not recording.num_rounds:
        return [
            ReplayRound(one.number, one.figures.get("overlap"), 0, [], {}, one.figures, one.warnings) for one in steps
        ]
    # A training that was resumed from an older checkpoint recorded only its last M-steps.
    skipped = len(steps) - recording.num_rounds
    figures = {one.number - skipped: one for one in steps}
    found, before = list[ReplayRound](), None
    for number, paths in enumerate(recording.rounds):
        found.append(_round(explorer, number, paths, before, figures.get(number)))
        if len(recording.recall):
            found[-1].figures["recall"] = float(recording.recall[number])
        before = paths
    return found


def _loads(paths: Ints, num_nodes: int, depth: int) -> list[list[int]]:
    step = -(-num_nodes // MAX_CELLS)
    nodes = decode_paths(paths[paths != NO_PATH], num_nodes, depth) // step
    return [np.bincount(nodes[:, layer], minlength=-(-num_nodes // step)).tolist() for layer in range(depth)]


def _items(explorer: Explorer, items: Ints, rounds: Ints, most: int) -> list[ReplayItem]:
    counts = explorer.counts[items]
    rows = np.lexsort((items, -counts))[:most]
    # (round, item, path, layer)
    nodes = decode_paths(np.maximum(rounds[:, rows], 0), explorer.num_nodes, explorer.depth)
    placed = rounds[:, rows] != NO_PATH
    named = explorer.named(items[rows])
    return [
        ReplayItem(
            one.id,
            int(counts[row]),
            [paths[kept].tolist() for paths, kept in zip(nodes[:, place], placed[:, place], strict=True)],
            one.title,
        )
        for place, (row, one) in enumerate(zip(rows, named, strict=True))
    ]
