"""Retrieval loss of an index that finds the first few items only."""

import json
from pathlib import Path

import numpy as np
import pytest

from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.splits import split_users
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import QueryError
from pathdex.evaluation.decomposition import Decomposition, Loss, decompose
from tests.evaluation.fakes import Countdown, make_queries

# Occurrences of item v in training.
COUNTS = np.array([60, 30, 12, 7, 3, 1, 0, 0, 0, 0])
QUERIES = make_queries([[0], [9]], [[1, 2, 3], [0, 1]])


def losses(bonus: dict[int, float] | None = None, batch: int = 1024) -> Decomposition:
    return decompose(
        Countdown(bonus=bonus),
        Countdown(),
        QUERIES,
        n=3,
        item_counts=COUNTS,
        options=[{"candidates": 2}, {"candidates": 5}],
        batch=batch,
    )


def at(decomposition: Decomposition, candidates: int, filter_seen: bool) -> Loss:
    return next(
        loss for loss in decomposition.losses if loss.candidate_budget == candidates and loss.filter_seen is filter_seen
    )


def test_every_set_of_options_is_evaluated_with_and_without_seen_items() -> None:
    found = [(loss.candidate_budget, loss.filter_seen) for loss in losses().losses]
    assert found == [(2, True), (2, False), (5, True), (5, False)]


def test_few_candidates_keep_a_part_of_brute_forces_top() -> None:
    loss = at(losses(), 2, filter_seen=True)
    # Brute force answers [1, 2, 3] and [0, 1, 2]; the candidates are [1, 2] and [0, 1].
    assert loss.candidates == 2
    assert loss.kept == pytest.approx(4 / 6)
    assert loss.kept_by_popularity == {"0-1": None, "2-4": None, "5-9": 0.0, "10-19": 0.5, "20-49": 1.0, "50+": 1.0}
    first, second = 1.0, 2 * (2 / 3) * 1 / (2 / 3 + 1)
    assert loss.f_brute_force == pytest.approx((first + second) / 2)
    assert loss.f_structure == pytest.approx((2 / 3 + second) / 2)
    assert loss.structure_ratio == pytest.approx((2 / 3 + second) / (first + second))


def test_without_a_bonus_the_final_answer_is_that_of_the_structure() -> None:
    for loss in losses().losses:
        assert loss.f_final == loss.f_structure


def test_candidates_that_include_the_top_lose_nothing() -> None:
    for filter_seen in (True, False):
        loss = at(losses(), 5, filter_seen)
        assert (loss.kept, loss.structure_ratio, loss.final_ratio) == (1.0, 1.0, 1.0)


def test_the_final_score_can_gain_or_cost() -> None:
    # A bonus for item 4, which is in no truth, pushes item 3 or 2 out of the answer.
    loss = at(losses(bonus={4: 9.0}), 5, filter_seen=True)
    assert loss.structure_ratio == 1.0
    assert loss.final_ratio is not None
    assert loss.final_ratio < 1.0


def test_batches_do_not_change_the_result() -> None:
    assert losses(batch=1) == losses()


def test_there_is_no_ratio_to_a_ceiling_of_0() -> None:
    decomposition = decompose(
        Countdown(), Countdown(), make_queries([[0]], [[9]]), n=2, item_counts=COUNTS, options=[{"candidates": 3}]
    )
    assert decomposition.losses[0].f_brute_force == 0.0
    assert decomposition.losses[0].structure_ratio is None
    assert decomposition.losses[0].final_ratio is None


def test_it_is_written_as_json(tmp_path: Path) -> None:
    decomposition = losses()
    written = json.loads(decomposition.to_json(tmp_path / "loss.json").read_text())
    assert written == decomposition.to_dict()
    assert written["losses"][0]["kept_by_popularity"]["50+"] == 1.0


def test_progress_counts_queries() -> None:
    calls: list[tuple[int, int | None]] = []
    decompose(
        Countdown(),
        Countdown(),
        QUERIES,
        n=3,
        item_counts=COUNTS,
        options=[{"candidates": 2}],
        batch=1,
        progress=lambda *call: calls.append(call),
    )
    assert calls == [(done, 4) for done in (1, 2, 3, 4)]


def test_it_needs_a_set_of_options() -> None:
    with pytest.raises(QueryError, match=r"^options=\[\]: must hold at least one set of options; pass"):
        decompose(Countdown(), Countdown(), QUERIES, n=3, item_counts=COUNTS, options=[])


def test_a_beam_over_all_paths_loses_nothing() -> None:
    from pathdex.recommenders.brute_force import BruteForce
    from pathdex.recommenders.deep_retrieval import DeepRetrieval

    random = np.random.default_rng(0)
    rows = [random.integers(0, 8, 10) + 8 * (user % 2) for user in range(40)]
    data = Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(40)), Vocabulary(np.arange(16)))
    shape = {"num_nodes": 3, "depth": 2, "paths_per_item": 1, "embedding_dim": 4}
    model = DeepRetrieval(**shape, epochs=1, rounds=0, path_weight=0.0, neighbours=0, threads=1).fit(data)
    split = split_users(data, test_users=10)
    found = decompose(
        model, BruteForce(model), split.test, n=4, item_counts=data.item_counts(), options=[{"beam": 9}, {"beam": 1}]
    )
    for loss in found.losses[:2]:
        assert (loss.kept, loss.structure_ratio, loss.final_ratio) == (1.0, 1.0, 1.0)
    for loss in found.losses[2:]:
        assert loss.candidates < 16
        assert loss.f_final == loss.f_structure
