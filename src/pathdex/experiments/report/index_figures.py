"""The figures of the index (extra `plot`): sensitivity, sizes of paths, retrieval loss, health, training.

Every figure comes with a caption made from what is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.evaluation.decomposition import POPULARITY_BUCKETS, bucket_name
from pathdex.evaluation.intervals import half_width, interval_words, mean_and_half_width
from pathdex.evaluation.labels import label_ends
from pathdex.evaluation.plots import m_step_records
from pathdex.evaluation.visual import MUTED, method_colour, shades
from pathdex.experiments.report.drawing import (
    DASHES,
    MARKS,
    TITLE,
    Chart,
    band,
    line_style,
    plain_log,
    seed_style,
    sentences,
    subplots,
    values_as_ticks,
    whiskers,
)
from pathdex.recommenders.brute_force import BruteForce
from pathdex.recommenders.deep_retrieval import DeepRetrieval

Row = Mapping[str, Any]
OWN = method_colour(DeepRetrieval.name)
_STUDIED = {
    "num_nodes": ("nodes", "K"),
    "paths_per_item": ("paths_per_item", "J"),
    "beam_size": ("beam", "B"),
    "penalty": ("penalty", "alpha"),
}


def sensitivity_figure(sensitivity: Mapping[str, Sequence[Row]], n: int, seed: int) -> Chart:
    """Recall, precision and F against K, J, B and alpha, as in the paper's figures."""
    figure, grid = subplots(6.4, 3, len(_STUDIED), sharex="col", sharey="row")
    beam, halves = sensitivity["penalty"][0]["beam"], []
    for place, (parameter, (key, letter)) in enumerate(_STUDIED.items()):
        rows = sensitivity[parameter]
        values = [row[key] for row in rows]
        base = next(row[key] for row in rows if row["base"])
        for axes, name in zip(grid[:, place], ("recall", "precision", "f_measure"), strict=True):
            axes.axvline(base, color=MUTED, linewidth=0.8, linestyle=":")
            style = {"color": OWN, "markersize": 4, "linewidth": 1.4}
            axes.plot(values, _percent(rows, name), "o-", label=f"B = {beam}", **style)
            halves += _band(axes, values, rows, name, OWN)
            if parameter != "beam_size":
                equal = [row["at_budget"] for row in rows]
                axes.plot(values, _percent(equal, name), "s--", color=MUTED, markersize=3.5, label=f"{10 * n:,} cand.")
            axes.set_xscale("linear" if parameter == "paths_per_item" else "log")
            axes.margins(x=0.08)
            axes.grid(axis="y", alpha=0.3)
        values_as_ticks(grid[-1, place].xaxis, values, 5 if parameter != "penalty" else 3)
        grid[-1, place].set_xlabel(letter)
    for axes, words in zip(grid[:, 0], ("recall", "precision", "F"), strict=True):
        axes.set_ylabel(f"{words}@{n} in %")
    figure.align_ylabels(grid[:, 0])
    for axes in grid[:, -1]:
        label_ends(axes)
    caption = (
        f"Recall, precision and F against K, J, B and alpha, seed {seed}.",
        f"Solid: with beam B; dashed: with {10 * n:,} candidates; dotted: the base values.",
        interval_words(1, halves, "Shaded"),
    )
    return Chart(figure, sentences(*caption))


def path_size_figure(rows: Sequence[Row]) -> Chart:
    """Items on the fullest path and on the path of an average item, against alpha."""
    figure, axes = subplots(3.0, width=7.0)
    alphas = [row["penalty"] for row in rows]
    axes.plot(alphas, [row["top_size"] for row in rows], "o-", color=OWN, label="fullest path")
    axes.plot(alphas, [row["item_mean_size"] for row in rows], "s--", color=MUTED, label="average item's path")
    axes.set(xscale="log", yscale="log", xlabel="alpha", ylabel="items on a path")
    values_as_ticks(axes.xaxis, alphas)
    plain_log(axes.yaxis)
    label_ends(axes)
    return Chart(
        figure, "Items per path against alpha, as in the paper's table of top path sizes. One index per point."
    )


def loss_figure(losses: Sequence[Row], n: int) -> Chart:
    """F of brute force, of the candidates and of the final answer, and the share kept by popularity."""
    figure, (left, right) = subplots(3.8, 1, 2)
    removed = [[loss for loss in one["losses"] if loss["filter_seen"]] for one in losses]
    counts = [loss["candidate_budget"] for loss in removed[0]]
    by_count = list(zip(*removed, strict=True))
    halves = _draw_stages(left, counts, by_count)
    left.set(xlabel="candidates per query", ylabel=f"F@{n} in %")
    left.set_title("F by stage", fontsize=TITLE)
    left.set_xscale("log")
    values_as_ticks(left.xaxis, counts)
    left.margins(x=0.08)
    halves += _draw_kept(right, counts, by_count)
    right.set(xlabel="occurrences in training", ylabel=f"% of brute force's top {n}", ylim=(0, 105))
    right.set_title("Kept among the candidates, by popularity", fontsize=TITLE)
    for axes in (left, right):
        label_ends(axes)
    words = interval_words(len(losses), halves)
    shared = (
        "The stages share their users and seeds, so their differences are surer than the whiskers." if words else ""
    )
    caption = (
        "Left: F over all items, over the candidates by the same score, and of the final answer. "
        "Right: the share of brute force's answer among the candidates.",
        words,
        shared,
    )
    return Chart(figure, sentences(*caption))


def _draw_stages(axes: Any, counts: Sequence[int], by_count: Sequence[Sequence[Row]]) -> list[float | None]:
    brute = line_style(BruteForce.name)["color"]
    lines = {
        "f_brute_force": ("brute force", {"color": brute, "marker": "o", "linestyle": ":"}),
        "f_structure": ("candidates", {"color": OWN, "marker": "s", "linestyle": "--", "markerfacecolor": "white"}),
        "f_final": ("final answer", {"color": OWN, "marker": "^", "linestyle": "-"}),
    }
    halves: list[float | None] = []
    for number, (key, (label, style)) in enumerate(lines.items()):
        found = [
            _mean([loss[key] for loss in one], [loss.get(f"{key}_standard_error") for loss in one]) for one in by_count
        ]
        # Beside each other, so that whiskers of close lines are seen.
        places = [count * 1.03 ** (number - 1) for count in counts]
        means = [value for value, _ in found]
        axes.plot(places, means, label=label, markersize=5, linewidth=1.4, **style)
        whiskers(axes, places, [value or 0.0 for value in means], [half for _, half in found], style["color"])
        halves += [half for _, half in found]
    return halves


def _draw_kept(axes: Any, counts: Sequence[int], by_count: Sequence[Sequence[Row]]) -> list[float | None]:
    names = [bucket_name(low, high) for low, high in POPULARITY_BUCKETS]
    tints = shades()[-1:1:-1][::-1]
    halves: list[float | None] = []
    shown: list[str] = []
    for number, (count, losses) in enumerate(zip(counts, by_count, strict=True)):
        found = [
            _mean(
                [loss["kept_by_popularity"][name] for loss in losses],
                [loss.get("kept_by_popularity_standard_error", {}).get(name) for loss in losses],
            )
            for name in names
        ]
        known = [(place, *one) for place, one in enumerate(found) if one[0] is not None]
        places = [place + 0.07 * (number - (len(counts) - 1) / 2) for place, *_ in known]
        colour = tints[-1 - min(len(counts) - 1 - number, len(tints) - 1)]
        style = {"color": colour, "marker": MARKS[number % len(MARKS)], "linestyle": DASHES[number % 4]}
        values, own = [value for _, value, _ in known], [half for *_, half in known]
        axes.plot(places, values, label=f"{count:,} candidates", markersize=5, linewidth=1.4, **style)
        whiskers(axes, places, [value or 0.0 for value in values], own, colour)
        halves += own
        shown += [names[place] for place, *_ in known]
    first = min((names.index(name) for name in shown), default=0)
    axes.set_xticks(range(first, len(names)), names[first:])
    return halves


_HEALTH = {
    "used_paths": "Paths in use",
    "item_mean_size": "Items on an average item's path",
    "top_size": "Items on the fullest path",
    "entropy_share": "Entropy of the least even layer, in %",
    "dead_nodes": "Unused nodes",
    "overlap": "Paths kept from the M-step before, in %",
}


def health_figure(trainings: Sequence[Row]) -> Chart:
    """The health of the index after each M-step, one line per seed."""
    figure, grid = subplots(4.8, 2, 3)
    for axes, (key, words) in zip(grid.ravel(), _HEALTH.items(), strict=True):
        scale = 100 if key in ("entropy_share", "overlap") else 1
        for number, training in enumerate(trainings):
            steps = m_step_records(training["records"])
            known = [(place + 1, scale * step[key]) for place, step in enumerate(steps) if step.get(key) is not None]
            label = f"seed {training['seed']}" if len(trainings) > 1 else "_"
            if known:
                axes.plot(*zip(*known, strict=True), label=label, **seed_style(number))
        axes.set_title(words, fontsize=TITLE)
        axes.margins(x=0.1)
        axes.xaxis.get_major_locator().set_params(integer=True, nbins=6)
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), (high * 1.05 if high > 0 else 1) if scale == 1 else 105)
        if key in ("used_paths", "top_size", "dead_nodes"):
            axes.yaxis.get_major_locator().set_params(integer=True)
            axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.get_major_locator().set_params(nbins=5)
        label_ends(axes)
    for axes in grid[-1]:
        axes.set_xlabel("M-step")
    lines = "One line per seed." if len(trainings) > 1 else f"Seed {trainings[0]['seed']}."
    return Chart(figure, sentences("The index after each M-step.", lines))


def training_figure(trainings: Sequence[Row], own: str) -> Chart:
    """Losses of Deep Retrieval by epoch, and those of the other methods relative to their first."""
    seeds = list(dict.fromkeys(training["seed"] for training in trainings))
    others = [one for one in trainings if one["method"] != own and one["seed"] == seeds[0] and _losses(one)]
    figure, grid = subplots(3.4, 1, 3 if others else 2, width=9.5 if others else 7.5, squeeze=False)
    encoder, structure, *rest = grid[0]
    of_own = [training for training in trainings if training["method"] == own]
    for training in of_own:
        for axes, key in ((encoder, "softmax"), (structure, "structure")):
            losses = [record[key] for record in training["records"] if key in record]
            label = f"seed {training['seed']}" if len(of_own) > 1 else "_"
            style = {**seed_style(seeds.index(training["seed"])), "markersize": 3}
            axes.plot(range(1, len(losses) + 1), losses, label=label, **style)
    for training in others:
        losses = _losses(training)
        style = {**line_style(training["method"]), "markersize": 3, "linewidth": 1.3}
        rest[0].plot(
            range(1, len(losses) + 1), [loss / losses[0] for loss in losses], label=training["method"], **style
        )
        rest[0].set_title("Other methods, first epoch = 1", fontsize=TITLE)
        rest[0].set_yscale("log")
        plain_log(rest[0].yaxis)
    encoder.set_title("Softmax loss", fontsize=TITLE)
    structure.set_title("Structure loss", fontsize=TITLE)
    for axes, words in zip(grid[0], ("epoch", "round or epoch", "epoch"), strict=False):
        axes.set_xlabel(words)
        axes.xaxis.get_major_locator().set_params(integer=True)
        label_ends(axes)
    seed = f"seed {seeds[0]}"
    mine = "Deep Retrieval's training losses" + (", one line per seed." if len(of_own) > 1 else f", {seed}.")
    return Chart(figure, sentences(mine if of_own else "", f"Right: the other methods, {seed}." if others else ""))


def _losses(training: Row) -> list[float]:
    losses = [record.get("loss", record.get("softmax")) for record in training["records"]]
    return [loss for loss in losses if loss is not None]


def _band(axes: Any, xs: Sequence[float], rows: Sequence[Row], key: str, colour: str) -> list[float | None]:
    halves = [half_width(1, None, row.get(f"{key}_standard_error")) for row in rows]
    percents = [None if half is None else 100 * half for half in halves]
    band(axes, xs, _percent(rows, key), percents, colour)
    return percents


def _mean(values: Sequence[float | None], errors: Sequence[float | None]) -> tuple[float | None, float | None]:
    """Mean and half of its interval, in percent."""
    mean, half = mean_and_half_width(values, errors)
    return None if mean is None else 100 * mean, None if half is None else 100 * half


def _percent(rows: Sequence[Row], key: str) -> list[float]:
    return [100 * row[key] for row in rows]
