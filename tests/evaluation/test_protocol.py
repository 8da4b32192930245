"""The protocol on known answers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pathdex.errors import DataError, QueryError, StorageError
from pathdex.evaluation.protocol import Evaluation, Method, evaluate, standard_error
from tests.evaluation.fakes import NUM_ITEMS, Countdown, make_queries

COUNTS = np.arange(NUM_ITEMS)
QUERIES = make_queries([[0], [1, 1], [5, 6]], [[1, 2], [0], [9, 9, 3, 4]])


@pytest.fixture
def evaluation() -> Evaluation:
    return evaluate([Method("countdown", Countdown())], QUERIES, n=2, item_counts=COUNTS)


def test_seen_items_are_removed_and_kept(evaluation: Evaluation) -> None:
    assert [(result.method, result.filter_seen) for result in evaluation.results] == [
        ("countdown", True),
        ("countdown", False),
    ]


def test_figures_are_means_over_the_users(evaluation: Evaluation) -> None:
    removed, kept = evaluation.results
    # Removed: [1, 2] (two hits), [0, 2] (one hit), [0, 1] (none). Kept: [0, 1] for every user.
    assert removed.per_user["precision"].tolist() == [1.0, 0.5, 0.0]
    assert removed.per_user["recall"].tolist() == [1.0, 1.0, 0.0]
    assert removed.figures["f_measure"] == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert removed.figures["hit_rate"] == pytest.approx(2 / 3)
    assert removed.figures["mrr"] == pytest.approx(2 / 3)
    assert removed.figures["coverage"] == 0.3
    assert removed.figures["mean_popularity"] == pytest.approx((1 + 2 + 0 + 2 + 0 + 1) / 6)
    assert kept.per_user["recall"].tolist() == [0.5, 1.0, 0.0]
    assert kept.figures["coverage"] == 0.2


def test_distinct_recall_counts_repeats_in_the_truth_once() -> None:
    # The answers are [0, 1] and [0, 2]: one hit in the list of four, two in the list of five.
    queries = make_queries([[5], [1]], [[0, 0, 0, 9], [2, 2, 0, 0, 8]])
    removed = evaluate([Method("countdown", Countdown())], queries, n=2, item_counts=COUNTS).results[0]
    assert removed.per_user["recall"].tolist() == [1 / 4, 2 / 5]
    assert removed.per_user["distinct_recall"].tolist() == [1 / 2, 2 / 3]
    assert removed.figures["distinct_recall"] == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_candidates_are_measured(evaluation: Evaluation) -> None:
    removed, kept = evaluation.results
    assert removed.figures["candidates"] == pytest.approx((9 + 9 + 8) / 3)
    assert removed.figures["max_candidates"] == 9
    assert kept.figures["candidates"] == 10


def test_the_json_format(evaluation: Evaluation, tmp_path: Path) -> None:
    written = json.loads(evaluation.to_json(tmp_path / "new folder" / "evaluation.json").read_text())
    assert (written["n"], written["users"], len(written["results"])) == (2, 3, 2)
    assert list(written["results"][0]) == [
        "method",
        "beam",
        "candidate_budget",
        "candidates",
        "max_candidates",
        "filter_seen",
        "precision",
        "recall",
        "distinct_recall",
        "f_measure",
        "ndcg",
        "hit_rate",
        "mrr",
        "f_measure_standard_error",
        "coverage",
        "gini",
        "mean_popularity",
        "mean_popularity_percentile",
    ]
    assert written == evaluation.to_dict()


def test_options_reach_the_recommender_and_the_row() -> None:
    recommender = Countdown()
    found = evaluate(
        [Method("a", recommender, {"candidates": 3}), Method("b", recommender)], QUERIES, n=2, item_counts=COUNTS
    )
    assert {str(options) for _, _, options in recommender.calls[:2]} == {"{'candidates': 3}"}
    assert [row["candidate_budget"] for row in found.to_dict()["results"]] == [3, 3, None, None]
    assert found.results[0].figures["max_candidates"] == 3


def test_a_frame_and_short_texts(evaluation: Evaluation) -> None:
    frame = evaluation.to_frame()
    assert frame["method"].to_list() == ["countdown", "countdown"]
    assert frame["filter_seen"].to_list() == [True, False]
    assert frame["f_measure"].to_list() == [one.figures["f_measure"] for one in evaluation.results]
    assert evaluation.to_frame("pandas").shape == frame.shape
    assert repr(evaluation) == "Evaluation(top 2 for 3 users, F in % with seen items removed: countdown 55.56)"
    assert evaluation._repr_html_().count("<tr>") == 3


def test_batches_do_not_change_the_result(evaluation: Evaluation) -> None:
    recommender = Countdown()
    again = evaluate([Method("countdown", recommender)], QUERIES, n=2, item_counts=COUNTS, batch=2)
    assert again.to_dict() == evaluation.to_dict()
    assert [count for count, _, _ in recommender.calls] == [2, 1, 2, 1]


def test_progress_counts_queries() -> None:
    calls: list[tuple[int, int | None]] = []
    evaluate(
        [Method("countdown", Countdown())],
        QUERIES,
        n=2,
        item_counts=COUNTS,
        batch=2,
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(done, 6) for done in (2, 3, 5, 6)]


def test_the_standard_error() -> None:
    assert standard_error(np.array([0.0, 1.0])) == pytest.approx(0.5)
    assert standard_error(np.array([0.7])) == 0.0


@pytest.mark.parametrize(
    ("changes", "error", "rule"),
    [
        ({"n": 0}, QueryError, "n=0: must be a whole number of at least 1"),
        ({"n": 2.0}, QueryError, "n=2.0: must be a whole number"),
        ({"batch": 0}, QueryError, "batch=0: must be a whole number of at least 1"),
        ({"methods": []}, QueryError, r"^methods=\[\]: must name at least one; pass"),
        (
            {"queries": make_queries([], [])},
            DataError,
            r"^queries=Queries\(0 users, 0 items to find\): must hold at least one user; hold out",
        ),
        (
            {"queries": make_queries([[1], [1]], [[2], []])},
            DataError,
            "^1 queries have an empty truth; leave these users out$",
        ),
        (
            {"item_counts": COUNTS[:9]},
            DataError,
            "^item_counts has 9 entries, but the queries hold item code 9; pass split.train",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_refused(changes: dict[str, Any], error: type[Exception], rule: str) -> None:
    arguments = {"methods": [Method("a", Countdown())], "queries": QUERIES, "n": 2, "item_counts": COUNTS, **changes}
    with pytest.raises(error, match=rule):
        evaluate(**arguments)


def test_a_failed_write_leaves_the_old_file(
    evaluation: Evaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "evaluation.json"
    target.write_text("old")

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full_disk)
    with pytest.raises(StorageError, match=r"cannot write .*: No space left on device; .*nothing was changed"):
        evaluation.to_json(target)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
