"""How the index came to be: sampled items on their paths after every M-step."""

from __future__ import annotations

import numpy as np

from pathdex.explorer.change_schemas import ExploreReplay, ReplayItem, ReplayQuery, ReplayRound
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.facts import MAX_CELLS
from pathdex.explorer.overview import figures_of, m_step_rounds
from pathdex.explorer.schemas import Round
from pathdex.index.health import health
from pathdex.index.paths import decode_paths
from pathdex.index.postings import NO_PATH
from pathdex.kernels.types import Ints

NOT_RECORDED = (
    "The paths of each round were not recorded. `pathdex train` records them in the run folder, unless it is "
    "called with --no-recording; open the run folder, not a copy of its bundle."
)


def replay(explorer: Explorer, query: ReplayQuery) -> ExploreReplay:
    """The recorded rounds; only figures where paths were not recorded."""
    recording, records = explorer.recording, explorer.model.records
    recorded = recording.num_rounds > 0
    rounds = explorer.once("replay", lambda: _rounds(explorer))
    return ExploreReplay(
        explorer.version,
        recorded,
        "training",
        None if recorded else NOT_RECORDED,
        len(recording.items) if recorded else 0,
        rounds,
        _items(explorer, query.items) if recorded else [],
        [Round(number, figures_of(one)) for number, one in enumerate(records, start=1)],
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
        state = health(paths, explorer.num_nodes, explorer.depth, previous=before)
        step = figures.get(number)
        found.append(
            ReplayRound(
                number,
                None if state.overlap is None else 1 - state.overlap,
                state.used_paths,
                _loads(paths, explorer.num_nodes, explorer.depth),
                state.size_histogram,
                {} if step is None else step.figures,
                [] if step is None else step.warnings,
            )
        )
        before = paths
    return found


def _loads(paths: Ints, num_nodes: int, depth: int) -> list[list[int]]:
    step = -(-num_nodes // MAX_CELLS)
    nodes = decode_paths(paths[paths != NO_PATH], num_nodes, depth) // step
    return [np.bincount(nodes[:, layer], minlength=-(-num_nodes // step)).tolist() for layer in range(depth)]


def _items(explorer: Explorer, most: int) -> list[ReplayItem]:
    recording = explorer.recording
    counts = explorer.counts[recording.items]
    rows = np.lexsort((recording.items, -counts))[:most]
    nodes = decode_paths(recording.rounds[:, rows], explorer.num_nodes, explorer.depth)  # (round, item, path, layer)
    named = explorer.named(recording.items[rows])
    return [
        ReplayItem(one.id, int(counts[row]), nodes[:, place].tolist(), one.title)
        for place, (row, one) in enumerate(zip(rows, named, strict=True))
    ]
