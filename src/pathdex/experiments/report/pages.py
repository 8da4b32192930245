"""The report as one document: the paper's experiments in five sections, and how to repeat them."""

from __future__ import annotations

from pathlib import Path

from pathdex.experiments.report.comparison import comparison_parts, popularity_parts, time_parts
from pathdex.experiments.report.document import Document, Figure, Section, to_html, to_markdown
from pathdex.experiments.report.index import index_parts, sensitivity_parts
from pathdex.experiments.report.repeat import repeat_parts
from pathdex.experiments.report.wording import Results
from pathdex.storage.atomic import atomic_write

FOLDER = "figures"


def write_report(results: Results, folder: Path) -> tuple[Path, Path]:
    """Write `report.html`, `report.md` and its figures; returns the paths of the two pages."""
    document = make_document(results)
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
    subtitle = (
        f"{data['users']:,} users, {data['items']:,} items, {data['interactions']:,} interactions; "
        f"{splits[0]['test_users']:,} test users in each of {len(splits)} seeds; n = {n}."
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
