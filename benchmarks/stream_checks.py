"""Whether a stream holds exactly the events that it was fed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pathdex
from pathdex.data.events import Event
from pathdex.experiments.stream_folder import read_stream_state
from pathdex.training.loop import TrainingState
from pathdex.training.stream.catalogue import StreamCatalogue
from pathdex.training.stream.histories import UserHistories
from pathdex.training.stream.state import CATALOGUE, under

HISTORIES = "histories."


def distinct_times(events: Sequence[Event]) -> list[Event]:
    """The same events one second apart: none is late, and none repeats another."""
    return [Event(event.user, event.item, 1e9 + place) for place, event in enumerate(events)]


def accounting_errors(folder: Path, events: Sequence[Event], history_length: int) -> list[str]:
    """What differs from every event counting exactly once: counters, counts by item, and the histories of all users.

    Events must have `distinct_times`. Call it while no process writes to the folder.
    """
    state, errors = read_stream_state(folder), []
    counters = state.values["counters"]
    for name, expected in (("events", len(events)), ("learned", len(events)), ("duplicates", 0), ("late", 0)):
        if counters[name] != expected:
            errors.append(f"{name}: {counters[name]:,} instead of {expected:,}")
    catalogue, counts = _catalogue(state), state.arrays["items.counts"]
    for item, expected in Counter(event.item for event in events).items():
        slot = catalogue.slot(item)
        found = 0 if slot < 0 else int(counts[slot])
        if found != expected:
            errors.append(f"item {item}: counted {found} times instead of {expected}")
    histories: dict[Any, list[Any]] = defaultdict(list)
    for event in events:
        histories[event.user].append(str(event.item))
    stored = stored_histories(folder, state, list(histories), history_length)
    for user, items in histories.items():
        if stored[user] != items[-history_length:]:
            errors.append(f"user {user}: history {stored[user]} instead of {items[-history_length:]}")
    return errors


def stored_histories(folder: Path, state: TrainingState, users: list[Any], length: int) -> dict[Any, list[str | None]]:
    """The histories of users by item ids."""
    catalogue, kept = _catalogue(state), UserHistories(length, folder / "state" / "histories.sqlite")
    try:
        return {user: [catalogue.id(slot) for slot in catalogue.slots_of(kept.tokens(str(user)))] for user in users}
    finally:
        kept.close()


def _catalogue(state: TrainingState) -> StreamCatalogue:
    return StreamCatalogue.from_state_dict(under(CATALOGUE, state.arrays))


def differing_states(one: Path, other: Path) -> list[str]:
    """The parts of two streams' checkpoints that are not the same bits. Histories are left out: they are in files."""
    first, second = read_stream_state(one), read_stream_state(other)
    values = [name for name in first.values if name != "checkpoint" and first.values[name] != second.values[name]]
    names = sorted(name for name in {*first.arrays, *second.arrays} if not name.startswith(HISTORIES))
    return values + [
        name
        for name in names
        if name not in first.arrays
        or name not in second.arrays
        or not np.array_equal(first.arrays[name], second.arrays[name])
    ]


def answers(model: Any, histories: Sequence[Sequence[Any]], n: int = 20) -> list[list[tuple[Any, float]]]:
    """Ids and scores for histories, from a model or a client."""
    return [[(one.id, float(one.score)) for one in model.recommend(list(history), n)] for history in histories]


def published_answers(folder: Path, histories: Sequence[Sequence[Any]]) -> list[list[tuple[Any, float]]]:
    """The answers of the published model, loaded now."""
    return answers(pathdex.load(folder), histories)
