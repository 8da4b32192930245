"""A merged delta has the effect of the deltas it was made from."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import DataError
from pathdex.recommenders.delta_merge import merge_deltas, mergeable_groups
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.model_delta import ModelDelta
from tests.random_deltas import changed_model, random_delta
from tests.random_model import random_model
from tests.recommenders.test_live_model import assert_same_answers, attributes


def delta(items: list[int], *, num_items: int = 10, ids: dict[int, int] | None = None, **given: object) -> ModelDelta:
    """Items whose count is their code plus 100, on one path each."""
    ids = ids or {}
    return ModelDelta(
        num_items=num_items,
        items=np.array(items, np.int64),
        rows=np.zeros((len(items), 4), np.float32),
        paths=np.array(items, np.int64).reshape(-1, 1),
        counts=np.array(given.pop("counts", [100 + one for one in items]), np.int64),
        id_codes=np.array(sorted(ids), np.int64),
        ids=Vocabulary(np.array([ids[code] for code in sorted(ids)], np.int64)),
        removed=np.array(given.pop("removed", []), np.int64),
        **given,  # type: ignore[arg-type]
    )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 100_000), st.booleans(), st.booleans())
def test_merged_deltas_equal_the_chain(seed: int, neighbours: bool, text_ids: bool) -> None:
    random = np.random.default_rng(seed)
    plain = random_model(int(random.integers(1, 15)), seed=seed % 7, neighbours=4 * neighbours)
    if text_ids:
        plain._items = Vocabulary([str(one) for one in plain.items.ids(range(len(plain.items)))])
    live, chain = LiveModel(plain), []
    for _ in range(int(random.integers(1, 12))):
        sizes = {name: int(random.integers(0, 4)) for name in ("changed", "new", "reused", "removed")}
        share = 0.3 if neighbours else 0.0
        chain.append(random_delta(plain, random, **sizes, weights=bool(random.random() < 0.2), neighbours=share))
        plain = changed_model(plain, chain[-1])
    groups = mergeable_groups(chain)
    assert sum(map(len, groups)) == len(chain)
    assert len(groups) <= 2
    for group in groups:
        live.apply(merge_deltas(group))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # No item may have a row.
        plain.attach(attributes())
        live.attach(attributes())
    assert_same_answers(live, plain, random)


def test_the_last_change_of_an_item_counts() -> None:
    merged = merge_deltas([delta([2, 3], counts=[5, 6]), delta([3], counts=[7], removed=[8])])
    assert merged.items.tolist() == [2, 3]
    assert merged.counts.tolist() == [5, 7]
    assert merged.removed.tolist() == [8]


def test_a_place_that_is_removed_and_taken_again_has_its_last_id() -> None:
    merged = merge_deltas([delta([4], ids={4: 50}), delta([], removed=[4, 5]), delta([4], ids={4: 60})])
    assert merged.items.tolist() == merged.id_codes.tolist() == [4]
    assert merged.ids.ids([0]) == [60]
    assert merged.removed.tolist() == [5]


def test_an_item_that_comes_and_goes_is_removed() -> None:
    merged = merge_deltas([delta([10], num_items=11, ids={10: 50}), delta([], num_items=11, removed=[10])])
    assert merged.removed.tolist() == [10]
    assert not len(merged.items)
    assert not len(merged.ids)


def test_the_last_weights_and_settings_count() -> None:
    first, second = {"w": np.zeros(1, np.float32)}, {"w": np.ones(1, np.float32)}
    chain = [delta([1], weights=first, settings={"penalty": 1.0, "path_weight": 0.5}), delta([1], weights=second)]
    merged = merge_deltas([*chain, delta([2], settings={"penalty": 2.0})])
    assert merged.weights is second
    assert merged.settings == {"penalty": 2.0, "path_weight": 0.5}


def test_deltas_of_other_models_are_refused() -> None:
    other = dataclasses.replace(delta([1]), rows=np.zeros((1, 5), np.float32))
    with pytest.raises(DataError, match="their widths differ between deltas; write a new base"):
        merge_deltas([delta([1]), other])
