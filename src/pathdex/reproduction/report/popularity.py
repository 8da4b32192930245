"""Part 4: how popular the recommended items are."""

from __future__ import annotations

from pathdex.reproduction import figures
from pathdex.reproduction.document import Figure, Points, Table, Text
from pathdex.reproduction.findings import tail_findings, verdict
from pathdex.reproduction.report.wording import Part, Results, percent, share


def popularity_parts(results: Results) -> list[Part]:
    found, n = results["popularity"], results["n"]
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
    rows.append(
        [
            "taken by the users",
            *(percent(one, 1) for one in truth["deciles"]),
            percent(truth["tail"], 1),
            "",
            f"{truth['novelty']:.2f}",
        ]
    )
    tests = [
        [
            row["against"],
            f"{100 * row['difference']:+.2f}",
            f"{100 * row['low']:+.2f} to {100 * row['high']:+.2f}",
            f"{row['p_holm']:.4f}",
            {"better": "more", "worse": "less"}.get(verdict(row), "no difference"),
        ]
        for row in found["tail_tests"]
    ]
    parts: list[Part] = [
        Text(
            "The paper says that Deep Retrieval is friendlier to less popular items. Here the catalogue is cut into ten equal "
            "parts by how often its items occur in training, the first the most popular; the long tail is all but the "
            "first two. Coverage is the share of the catalogue that at least one user gets; novelty is the mean "
            "-log2 of an item's share of the interactions, in bits."
        ),
        Points(tail_findings(results)) if tests else Text("Without `deep-retrieval` there is no claim to test."),
        Figure(
            "popularity",
            figures.popularity_figure(truth, found["methods"], n),
            "What is recommended, by popularity decile, beside what the test users took.",
        ),
        Table(f"Share of the top {n} by popularity decile, in %, seen items removed", head, rows, left=1),
    ]
    if tests:
        caption = "Share of the long tail in the answers of `deep-retrieval` minus that of another method, paired by user, in %"
        parts.append(
            Table(caption, ["other method", "difference", "95% interval", "p (Holm)", "verdict"], tests, left=1)
        )
    return parts
