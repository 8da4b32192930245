"""`pathdex compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pathdex.cli.console import counting, err, out, table

if TYPE_CHECKING:
    from pathdex.experiments.run_comparison import RunComparison

NAMES = {"f_measure": "F", "ndcg": "NDCG", "hit_rate": "hit rate", "mrr": "MRR"}


def compare(
    first: Annotated[Path, typer.Argument(help="The --out of `pathdex train`.", metavar="RUN_A")],
    second: Annotated[Path, typer.Argument(help="Another, with the same held-out users.", metavar="RUN_B")],
    n: Annotated[int, typer.Option("--n", help="Items recommended per user.")] = 10,
    on: Annotated[str, typer.Option(help="Held-out users to ask: test or valid.")] = "test",
    candidates: Annotated[
        int | None, typer.Option(help="The most items scored per user. [default: 10 times n]")
    ] = None,
    beam: Annotated[int | None, typer.Option(help="In its place: paths followed per user.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here.", metavar="FILE")] = None,
) -> None:
    """Compare two runs user by user: differences with 95% intervals, and whether chance explains them.

    Both runs must hold out the same users: train them on the same data with the same split and seed. The p-values are
    of the paired randomisation test on the users' differences, corrected by Holm's method for the number of metrics.

    Examples:

        pathdex compare runs/first runs/second

        pathdex compare runs/first runs/second --n 50 --on valid --json difference.json
    """
    from pathdex.errors import ConfigError
    from pathdex.experiments.run_comparison import compare_runs
    from pathdex.experiments.runs import Run

    if beam is not None and candidates is not None:
        raise ConfigError([f"--beam {beam}, --candidates {candidates}: a search has one width; leave one of them out"])
    options: dict[str, Any] = {"beam": beam} if beam is not None else {}
    if candidates is not None:
        options = {"candidates": candidates}
    a, b = Run.open(first), Run.open(second)
    with counting("answering queries") as progress:
        found = compare_runs(a, b, on=on, n=n, progress=lambda _, done, total: progress(done, total), **options)
    console = out()
    width = ", ".join(f"{name} {value:,}" for name, value in found.options.items())
    err().print(f"A: {found.a}\nB: {found.b}\n{found.users:,} {on} users, {width}")
    for removed, words in ((True, "seen items removed"), (False, "seen items kept")):
        console.print(table(f"Top {n}, in %, {words}", _COLUMNS, _rows(found, removed)))
    if json_file is not None:
        found.to_json(json_file)


_COLUMNS = ["metric", "A", "B", "A - B", "95% interval", "p", "p by Holm"]


def _rows(found: RunComparison, removed: bool) -> list[list[str]]:
    rows = []
    for one in found.differences:
        if one.filter_seen is removed:
            test = one.test
            interval = f"{100 * test.low:+.2f} to {100 * test.high:+.2f}"
            figures = [f"{100 * one.a:.2f}", f"{100 * one.b:.2f}", f"{100 * test.difference:+.2f}", interval]
            rows.append([NAMES.get(one.metric, one.metric), *figures, f"{test.p:.4f}", f"{one.p_holm:.4f}"])
    return rows
