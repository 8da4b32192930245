"""Part 6: everything that is needed to repeat the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pathdex.reproduction.document import Points, Table
from pathdex.reproduction.report.wording import Part, Results, listed


def repeat_parts(results: Results) -> list[Part]:
    found, data = results["provenance"], results["data"]
    machine = found["machine"]
    memory = "" if machine["memory"] is None else f", {machine['memory'] / 2**30:.0f} GB of memory"
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if version)
    facts = [
        f"Command: `{found['command']}`" if found["command"] else "Called from Python.",
        f"Data: `{found['source']}`, {found['checksum']}; read with {_code(found['reading'])}",
        f"Split: {_code(found['split'])}; seeds {', '.join(map(str, found['seeds']))}; preset `{found['preset']}`",
        f"Machine: {machine['processor']}, {machine['cores']} cores{memory}, {machine['system']}; device {found['device']}, {found['threads']} threads",
        f"Versions: {versions}",
        f"Wall time of all steps: {_duration(found['seconds'])}",
    ]
    splits = [
        [
            str(one["seed"]),
            *(
                f"{one[key]:,}"
                for key in ("train_users", "train_interactions", "items", "valid_users", "test_users", "truth_items")
            ),
        ]
        for one in data["splits"]
    ]
    parameters = [[name, listed(values) or "none"] for name, values in results["hyper_parameters"].items()]
    steps = [
        [
            one["title"],
            f"{one['seconds']:,.1f}",
            "" if one["peak_memory"] is None else f"{one['peak_memory'] / 2**20:,.0f}",
            one["started"],
        ]
        for one in found["steps"]
    ]
    return [
        Points(facts),
        Table(
            "Counts",
            ["seed", "training users", "interactions", "items", "validation users", "test users", "items to find"],
            splits,
            left=1,
        ),
        Table("Hyper-parameters in the comparison", ["method", "values"], parameters, left=2),
        Table(
            "Steps: seconds, and the most memory held in MB", ["step", "seconds", "MB", "started (UTC)"], steps, left=1
        ),
    ]


def _code(values: Mapping[str, Any]) -> str:
    return f"`{json.dumps(values)}`" if values else "the defaults"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
