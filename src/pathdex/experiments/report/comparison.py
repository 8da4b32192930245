"""Part 1: who is how accurate, and how sure that is."""

from __future__ import annotations

from pathdex.evaluation.significance import RESAMPLES
from pathdex.experiments.report import figures
from pathdex.experiments.report.document import Figure, Points, Table, Text
from pathdex.experiments.report.findings import comparison_findings, verdict
from pathdex.experiments.report.wording import Part, Results, asked_with, listed, percent, share
from pathdex.recommenders.deep_retrieval import DeepRetrieval

WORDS = {True: "seen items removed", False: "seen items kept"}


def comparison_parts(results: Results) -> list[Part]:
    n = results["n"]
    main = [row for row in results["comparison"] if row["main"] and row["filter_seen"]]
    parts: list[Part] = [
        Points(comparison_findings(results)),
        Figure(
            "comparison",
            figures.comparison_figure(main, n),
            f"F@{n} of each method. Whiskers: standard deviation over the seeds. Hatched: Deep Retrieval's "
            "encoder over all items, not a system of its own.",
        ),
        *(_accuracy(results, filter_seen) for filter_seen in WORDS),
        Text(
            "Precision, recall and F are taken per user and averaged. `scored` is the number of items per user whose "
            "final score was worked out; inner nodes of trees, nodes of graphs on the way and items that a budget cuts "
            "are not among them."
        ),
        *(_tests(results, filter_seen) for filter_seen in WORDS),
        Text(
            "Every method is tested against the best of the others, and brute force, which is Deep Retrieval's encoder "
            "over all items, against Deep Retrieval. The test is a paired randomisation test on the users' F "
            f"({RESAMPLES:,} sign patterns), with an interval by Student's t. A user who was held out in several seeds "
            "counts once, with the mean difference. Holm's method corrects for the number of tests in the table. The "
            "test speaks about other users; the differences in the single seeds tell whether training again would "
            "change the verdict."
        ),
        *_tuning(results),
    ]
    if results["missing"]:
        parts.append(Points([f"`{name}` was left out: {why}" for name, why in results["missing"].items()]))
    return parts


def _accuracy(results: Results, filter_seen: bool) -> Table:
    n, seeds = results["n"], len(results["seeds"])
    rows = [row for row in results["comparison"] if row["filter_seen"] is filter_seen]
    cells = [
        [
            row["method"],
            asked_with(row["options"]),
            f"{row['candidates']:,.0f}",
            *(share(row, key) for key in ("precision", "recall", "f_measure", "ndcg", "hit_rate")),
        ]
        for row in rows
    ]
    head = ["method", "asked with", "scored", f"P@{n}", f"R@{n}", f"F@{n}", f"NDCG@{n}", "hit rate"]
    spread = f"mean ± standard deviation of {seeds} seeds" if seeds > 1 else "one seed"
    strong = [place for place, row in enumerate(rows) if row["method"] == DeepRetrieval.name and row["main"]]
    return Table(f"Accuracy in %, {WORDS[filter_seen]}, {spread}", head, cells, left=2, strong=strong)


def _tests(results: Results, filter_seen: bool) -> Table:
    rows = [row for row in results["significance"] if row["filter_seen"] is filter_seen]
    cells = [
        [
            row["method"],
            row["against"],
            f"{100 * row['difference']:+.2f}",
            f"{100 * row['low']:+.2f} to {100 * row['high']:+.2f}",
            f"{row['p']:.4f}",
            f"{row['p_holm']:.4f}",
            ", ".join(f"{100 * one:+.2f}" for one in row["by_seed"]),
            verdict(row),
        ]
        for row in rows
    ]
    head = ["method", "against", "difference", "95% interval", "p", "p (Holm)", "by seed", "verdict"]
    strong = [place for place, row in enumerate(rows) if row["method"] == DeepRetrieval.name]
    return Table(f"Difference in F in %, {WORDS[filter_seen]}", head, cells, left=2, strong=strong)


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
        return [Text("Nothing was tuned: every method has its default hyper-parameters, or those given.")]
    strong = [place for place, row in enumerate(rows) if row[-1]]
    caption = f"Tuning on the validation users of seed {results['seeds'][0]}, with the same number of trials for each"
    return [Table(caption, ["method", "hyper-parameters", "F in %", "seconds", "chosen"], rows, left=2, strong=strong)]
