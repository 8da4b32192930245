"""Parts 3 and 5: accuracy by shape of the index, retrieval loss, health of the index, training curves."""

from __future__ import annotations

from collections.abc import Sequence

from pathdex.evaluation.plots import m_step_records
from pathdex.evaluation.report import percent
from pathdex.experiments.report import index_figures as figures
from pathdex.experiments.report.document import Part, Points, Text
from pathdex.experiments.report.findings import sensitivity_findings
from pathdex.experiments.report.wording import Results, Row, mean
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.tables import TextTable

NAMES = {
    "num_nodes": ("K", "K, nodes per layer"),
    "depth": ("(K, D)", "D, layers"),
    "paths_per_item": ("J", "J, paths per item"),
    "beam_size": ("B", "B, beam"),
    "penalty": ("alpha", "alpha, penalty"),
}
_SHARES = ("f_brute_force", "kept", "f_structure", "structure_ratio", "f_final", "final_ratio")


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
        figures.sensitivity_figure(study, n, results["seeds"][0]).part("sensitivity"),
        *(_sensitivity_table(parameter, study[parameter], n) for parameter in NAMES),
        figures.path_size_figure(study["penalty"]).part("path-size"),
    ]


def _sensitivity_table(parameter: str, rows: Sequence[Row], n: int) -> TextTable:
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


def index_parts(results: Results) -> list[Part]:
    parts = _loss(results) if results["loss"] else []
    own = [one for one in results["training"] if one["method"] == DeepRetrieval.name]
    if own and m_step_records(own[0]["records"]):
        parts += [figures.health_figure(own).part("health"), _health(own)]
    if results["training"]:
        parts.append(figures.training_figure(results["training"], DeepRetrieval.name).part("training"))
    return parts


def _loss(results: Results) -> list[Part]:
    n = results["n"]
    # By set of options, one loss per seed.
    seeds = list(zip(*(one["losses"] for one in results["loss"]), strict=True))
    cells = [
        [
            "removed" if rows[0]["filter_seen"] else "kept",
            f"{rows[0]['candidate_budget']:,}",
            f"{mean([row['candidates'] for row in rows]) or 0:,.0f}",
            *(percent(mean([row[key] for row in rows])) for key in _SHARES),
        ]
        for rows in sorted(seeds, key=lambda rows: not rows[0]["filter_seen"])
    ]
    head = ["seen items", "at most", "candidates", "F brute force", f"top {n} kept"]
    head += ["F structure", "ratio", "F final", "ratio"]
    return [
        TextTable("From brute force to the final answer, in %, means over the seeds", head, cells),
        figures.loss_figure(results["loss"], n).part("loss"),
    ]


def _health(trainings: list[Row]) -> TextTable:
    cells = [
        [
            str(one["seed"]),
            f"{health['used_paths']:,}",
            f"{health['item_mean_size']:.1f}",
            f"{health['median_size']:.0f}",
            f"{health['top_size']:,}",
            ", ".join(f"{share:.2f}" for share in health["entropy_share"]),
            ", ".join(map(str, health["dead_nodes"])),
        ]
        for one, health in ((one, one["health"]) for one in trainings)
    ]
    head = ["seed", "paths in use", "average item's path", "median path", "fullest path"]
    return TextTable("The final index: items per path, and nodes", [*head, "entropy by layer", "dead nodes"], cells)
