"""One plot of an index: items per path, node entropy, and the M-steps (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pathdex.errors import StorageError
from pathdex.index.health import IndexHealth
from pathdex.storage.atomic import atomic_write
from pathdex.system import PLOTTING

FORMATS = (".png", ".pdf", ".svg")


def m_step_records(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records of a training log that belong to an M-step."""
    return [dict(record) for record in records if "objective" in record]


def check_plot_file(path: Path) -> None:
    """Raise if matplotlib is missing or the ending of `path` is unknown."""
    PLOTTING.require()
    if path.suffix.lower() not in FORMATS:
        raise StorageError(f"{path}: unknown ending {path.suffix!r}; use {', '.join(FORMATS)}")


def plot_index(health: IndexHealth, records: Sequence[Mapping[str, Any]], path: str | Path) -> Path:
    """Draw the health of an index and its M-steps; the ending of `path` selects PNG, PDF or SVG."""
    path = Path(path)
    check_plot_file(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    (sizes, layers), (objective, movement) = figure.subplots(2, 2)
    _draw_sizes(sizes, health)
    _draw_layers(layers, health)
    steps = m_step_records(records)
    _draw_steps(objective, steps, "objective", "objective", "Objective after each M-step")
    _draw_steps(movement, steps, "overlap", "paths kept from the previous M-step", "Overlap between M-steps")
    movement.set_ylim(0, 1)
    figure.suptitle(
        f"{health.num_items:,} items on {health.used_paths:,} paths, J = {health.paths_per_item}, "
        f"K = {health.num_nodes}, D = {health.depth}"
    )
    with atomic_write(path) as stream:
        figure.savefig(stream, format=path.suffix.lower()[1:], dpi=120)
    return path


def _draw_sizes(axes: Any, health: IndexHealth) -> None:
    axes.bar(list(health.size_histogram), list(health.size_histogram.values()), color="tab:blue")
    axes.set(title=f"Items per path: mean {health.mean_size:.1f}, top {health.top_size:,}", ylabel="paths")
    axes.tick_params(axis="x", rotation=45)


def _draw_layers(axes: Any, health: IndexHealth) -> None:
    names = [f"layer {layer + 1}\n{dead} dead" for layer, dead in enumerate(health.dead_nodes)]
    axes.bar(names, health.entropy_share, color="tab:green")
    axes.set(title="Entropy of the nodes, as a share of log K", ylim=(0, 1))


def _draw_steps(axes: Any, steps: Sequence[Mapping[str, Any]], key: str, label: str, title: str) -> None:
    known = [(number, step[key]) for number, step in enumerate(steps, start=1) if step.get(key) is not None]
    axes.plot([number for number, _ in known], [value for _, value in known], marker="o", label=label)
    axes.set(title=title, xlabel="M-step", ylabel=label)
    axes.set_xticks(range(1, len(steps) + 1))
