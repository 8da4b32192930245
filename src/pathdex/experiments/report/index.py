"""Part 5: retrieval loss, health of the index, training curves."""

from __future__ import annotations

from pathdex.evaluation.plots import m_step_records
from pathdex.evaluation.report import percent
from pathdex.experiments.report import figures
from pathdex.experiments.report.document import Figure, Part
from pathdex.experiments.report.wording import Results, Row, mean
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.tables import TextTable

_SHARES = ("f_brute_force", "kept", "f_structure", "structure_ratio", "f_final", "final_ratio")


def index_parts(results: Results) -> list[Part]:
    parts = _loss(results) if results["loss"] else []
    own = [one for one in results["training"] if one["method"] == DeepRetrieval.name]
    if own and m_step_records(own[0]["records"]):
        parts += [Figure("health", figures.health_figure(own), "The index after each M-step."), _health(own)]
    if results["training"]:
        drawing = figures.training_figure(results["training"], DeepRetrieval.name)
        caption = "Training losses by epoch; the other methods with the first seed only."
        parts.append(Figure("training", drawing, caption))
    return parts


def _loss(results: Results) -> list[Part]:
    n = results["n"]
    cells = []
    numbered = enumerate(results["loss"][0]["losses"])
    for number, first in sorted(numbered, key=lambda one: not one[1]["filter_seen"]):
        rows = [one["losses"][number] for one in results["loss"]]
        cells.append(
            [
                "removed" if first["filter_seen"] else "kept",
                f"{first['candidate_budget']:,}",
                f"{mean([row['candidates'] for row in rows]) or 0:,.0f}",
                *(percent(mean([row[key] for row in rows])) for key in _SHARES),
            ]
        )
    head = ["seen items", "at most", "candidates", "F brute force", f"top {n} kept"]
    head += ["F structure", "ratio", "F final", "ratio"]
    return [
        TextTable("From brute force to the final answer, in %, means over the seeds", head, cells),
        Figure(
            "loss",
            figures.loss_figure(results["loss"], n),
            "Left: F over all items, over the candidates by the same score, and of the final answer. Right: the share "
            "of brute force's answer among the candidates.",
        ),
    ]


def _health(trainings: list[Row]) -> TextTable:
    cells = []
    for one in trainings:
        health = one["health"]
        cells.append(
            [
                str(one["seed"]),
                f"{health['used_paths']:,}",
                f"{health['item_mean_size']:.1f}",
                f"{health['median_size']:.0f}",
                f"{health['top_size']:,}",
                ", ".join(f"{share:.2f}" for share in health["entropy_share"]),
                ", ".join(map(str, health["dead_nodes"])),
            ]
        )
    head = ["seed", "paths in use", "average item's path", "median path", "fullest path"]
    return TextTable("The final index: items per path, and nodes", [*head, "entropy by layer", "dead nodes"], cells)
