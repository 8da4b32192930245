"""Tables as people see them."""

import io

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from pathdex.evaluation import report
from pathdex.evaluation.decomposition import Decomposition, decompose
from pathdex.evaluation.protocol import Evaluation, Method, evaluate
from tests.evaluation.fakes import NUM_ITEMS, Countdown, make_queries

QUERIES = make_queries([[0], [1], [5]], [[1, 2], [0], [9, 9, 3, 4]])
COUNTS = np.arange(NUM_ITEMS)


@pytest.fixture
def evaluation() -> Evaluation:
    methods = [Method("short", Countdown(), {"candidates": 4}), Method("full", Countdown())]
    return evaluate(methods, QUERIES, n=2, item_counts=COUNTS)


@pytest.fixture
def decomposition() -> Decomposition:
    settings = [{"candidates": 2}, {"beam": 7}]
    return decompose(Countdown(), Countdown(), QUERIES, n=2, item_counts=COUNTS, settings=settings)


def shown(table: Table) -> list[str]:
    stream = io.StringIO()
    Console(width=200, file=stream).print(table)
    return [" ".join(line.replace("│", " ").split()) for line in stream.getvalue().splitlines()]


def test_the_table_has_a_block_for_each_treatment_of_seen_items(evaluation: Evaluation) -> None:
    lines = shown(report.evaluation_table(evaluation))
    order = [line for line in lines if line.startswith(("seen", "short", "full"))]
    assert [line.split()[0] for line in order] == ["seen", "short", "full", "seen", "short", "full"]
    assert order[0].startswith("seen items removed")
    assert order[3].startswith("seen items kept")
    assert "Top 2 for 3 held-out users, in %" in lines[0]


def test_shares_are_percent_with_two_digits(evaluation: Evaluation) -> None:
    lines = shown(report.evaluation_table(evaluation))
    row = next(line for line in lines if line.startswith("short"))
    assert row.startswith("short at most 4 4 50.00 66.67 55.56 ± 29.40")


def test_a_narrow_table_leaves_out_its_last_columns(evaluation: Evaluation) -> None:
    narrow = [column.header for column in report.evaluation_table(evaluation, 100).columns]
    least = [column.header for column in report.evaluation_table(evaluation, 1).columns]
    whole = [column.header for column in report.evaluation_table(evaluation).columns]
    assert whole == [column.header for column in report.evaluation_table(evaluation, 1000).columns]
    assert narrow == whole[: len(narrow)]
    assert least == ["method", "setting", "candidates", "precision", "recall", "F"]
    assert len(least) < len(narrow) < len(whole)


def test_markdown_holds_the_same_cells(evaluation: Evaluation) -> None:
    text = report.evaluation_markdown(evaluation)
    assert "**seen items removed**" in text
    assert "**seen items kept**" in text
    assert "| method | setting | candidates | precision | recall | F |" in text
    assert "| --- | --- | ---: |" in text
    assert text.count("| short | at most 4 | 4 | 50.00 | 66.67 | 55.56 ± 29.40 |") == 1


def test_the_decomposition_goes_from_the_ceiling_down(decomposition: Decomposition) -> None:
    text = report.decomposition_markdown(decomposition)
    assert "| F brute force | top n kept | F structure | structure ratio | F final | final ratio |" in text
    assert "| at most 2 | 2 | 55.56 | 100.00 | 55.56 | 100.00 | 55.56 | 100.00 |" in text
    assert "| beam 7 |" in text
    lines = shown(report.decomposition_table(decomposition))
    assert sum(line.startswith("beam 7") for line in lines) == 2


def test_shares_by_popularity_show_where_there_are_none(decomposition: Decomposition) -> None:
    text = report.kept_markdown(decomposition)
    assert "| setting | candidates | all | 0-1 | 2-4 | 5-9 | 10-19 | 20-49 | 50+ |" in text
    assert "| at most 2 | 2 | 100.00 | 100.00 | 100.00 | – | – | – | – |" in text
    assert sum(line.startswith("at most 2") for line in shown(report.kept_table(decomposition))) == 2
