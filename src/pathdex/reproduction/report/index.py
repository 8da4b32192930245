"""Part 5: where retrieval loses, the health of the index, training curves."""

from __future__ import annotations

from pathdex.reproduction import figures
from pathdex.reproduction.document import Figure, Table
from pathdex.reproduction.report.wording import Part, Results, mean, percent
from pathdex.retrieval.recommender import DeepRetrieval


def index_parts(results: Results) -> list[Part]:
    parts: list[Part] = []
    if results["loss"]:
        n = results["n"]
        cells = []
        for place, first in enumerate(results["loss"][0]["losses"]):
            rows = [one["losses"][place] for one in results["loss"]]
            means = {
                key: mean([row[key] for row in rows])
                for key in (
                    "candidates",
                    "kept",
                    "f_brute_force",
                    "f_structure",
                    "f_final",
                    "structure_ratio",
                    "final_ratio",
                )
            }
            cells.append(
                [
                    "removed" if first["filter_seen"] else "kept",
                    f"{first['candidate_budget']:,}",
                    f"{means['candidates'] or 0:,.0f}",
                    *(
                        percent(means[key])
                        for key in ("f_brute_force", "kept", "f_structure", "structure_ratio", "f_final", "final_ratio")
                    ),
                ]
            )
        head = [
            "seen items",
            "budget",
            "scored",
            "F brute force",
            f"top {n} kept",
            "F candidates",
            "ratio",
            "F final",
            "ratio",
        ]
        order = sorted(range(len(cells)), key=lambda place: cells[place][0], reverse=True)
        parts += [
            Table(
                "From brute force to the final answer, in %, means over the seeds",
                head,
                [cells[place] for place in order],
                left=1,
            ),
            Figure(
                "loss",
                figures.loss_figure(results["loss"], n),
                "F over all items, over the candidates of the index by the same score, and of the final answer; and how much of brute force's answer the candidates hold.",
            ),
        ]
    own = [one for one in results["training"] if one["method"] == DeepRetrieval.name]
    if own and any("objective" in record for record in own[0]["records"]):
        cells = [
            [
                str(one["seed"]),
                f"{one['health']['used_paths']:,}",
                f"{one['health']['item_mean_size']:.1f}",
                f"{one['health']['median_size']:.0f}",
                f"{one['health']['top_size']:,}",
                ", ".join(f"{share:.2f}" for share in one["health"]["entropy_share"]),
                ", ".join(map(str, one["health"]["dead_nodes"])),
            ]
            for one in own
        ]
        head = [
            "seed",
            "paths in use",
            "average item's path",
            "median path",
            "top path",
            "entropy by layer",
            "dead nodes by layer",
        ]
        parts += [
            Figure("health", figures.health_figure(own), "The index after every M-step."),
            Table("The index in the end", head, cells, left=1),
        ]
    if results["training"]:
        parts.append(
            Figure(
                "training",
                figures.training_figure(results["training"], DeepRetrieval.name),
                "Losses over the epochs; of the other methods with the first seed.",
            )
        )
    return parts
