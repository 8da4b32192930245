"""Two models side by side."""

from __future__ import annotations

import numpy as np
import pytest

import pathdex
from pathdex.errors import QueryError
from pathdex.explorer.change_schemas import CompareQuery
from pathdex.explorer.compare import compare
from pathdex.explorer.explorer import Explorer
from tests.random_model import random_model


def pair(first: pathdex.DeepRetrieval, second: pathdex.DeepRetrieval) -> Explorer:
    return Explorer(first, "here", other=Explorer(second, "there"))


def test_a_model_equals_itself(trained: pathdex.DeepRetrieval) -> None:
    found = compare(pair(trained, trained), CompareQuery())
    assert (found.model, found.other, found.same_structure) == ("here", "there", True)
    assert (found.paths_kept, found.companions_kept, found.overlap, found.first_same) == (1, 1, 1, 1)
    assert (found.moved, found.num_moved, found.only_here, found.only_there) == ([], 0, 0, 0)
    assert found.histories == "popular items"


@pytest.mark.parametrize("sort", ["companions", "paths", "interactions"])
def test_moves_are_those_of_the_paths(sort: str) -> None:
    first, second = random_model(40, seed=1), random_model(40, seed=2)
    explorer = pair(first, second)
    found = compare(explorer, CompareQuery(sort=sort, size=200))  # type: ignore[arg-type]
    kept = {item: len(set(first.item_paths(item)) & set(second.item_paths(item))) for item in range(100, 140)}
    assert found.kept_counts == np.bincount(list(kept.values()), minlength=3).tolist()
    assert found.paths_kept == pytest.approx(sum(kept.values()) / 80)
    for one in found.moved:
        assert one.kept == kept[int(one.id)]
        assert [tuple(path) for path in one.before] == second.item_paths(one.id)
        assert [tuple(path) for path in one.after] == first.item_paths(one.id)
        assert one.companions_kept == pytest.approx(jaccard(first, second, int(one.id)))


def jaccard(first: pathdex.DeepRetrieval, second: pathdex.DeepRetrieval, item: int) -> float:
    mine, theirs = (
        {other for path in model.item_paths(item) for other in model.path_items(path)} - {item}
        for model in (first, second)
    )
    return len(mine & theirs) / len(mine | theirs)


def test_new_and_gone_items_are_listed() -> None:
    found = compare(pair(random_model(40), random_model(30)), CompareQuery())
    assert (found.common_items, found.only_here, found.only_there) == (30, 10, 0)
    assert {one.id for one in found.new_items} == set(range(130, 140))


def test_other_structures_share_no_paths() -> None:
    found = compare(pair(random_model(40), random_model(40, num_nodes=7)), CompareQuery(sort="paths"))
    assert (found.same_structure, found.paths_kept, found.kept_counts) == (False, None, [])
    assert found.moved


def test_answers_are_compared_by_history(explorer: Explorer) -> None:
    other = Explorer(explorer.model.without_neighbours(), "there")
    both = Explorer(explorer.model, "here", recording=explorer.recording, other=other)
    found = compare(both, CompareQuery())
    assert (found.histories, found.num_answers) == ("recorded", min(300, len(explorer.recording.histories)))
    overlaps = [one.overlap for one in found.answers]
    assert overlaps == sorted(overlaps)
    one = found.answers[0]
    assert len({item.id for item in one.before} & {item.id for item in one.after}) == round(one.overlap * 10)


def test_without_a_second_model_there_is_nothing_to_compare(explorer: Explorer) -> None:
    with pytest.raises(QueryError, match="there is no second model; start it with: pathdex explore A --compare B"):
        compare(explorer, CompareQuery())
