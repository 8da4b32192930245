"""What an explorer computes before it is asked, in the order in which people come to need it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pathdex.explorer.change_schemas import ReplayQuery
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.overview import overview
from pathdex.explorer.replay import replay
from pathdex.explorer.rounds import path_rounds
from pathdex.explorer.samples import sample_answers

STEPS: Mapping[str, Callable[[Explorer], object]] = {
    "the overview": overview,
    "the popularity of the items": lambda explorer: explorer.popularity_rank,
    "the lists of paths": lambda explorer: (explorer.facts.by_size, explorer.facts.by_interactions),
    "the answers to the sample histories": sample_answers,
    "the rounds": lambda explorer: (path_rounds(explorer, 0), replay(explorer, ReplayQuery(items=0))),
    "the search index": lambda explorer: explorer.search,
}
"""By name, as a page shows it."""


def prepare(explorer: Explorer) -> None:
    """Compute it."""
    explorer.prepare(STEPS)
