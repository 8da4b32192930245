"""Parts 1, 2 and 4: how the methods compare in accuracy, time and popularity of the recommended items."""

from __future__ import annotations

from pathdex.evaluation.report import SEEN_ITEMS, options_text, percent
from pathdex.evaluation.significance import RESAMPLES
from pathdex.experiments.report import figures
from pathdex.experiments.report.document import Part, Points, Text
from pathdex.experiments.report.findings import comparison_findings, tail_findings, time_findings, verdict
from pathdex.experiments.report.wording import Results, difference, listed, milliseconds, share, times
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.tables import TextTable


def comparison_parts(results: Results) -> list[Part]:
    n = results["n"]
    main = [row for row in results["comparison"] if row["main"] and row["filter_seen"]]
    parts: list[Part] = [
        Points(comparison_findings(results)),
        figures.comparison_figure(main, n, len(results["seeds"])).part("comparison"),
        *(_accuracy(results, filter_seen) for filter_seen in SEEN_ITEMS),
        Text(
            "Precision, recall and F are computed per user and averaged. Recall counts repeats in the truth, as in the "
            "paper; distinct recall counts every item of the truth once. `candidates` is the mean number of items per "
            "user that got a final score. It does not count inner tree nodes, graph nodes that a search visits, or "
            "items cut by a limit on candidates."
        ),
        *(_tests(results, filter_seen) for filter_seen in SEEN_ITEMS),
        Text(
            "Each method is tested against the best other method, and brute force against Deep Retrieval, whose "
            "vectors it searches. The test is a paired randomisation test on the users' F "
            f"({RESAMPLES:,} sign patterns); the intervals are Student's t. A user held out in several seeds counts "
            "once, with the mean difference. Holm's method corrects for the number of tests in the table. The test "
            "generalises to other users; the differences by seed show whether retraining changes the verdict."
        ),
        *_tuning(results),
    ]
    if results["missing"]:
        parts.append(Points([f"`{name}` was left out: {why}" for name, why in results["missing"].items()]))
    return parts


def _accuracy(results: Results, filter_seen: bool) -> TextTable:
    n, seeds = results["n"], len(results["seeds"])
    rows = [row for row in results["comparison"] if row["filter_seen"] is filter_seen]
    cells = [
        [
            row["method"],
            options_text(row["options"]),
            f"{row['candidates']:,.0f}",
            *(share(row, key) for key in ("precision", "recall", "distinct_recall", "f_measure", "ndcg", "hit_rate")),
        ]
        for row in rows
    ]
    head = ["method", "options", "candidates", f"P@{n}", f"R@{n}", f"distinct R@{n}", f"F@{n}"]
    head += [f"NDCG@{n}", "hit rate"]
    spread = f"mean ± standard deviation of {seeds} seeds" if seeds > 1 else "one seed"
    bold = [number for number, row in enumerate(rows) if row["method"] == DeepRetrieval.name and row["main"]]
    title = f"Accuracy in %, {SEEN_ITEMS[filter_seen]}, {spread}"
    return TextTable(title, head, cells, text_columns=2, bold=bold)


def _tests(results: Results, filter_seen: bool) -> TextTable:
    rows = [row for row in results["significance"] if row["filter_seen"] is filter_seen]
    cells = [
        [
            row["method"],
            row["against"],
            *difference(row),
            f"{row['p']:.4f}",
            f"{row['p_holm']:.4f}",
            ", ".join(f"{100 * one:+.2f}" for one in row["by_seed"]),
            verdict(row),
        ]
        for row in rows
    ]
    head = ["method", "against", "difference", "95% interval", "p", "p (Holm)", "by seed", "verdict"]
    bold = [number for number, row in enumerate(rows) if row["method"] == DeepRetrieval.name]
    return TextTable(f"Difference in F in %, {SEEN_ITEMS[filter_seen]}", head, cells, text_columns=2, bold=bold)


def _tuning(results: Results) -> list[Part]:
    rows = [
        [
            name,
            listed(trial["parameters"]) or "defaults",
            percent(trial["f_measure"]),
            f"{trial['fit_seconds']:,.0f}",
            "yes" if trial["chosen"] else "",
        ]
        for name, trials in results["tuning"].items()
        for trial in trials
    ]
    if not rows:
        return [Text("Nothing was tuned: every method uses its defaults or the given hyper-parameters.")]
    bold = [number for number, row in enumerate(rows) if row[-1]]
    title = f"Hyper-parameters selected on validation data of seed {results['seeds'][0]}"
    head = ["method", "hyper-parameters", "F in %", "seconds", "selected"]
    return [TextTable(title, head, rows, text_columns=2, bold=bold)]


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
        figures.curve_figure(results["curves"], n, first).part("curve"),
        TextTable(
            f"Points of the curves, seed {first}",
            ["method", "options", "candidates", f"F@{n} in %", "ms per query"],
            points,
            text_columns=2,
        ),
    ]


def popularity_parts(results: Results) -> list[Part]:
    found, n = results["popularity"], results["n"]
    chart = figures.popularity_figure(found["truth"], found["methods"], n, len(results["seeds"]))
    parts: list[Part] = [
        Text(
            "The paper claims that Deep Retrieval is friendlier to less popular items. Decile 1 is the tenth of the "
            "catalogue that occurs most often in training; the long tail is deciles 3 to 10. Coverage is the share of "
            "the catalogue recommended to at least one user. Novelty is the mean of -log2 of an item's share of the "
            "interactions, in bits. The truth is held out, so its items look rarer in training than they are, above "
            "all in the last deciles."
        ),
        Points(tail_findings(results)) if found["tail_tests"] else Text("There is no other method to test against."),
        chart.part("popularity"),
        _deciles(results),
    ]
    if found["tail_tests"]:
        parts.append(_tail_tests(results))
    return parts


def _deciles(results: Results) -> TextTable:
    found = results["popularity"]
    head = ["method", *(str(decile) for decile in range(1, 11)), "long tail", "coverage", "novelty"]
    rows = [
        [
            row["method"],
            *(percent(one, 1) for one in row["deciles"]),
            share(row, "tail", 1),
            share(row, "coverage", 1),
            f"{row['novelty']:.2f}",
        ]
        for row in found["methods"]
    ]
    truth = found["truth"]
    deciles = [percent(one, 1) for one in truth["deciles"]]
    rows.append(["truth", *deciles, percent(truth["tail"], 1), "", f"{truth['novelty']:.2f}"])
    return TextTable(f"Share of the top {results['n']} by popularity decile, in %, seen items removed", head, rows)


def _tail_tests(results: Results) -> TextTable:
    more_or_less = {"better": "more", "worse": "less"}
    rows = [
        [row["against"], *difference(row), f"{row['p_holm']:.4f}", more_or_less.get(verdict(row), "no difference")]
        for row in results["popularity"]["tail_tests"]
    ]
    title = "Long-tail share of `deep-retrieval` minus that of another method, in %, by user"
    return TextTable(title, ["other method", "difference", "95% interval", "p (Holm)", "verdict"], rows)
