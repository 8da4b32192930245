"""Part 2: inference time, and accuracy against time."""

from __future__ import annotations

from pathdex.evaluation.report import options_text, percent
from pathdex.experiments.report import figures
from pathdex.experiments.report.document import Figure, Part, Points, Text
from pathdex.experiments.report.findings import time_findings
from pathdex.experiments.report.wording import Results, milliseconds, times
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.tables import TextTable


def time_parts(results: Results) -> list[Part]:
    timed = results["inference_time"]
    rows = [
        [
            row["method"],
            options_text(row["options"]),
            *times(row, "seconds_per_query"),
            *times(row, "seconds_per_query_in_batches"),
        ]
        for row in timed
    ]
    n, first = results["n"], results["seeds"][0]
    head = ["method", "options", "single", "lowest to highest", "in batches", "lowest to highest"]
    bold = [number for number, row in enumerate(timed) if row["method"] == DeepRetrieval.name and row["main"]]
    points = [
        [
            name,
            options_text(point["options"]),
            f"{point['candidates']:,.0f}",
            percent(point["f_measure"]),
            milliseconds(point["seconds_per_query"]),
        ]
        for name, curve in results["curves"].items()
        for point in curve
    ]
    return [
        Text(
            "For each seed, all methods answered the same queries in turns, warmed up, on one thread, with seen items "
            "removed. The table shows the median over the seeds of the median over the rounds, with the lowest and the "
            "highest round. A batch is 256 queries. Deep Retrieval and brute force encode histories in compiled code; "
            "`youtube-dnn`, `ffm-hnsw` and the trees use torch, which adds overhead to single queries."
        ),
        Points(time_findings(results)),
        TextTable("Milliseconds per query", head, rows, text_columns=2, bold=bold),
        Figure(
            "curve",
            figures.curve_figure(results["curves"], n),
            f"Accuracy against time as the beam or efSearch grows, seed {first}.",
        ),
        TextTable(
            f"Points of the curves, seed {first}",
            ["method", "options", "candidates", f"F@{n} in %", "ms per query"],
            points,
            text_columns=2,
        ),
    ]
