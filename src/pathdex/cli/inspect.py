"""`pathdex inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from pathdex.cli.answers import label
from pathdex.cli.command import RunPath, write_result
from pathdex.cli.console import out
from pathdex.cli.inspect_paths import near_table, parse_nodes, paths_json, paths_table, plot_model
from pathdex.cli.options import JsonFile
from pathdex.errors import QueryError
from pathdex.tables import TextTable, pairs

if TYPE_CHECKING:
    from pathdex.index.health import IndexHealth


def inspect(
    folder: RunPath,
    plot: Annotated[
        Path | None, Option(help="Also draw a plot: .png, .pdf or .svg (needs the extra `plot`).", metavar="FILE")
    ] = None,
    item: Annotated[str | None, Option(help="Show the paths of this item and what else is on them.")] = None,
    path: Annotated[
        str | None, Option(help="Show the items on this path, such as 3-17-5 or 3,17,5, and its neighbours.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Show the health of an index: how items are spread over paths and nodes, the M-steps, and what training chose.

    With --item or --path, show what is on a path instead.

    Examples:

        pathdex inspect runs/first

        pathdex inspect runs/first --plot index.png --json index.json

        pathdex inspect runs/first --item 260
    """
    from pathdex.evaluation.plots import check_plot_file, m_step_records
    from pathdex.recommenders.capabilities import HasIndex, require
    from pathdex.recommenders.registry import load

    if plot is not None:
        check_plot_file(plot)
    model = require(load(folder), HasIndex)
    if item is not None or path is not None:
        if plot is not None or (item is not None and path is not None):
            raise QueryError("pass one of --plot, --item and --path")
        paths = [parse_nodes(path)] if path is not None else model.item_paths(str(item))
        known = None if item is None else model.items.ids(model.items.codes([item]))[0]
        title = "Paths" if known is None else f"Paths of {label(model.details, known)}"
        out().print(paths_table(title, model, paths, known))
        near = near_table(model, paths[0]) if path is not None else None
        if near is not None:
            out().print(near)
        write_result(json_file, {"paths": [paths_json(model, nodes) for nodes in paths]})
        return
    health, steps = model.health(), m_step_records(model.records)
    console = out()
    for part in [*health_tables(health, steps), *training_lines(model.records)]:
        console.print(part)
    if json_file is not None:
        training = [record for record in model.records if "choices" in record or "comparison" in record]
        write_result(json_file, {"health": health.to_dict(), "m_steps": steps, "training": training})
    if plot is not None:
        plot_model(model, steps, plot)
        console.print(f"Wrote {plot}")


def health_tables(health: IndexHealth, steps: Sequence[dict[str, Any]]) -> list[TextTable]:
    """The health of an index and its M-steps as tables."""
    facts = {
        "items": f"{health.num_items:,}, each on J = {health.paths_per_item} paths",
        "paths in use": f"{health.used_paths:,} of K^D = {health.num_nodes}^{health.depth}",
        "items per path": f"mean {health.mean_size:.1f}, median {health.median_size:g}, p99 {health.p99_size:g}",
        "path of an average item": f"{health.item_mean_size:.1f} items",
        "fullest path": f"{health.top_size:,} items",
        "distinct paths per item": f"{health.distinct_paths:.2f}",
        "unreachable items": f"{health.unreachable_items:,}",
    }
    sizes = [
        [size, f"{count:,}", f"{count / max(health.used_paths, 1):.1%}"]
        for size, count in health.size_histogram.items()
    ]
    layers = [
        [str(layer), f"{entropy:.3f}", f"{share:.1%}", f"{dead:,} of {health.num_nodes:,}"]
        for layer, (entropy, share, dead) in enumerate(
            zip(health.entropy, health.entropy_share, health.dead_nodes, strict=True), start=1
        )
    ]
    parts: list[TextTable] = [
        pairs("Index", facts),
        TextTable("\nPaths by number of items", ["items", "paths", "share"], sizes),
        TextTable("Nodes", ["layer", "entropy (nats)", "of log K", "dead"], layers),
    ]
    if steps:
        rows = [
            [
                str(number),
                f"{step['objective']:,.1f}",
                f"{step['used_paths']:,}",
                f"{step['item_mean_size']:.1f}",
                f"{step['top_size']:,}",
                "" if step.get("overlap") is None else f"{step['overlap']:.1%}",
            ]
            for number, step in enumerate(steps, start=1)
        ]
        columns = ["M-step", "objective", "paths in use", "average item's path", "fullest path", "paths kept"]
        parts.append(TextTable("M-steps", columns, rows))
    return parts


def training_lines(records: Sequence[dict[str, Any]]) -> list[str]:
    """What training chose and why, and how the result compares with simple baselines; none without held-out data."""
    from pathdex.training.callbacks import describe_choice

    lines = []
    for record in records:
        if "choices" in record:
            lines.append(describe_choice(record).strip())
        elif "comparison" in record:
            lines.append(record["reason"])
    return ["", *lines] if lines else []
