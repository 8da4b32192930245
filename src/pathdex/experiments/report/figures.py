"""The figures of a report as SVG (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pathdex.evaluation.decomposition import POPULARITY_BUCKETS, bucket_name
from pathdex.evaluation.plots import m_step_records
from pathdex.evaluation.visual import INK, MUTED, method_colour, shades
from pathdex.experiments.report.drawing import LEGEND, line_style, plain_log, subplots, to_svg
from pathdex.experiments.report.wording import mean

Row = Mapping[str, Any]


def comparison_figure(rows: Sequence[Row], n: int) -> str:
    """F of every method, the best first, with its standard deviation over the seeds."""
    rows = sorted(rows, key=lambda row: -row["f_measure"])
    figure, axes = subplots(0.34 * len(rows) + 1.0)
    places = range(len(rows), 0, -1)
    means = [100 * row["f_measure"] for row in rows]
    errors = [100 * (row["f_measure_deviation"] or 0.0) for row in rows]
    colours = [method_colour(row["method"]) for row in rows]
    hatches = ["//" if row["method"] == "brute-force" else "" for row in rows]
    style = {"edgecolor": "white", "linewidth": 0.6, "capsize": 3, "ecolor": INK}
    bars = axes.barh(places, means, xerr=errors, color=colours, hatch=hatches, **style)
    axes.bar_label(bars, fmt="%.2f", padding=4, fontsize=8.5)
    axes.set_yticks(places, [row["method"] for row in rows])
    axes.set_xlabel(f"F@{n} in %, seen items removed")
    axes.margins(x=0.1)
    return to_svg(figure)


def curve_figure(curves: Mapping[str, Sequence[Row]], n: int) -> str:
    """F against the time of a query: a line for methods with a curve, a marker for the others."""
    figure, axes = subplots(4.4)
    for name, points in curves.items():
        style = line_style(name) | ({"linestyle": "none"} if len(points) == 1 else {})
        times = [1e3 * point["seconds_per_query"] for point in points]
        axes.plot(times, _percent(points, "f_measure"), label=name, **style)
    axes.set(xscale="log", xlabel="milliseconds per query, one by one on one thread")
    axes.set_ylabel(f"F@{n} in %, seen items removed")
    plain_log(axes.xaxis)
    figure.legend(loc="outside right upper", **LEGEND)
    return to_svg(figure)


def sensitivity_figure(sensitivity: Mapping[str, Sequence[Row]], n: int) -> str:
    """Recall, precision and F against K, J, B and alpha, as in the paper's figures."""
    shown = {
        "num_nodes": ("nodes", "K"),
        "paths_per_item": ("paths_per_item", "J"),
        "beam_size": ("beam", "B"),
        "penalty": ("penalty", "alpha"),
    }
    figure, grid = subplots(6.6, 3, len(shown), sharex="col", sharey="row")
    for place, (parameter, (key, letter)) in enumerate(shown.items()):
        rows = sensitivity[parameter]
        values = [row[key] for row in rows]
        for axes, figure_name in zip(grid[:, place], ("recall", "precision", "f_measure"), strict=True):
            axes.plot(
                values,
                _percent(rows, figure_name),
                "o-",
                color=method_colour("deep-retrieval"),
                markersize=4,
                label="beam B",
            )
            if parameter != "beam_size":
                equal = _percent([row["at_budget"] for row in rows], figure_name)
                axes.plot(values, equal, "s--", color=MUTED, markersize=3.5, label=f"{10 * n:,} candidates")
            base = next(row[key] for row in rows if row["base"])
            axes.axvline(base, color="black", linewidth=0.7, linestyle=":")
            axes.set_xscale("linear" if parameter == "paths_per_item" else "log")
            axes.grid(alpha=0.25)
            axes.tick_params(labelsize=8)
        if parameter != "penalty":
            # The values themselves, skipping some to avoid overlap.
            ticks = values[:: 1 + len(values) // 6]
            axes.set_xticks(ticks, [f"{value:,}" for value in ticks])
            axes.minorticks_off()
        grid[-1, place].set_xlabel(letter)
    for axes, words in zip(grid[:, 0], ("recall", "precision", "F"), strict=True):
        axes.set_ylabel(f"{words}@{n} in %")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, **LEGEND)
    return to_svg(figure)


def path_size_figure(rows: Sequence[Row]) -> str:
    """Items on the fullest path and on the path of an average item, against alpha."""
    figure, axes = subplots(3.2, width=6.0)
    alphas = [row["penalty"] for row in rows]
    axes.plot(
        alphas, [row["top_size"] for row in rows], "o-", color=method_colour("deep-retrieval"), label="fullest path"
    )
    axes.plot(alphas, [row["item_mean_size"] for row in rows], "s--", color=MUTED, label="path of an average item")
    axes.set(xscale="log", yscale="log", xlabel="alpha", ylabel="items on a path")
    plain_log(axes.yaxis)
    axes.legend(**LEGEND)
    return to_svg(figure)


def popularity_figure(truth: Row, methods: Sequence[Row], n: int) -> str:
    """The share of each popularity decile in the recommendations of each method, and in the truth."""
    from matplotlib.colors import LinearSegmentedColormap

    names = [*(row["method"] for row in methods), "truth"]
    shares = 100 * np.array([row["deciles"] for row in (*methods, truth)])  # (method, decile)
    ends = shares.cumsum(axis=1)
    figure, axes = subplots(0.34 * len(names) + 1.5)
    places = range(len(names), 0, -1)
    # The most popular decile is most of every bar, so it is the lightest shade.
    colours = LinearSegmentedColormap.from_list("deciles", shades())(np.linspace(0.1, 1, 10))
    for decile, shade in enumerate(colours):
        style = {"color": shade, "edgecolor": "white", "linewidth": 0.5}
        label = {0: "1 (most popular)", 9: "10 (least)"}.get(decile, f"{decile + 1}")
        axes.barh(places, shares[:, decile], left=(ends - shares)[:, decile], label=label, **style)
    axes.set_yticks(places, names)
    axes.set(xlabel=f"share of the top {n} in %, by popularity decile of the catalogue", xlim=(0, 100))
    figure.legend(loc="outside right upper", **LEGEND, title="decile")
    return to_svg(figure)


def loss_figure(losses: Sequence[Row], n: int) -> str:
    """F of brute force, of the candidates and of the final answer, and the share kept by popularity."""
    figure, (left, right) = subplots(3.6, 1, 2)
    removed = [[loss for loss in one["losses"] if loss["filter_seen"]] for one in losses]
    counts = [loss["candidate_budget"] for loss in removed[0]]
    lines = {"f_brute_force": "brute force", "f_structure": "candidates", "f_final": "final answer"}
    for number, (key, label) in enumerate(lines.items()):
        means = [100 * (mean([loss[key] for loss in seeds]) or 0.0) for seeds in zip(*removed, strict=True)]
        left.plot(counts, means, label=label, **line_style(number))
    left.set(xlabel="candidates per query", ylabel=f"F@{n} in %", title="F by stage")
    left.set_xticks(counts)
    left.legend(**LEGEND)
    names = [bucket_name(low, high) for low, high in POPULARITY_BUCKETS]
    for place, count in enumerate(counts):
        kept = [mean([one[place]["kept_by_popularity"][name] for one in removed]) for name in names]
        known = [(name, 100 * value) for name, value in zip(names, kept, strict=True) if value is not None]
        right.plot(*zip(*known, strict=True), label=f"{count:,} candidates", **line_style(place))
    right.set(xlabel="occurrences in training", ylabel=f"% of brute force's top {n}", ylim=(0, 103))
    right.set_title("Kept, by popularity")
    right.legend(**LEGEND)
    return to_svg(figure)


_HEALTH = {
    "used_paths": "paths in use",
    "item_mean_size": "items on the path of an average item",
    "top_size": "items on the fullest path",
    "entropy_share": "entropy of the least even layer",
    "dead_nodes": "dead nodes",
    "overlap": "paths kept from the previous M-step",
}


def health_figure(trainings: Sequence[Row]) -> str:
    """The health of the index after each M-step, one line per seed."""
    figure, grid = subplots(4.8, 2, 3)
    for axes, (key, words) in zip(grid.ravel(), _HEALTH.items(), strict=True):
        for number, training in enumerate(trainings):
            steps = m_step_records(training["records"])
            known = [(place + 1, step[key]) for place, step in enumerate(steps) if step.get(key) is not None]
            if known:
                axes.plot(*zip(*known, strict=True), label=f"seed {training['seed']}", **line_style(number))
            axes.set_xticks(range(1, len(steps) + 1))
        axes.set_title(words, fontsize=9)
        axes.set_xlabel("M-step", fontsize=8.5)
        axes.tick_params(labelsize=8)
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), high * 1.05 if high > 0 else 1)
        if key in ("used_paths", "top_size", "dead_nodes"):
            axes.yaxis.get_major_locator().set_params(integer=True)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, **LEGEND)
    return to_svg(figure)


def training_figure(trainings: Sequence[Row], own: str) -> str:
    """Losses of Deep Retrieval by epoch, and those of the other methods relative to their first."""
    figure, (encoder, structure, others) = subplots(3.6, 1, 3)
    seeds = list(dict.fromkeys(training["seed"] for training in trainings))
    for training in trainings:
        name, seed, records = training["method"], training["seed"], training["records"]
        if name == own:
            for axes, key in ((encoder, "softmax"), (structure, "structure")):
                losses = [record[key] for record in records if key in record]
                axes.plot(range(1, len(losses) + 1), losses, label=f"seed {seed}", **line_style(seeds.index(seed)))
        elif seed == seeds[0]:
            losses = [record.get("loss", record.get("softmax")) for record in records]
            if known := [loss for loss in losses if loss is not None]:
                shares = [loss / known[0] for loss in known]
                others.plot(range(1, len(shares) + 1), shares, label=name, **line_style(name))
    encoder.set(title="Softmax loss", xlabel="epoch")
    structure.set(title="Structure loss", xlabel="round or epoch")
    others.set(title="Other methods, relative to the first", xlabel="epoch")
    for axes in (encoder, structure, others):
        axes.title.set_fontsize(10)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if axes.lines:
            axes.legend(fontsize=8, frameon=False)
    return to_svg(figure)


def _percent(rows: Sequence[Row], key: str) -> list[float]:
    return [100 * row[key] for row in rows]
