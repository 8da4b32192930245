"""Part 1: who is how accurate, and how sure that is."""

from __future__ import annotations

from pathdex.reproduction import figures
from pathdex.reproduction.document import Figure, Points, Table, Text
from pathdex.reproduction.findings import comparison_findings
from pathdex.reproduction.report.wording import Part, Results, Row, asked_with, listed, percent, share
from pathdex.retrieval.recommender import DeepRetrieval


def comparison_parts(results: Results) -> list[Part]:
    n, seeds = results["n"], len(results["seeds"])
    parts: list[Part] = []
    tests = {(row["method"], row["filter_seen"]): row for row in results["significance"]}
    for filter_seen, words in ((True, "seen items removed"), (False, "seen items kept")):
        rows = [row for row in results["comparison"] if row["filter_seen"] is filter_seen]
        cells = []
        for row in rows:
            test = tests.get((row["method"], filter_seen)) if row["main"] else None
            cells.append(
                [
                    row["method"],
                    asked_with(row["options"]),
                    f"{row['candidates']:,.0f}",
                    *(share(row, key) for key in ("precision", "recall", "f_measure")),
                    *(["", "", ""] if test is None else _test(test)),
                ]
            )
        head = [
            "method",
            "asked with",
            "scored",
            f"P@{n}",
            f"R@{n}",
            f"F@{n}",
            "against",
            "difference in F",
            "p (Holm)",
        ]
        spread = f", mean ± standard deviation of {seeds} seeds" if seeds > 1 else ", one seed"
        strong = [place for place, row in enumerate(rows) if row["method"] == DeepRetrieval.name and row["main"]]
        parts.append(Table(f"In %, {words}{spread}", head, cells, left=2, strong=strong))
    main = [row for row in results["comparison"] if row["main"] and row["filter_seen"]]
    parts.insert(0, Points(comparison_findings(results)))
    parts.insert(
        1,
        Figure(
            "comparison",
            figures.comparison_figure(main, n),
            f"F@{n} of each method. Whiskers: standard deviation over the seeds. Hatched: the ceiling of Deep Retrieval's index, not a system.",
        ),
    )
    parts.append(
        Text(
            "Precision, recall and F are taken per user and averaged. `scored` is the number of items that were scored "
            "per user. Every method is tested against the best of the others, and brute force, which is the ceiling of "
            "Deep Retrieval's index, against Deep Retrieval. The test is a paired randomisation test on the users' F "
            "(9,999 sign patterns); a user who was held out in several seeds counts once, with the mean difference; "
            "p-values are corrected by Holm's method for the number of tests in the table. It speaks about other users; "
            "the signs of the single seeds tell whether training again would change the verdict."
        )
    )
    parts += _tuning(results)
    if results["missing"]:
        parts.append(Points([f"`{name}` was left out: {why}" for name, why in results["missing"].items()]))
    return parts


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


def _test(row: Row) -> list[str]:
    return [
        row["against"],
        f"{100 * row['difference']:+.2f} ({100 * row['low']:+.2f} to {100 * row['high']:+.2f})",
        f"{row['p_holm']:.4f}",
    ]
