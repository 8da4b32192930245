"""Part 4: popularity of the recommended items."""

from __future__ import annotations

from pathdex.evaluation.report import percent
from pathdex.experiments.report import figures
from pathdex.experiments.report.document import Figure, Part, Points, Text
from pathdex.experiments.report.findings import tail_findings, verdict
from pathdex.experiments.report.wording import Results, difference, share
from pathdex.tables import TextTable

_VERDICTS = {"better": "more", "worse": "less"}


def popularity_parts(results: Results) -> list[Part]:
    found, n = results["popularity"], results["n"]
    drawing = figures.popularity_figure(found["truth"], found["methods"], n)
    parts: list[Part] = [
        Text(
            "The paper claims that Deep Retrieval is friendlier to less popular items. Decile 1 is the tenth of the "
            "catalogue that occurs most often in training; the long tail is deciles 3 to 10. Coverage is the share of "
            "the catalogue recommended to at least one user. Novelty is the mean of -log2 of an item's share of the "
            "interactions, in bits. The truth is held out, so its items look rarer in training than they are, above "
            "all in the last deciles."
        ),
        Points(tail_findings(results)) if found["tail_tests"] else Text("There is no other method to test against."),
        Figure("popularity", drawing, "Recommendations by popularity decile, with the test users' truth."),
        _deciles(results),
    ]
    if found["tail_tests"]:
        parts.append(_tests(results))
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


def _tests(results: Results) -> TextTable:
    rows = [
        [row["against"], *difference(row), f"{row['p_holm']:.4f}", _VERDICTS.get(verdict(row), "no difference")]
        for row in results["popularity"]["tail_tests"]
    ]
    title = "Long-tail share of `deep-retrieval` minus that of another method, in %, by user"
    return TextTable(title, ["other method", "difference", "95% interval", "p (Holm)", "verdict"], rows)
