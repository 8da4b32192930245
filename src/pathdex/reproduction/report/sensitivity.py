"""Part 3: how accuracy depends on the shape of the index."""

from __future__ import annotations

from pathdex.reproduction import figures
from pathdex.reproduction.document import Figure, Points, Table, Text
from pathdex.reproduction.findings import sensitivity_findings
from pathdex.reproduction.report.wording import Part, Results, Row, percent


def sensitivity_parts(results: Results) -> list[Part]:
    study, n = results["sensitivity"], results["n"]
    if study is None:
        return []
    names = {
        "num_nodes": "K, nodes per layer",
        "depth": "(K, D), depth",
        "paths_per_item": "J, paths per item",
        "beam_size": "B, beam",
        "penalty": "alpha, penalty",
    }
    parts: list[Part] = [
        Text(
            "One hyper-parameter changes and the others stay, alpha too, as in the paper's Section 4. The models share one "
            "trained encoder, so they differ in the index alone. Each is asked with the beam B, as in the paper, and with "
            f"an equal budget of {10 * n:,} candidates, since a changed index also changes how many items a beam finds. "
            f"Test users of seed {results['seeds'][0]}, seen items removed; p-values against the value of the comparison, by Holm."
        ),
        Points(sensitivity_findings(results)),
        Figure(
            "sensitivity",
            figures.sensitivity_figure(study, n),
            "Recall, precision and F against K, J, B and alpha. Dotted: the value of the comparison.",
        ),
    ]
    for parameter, title in names.items():
        rows = study[parameter]
        cells = [
            [
                _value(parameter, row),
                *(percent(row[key]) for key in ("precision", "recall", "f_measure")),
                f"{row['candidates']:,.0f}",
                "" if row["base"] else f"{100 * row['difference']:+.2f}",
                "" if row["base"] else f"{row['p_holm']:.4f}",
                *(
                    []
                    if parameter == "beam_size"
                    else [
                        percent(row["at_budget"]["f_measure"]),
                        f"{row['used_paths']:,}",
                        f"{row['item_mean_size']:.1f}",
                        f"{row['top_size']:,}",
                    ]
                ),
            ]
            for row in rows
        ]
        head = [
            title.split(",")[0] if parameter != "depth" else "(K, D)",
            f"P@{n}",
            f"R@{n}",
            f"F@{n}",
            "scored",
            "difference",
            "p (Holm)",
        ]
        head += (
            [] if parameter == "beam_size" else [f"F, {10 * n:,} scored", "paths in use", "average path", "top path"]
        )
        strong = [place for place, row in enumerate(rows) if row["base"]]
        parts.append(Table(f"{title}, in %", head, cells, left=1, strong=strong))
    parts.append(
        Figure(
            "path-size",
            figures.path_size_figure(study["penalty"]),
            "Items on a path against alpha: the paper's table of top path sizes.",
        )
    )
    return parts


def _value(parameter: str, row: Row) -> str:
    if parameter == "depth":
        return f"({row['nodes']}, {row['depth']})"
    if parameter == "penalty":
        return f"{row['penalty']:.3g}"
    return str(row[{"num_nodes": "nodes", "beam_size": "beam"}.get(parameter, parameter)])
