"""Splitting a model: every item is in one shard, nothing is half-written, and bad input is one clear error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pathdex
from pathdex.errors import ConfigError, StorageError
from pathdex.recommenders.shard import DeepRetrievalShard
from pathdex.recommenders.sharding import split_model, write_shards
from tests.random_model import random_model
from tests.recommender_contract import TEXT_IDS, grouped_data


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return random_model(20, neighbours=3).save(tmp_path / "model")


def test_every_item_is_in_one_shard_with_its_arrays() -> None:
    whole = random_model(20, neighbours=3)
    shards = list(split_model(whole, 3, "0123456789ab"))
    assert [len(shard.items) for shard in shards] == [7, 7, 6]
    state, near = whole.model_state, whole.model_state.neighbours
    assert near is not None
    for shard in shards:
        own = shard.facts.whole(np.arange(len(shard.items)))
        assert shard.items.ids(range(len(own))) == whole.items.ids(own)
        assert np.array_equal(shard.paths, whole.paths[own])
        assert np.array_equal(shard.model_state.rows, state.rows[own])
        for code, one in enumerate(own):
            lists = [(n.items[n.offsets[c] : n.offsets[c + 1]]).tolist() for n, c in ((shard.near, code), (near, one))]
            assert lists[0] == lists[1]
        for path in whole.postings.paths:
            held = [int(item) for item in whole.postings.items_on(path) if item in own]
            assert shard.facts.whole(shard.postings.items_on(path)).tolist() == held
        assert shard.path_sizes.tolist() == whole.postings.sizes.tolist()


def test_memory_of_what_is_per_item_falls_with_the_number_of_shards() -> None:
    [one] = split_model(random_model(400, neighbours=3), 1, "0123456789ab")
    four = list(split_model(random_model(400, neighbours=3), 4, "0123456789ab"))
    for name in ("rows", "paths", "counts", "postings.items", "postings.log_shares", "near.items"):
        sizes = [shard.get_state().arrays[name].nbytes for shard in four]
        assert sum(sizes) == one.get_state().arrays[name].nbytes
        assert max(sizes) < 0.4 * sum(sizes)


def test_bad_input_writes_nothing(model: Path, tmp_path: Path) -> None:
    popular = pathdex.Popularity().fit(grouped_data(TEXT_IDS)).save(tmp_path / "popular")
    shard = write_shards(model, 2, tmp_path / "shards").folders[0]
    live = tmp_path / "live"
    live.mkdir()
    (live / "current.json").write_text("{}")
    out = tmp_path / "out"
    for path, count, message in (
        (popular, 2, "popularity model, and only deep-retrieval models have shards"),
        (shard, 2, "deep-retrieval-shard model, and only deep-retrieval models have shards"),
        (model, 0, "shards=0: must be between 1 and 1024"),
        (model, 21, "shards=21: must be at most the number of items, 20"),
    ):
        with pytest.raises(ConfigError, match=message):
            write_shards(path, count, out)
    assert not out.exists()
    (out / "something").mkdir(parents=True)
    with pytest.raises(StorageError, match="is not a folder of shards, so it is not overwritten"):
        write_shards(model, 2, out, overwrite=True)
    assert [file.name for file in out.iterdir()] == ["something"]


def test_a_live_folder_has_no_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.recommenders.sharding.is_live_folder", lambda _: True)
    with pytest.raises(ConfigError, match="is a live folder, whose deltas shards cannot follow; shard a saved model"):
        write_shards(tmp_path, 2, tmp_path / "out")


def test_shards_are_replaced_as_a_whole(model: Path, tmp_path: Path) -> None:
    done: list[tuple[int, int | None]] = []
    write_shards(model, 3, tmp_path / "out", progress=lambda *counts: done.append(counts))
    assert done == [(1, 3), (2, 3), (3, 3)]
    write_shards(model, 2, tmp_path / "out", overwrite=True)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["shard-1", "shard-2", "shards.json"]
    assert isinstance(pathdex.load(tmp_path / "out" / "shard-2"), DeepRetrievalShard)
