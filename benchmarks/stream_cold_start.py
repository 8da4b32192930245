"""How a new item of a stream starts: near items with the same attributes, near its first user's history, or at random.

    python -m benchmarks stream-cold-start
    python -m benchmarks stream-cold-start --events 100000

MovieLens-1M in the order of its times. A tenth of the films is held out; a stream learns the events of all others from
nothing. Then the held-out films join, without any learning, in three copies of the same state. The figure is the share
of their first events, from the second to the tenth, in which the film is among the candidates that are retrieved for
the user's history before the event. Attributes are the genres and the year of `movies.dat`.
"""

from __future__ import annotations

import argparse
import re
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine
from benchmarks.sets import SETS, data_folder
from benchmarks.stream import Stream
from benchmarks.training_runs import compile_kernels, write_figures
from pathdex.data.events import Event
from pathdex.data.item_changes import features
from pathdex.data.ragged import Ragged
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.online import OnlineLearning
from pathdex.retrieval.filters import Filters
from pathdex.training.stream.options import StreamOptions
from pathdex.training.stream.state import StreamState

ARMS = ("attributes", "first user", "random")
FIRST_EVENTS = 10
"""Events of a held-out item; the first of them decides where it starts in the arm "first user"."""
BEAMS = (5, 10, 25, 50)


@dataclass(frozen=True)
class FirstEvent:
    """An event of a held-out item, with the other items that the user had before."""

    item: int
    history: list[int]


def read_features(archive: Path) -> dict[str, tuple[str, ...]]:
    """Genres and year of each film, as features by id."""
    with zipfile.ZipFile(archive) as folder:
        lines = folder.read("ml-1m/movies.dat").decode("latin-1").splitlines()
    table = {}
    for line in lines:
        item, title, genres = line.split("::")
        year = re.search(r"\((\d{4})\)\s*$", title)
        table[item] = features({"genre": genres, **({"year": int(year[1])} if year else {})})
    return table


def split_events(stream: Stream, limit: int, seed: int) -> tuple[list[Event], dict[int, list[FirstEvent]]]:
    """The events of the items that are not held out, and the first events of those that are."""
    users, items = stream.users[:limit].tolist(), np.array(stream.data.items.ids(stream.items[:limit]))
    distinct, counts = np.unique(items, return_counts=True)
    often = distinct[counts >= FIRST_EVENTS]
    held = set(np.random.default_rng(seed).permutation(often)[: len(distinct) // 10].tolist())
    histories: dict[int, list[int]] = defaultdict(list)
    first: dict[int, list[FirstEvent]] = defaultdict(list)
    events = []
    for user, item in zip(users, items.tolist(), strict=True):
        if item in held:
            if len(first[item]) < FIRST_EVENTS:
                first[item].append(FirstEvent(item, list(histories[user])))
        else:
            events.append(Event(user, item))
            histories[user].append(item)
    return events, first


def copy_of(state: StreamState) -> StreamState:
    """Another state that begins with the same bits."""
    copy = StreamState(state.config, state.options)
    copy.load_state_dict(state.state_dict())
    return copy


def add_held_out(state: StreamState, arm: str, first: dict[int, list[FirstEvent]], table: dict[str, Any]) -> None:
    """Add the held-out items as one arm starts them."""
    for item, events in first.items():
        like = [state.catalogue.slot(one) for one in events[0].history] if arm == "first user" else []
        state.add_item(item, like, table.get(str(item), ()) if arm == "attributes" else ())


def retrieved_share(state: StreamState, first: dict[int, list[FirstEvent]], beam: int) -> dict[str, float]:
    """The share of the events after the first whose item is retrieved, its standard error over items, and the number of
    candidates."""
    model = DeepRetrieval(state.config)
    model.take_snapshot(OnlineLearning(state))
    shares, sizes = [], []
    for item, events in first.items():
        rows = Ragged.from_rows([model.items.codes(one.history).astype(np.int32) for one in events[1:]])
        found = model.candidate_items(rows, Filters(exclude=rows), beam=beam)
        code = model.items.code(item)
        shares.append(np.mean([code in one for one in found]))
        sizes += found.lengths.tolist()
    error = float(np.std(shares) / np.sqrt(len(shares)))
    return {"share": float(np.mean(shares)), "standard_error": error, "candidates": float(np.mean(sizes))}


def measure(limit: int, seed: int) -> dict[str, Any]:
    """All arms over one stream."""
    data = SETS["ml-1m"].read()
    table = read_features(data_folder() / SETS["ml-1m"].file)
    events, first = split_events(Stream.of(data, 1), limit, seed)
    options = StreamOptions(expected_items=data.num_items)
    state = DeepRetrieval(threads=1, seed=seed).begin_stream(options).state
    for start in range(0, len(events), options.batch_events):
        state.apply(events[start : start + options.batch_events])
    state.learner.full_m_step()
    state.use_table(table)
    report: dict[str, Any] = {"events": len(events), "held_out": len(first), "items": len(state.catalogue), "arms": {}}
    for arm in ARMS:
        copy = copy_of(state)
        add_held_out(copy, arm, first, table)
        report["arms"][arm] = {str(beam): retrieved_share(copy, first, beam) for beam in BEAMS}
    return report


def table_of(report: dict[str, Any]) -> Table:
    title = f"{report['held_out']} new items among {report['items']:,}, after {report['events']:,} events"
    table = Table("start", *(f"beam {beam}" for beam in BEAMS), title=title)
    for arm, shares in report["arms"].items():
        shown = (
            f"{100 * one['share']:.1f} ± {100 * one['standard_error']:.1f}% of {one['candidates']:.0f}"
            for one in shares.values()
        )
        table.add_row(arm, *shown)
    return table


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks stream-cold-start", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=300_000, help="events of the stream, held-out ones included")
    parser.add_argument("--seed", type=int, default=0, help="of the held-out items and the model")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    compile_kernels()
    report = {"machine": describe_machine(), "seed": given.seed, **measure(given.events, given.seed)}
    Console(width=120).print(table_of(report))
    write_figures(report, given.out or Path("benchmarks/results/stream-cold-start.json"))
