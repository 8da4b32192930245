"""Results as tables. Shares are in percent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from pathdex.evaluation.decomposition import Decomposition, Loss
from pathdex.evaluation.protocol import Evaluation, MethodResult
from pathdex.tables import TextTable

T = TypeVar("T", bound=MethodResult | Loss)
Columns: TypeAlias = Sequence[tuple[str, Callable[[T], str]]]
"""Headings, and the cell of a row under each."""
SEEN_ITEMS = {True: "seen items removed", False: "seen items kept"}
"""How tables name `filter_seen`."""


def evaluation_tables(evaluation: Evaluation) -> list[TextTable]:
    """One table with seen items removed and one with seen items kept; ± is the standard error of F."""
    title = f"Top {evaluation.n} for {evaluation.users:,} held-out users, in %"
    return _tables(title, _RESULT_COLUMNS, evaluation.results, text_columns=2, optional=7)


def decomposition_tables(decomposition: Decomposition) -> list[TextTable]:
    """From brute force to the final answer; ratios are to brute force's F."""
    title = f"Retrieval loss: top {decomposition.n} for {decomposition.users:,} held-out users, in %"
    return _tables(title, _LOSS_COLUMNS, decomposition.losses)


def options_text(options: Mapping[str, Any]) -> str:
    """Query options as tables show them: `candidates 100`."""
    return ", ".join(f"{name} {value:,}" for name, value in options.items() if value is not None)


def percent(share: float | None, digits: int = 2) -> str:
    """A share in percent; a dash for None."""
    return "–" if share is None else f"{100 * share:.{digits}f}"


def _figure(name: str) -> Callable[[MethodResult], str]:
    return lambda result: percent(result.figures[name])


_RESULT_COLUMNS: Columns[MethodResult] = [
    ("method", lambda result: result.method),
    ("options", lambda result: options_text(result.options)),
    ("candidates", lambda result: f"{result.figures['candidates']:,.0f}"),
    ("precision", _figure("precision")),
    ("recall", _figure("recall")),
    ("F", lambda result: f"{_figure('f_measure')(result)} ± {_figure('f_measure_standard_error')(result)}"),
    ("NDCG", _figure("ndcg")),
    ("hit rate", _figure("hit_rate")),
    ("MRR", _figure("mrr")),
    ("distinct recall", _figure("distinct_recall")),
    ("coverage", _figure("coverage")),
    ("Gini", lambda result: f"{result.figures['gini']:.3f}"),
    ("popularity", lambda result: f"{result.figures['mean_popularity']:,.1f}"),
]
_LOSS_COLUMNS: Columns[Loss] = [
    ("options", lambda loss: options_text({"beam": loss.beam, "candidates": loss.candidate_budget})),
    ("candidates", lambda loss: f"{loss.candidates:,.0f}"),
    ("F brute force", lambda loss: percent(loss.f_brute_force)),
    ("top n kept", lambda loss: percent(loss.kept)),
    ("F structure", lambda loss: percent(loss.f_structure)),
    ("structure ratio", lambda loss: percent(loss.structure_ratio)),
    ("F final", lambda loss: percent(loss.f_final)),
    ("final ratio", lambda loss: percent(loss.final_ratio)),
]


def _tables(
    title: str, columns: Columns[T], rows: Sequence[T], *, text_columns: int = 1, optional: int = 0
) -> list[TextTable]:
    head = [heading for heading, _ in columns]
    return [
        TextTable(
            f"{title}, {words}",
            head,
            [[cell(row) for _, cell in columns] for row in rows if row.filter_seen is filter_seen],
            text_columns=text_columns,
            optional=optional,
        )
        for filter_seen, words in SEEN_ITEMS.items()
    ]
