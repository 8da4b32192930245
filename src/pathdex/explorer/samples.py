"""The recorded histories as queries: which paths each is led to, and which items each is answered with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import UNKNOWN
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.overview_schemas import LeadingHistory
from pathdex.explorer.query_schemas import FollowedPath
from pathdex.kernels.types import Floats, Ints
from pathdex.retrieval.filters import Filters

ANSWER = 50
"""Items that each history is answered with."""
SHOWN = 20
"""Histories in a card, and items of each."""
MOST = 1_000
"""Histories that are asked."""

Hit = tuple[int, int, float]
"""The number of a history, a rank, and a log probability or a score."""


@dataclass(frozen=True, eq=False)
class SampleAnswers:
    """What the model gives for all recorded histories."""

    histories: Ragged
    next: Ints
    by_path: dict[int, list[Hit]]
    """Path code to the histories whose beam has it."""
    by_item: dict[int, list[Hit]]
    """Item code to the histories whose answer has it."""
    answers: Ints
    """(history, `ANSWER`) the items of each answer, padded with -1."""

    @property
    def num_histories(self) -> int:
        return len(self.histories)


def sample_answers(explorer: Explorer) -> SampleAnswers | None:
    """The answers to the recorded histories; None if none were recorded."""
    recording = explorer.recording
    if not len(recording.histories):
        return None
    return explorer.once("samples", lambda: _ask(explorer, recording.histories, recording.next))


def _ask(explorer: Explorer, histories: Ragged, following: Ints) -> SampleAnswers:
    model = explorer.model
    histories, following = histories.take(np.arange(min(MOST, len(histories)))), following[:MOST]
    by_path: dict[int, list[Hit]] = defaultdict(list)
    by_item: dict[int, list[Hit]] = defaultdict(list)
    answers = np.full((len(histories), ANSWER), UNKNOWN, np.int64)
    for number, history in enumerate(histories):
        with model.unchanging():
            state = model.retriever.encoder.encode(history)
            beam = model.search_options(1, {})["beam"]
            paths, log_p = model.retriever.search_paths(state.vector, beam)
            filters = Filters(Ragged.from_rows([history]))
            items, scores, _ = model.retriever.best_items(state, filters, 0, n=ANSWER, beam=beam)
        for rank, (path, value) in enumerate(zip(paths.tolist(), log_p.tolist(), strict=True), start=1):
            by_path[path].append((number, rank, value))
        for rank, (item, value) in enumerate(zip(items.tolist(), scores.tolist(), strict=True), start=1):
            by_item[item].append((number, rank, value))
        answers[number, : len(items)] = items
    for hits in [*by_path.values(), *by_item.values()]:
        hits.sort(key=lambda hit: (hit[1], -hit[2], hit[0]))
    return SampleAnswers(histories, following, dict(by_path), dict(by_item), answers)


def led_to_path(explorer: Explorer, path: int) -> tuple[list[LeadingHistory] | None, int]:
    """The histories whose beam has a path, the best ranks first, and their number; None if none were recorded."""
    found = sample_answers(explorer)
    if found is None:
        return None, 0
    hits = found.by_path.get(path, [])
    shown = [_shown(explorer, found, hit) for hit in hits[:SHOWN]]
    for one, hit in zip(shown, hits, strict=False):
        one.probability = float(np.exp(hit[2]))
    return shown, len(hits)


def answered_with(explorer: Explorer, item: int) -> tuple[list[LeadingHistory] | None, int]:
    """The histories whose answer has an item, and their number; None if none were recorded."""
    found = sample_answers(explorer)
    if found is None:
        return None, 0
    hits = found.by_item.get(item, [])
    shown = [_shown(explorer, found, hit) for hit in hits[:SHOWN]]
    for one, hit in zip(shown, hits, strict=False):
        one.score = hit[2]
    return shown, len(hits)


def _shown(explorer: Explorer, found: SampleAnswers, hit: Hit) -> LeadingHistory:
    number, rank, _ = hit
    [*history, following] = explorer.named([*found.histories[number][-SHOWN:].tolist(), int(found.next[number])])
    return LeadingHistory(number, history, rank, next=following)


def followed_path(
    explorer: Explorer, nodes: Sequence[int], rank: int, log_p: float, items: Ints, hits: int
) -> FollowedPath:
    """A path of a beam, with its label."""
    return FollowedPath(list(nodes), rank, float(np.exp(log_p)), len(items), hits, explorer.label(nodes))


def cosine_to(vectors: Floats, centre: Floats) -> Floats:
    """The cosine of each row with a vector."""
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(centre)
    cosine: Floats = (vectors @ centre / np.maximum(lengths, np.finfo(np.float32).tiny)).astype(np.float32)
    return cosine
