"""The report as one document: the paper's experiments in five sections, and how to repeat them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pathdex.experiments.report.comparison import comparison_parts, popularity_parts, time_parts
from pathdex.experiments.report.document import Document, Figure, Part, Points, Section, to_html, to_markdown
from pathdex.experiments.report.index import index_parts, sensitivity_parts
from pathdex.experiments.report.wording import Results, listed
from pathdex.storage.atomic import atomic_write
from pathdex.tables import TextTable

FOLDER = "figures"
_COUNTS = {
    "train_users": "training users",
    "train_interactions": "interactions",
    "items": "items",
    "valid_users": "validation users",
    "test_users": "test users",
    "truth_items": "truth items",
}


def write_report(results: Results, folder: Path) -> tuple[Path, Path]:
    """Write the report of `make_document`; returns the paths of its two pages."""
    return write_document(make_document(results), folder)


def write_document(document: Document, folder: Path) -> tuple[Path, Path]:
    """Write `report.html`, `report.md` and its figures; returns the paths of the two pages."""
    for section in document.sections:
        for part in section.parts:
            if isinstance(part, Figure):
                _write(folder / FOLDER / f"{part.name}.svg", part.svg)
    page, markdown = folder / "report.html", folder / "report.md"
    _write(page, to_html(document))
    _write(markdown, to_markdown(document, FOLDER))
    return page, markdown


def make_document(results: Results) -> Document:
    """The report, ready for `to_html` and `to_markdown`."""
    data, n = results["data"], results["n"]
    splits = data["splits"]
    each = f" in each of {len(splits)} seeds" if len(splits) > 1 else ""
    subtitle = (
        f"{data['users']:,} users, {data['items']:,} items, {data['interactions']:,} interactions; "
        f"{splits[0]['test_users']:,} test users{each}; n = {n}."
    )
    if results["quick"]:
        subtitle += " **Quick run: few epochs and users, nothing tuned. Do not cite these figures.**"
    sections = [
        Section("Comparison", comparison_parts(results)),
        Section("Inference time", time_parts(results)),
        Section("Sensitivity", sensitivity_parts(results)),
        Section("Popularity", popularity_parts(results)),
        Section("Retrieval loss, index and training", index_parts(results)),
        Section("How to repeat this", repeat_parts(results)),
    ]
    title = f"Deep Retrieval and baselines on {results['provenance']['source']}"
    return Document(title, subtitle, [section for section in sections if section.parts])


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as stream:
        stream.write(text.encode())


def repeat_parts(results: Results) -> list[Part]:
    found, data = results["provenance"], results["data"]
    splits = [[str(one["seed"]), *(f"{one[key]:,}" for key in _COUNTS)] for one in data["splits"]]
    parameters = [[name, listed(own) or "none"] for name, own in results["hyper_parameters"].items()]
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
        TextTable("Counts", ["seed", *_COUNTS.values()], splits),
        TextTable("Hyper-parameters in the comparison", ["method", "values"], parameters, text_columns=2),
        TextTable("Steps: seconds and peak memory in MB", ["step", "seconds", "MB", "started (UTC)"], steps),
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
        f"Code: {_source_versions([step['code'] for step in found['steps']])}",
        f"Wall time of all steps: {duration(found['seconds'])}",
    ]


def _source_versions(codes: Sequence[str | None]) -> str:
    """Which versions of the source ran the steps; a figure repeats for certain only with the same one."""
    counts = Counter(code or "an unrecorded version" for code in codes)
    if len(counts) == 1:
        return f"all steps with source {next(iter(counts))}"
    shown = ", ".join(f"{count} with {code}" for code, count in counts.items())
    return f"steps ran with {len(counts)} versions of the source: {shown}"


def _code(values: Mapping[str, Any]) -> str:
    return f"`{json.dumps(values)}`" if values else "the defaults"


def duration(seconds: float) -> str:
    """`3 min 20 s`, or `2 h 5 min`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
