"""Fill the generated tables of the pages: `python -m docs.generate`.

Text between `<!-- generated: NAME -->` and `<!-- end -->` is replaced by the table of that name in `TABLES`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer

from pathdex.cli.app import app
from pathdex.config import PRESETS, Config, EncoderConfig, RunOptions
from pathdex.data import findings
from pathdex.data.columns import COMMON_NAMES
from pathdex.data.datasets import DATASETS
from pathdex.data.synthetic_variants import VARIANTS
from pathdex.experiments.search_space import default_space, describe_axis
from pathdex.recommenders.ffm_hnsw import FFMConfig
from pathdex.recommenders.implicit_als import ALSConfig
from pathdex.recommenders.jtm import JTM
from pathdex.recommenders.otm import OTM
from pathdex.recommenders.tree.config import TreeConfig
from pathdex.recommenders.youtube_dnn import PARAMETERS as YOUTUBE_DNN_PARAMETERS
from pathdex.server.limits import ServerLimits

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "benchmarks" / "results"
REPORTS = RESULTS / "reports"

GROUPS: dict[str, tuple[str, ...]] = {
    "structure": ("num_nodes", "depth", "paths_per_item", "structure", "structure_hidden", "node_dim"),
    "encoder": (
        "encoder", "embedding_dim", "history_length", "shared_items", "dropout", "reranker", "softmax", "negatives",
        "num_negatives", "bias_start",
    ),
    "e-step": (
        "schedule", "next_items", "epochs", "rounds", "structure_epochs", "final_epochs", "batch_size",
        "structure_batch_size", "learning_rate", "item_learning_rate", "structure_learning_rate", "weight_decay",
    ),
    "m-step": (
        "start", "candidate_paths", "scoring", "score_beam", "score_samples", "decay", "descent_iterations",
        "path_size", "candidates_per_query", "penalty", "penalty_degree",
    ),
    "retrieval": (
        "beam_size", "path_weight", "popularity_weight", "neighbours", "neighbour_weight", "neighbour_smoothing",
        "neighbour_share", "neighbour_recency",
    ),
}  # fmt: skip
"""Hyper-parameters by section of `parameters.md`."""

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def fill(page: str) -> str:
    """The page with every generated block up to date."""
    return _BLOCK.sub(lambda block: f"{block[1]}{TABLES[block[2]]()}\n{block[3]}", page)


def without_generated(page: str) -> str:
    """The page without its generated blocks."""
    return _BLOCK.sub("", page)


def commands(group: Any = None, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command of `pathdex` with its full name, such as `data describe`."""
    group = typer.main.get_command(app) if group is None else group
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*prefix, name))
        else:
            yield " ".join((*prefix, name)), command


def finding_codes() -> dict[str, str]:
    """Finding codes and their meanings, from the docstring of `pathdex.data.findings`."""
    return dict(sorted(re.findall(r"(D\d{3})  (\S+(?: \S+)*)", findings.__doc__ or "")))


# Parameters.


def _parameter_table(kind: type[Any], names: Iterable[str] | None = None) -> str:
    """Default, allowed values and help of a dataclass's fields: the named ones, or all."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    rows = [
        [f"`{name}`", _default(fields[name]), _allowed(fields[name]), fields[name].metadata["help"]]
        for name in (fields if names is None else names)
    ]
    return _table(["name", "default", "allowed", "description"], rows)


def _default(field: dataclasses.Field[Any]) -> str:
    return "derived" if field.default is None else _value(field.default)


def _allowed(field: dataclasses.Field[Any]) -> str:
    rules = field.metadata
    if rules["choices"] is not None:
        return ", ".join(f"`{choice}`" for choice in rules["choices"])
    if field.type == "bool":
        return "`true`, `false`"
    bounds = [("above", ">"), ("low", ">="), ("high", "<=")]
    return ", ".join(f"{sign} {rules[name]:g}" for name, sign in bounds if rules[name] is not None)


def _value(value: Any) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _values(values: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}` {_value(value)}" for name, value in values.items())


def _tree_defaults() -> str:
    rows = [[f"`{method.name}`", _values(method.defaults)] for method in (JTM, OTM)]
    return _table(["method", "defaults that differ"], rows)


def _presets() -> str:
    rows = [[f"`{name}`", _values(values) or "nothing: the defaults"] for name, values in PRESETS.items()]
    return _table(["preset", "sets"], rows)


# Data and commands.


def _finding_codes() -> str:
    return _table(["code", "meaning"], [[code, meaning] for code, meaning in finding_codes().items()])


def _column_names() -> str:
    rows = [[role, ", ".join(f"`{name}`" for name in names)] for role, names in COMMON_NAMES.items()]
    return _table(["role", "names, ignoring case and punctuation"], rows)


def _sources() -> str:
    rows = []
    for name, source in DATASETS.items():
        options = {key: value for key, value in source.reading.items() if key != "format"}
        reading = ", ".join(f"`{key}` {value}" for key, value in options.items())
        rows.append([f"`{name}`", f"`{source.filename}`", reading, f"{source.valid_users} + {source.test_users}"])
    return _table(["name", "file", "read with", "validation + test users"], rows)


def _variants() -> str:
    rows = [
        [
            f"`{name}`",
            one.summary,
            *(f"{count:,}" for count in (one.users, one.items, one.interactions)),
            *(f"{share:g}" for share in dataclasses.astuple(one.habits)),
        ]
        for name, one in VARIANTS.items()
    ]
    head = ["variant", "what it is", "users", "items", "rows", "order", "repetition", "popularity"]
    return _table(head, rows)


def _commands() -> str:
    rows = [[f"`pathdex {name}`", (command.help or "").split("\n")[0]] for name, command in commands()]
    return _table(["command", "what it does"], rows)


# Results.


def _reports() -> dict[str, dict[str, Any]]:
    """The committed comparisons by folder name, smallest catalogue first."""
    reports = {path.parent.name: json.loads(path.read_text()) for path in REPORTS.glob("*/results.json")}
    return dict(sorted(reports.items(), key=lambda report: report[1]["data"]["items"]))


def _comparison() -> str:
    reports = _reports()
    accuracy = [_f_measures(report) for report in reports.values()]
    times = [_query_times(report) for report in reports.values()]
    methods = list(dict.fromkeys(method for column in accuracy for method in column))
    rows = [[method, *(column.get(method, "") for column in [*accuracy, *times])] for method in methods]
    links = [f"F in %: [{name}](../benchmarks/results/reports/{name}/report.md)" for name in reports]
    return _table(["method", *links, *(f"ms: {name}" for name in reports)], rows)


def _f_measures(report: dict[str, Any]) -> dict[str, str]:
    """F of each method at its main setting, seen items removed."""
    rows = [row for row in report["comparison"] if row["main"] and row["filter_seen"]]
    return {row["method"]: f"{100 * row['f_measure']:.2f} ± {100 * row['f_measure_deviation']:.2f}" for row in rows}


def _query_times(report: dict[str, Any]) -> dict[str, str]:
    """Milliseconds per query of each method at its main setting, one query at a time."""
    return {row["method"]: f"{1e3 * row['seconds_per_query']:.2f}" for row in report["inference_time"] if row["main"]}


def _robustness() -> str:
    """Every set of the robustness benchmark, with the state before beside it."""
    before, after = (
        json.loads((RESULTS / f"robustness{suffix}.json").read_text())["sets"] for suffix in ("-before", "")
    )
    rows = []
    for name, found in after.items():
        f = _mean_f(found["runs"])
        baselines = {method: value for method, value in f.items() if method.startswith(("popularity", "item-cf"))}
        best, own = max(baselines, key=lambda method: baselines[method]), "deep-retrieval, 10 n"
        old = _mean_f(before[name]["runs"]) if name in before else None
        rows.append(
            [
                name,
                str(found["n"]),
                f"{best} {100 * f[best]:.2f}",
                f"{100 * f['brute-force']:.2f}",
                f"{100 * f[own]:.2f}",
                "" if old is None else f"{old[own] / max(old[method] for method in baselines):.3f}",
                f"{f[own] / f[best]:.3f}",
                *("" if old is None else f"{old[m] / old['brute-force']:.3f}" for m in ("deep-retrieval, 5 n", own)),
                *(f"{f[m] / f['brute-force']:.3f}" for m in ("deep-retrieval, 5 n", own)),
                *(
                    "" if part is None else f"{_mean(part, 'train_cpu_seconds'):.0f}"
                    for part in (before.get(name), found)
                ),
            ]
        )
    ratios = [
        "10 n / best, before",
        "now",
        "5 n / brute, before",
        "10 n / brute, before",
        "5 n / brute, now",
        "10 n / brute, now",
    ]
    return _table(["set", "n", "best baseline", "brute force", "10 n", *ratios, "CPU s, before", "now"], rows)


def _mean_f(runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Mean F of each method over the runs, seen items removed."""
    values: dict[str, list[float]] = {}
    for run in runs:
        for row in run["results"]:
            if row["filter_seen"]:
                values.setdefault(row["method"], []).append(row["f_measure"])
    return {method: sum(each) / len(each) for method, each in values.items()}


def _mean(found: Mapping[str, Any], name: str) -> float:
    return sum(run[name] for run in found["runs"]) / len(found["runs"])


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _prepare() -> str:
    report = json.loads((RESULTS / "prepare.json").read_text())
    limit, log = (report[name] / 2**20 for name in ("limit", "log"))
    order = ["read without preparing", "data prepare", "data describe", "train", "evaluate"]
    rows = [
        [
            name,
            f"{step['seconds']:,.0f} s",
            f"{step['resident'] / 2**20:,.0f} MB",
            "done" if step["returncode"] == 0 else "killed for its memory" if step["returncode"] == -9 else "failed",
        ]
        for name, step in sorted(report["steps"].items(), key=lambda pair: order.index(pair[0]))
    ]
    facts = (
        f"A log of {log:,.0f} MB, {report['interactions']:,} rows; at most {limit:,.0f} MB for each process "
        f"({report['limited_by']}); the prepared folder has {report['prepared'] / 2**20:,.0f} MB."
    )
    return f"{facts}\n\n{_table(['process', 'time', 'most memory, with mapped files', 'end'], rows)}"


def _search_space() -> str:
    config = Config()
    rows = [
        [f"`{name}`", f"`{getattr(config, name)}`", f"`{describe_axis(axis)}`"]
        for name, axis in default_space().items()
    ]
    return _table(["name", "default", "searched"], rows)


TABLES: dict[str, Callable[[], str]] = {
    **{f"parameters-{group}": partial(_parameter_table, Config, names) for group, names in GROUPS.items()},
    "run-options": partial(_parameter_table, RunOptions),
    "presets": _presets,
    "search-space": _search_space,
    "parameters-youtube-dnn": partial(_parameter_table, EncoderConfig, YOUTUBE_DNN_PARAMETERS),
    "parameters-tree": partial(_parameter_table, TreeConfig),
    "defaults-tree": _tree_defaults,
    "parameters-ffm": partial(_parameter_table, FFMConfig),
    "parameters-als": partial(_parameter_table, ALSConfig),
    "limits": partial(_parameter_table, ServerLimits),
    "finding-codes": _finding_codes,
    "column-names": _column_names,
    "sources": _sources,
    "variants": _variants,
    "commands": _commands,
    "comparison": _comparison,
    "robustness": _robustness,
    "prepare": _prepare,
}


def main() -> None:
    """Update every page and print the names of those that changed."""
    for page in sorted(FOLDER.glob("*.md")):
        text = page.read_text()
        if (filled := fill(text)) != text:
            page.write_text(filled)
            print(f"{page.name}: updated")


if __name__ == "__main__":
    main()
