"""The whole index at a glance, and the nodes and paths under a prefix."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pathdex.explorer.explorer import Explorer
from pathdex.explorer.live_rounds import keeps_publishes
from pathdex.explorer.overview_schemas import (
    Abilities,
    ExploreOverview,
    ExplorePaths,
    ExploreWarning,
    LayerLoad,
    PathsQuery,
    PrefixChild,
    PrefixFlow,
    SizeClass,
)
from pathdex.explorer.schemas import Round
from pathdex.index.health import IndexHealth
from pathdex.storage.live_folder import is_live_folder

LARGEST = 12
"""Largest paths in the overview."""
MAX_CHILDREN = 200
"""Nodes below a prefix that are listed."""
NO_ROUND = ("number", "seconds")
WARNING_DOCS = "warnings.md"


def overview(explorer: Explorer, *, attributes: Sequence[str] = ()) -> ExploreOverview:
    """The overview; `attributes` are the columns that `where` can use."""
    model, facts, config = explorer.model, explorer.facts, explorer.model.config
    health = explorer.once("health", model.health)
    records = model.records
    return ExploreOverview(
        model=explorer.version,
        estimator=model.name,
        items=model.items.num_ids,
        interactions=int(explorer.counts.sum()),
        num_nodes=explorer.num_nodes,
        depth=explorer.depth,
        paths_per_item=config.paths_per_item,
        used_paths=len(facts),
        entries=facts.num_entries,
        beam=config.beam_size,
        history_length=model.history_length,
        layers=explorer.once("layers", lambda: _layers(explorer, health)),
        flows=explorer.once("flows", lambda: [PrefixFlow(list(p), i, n, explorer.label(p)) for p, i, n in facts.flows]),
        sizes=[SizeClass(*one) for one in facts.size_classes],
        largest=explorer.once("largest", lambda: explorer.summaries(facts.by_size[:LARGEST])),
        health=health,
        warnings=found_warnings(records),
        rounds=m_step_rounds(records),
        choices=choices(records),
        abilities=abilities(explorer, attributes),
        config=model.get_params(),
    )


def abilities(explorer: Explorer, attributes: Sequence[str] = ()) -> Abilities:
    """What there is to show."""
    details, recording = explorer.model.details, explorer.recording
    return Abilities(
        titles=details is not None and details.title_column is not None,
        attributes=list(attributes),
        neighbours=explorer.model.retriever.neighbours is not None,
        rounds=_has_publishes(explorer) if explorer.is_live else recording.num_rounds > 0,
        histories=len(recording.histories) > 0,
        comparison=explorer.other is not None,
        live=explorer.is_live,
    )


def _has_publishes(explorer: Explorer) -> bool:
    return explorer.folder is not None and is_live_folder(explorer.folder) and keeps_publishes(explorer.folder)


def _layers(explorer: Explorer, health: IndexHealth) -> list[LayerLoad]:
    return [
        LayerLoad(layer, load.items.tolist(), load.paths.tolist(), load.nodes_per_cell, dead, share)
        for layer, (load, dead, share) in enumerate(
            zip(explorer.facts.loads, health.dead_nodes, health.entropy_share, strict=True), start=1
        )
    ]


def m_step_rounds(records: Sequence[Mapping[str, Any]]) -> list[Round]:
    """The records of the M-steps, numbered from 1."""
    steps = [record for record in records if "objective" in record]
    return [Round(number, figures_of(one), list(one.get("warnings", ()))) for number, one in enumerate(steps, start=1)]


def figures_of(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a record."""
    return {
        name: float(value)
        for name, value in record.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and name not in NO_ROUND
        and np.isfinite(value)
    }


def found_warnings(records: Sequence[Mapping[str, Any]]) -> list[ExploreWarning]:
    """The warnings of the training, those of the last M-step first."""
    steps = [record for record in records if "objective" in record]
    found = []
    for number, record in reversed(list(enumerate(steps, start=1))):
        for text in record.get("warnings", ()):
            code, _, rest = text.partition(": ")
            message, _, advice = rest.partition("; ")
            if not re.fullmatch(r"W\d+", code):
                code, message, advice = "", text, ""
            found.append(ExploreWarning(code, message, advice or None, f"{WARNING_DOCS}#{code.lower()}", number))
    return found


def choices(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the training chose, and why."""
    lines = []
    for record in records:
        if "choices" in record:
            chosen = ", ".join(f"{name}={value:g}" for name, value in record["choices"].items())
            lines.append(f"{chosen}: {record['reason']}")
        elif "comparison" in record:
            lines.append(str(record["reason"]))
    return lines


def paths_under(explorer: Explorer, query: PathsQuery) -> ExplorePaths:
    """The busiest next nodes under a prefix, and a page of its paths."""
    prefix, facts = explorer.parse_path(query.prefix, "prefix", whole=False), explorer.facts
    part = facts.range_of(prefix)
    items, interactions = facts.totals(part)
    children, count = list[PrefixChild](), 0
    if len(prefix) < explorer.depth:
        found = facts.children(prefix)
        count = len(found.nodes)
        rows = zip(*(values[:MAX_CHILDREN].tolist() for values in found), strict=True)
        children = [PrefixChild(*row) for row in rows]
    positions = facts.ordered(part, query.sort, (query.page - 1) * query.size, query.size)
    return ExplorePaths(
        explorer.version,
        list(prefix),
        items,
        interactions,
        explorer.label(prefix) if prefix and len(part) else None,
        children,
        count,
        explorer.summaries(positions),
        len(part),
        query.page,
        num_pages(len(part), query.size),
    )


def num_pages(count: int, size: int) -> int:
    """The pages of a list; 1 for an empty one."""
    return max(1, -(-count // size))
