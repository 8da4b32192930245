"""Part 6: everything that is needed to repeat the report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pathdex.experiments.report.document import Points, Table
from pathdex.experiments.report.wording import Part, Results, listed

_COUNTS = {
    "train_users": "training users",
    "train_interactions": "interactions",
    "items": "items",
    "valid_users": "validation users",
    "test_users": "test users",
    "truth_items": "items to find",
}


def repeat_parts(results: Results) -> list[Part]:
    found, data = results["provenance"], results["data"]
    splits = [[str(one["seed"]), *(f"{one[key]:,}" for key in _COUNTS)] for one in data["splits"]]
    parameters = [[name, listed(own) or "none of its own"] for name, own in results["hyper_parameters"].items()]
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
        Points(_facts(found)),
        Table("Counts", ["seed", *_COUNTS.values()], splits),
        Table("Hyper-parameters in the comparison", ["method", "values"], parameters, left=2),
        Table("Steps: seconds, and the most memory held in MB", ["step", "seconds", "MB", "started (UTC)"], steps),
    ]


def _facts(found: Mapping[str, Any]) -> list[str]:
    machine = found["machine"]
    memory = "" if machine["memory"] is None else f", {machine['memory'] / 2**30:.0f} GB of memory"
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if version)
    seeds = ", ".join(map(str, found["seeds"]))
    load = f"; load average {machine['load_average'][1]:.1f} at the end" if machine["load_average"] else ""
    return [
        f"Command: `{found['command']}`" if found["command"] else "Called from Python.",
        f"Data: `{found['source']}`, {found['checksum']}; read with {_code(found['reading'])}",
        f"Split: {_code(found['split'])}; seeds {seeds}; preset `{found['preset']}`",
        f"Machine: {machine['processor']}, {machine['cores']} cores{memory}, {machine['system']}",
        f"Run on {found['device']} with {found['threads']} thread{'s' * (found['threads'] != 1)}{load}",
        f"Versions: {versions}",
        f"Code: {_states([step['code'] for step in found['steps']])}",
        f"Wall time of all steps: {_duration(found['seconds'])}",
    ]


def _states(codes: Sequence[str | None]) -> str:
    """Which states of the package's source made the steps; a figure is sure to repeat only with its own."""
    counts = Counter(code or "a state that was not recorded" for code in codes)
    if len(counts) == 1:
        return f"all steps by {next(iter(counts))}"
    shown = ", ".join(f"{count} by {code}" for code, count in counts.items())
    return f"steps were made by {len(counts)} states of the source: {shown}"


def _code(values: Mapping[str, Any]) -> str:
    return f"`{json.dumps(values)}`" if values else "the defaults"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
