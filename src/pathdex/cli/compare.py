"""`pathdex compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from pathdex.cli.console import err, out
from pathdex.cli.options import JsonFile
from pathdex.cli.progress import show_progress
from pathdex.tables import TextTable

if TYPE_CHECKING:
    from pathdex.experiments.run_comparison import RunComparison

NAMES = {"distinct_recall": "distinct recall", "f_measure": "F", "ndcg": "NDCG", "hit_rate": "hit rate", "mrr": "MRR"}


def compare(
    first: Annotated[Path, Argument(help="The --out folder of `pathdex train`.", metavar="RUN_A")],
    second: Annotated[Path, Argument(help="Another run with the same held-out users.", metavar="RUN_B")],
    n: Annotated[int, Option("--n", help="Items recommended per user.")] = 10,
    on: Annotated[str, Option(help="Held-out users: test or valid.")] = "test",
    candidates: Annotated[int | None, Option(help="Maximum items scored per user. [default: 10 times n]")] = None,
    beam: Annotated[int | None, Option(help="Number of paths followed per user, instead of --candidates.")] = None,
    json_file: JsonFile = None,
) -> None:
    """Compare two runs user by user, with 95% intervals and p-values.

    Both runs must hold out the same users: train them on the same data with the same split and seed. The p-values come
    from a paired randomisation test and are corrected for the number of metrics by Holm's method.

    Examples:

        pathdex compare runs/first runs/second

        pathdex compare runs/first runs/second --n 50 --on valid --json difference.json
    """
    from pathdex.errors import ConfigError, Problem
    from pathdex.evaluation.report import SEEN_ITEMS, options_text
    from pathdex.experiments.run_comparison import compare_runs
    from pathdex.experiments.runs import Run

    if beam is not None and candidates is not None:
        rule = f"cannot be combined with --candidates={candidates}"
        raise ConfigError([Problem(rule, "--beam", beam, "leave one of them out")])
    given = {"beam": beam, "candidates": candidates}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    a, b = Run.open(first), Run.open(second)
    with show_progress("evaluating") as progress:
        found = compare_runs(a, b, on=on, n=n, progress=progress, **options)
    console = out()
    err().print(f"A: {found.a}\nB: {found.b}\n{found.users:,} {on} users, {options_text(found.options)}")
    for filter_seen, words in SEEN_ITEMS.items():
        console.print(TextTable(f"Top {n}, in %, {words}", _COLUMNS, _rows(found, filter_seen)))
    if json_file is not None:
        found.to_json(json_file)


_COLUMNS = ["metric", "A", "B", "A - B", "95% interval", "p", "p (Holm)"]


def _rows(found: RunComparison, filter_seen: bool) -> list[list[str]]:
    from pathdex.experiments.report.wording import difference

    return [
        [
            NAMES.get(one.metric, one.metric),
            *(f"{100 * mean:.2f}" for mean in (one.a, one.b)),
            *difference(one.test.to_dict()),
            *(f"{p:.4f}" for p in (one.test.p, one.test.p_holm)),
        ]
        for one in found.differences
        if one.filter_seen is filter_seen
    ]
