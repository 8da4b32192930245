"""A live model answers as a model that was built from the same state."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pathdex
from pathdex.data.attributes import Attributes
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import ConfigError, DataError
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.model_delta import ModelDelta
from pathdex.retrieval import live_index
from tests.random_deltas import changed_model, random_delta
from tests.random_model import random_model


def attributes(most: int = 300) -> Attributes:
    """Of items 100, 101, ..., in reverse order; every tenth has no row."""
    ids = [one for one in range(100 + most, 99, -1) if one % 10]
    colours = [["red", "green", "blue"][one % 3] for one in ids]
    tags = [[one % 4, one % 5] for one in ids]
    return Attributes.read(pl.DataFrame({"item_id": ids, "colour": colours, "size": ids, "tags": tags}))


def assert_same_answers(live: LiveModel, plain: DeepRetrieval, random: np.random.Generator) -> None:
    """Every kind of query gives the same, bit for bit."""
    known = [plain.items.id(int(code)) for code in np.setdiff1d(np.arange(len(plain.items)), plain.items.removed)]
    assert live.items.num_ids == plain.items.num_ids == len(known)
    assert len(live.items) == len(plain.items)
    assert live.items.removed.tolist() == plain.items.removed.tolist()
    assert live.items.ids(range(len(live.items))) == plain.items.ids(range(len(plain.items)))
    asked = [*range(95, 160), *map(str, range(100, 130))]
    assert live.items.codes(asked).tolist() == plain.items.codes(asked).tolist()
    assert [live.items.code(one) for one in asked] == plain.items.codes(asked).tolist()
    histories = [[], *(random.permutation(known)[:length].tolist() for length in (1, 3, 8))]
    options: list[dict[str, Any]] = [
        {},
        {"n": 3, "beam": 2},
        {"n": 4, "candidates": 6},
        {"exclude_seen": False, "deny": known[:3]},
        {"allow": known[::2]},
        {"where": {"colour": "red"}},
        {"where": {"size": {"min": 104, "max": 120}, "tags": [1, 2]}},
        {"where": {"tags": 3}, "allow": known[1:]},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in options:
            assert live.recommend(histories, **one) == plain.recommend(histories, **one), one
    for item in known[:4]:
        assert live.similar_items(item, 5) == plain.similar_items(item, 5)
        assert live.item_paths(item) == plain.item_paths(item)
        assert live.explain(histories[-1], item, beam=2) == plain.explain(histories[-1], item, beam=2)
        assert live.why_not(histories[-1], item, beam=1) == plain.why_not(histories[-1], item, beam=1)
        after = live.advance(live.state(histories[-1]), item)
        assert live.recommend_next(after) == plain.recommend_next(plain.advance(plain.state(histories[-1]), item))
    for first in range(4):
        for second in range(4):
            assert live.path_items([first, second]) == plain.path_items([first, second])
    if len(known):
        assert live.health() == plain.health()


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 100_000), st.booleans(), st.sampled_from(["gru", "pooled"]), st.booleans())
def test_any_sequence_of_deltas_equals_the_plain_version(
    seed: int, neighbours: bool, encoder: str, text_ids: bool
) -> None:
    random = np.random.default_rng(seed)
    plain = random_model(int(random.integers(1, 25)), seed=seed % 11, neighbours=4 * neighbours, encoder=encoder)
    if text_ids:
        plain._items = Vocabulary([str(one) for one in plain.items.ids(range(len(plain.items)))])
    live = LiveModel(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # No item may have a row.
        plain.attach(attributes())
        live.attach(attributes())
    assert_same_answers(live, plain, random)
    for _ in range(6):
        sizes = {name: int(random.integers(0, 6)) for name in ("changed", "new", "reused", "removed")}
        delta = random_delta(plain, random, **sizes, weights=bool(random.random() < 0.2))
        live.apply(delta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = changed_model(plain, delta).attach(attributes())
        assert_same_answers(live, plain, random)


def test_arrays_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_index, "SPARE_ITEMS", 0)
    monkeypatch.setattr(live_index, "SPARE_PLACES", 0)
    random = np.random.default_rng(0)
    plain = random_model(3, neighbours=2)
    live = LiveModel(plain)
    first = live._index.capacity
    for _ in range(12):
        delta = random_delta(plain, random, changed=8, new=6, removed=2)
        live.apply(delta)
        plain = changed_model(plain, delta)
    assert live._index.capacity > first
    plain.attach(attributes())
    live.attach(attributes())
    assert_same_answers(live, plain, random)


def test_places_are_used_again() -> None:
    """Many changes to the same items do not make the arrays grow."""
    random, plain = np.random.default_rng(0), random_model(40)
    live = LiveModel(plain)
    tails = []
    for _ in range(100):
        live.apply(random_delta(live, random, changed=5, new=0, reused=0, removed=0, unplaced=0))
        tails.append(int(live._index._segments.tail[0]))
    assert tails[-1] < 2 * tails[10]


def test_a_mapped_model_leaves_its_bundle_unchanged(tmp_path: Path) -> None:
    folder = random_model(30, neighbours=3).save(tmp_path / "bundle")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    random, live = np.random.default_rng(1), LiveModel.open(folder)
    plain = pathdex.load(folder)
    assert isinstance(plain, DeepRetrieval)
    for _ in range(4):
        delta = random_delta(plain, random)
        live.apply(delta)
        plain = changed_model(plain, delta)
    plain.attach(attributes())
    live.attach(attributes())
    assert_same_answers(live, plain, random)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert isinstance(LiveModel.load(folder), LiveModel)
    again = LiveModel.from_bundle(live.to_bundle())
    history = live.items.first_ids(2)
    assert again.recommend(history, 5) == live.recommend(history, 5)
    saved, wanted = (pathdex.load(one.save(tmp_path / name)) for name, one in (("live", live), ("plain", plain)))
    for name, array in wanted.to_bundle().arrays.items():
        np.testing.assert_array_equal(saved.to_bundle().arrays[name], array)


def test_a_delta_that_does_not_fit_changes_nothing() -> None:
    live = LiveModel(random_model(10))
    before = live.recommend([100, 101])
    delta = random_delta(random_model(12), np.random.default_rng(0))
    with pytest.raises(DataError, match="every item past the old end"):
        live.apply(delta)
    assert live.recommend([100, 101]) == before


def test_a_live_model_is_not_fitted() -> None:
    with pytest.raises(ConfigError, match="write it as a new base"):
        LiveModel(random_model(10)).fit(None)  # type: ignore[arg-type]


def test_answers_are_those_before_or_after_a_delta() -> None:
    """Two states alternate while threads query: no answer mixes them."""
    random, model = np.random.default_rng(3), random_model(200)
    live = LiveModel(model)
    there = random_delta(model, random, changed=60, new=0, reused=0, removed=0, unplaced=0)
    after = changed_model(model, there)
    back = ModelDelta(
        num_items=200,
        items=there.items,
        rows=model.model_state.rows[there.items],
        paths=model.paths[there.items],
        counts=model.model_state.counts[there.items],
        settings={"path_weight": model.config.path_weight} if there.settings else {},
    )
    history = [100, 150, 160]
    expected = [model.recommend(history, 20), after.recommend(history, 20)]
    assert expected[0] != expected[1]
    wrong, seen, stop = [], set(), threading.Event()

    def query() -> None:
        while not stop.is_set():
            answer = live.recommend(history, 20)
            seen.add(expected.index(answer) if answer in expected else None)
            if answer not in expected:
                wrong.append(answer)

    threads = [threading.Thread(target=query) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        live.apply(there)
        live.apply(back)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert seen == {0, 1}
