"""Part 2: how long a query takes, and what accuracy costs."""

from __future__ import annotations

from pathdex.experiments.report import figures
from pathdex.experiments.report.document import Figure, Points, Table, Text
from pathdex.experiments.report.findings import time_findings
from pathdex.experiments.report.wording import Part, Results, asked_with, milliseconds, percent, times
from pathdex.recommenders.deep_retrieval import DeepRetrieval


def time_parts(results: Results) -> list[Part]:
    rows = [
        [
            row["method"],
            asked_with(row["options"]),
            *times(row, "seconds_per_query"),
            *times(row, "seconds_per_query_in_batches"),
        ]
        for row in results["inference_time"]
    ]
    n, first = results["n"], results["seeds"][0]
    head = ["method", "asked with", "one by one", "lowest to highest", "in batches", "lowest to highest"]
    strong = [
        place
        for place, row in enumerate(results["inference_time"])
        if row["method"] == DeepRetrieval.name and row["main"]
    ]
    points = [
        [
            name,
            asked_with(point["options"]),
            f"{point['candidates']:,.0f}",
            percent(point["f_measure"]),
            milliseconds(point["seconds_per_query"]),
        ]
        for name, curve in results["curves"].items()
        for point in curve
    ]
    return [
        Text(
            "With each seed all methods answered the same queries in turns in one run, warm, on one thread, with seen "
            "items removed. A figure is the median of the seeds' medians over the rounds; the lowest and the highest "
            "round stand beside it. In batches: 256 queries at once. Deep Retrieval and brute force read "
            "histories in compiled code, `youtube-dnn`, `ffm-hnsw` and the trees with torch, which costs them some of "
            "the time of a single query."
        ),
        Points(time_findings(results)),
        Table("Milliseconds per query", head, rows, left=2, strong=strong),
        Figure(
            "curve",
            figures.curve_figure(results["curves"], n),
            f"Accuracy against time as the beam or the number of items in view (efSearch) grows, seed {first}.",
        ),
        Table(
            f"Points of the curves, seed {first}",
            ["method", "asked with", "scored", f"F@{n} in %", "ms per query"],
            points,
            left=2,
        ),
    ]
