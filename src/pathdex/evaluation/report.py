"""Results for people: the same tables for the terminal (rich) and as Markdown. Shares are in percent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from pathdex.evaluation.decomposition import POPULARITY_BUCKETS, Decomposition, Loss, bucket_name
from pathdex.evaluation.protocol import Evaluation, Result

T = TypeVar("T", bound=Result | Loss)
Columns: TypeAlias = Sequence[tuple[str, Callable[[T], str]]]
"""Headings, and how a row fills its cell."""
_TEXT = ("method", "setting")
_LEAST_COLUMNS = 6
"""Method, setting, candidates, precision, recall, F."""


def evaluation_table(evaluation: Evaluation, width: int | None = None) -> Table:
    """A block of rows for seen items removed and one for seen items kept; ± is the standard error of F.

    Columns that `width` has no room for are left out, the last first; all are in the JSON.
    """
    columns = list(_RESULT_COLUMNS)
    table = _rich(_evaluation_title(evaluation), columns, evaluation.results)
    while width is not None and len(columns) > _LEAST_COLUMNS and _width(table) > width:
        columns.pop()
        table = _rich(_evaluation_title(evaluation), columns, evaluation.results)
    return table


def evaluation_markdown(evaluation: Evaluation) -> str:
    """`evaluation_table` in Markdown."""
    return _markdown(_evaluation_title(evaluation), _RESULT_COLUMNS, evaluation.results)


def decomposition_table(decomposition: Decomposition) -> Table:
    """From brute force to the final answer, a row per setting; ratios are of brute force's F."""
    return _rich(_decomposition_title(decomposition), _LOSS_COLUMNS, decomposition.losses)


def decomposition_markdown(decomposition: Decomposition) -> str:
    """`decomposition_table` in Markdown."""
    return _markdown(_decomposition_title(decomposition), _LOSS_COLUMNS, decomposition.losses)


def kept_table(decomposition: Decomposition) -> Table:
    """The share of brute force's top n inside the candidates, by how often its items occur in training."""
    return _rich(_kept_title(decomposition), _KEPT_COLUMNS, decomposition.losses)


def kept_markdown(decomposition: Decomposition) -> str:
    """`kept_table` in Markdown."""
    return _markdown(_kept_title(decomposition), _KEPT_COLUMNS, decomposition.losses)


def _evaluation_title(evaluation: Evaluation) -> str:
    return f"Top {evaluation.n} for {evaluation.users:,} held-out users, in %"


def _decomposition_title(decomposition: Decomposition) -> str:
    return f"Where retrieval loses: top {decomposition.n} for {decomposition.users:,} held-out users, in %"


def _kept_title(decomposition: Decomposition) -> str:
    return f"Share of brute force's top {decomposition.n} inside the candidates, by occurrences in training, in %"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f}"


def _setting(beam: int | None, budget: int | None) -> str:
    parts = [f"beam {beam}" if beam else "", f"at most {budget:,}" if budget else ""]
    return ", ".join(part for part in parts if part)


def _figure(name: str) -> Callable[[Result], str]:
    return lambda result: _percent(result.figures[name])


def _kept(bucket: str) -> Callable[[Loss], str]:
    return lambda loss: _percent(loss.kept_by_popularity[bucket])


_RESULT_COLUMNS: Columns[Result] = [
    ("method", lambda result: result.method),
    ("setting", lambda result: _setting(result.options.get("beam"), result.options.get("candidates"))),
    ("candidates", lambda result: f"{result.figures['candidates']:,.0f}"),
    ("precision", _figure("precision")),
    ("recall", _figure("recall")),
    ("F", lambda result: f"{_figure('f_measure')(result)} ± {_figure('f_measure_standard_error')(result)}"),
    ("NDCG", _figure("ndcg")),
    ("hit rate", _figure("hit_rate")),
    ("MRR", _figure("mrr")),
    ("coverage", _figure("coverage")),
    ("Gini", lambda result: f"{result.figures['gini']:.3f}"),
    ("popularity", lambda result: f"{result.figures['mean_popularity']:,.1f}"),
]
_LOSS_COLUMNS: Columns[Loss] = [
    ("setting", lambda loss: _setting(loss.beam, loss.candidate_budget)),
    ("candidates", lambda loss: f"{loss.candidates:,.0f}"),
    ("F brute force", lambda loss: _percent(loss.f_brute_force)),
    ("top n kept", lambda loss: _percent(loss.kept)),
    ("F structure", lambda loss: _percent(loss.f_structure)),
    ("structure ratio", lambda loss: _percent(loss.structure_ratio)),
    ("F final", lambda loss: _percent(loss.f_final)),
    ("final ratio", lambda loss: _percent(loss.final_ratio)),
]
_KEPT_COLUMNS: Columns[Loss] = [
    *_LOSS_COLUMNS[:2],
    ("all", lambda loss: _percent(loss.kept)),
    *((name, _kept(name)) for name in (bucket_name(low, high) for low, high in POPULARITY_BUCKETS)),
]


def _blocks(rows: Sequence[T], columns: Columns[T]) -> list[tuple[str, list[list[str]]]]:
    """The cells of the rows, first where seen items are removed, then where they are kept."""
    return [
        (words, [[cell(row) for _, cell in columns] for row in rows if row.filter_seen is removed])
        for removed, words in ((True, "seen items removed"), (False, "seen items kept"))
    ]


def _width(table: Table) -> int:
    console = Console(width=1000)
    return Measurement.get(console, console.options, table).maximum


def _rich(title: str, columns: Columns[T], rows: Sequence[T]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading, _ in columns:
        words = heading in _TEXT
        table.add_column(heading, justify="left" if words else "right", no_wrap=words, overflow="fold")
    for block, cells in _blocks(rows, columns):
        table.add_section()
        table.add_row(block, style="bold")
        for row in cells:
            table.add_row(*row)
    return table


def _markdown(title: str, columns: Columns[T], rows: Sequence[T]) -> str:
    headings = [heading for heading, _ in columns]
    rule = ["---" if heading in _TEXT else "---:" for heading in headings]
    parts = [f"{title}\n"]
    for words, cells in _blocks(rows, columns):
        lines = ["| " + " | ".join(row) + " |" for row in (headings, rule, *cells)]
        parts.append(f"**{words}**\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)
