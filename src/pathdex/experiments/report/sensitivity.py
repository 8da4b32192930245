"""Part 3: accuracy by shape of the index."""

from __future__ import annotations

from collections.abc import Sequence

from pathdex.evaluation.report import percent
from pathdex.experiments.report import figures
from pathdex.experiments.report.document import Figure, Part, Points, Text
from pathdex.experiments.report.findings import sensitivity_findings
from pathdex.experiments.report.wording import Results, Row
from pathdex.tables import TextTable

NAMES = {
    "num_nodes": ("K", "K, nodes per layer"),
    "depth": ("(K, D)", "D, layers"),
    "paths_per_item": ("J", "J, paths per item"),
    "beam_size": ("B", "B, beam"),
    "penalty": ("alpha", "alpha, penalty"),
}


def sensitivity_parts(results: Results) -> list[Part]:
    study, n = results["sensitivity"], results["n"]
    if study is None:
        return []
    beam = next(row["beam"] for row in study["penalty"])
    return [
        Text(
            "One hyper-parameter changes at a time, with alpha fixed, as in the paper's Section 4. The models share "
            "one trained encoder and use no neighbours, so they differ only in the index. A changed index also changes "
            f"how many items a beam finds, so each is evaluated with B = {beam} and with {10 * n:,} candidates. "
            f"Test users of seed {results['seeds'][0]}, seen items removed. Bold: the base value that the others are "
            "tested against."
        ),
        Points(sensitivity_findings(results)),
        Figure(
            "sensitivity",
            figures.sensitivity_figure(study, n),
            "Recall, precision and F against K, J, B and alpha. Dotted: the base values.",
        ),
        *(_table(parameter, study[parameter], n) for parameter in NAMES),
        Figure(
            "path-size",
            figures.path_size_figure(study["penalty"]),
            "Items per path against alpha, as in the paper's table of top path sizes.",
        ),
    ]


def _table(parameter: str, rows: Sequence[Row], n: int) -> TextTable:
    letter, title = NAMES[parameter]
    with_index = parameter != "beam_size"
    cells = []
    for row in rows:
        test = ["", ""] if row["base"] else [f"{100 * row['difference']:+.2f}", f"{row['p_holm']:.4f}"]
        shares = [percent(row[key]) for key in ("precision", "recall", "f_measure")]
        cells.append([_value(parameter, row), *shares, f"{row['candidates']:,.0f}", *test])
        if with_index:
            sizes = [f"{row['used_paths']:,}", f"{row['item_mean_size']:.1f}", f"{row['top_size']:,}"]
            cells[-1] += [percent(row["at_budget"]["f_measure"]), *sizes]
    head = [letter, f"P@{n}", f"R@{n}", f"F@{n}", "candidates", "difference in F", "p (Holm)"]
    if with_index:
        head += [f"F, {10 * n:,} candidates", "paths in use", "average item's path", "fullest path"]
    bold = [number for number, row in enumerate(rows) if row["base"]]
    return TextTable(f"{title}, in %", head, cells, bold=bold)


def _value(parameter: str, row: Row) -> str:
    if parameter == "depth":
        return f"({row['nodes']}, {row['depth']})"
    if parameter == "penalty":
        return f"{row['penalty']:.3g}"
    return str(row[{"num_nodes": "nodes", "beam_size": "beam"}.get(parameter, parameter)])
