"""The figures of a report as SVG (extra `plot`). Lines differ in marker and dash as well as colour, for grey print."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

from pathdex.evaluation.decomposition import POPULARITY_BUCKETS, bucket_name
from pathdex.evaluation.plots import m_step_records
from pathdex.experiments.report.wording import mean
from pathdex.recommenders.registry import ESTIMATORS

Row = Mapping[str, Any]

_COLOURS = (
    "#000000",
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7f7f7f",
    "#8c510a",
    "#5e3c99",
)
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_DASHES = ("-", "--", "-.", ":")
_WIDTH = 9.5


def comparison_figure(rows: Sequence[Row], n: int) -> str:
    """F of every method, with its standard deviation over the seeds."""
    figure = _figure(0.34 * len(rows) + 1.0)
    axes = figure.subplots()
    places = range(len(rows), 0, -1)
    means = [100 * row["f_measure"] for row in rows]
    errors = [100 * (row["f_measure_deviation"] or 0.0) for row in rows]
    own = ["#0072b2" if row["method"] == "deep-retrieval" else "#b0b0b0" for row in rows]
    bars = axes.barh(places, means, xerr=errors, color=own, edgecolor="black", linewidth=0.6, capsize=3)
    for bar, row in zip(bars, rows, strict=True):
        if row["method"] == "brute-force":
            bar.set_hatch("//")
    room = max(means) * 0.012
    for place, value, error in zip(places, means, errors, strict=True):
        axes.text(value + error + room, place, f"{value:.2f}", va="center", fontsize=8.5)
    axes.set_yticks(list(places), [row["method"] for row in rows])
    axes.set(
        xlabel=f"F@{n} in %, seen items removed", xlim=(0, max(m + e for m, e in zip(means, errors, strict=True)) * 1.1)
    )
    return _svg(figure)


def curve_figure(curves: Mapping[str, Sequence[Row]], n: int) -> str:
    """F against the time of a query: a line for methods with a curve, a marker for the others."""
    figure = _figure(4.4)
    axes = figure.subplots()
    for name, points in curves.items():
        style = _style(name)
        if len(points) == 1:
            style["linestyle"] = "none"
        times, values = [1e3 * point["seconds_per_query"] for point in points], _percent(points, "f_measure")
        axes.plot(times, values, label=name, **style)
    axes.set_xscale("log")
    axes.set(xlabel="milliseconds per query, one by one on one thread", ylabel=f"F@{n} in %, seen items removed")
    _plain_log(axes.xaxis)
    figure.legend(loc="outside right upper", fontsize=8.5, frameon=False)
    return _svg(figure)


def sensitivity_figure(sensitivity: Mapping[str, Sequence[Row]], n: int) -> str:
    """Recall, precision and F against K, J, B and alpha, as in the paper's figures."""
    shown = {
        "num_nodes": ("nodes", "K"),
        "paths_per_item": ("paths_per_item", "J"),
        "beam_size": ("beam", "B"),
        "penalty": ("penalty", "alpha"),
    }
    figure = _figure(6.6)
    grid = figure.subplots(3, len(shown), sharex="col", sharey="row")
    for place, (parameter, (key, letter)) in enumerate(shown.items()):
        rows = sensitivity[parameter]
        values = [row[key] for row in rows]
        for axes, figure_name in zip(grid[:, place], ("recall", "precision", "f_measure"), strict=True):
            axes.plot(values, _percent(rows, figure_name), "o-", color="#0072b2", markersize=4, label="beam B")
            if parameter != "beam_size":
                equal = [100 * row["at_budget"][figure_name] for row in rows]
                axes.plot(values, equal, "s--", color="#7f7f7f", markersize=3.5, label=f"{10 * n:,} candidates")
            for row in rows:
                if row["base"]:
                    axes.axvline(row[key], color="black", linewidth=0.7, linestyle=":")
            if parameter != "paths_per_item":
                axes.set_xscale("log")
            else:
                axes.set_xticks(values)
            axes.grid(alpha=0.25)
            axes.tick_params(labelsize=8)
        if parameter in ("num_nodes", "beam_size"):
            _ticks(grid[-1, place], values)
        grid[-1, place].set_xlabel(letter)
    for axes, words in zip(grid[:, 0], ("recall", "precision", "F"), strict=True):
        axes.set_ylabel(f"{words}@{n} in %")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=8.5, frameon=False)
    return _svg(figure)


def path_size_figure(rows: Sequence[Row]) -> str:
    """Items on the fullest path and on the path of an average item, against alpha."""
    figure = _figure(3.2, width=6.0)
    axes = figure.subplots()
    alphas = [row["penalty"] for row in rows]
    axes.plot(alphas, [row["top_size"] for row in rows], "o-", color="#0072b2", label="fullest path")
    axes.plot(alphas, [row["item_mean_size"] for row in rows], "s--", color="#7f7f7f", label="path of an average item")
    axes.set(xscale="log", yscale="log", xlabel="alpha", ylabel="items on a path")
    _plain_log(axes.yaxis)
    axes.legend(fontsize=8.5, frameon=False)
    return _svg(figure)


def popularity_figure(truth: Row, methods: Sequence[Row], n: int) -> str:
    """The share of each popularity decile in the recommendations of each method, and in the truth."""
    from matplotlib import colormaps

    rows = [*((row["method"], row["deciles"]) for row in methods), ("truth", truth["deciles"])]
    figure = _figure(0.34 * len(rows) + 1.5)
    axes = figure.subplots()
    places = range(len(rows), 0, -1)
    left = [0.0] * len(rows)
    for decile in range(10):
        widths = [100 * shares[decile] for _, shares in rows]
        shade = colormaps["cividis"](decile / 9)
        name = {0: "1 (most popular)", 9: "10 (least)"}.get(decile, f"{decile + 1}")
        axes.barh(places, widths, left=left, color=shade, edgecolor="white", linewidth=0.5, label=name)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    axes.set_yticks(list(places), [name for name, _ in rows])
    axes.set(xlabel=f"share of the top {n} in %, by popularity decile of the catalogue", xlim=(0, 100))
    figure.legend(loc="outside right upper", fontsize=8.5, frameon=False, title="decile")
    return _svg(figure)


def loss_figure(losses: Sequence[Row], n: int) -> str:
    """F of brute force, of the candidates and of the final answer, and the share kept by popularity."""
    figure = _figure(3.6)
    left, right = figure.subplots(1, 2)
    removed = [[loss for loss in one["losses"] if loss["filter_seen"]] for one in losses]
    counts = [loss["candidate_budget"] for loss in removed[0]]
    lines = {"f_brute_force": "brute force", "f_structure": "candidates", "f_final": "final answer"}
    for (key, label), mark, dash in zip(lines.items(), _MARKS, _DASHES, strict=False):
        means = [100 * sum(one[place][key] for one in removed) / len(removed) for place in range(len(counts))]
        left.plot(counts, means, marker=mark, linestyle=dash, label=label, color=_COLOURS[_MARKS.index(mark)])
    left.set(xlabel="candidates per query", ylabel=f"F@{n} in %", title="F by stage")
    left.set_xticks(counts)
    left.legend(fontsize=8.5, frameon=False)
    names = [bucket_name(low, high) for low, high in POPULARITY_BUCKETS]
    for place, (count, mark, dash) in enumerate(zip(counts, _MARKS, cycle(_DASHES), strict=False)):
        kept = [mean([one[place]["kept_by_popularity"][name] for one in removed]) for name in names]
        known = [(name, 100 * value) for name, value in zip(names, kept, strict=True) if value is not None]
        right.plot(
            *zip(*known, strict=True),
            marker=mark,
            linestyle=dash,
            color=_COLOURS[place],
            label=f"{count:,} candidates",
        )
    right.set(
        xlabel="occurrences in training",
        ylabel=f"% of brute force's top {n}",
        title="Kept, by popularity",
        ylim=(0, 103),
    )
    right.legend(fontsize=8.5, frameon=False)
    return _svg(figure)


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
    figure = _figure(4.8)
    for axes, (key, words) in zip(figure.subplots(2, 3).ravel(), _HEALTH.items(), strict=True):
        for number, training in enumerate(trainings):
            steps = m_step_records(training["records"])
            known = [(place + 1, step[key]) for place, step in enumerate(steps) if step.get(key) is not None]
            if known:
                axes.plot(*zip(*known, strict=True), label=f"seed {training['seed']}", **_seed_style(number))
            axes.set_xticks(range(1, len(steps) + 1))
        axes.set_title(words, fontsize=9)
        axes.set_xlabel("M-step", fontsize=8.5)
        axes.tick_params(labelsize=8)
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), high * 1.05 if high > 0 else 1)
        if key in ("used_paths", "top_size", "dead_nodes"):
            axes.yaxis.get_major_locator().set_params(integer=True)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=6, fontsize=8.5, frameon=False)
    return _svg(figure)


def training_figure(trainings: Sequence[Row], own: str) -> str:
    """Losses of Deep Retrieval by epoch, and those of the other methods relative to their first."""
    figure = _figure(3.6)
    encoder, structure, others = figure.subplots(1, 3)
    seeds: list[Any] = []
    for training in trainings:
        if training["method"] == own:
            style = _seed_style(len(seeds))
            seeds.append(training["seed"])
            for axes, key in ((encoder, "softmax"), (structure, "structure")):
                losses = [record[key] for record in training["records"] if key in record]
                axes.plot(range(1, len(losses) + 1), losses, label=f"seed {training['seed']}", **style)
    first = trainings[0]["seed"] if trainings else None
    for training in trainings:
        losses = [record.get("loss", record.get("softmax")) for record in training["records"]]
        known = [loss for loss in losses if loss is not None]
        if training["method"] != own and training["seed"] == first and known:
            shares = [loss / known[0] for loss in known]
            others.plot(range(1, len(shares) + 1), shares, label=training["method"], **_style(training["method"]))
    encoder.set(title="Softmax loss", xlabel="epoch")
    structure.set(title="Structure loss", xlabel="round or epoch")
    others.set(title="Other methods, relative to the first", xlabel="epoch")
    for axes in (encoder, structure, others):
        axes.title.set_fontsize(10)
        axes.xaxis.get_major_locator().set_params(integer=True)
        if axes.lines:
            axes.legend(fontsize=8, frameon=False)
    return _svg(figure)


def _style(name: str) -> dict[str, Any]:
    place = list(ESTIMATORS).index(name)
    dash = _DASHES[place % len(_DASHES)]
    return {"color": _COLOURS[place], "marker": _MARKS[place], "linestyle": dash, "markersize": 6, "linewidth": 1.4}


def _seed_style(place: int) -> dict[str, Any]:
    number = place % len(_MARKS)
    return {"color": _COLOURS[number], "marker": _MARKS[number], "linestyle": _DASHES[number % 4], "markersize": 4}


def _percent(rows: Sequence[Row], key: str) -> list[float]:
    return [100 * row[key] for row in rows]


def _ticks(axes: Any, values: Sequence[float]) -> None:
    """Label a logarithmic axis with the values themselves, skipping some to avoid overlap."""
    from matplotlib.ticker import NullLocator

    shown = [value for place, value in enumerate(values) if place % (1 + len(values) // 5) == 0]
    axes.set_xticks(shown, [f"{value:,}" for value in shown])
    axes.xaxis.set_minor_locator(NullLocator())


def _plain_log(axis: Any) -> None:
    """Label a logarithmic axis with 0.1, 1, 10 instead of powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def _figure(height: float, width: float = _WIDTH) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _svg(figure: Any) -> str:
    from matplotlib import rc_context

    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    stream = io.StringIO()
    # The same data gives the same file.
    with rc_context({"svg.hashsalt": "pathdex"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
