"""Part 4: how popular the recommended items are."""

from __future__ import annotations

from pathdex.experiments.report import figures
from pathdex.experiments.report.document import Figure, Points, Table, Text
from pathdex.experiments.report.findings import tail_findings, verdict
from pathdex.experiments.report.wording import Part, Results, percent, share

_VERDICTS = {"better": "more", "worse": "less"}


def popularity_parts(results: Results) -> list[Part]:
    found, n = results["popularity"], results["n"]
    drawing = figures.popularity_figure(found["truth"], found["methods"], n)
    parts: list[Part] = [
        Text(
            "The paper says that Deep Retrieval is friendlier to less popular items. Here the catalogue is cut into "
            "ten equal parts by how often its items occur in training, the first the most popular; the long tail is "
            "all but the first two. Coverage is the share of the catalogue that at least one user gets; novelty is the "
            "mean -log2 of an item's share of the interactions, in bits. What the users took was held out, so "
            "items that they took look rarer in training than they are, most of all in the last parts."
        ),
        Points(tail_findings(results)) if found["tail_tests"] else Text("Without other methods nothing can be tested."),
        Figure("popularity", drawing, "What is recommended, by popularity decile, beside what the test users took."),
        _deciles(results),
    ]
    if found["tail_tests"]:
        parts.append(_tests(results))
    return parts


def _deciles(results: Results) -> Table:
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
    rows.append(["taken by the users", *deciles, percent(truth["tail"], 1), "", f"{truth['novelty']:.2f}"])
    return Table(f"Share of the top {results['n']} by popularity decile, in %, seen items removed", head, rows)


def _tests(results: Results) -> Table:
    rows = [
        [
            row["against"],
            f"{100 * row['difference']:+.2f}",
            f"{100 * row['low']:+.2f} to {100 * row['high']:+.2f}",
            f"{row['p_holm']:.4f}",
            _VERDICTS.get(verdict(row), "no difference"),
        ]
        for row in results["popularity"]["tail_tests"]
    ]
    caption = "Share of the long tail in the answers of `deep-retrieval` minus that of another method, in %, by user"
    return Table(caption, ["other method", "difference", "95% interval", "p (Holm)", "verdict"], rows)
