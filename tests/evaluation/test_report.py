"""The tables of an evaluation."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.evaluation.decomposition import Decomposition, decompose
from pathdex.evaluation.protocol import Evaluation, Method, evaluate
from pathdex.evaluation.report import decomposition_tables, evaluation_tables, options_text, percent
from tests.evaluation.fakes import NUM_ITEMS, Countdown, make_queries

QUERIES = make_queries([[0], [1], [5]], [[1, 2], [0], [9, 9, 3, 4]])
COUNTS = np.arange(NUM_ITEMS)


@pytest.fixture
def evaluation() -> Evaluation:
    methods = [Method("short", Countdown(), {"candidates": 4}), Method("full", Countdown())]
    return evaluate(methods, QUERIES, n=2, item_counts=COUNTS)


@pytest.fixture
def decomposition() -> Decomposition:
    options = [{"candidates": 2}, {"beam": 7}]
    return decompose(Countdown(), Countdown(), QUERIES, n=2, item_counts=COUNTS, options=options)


def test_one_table_with_seen_items_removed_and_one_with_seen_items_kept(evaluation: Evaluation) -> None:
    removed, kept = evaluation_tables(evaluation)
    assert removed.title == "Top 2 for 3 held-out users, in %, seen items removed"
    assert kept.title == "Top 2 for 3 held-out users, in %, seen items kept"
    assert [[row[0] for row in table.rows] for table in (removed, kept)] == [["short", "full"]] * 2


def test_shares_are_percent_with_two_digits(evaluation: Evaluation) -> None:
    table = evaluation_tables(evaluation)[0]
    assert table.head[:7] == ["method", "options", "candidates", "precision", "recall", "F", "NDCG"]
    assert table.rows[0][:6] == ["short", "candidates 4", "4", "50.00", "66.67", "55.56 ± 29.40"]


def test_a_narrow_terminal_still_shows_precision_recall_and_f(evaluation: Evaluation) -> None:
    table = evaluation_tables(evaluation)[0]
    assert table.head[: len(table.head) - table.optional] == table.head[:6]


def test_the_retrieval_loss_goes_from_the_ceiling_down(decomposition: Decomposition) -> None:
    removed, kept = decomposition_tables(decomposition)
    assert removed.head[2:] == [
        "F brute force", "top n kept", "F structure", "structure ratio", "F final", "final ratio",
    ]  # fmt: skip
    assert removed.rows[0] == ["candidates 2", "2", "55.56", "100.00", "55.56", "100.00", "55.56", "100.00"]
    assert [row[0] for row in kept.rows] == ["candidates 2", "beam 7"]


def test_cells() -> None:
    assert options_text({"beam": None, "candidates": 1000}) == "candidates 1,000"
    assert (percent(0.12345), percent(0.5, 1), percent(None)) == ("12.35", "50.0", "–")
