"""Writes the tables that the code knows into the pages: `python -m docs.generate`.

A page holds `<!-- generated: NAME -->` and, further down, `<!-- end -->`; between them stands the table of that name.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from pathdex.cli.app import app
from pathdex.config import PRESETS, Config, RunOptions
from pathdex.data import findings
from pathdex.data.columns import COMMON_NAMES
from pathdex.data.datasets import SOURCES
from pathdex.recommenders.ffm_hnsw import FFMConfig
from pathdex.recommenders.implicit_als import ALSConfig
from pathdex.recommenders.jtm import JTM
from pathdex.recommenders.otm import OTM
from pathdex.recommenders.tree.config import TreeConfig
from pathdex.server.limits import ServerLimits

FOLDER = Path(__file__).parent
REPORTS = FOLDER.parent / "benchmarks" / "results" / "reports"

GROUPS: dict[str, tuple[str, ...]] = {
    "structure": ("num_nodes", "depth", "paths_per_item", "structure", "structure_hidden", "node_dim"),
    "encoder": (
        "encoder", "embedding_dim", "history_length", "shared_items", "dropout", "reranker", "softmax", "negatives",
        "num_negatives",
    ),
    "e-step": (
        "schedule", "next_items", "epochs", "rounds", "structure_epochs", "final_epochs", "batch_size",
        "structure_batch_size", "learning_rate", "item_learning_rate", "structure_learning_rate", "weight_decay",
    ),
    "m-step": (
        "start", "candidate_paths", "scoring", "score_beam", "score_samples", "decay", "descent_iterations",
        "path_size", "candidates_per_query", "penalty", "penalty_degree",
    ),
    "retrieval": ("beam_size", "path_weight", "neighbours", "neighbour_weight"),
}  # fmt: skip
"""The hyper-parameters as `parameters.md` goes through them."""

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(text: str) -> str:
    """The page with every generated block as the code has it now."""
    return _BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)


def hand_written(text: str) -> str:
    """The page without its generated blocks."""
    return _BLOCK.sub("", text)


def commands(group: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command of `pathdex` by its words, such as `data describe`."""
    group = typer.main.get_command(app) if group is None else group
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from commands(one, (*words, name))
        else:
            yield " ".join((*words, name)), one


def finding_codes() -> dict[str, str]:
    """What each code of a finding means, from the head of `pathdex.data.findings`."""
    return dict(sorted(re.findall(r"(D\d{3})  (\S+(?: \S+)*)", findings.__doc__ or "")))


def _parameters(kind: type[Any], names: Iterable[str]) -> str:
    specs = {spec.name: spec for spec in dataclasses.fields(kind)}
    rows = [[f"`{name}`", _default(specs[name]), _allowed(specs[name]), specs[name].metadata["help"]] for name in names]
    return _table(["name", "default", "allowed", "what it is"], rows)


def _all_parameters(kind: type[Any]) -> str:
    return _parameters(kind, [spec.name for spec in dataclasses.fields(kind)])


def _tree_defaults() -> str:
    shown = [", ".join(f"`{key}` {_value(value)}" for key, value in method.defaults.items()) for method in (JTM, OTM)]
    return _table(["method", "its own defaults"], [[f"`{JTM.name}`", shown[0]], [f"`{OTM.name}`", shown[1]]])


def _default(spec: dataclasses.Field[Any]) -> str:
    return "derived" if spec.default is None else _value(spec.default)


def _allowed(spec: dataclasses.Field[Any]) -> str:
    rules = spec.metadata
    if rules["choices"] is not None:
        return ", ".join(f"`{one}`" for one in rules["choices"])
    if spec.type == "bool":
        return "`true`, `false`"
    bounds = [f"> {rules['above']:g}"] if rules["above"] is not None else []
    bounds += [f">= {rules['low']:g}"] if rules["low"] is not None else []
    bounds += [f"<= {rules['high']:g}"] if rules["high"] is not None else []
    return ", ".join(bounds)


def _value(value: Any) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _presets() -> str:
    rows = []
    for name, values in PRESETS.items():
        shown = ", ".join(f"`{key}` {_value(value)}" for key, value in values.items())
        rows.append([f"`{name}`", shown or "nothing: the defaults"])
    return _table(["preset", "sets"], rows)


def _codes() -> str:
    return _table(["code", "meaning"], [[code, meaning] for code, meaning in finding_codes().items()])


def _column_names() -> str:
    return _table(["role", "names, without case, `_` and other signs"], [
        [role, ", ".join(f"`{name}`" for name in names)] for role, names in COMMON_NAMES.items()
    ])  # fmt: skip


def _sources() -> str:
    rows = []
    for name, source in SOURCES.items():
        reading = ", ".join(f"`{key}` {value}" for key, value in source.reading.items() if key != "format")
        rows.append([f"`{name}`", f"`{source.filename}`", reading, f"{source.valid_users} + {source.test_users}"])
    return _table(["name", "file", "read with", "validation + test users"], rows)


def _commands() -> str:
    rows = [[f"`pathdex {words}`", (one.help or "").split("\n")[0]] for words, one in commands()]
    return _table(["command", "what it does"], rows)


def _reports() -> dict[str, dict[str, Any]]:
    """The committed comparisons by the name of their folder, in the order of the number of items."""
    found = {path.parent.name: json.loads(path.read_text()) for path in REPORTS.glob("*/results.json")}
    return dict(sorted(found.items(), key=lambda one: one[1]["data"]["items"]))


def _comparison() -> str:
    reports = _reports()
    head = [f"F in %: [{name}](../benchmarks/results/reports/{name}/report.md)" for name in reports]
    columns = [_compared(report) for report in reports.values()]
    times = [_times(report) for report in reports.values()]
    methods = list(dict.fromkeys(method for column in columns for method in column))
    rows = [[method, *(column.get(method, "") for column in [*columns, *times])] for method in methods]
    return _table(["method", *head, *(f"ms: {name}" for name in reports)], rows)


def _compared(report: dict[str, Any]) -> dict[str, str]:
    """The F of each method as it is asked in the comparison, seen items removed."""
    rows = [row for row in report["comparison"] if row["main"] and row["filter_seen"]]
    return {row["method"]: f"{100 * row['f_measure']:.2f} ± {100 * row['f_measure_deviation']:.2f}" for row in rows}


def _times(report: dict[str, Any]) -> dict[str, str]:
    """Milliseconds per query, one by one, asked in the same way."""
    return {row["method"]: f"{1e3 * row['seconds_per_query']:.2f}" for row in report["inference_time"] if row["main"]}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES: dict[str, Callable[[], str]] = {
    **{f"parameters-{group}": lambda names=names: _parameters(Config, names) for group, names in GROUPS.items()},
    "run-options": lambda: _all_parameters(RunOptions),
    "parameters-tree": lambda: _all_parameters(TreeConfig),
    "defaults-tree": lambda: _tree_defaults(),
    "parameters-ffm": lambda: _all_parameters(FFMConfig),
    "parameters-als": lambda: _all_parameters(ALSConfig),
    "presets": _presets,
    "finding-codes": _codes,
    "column-names": _column_names,
    "sources": _sources,
    "commands": _commands,
    "comparison": _comparison,
    "limits": lambda: _parameters(ServerLimits, [spec.name for spec in dataclasses.fields(ServerLimits)]),
}


def main() -> None:
    """Bring every page up to date and name those that changed."""
    for page in sorted(FOLDER.glob("*.md")):
        text = page.read_text()
        if (filled := fill(text)) != text:
            page.write_text(filled)
            print(f"{page.name}: updated")


if __name__ == "__main__":
    main()
