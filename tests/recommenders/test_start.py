"""`fit(start_from=)`: a training that continues from an earlier model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pathdex
from pathdex.errors import ConfigError, DataError, RunError
from pathdex.recommenders.start import warm_start
from pathdex.training.trainer import Trainer

SETTINGS: dict[str, Any] = {
    "embedding_dim": 8, "num_nodes": 8, "depth": 2, "paths_per_item": 2, "epochs": 4, "rounds": 1, "threads": 1,
    "structure_hidden": 8, "node_dim": 4,
}  # fmt: skip


def frame(items: range) -> pl.DataFrame:
    rows = [(f"u{user}", item, user + item) for user in range(40) for item in items if (item + user) % 4 < 2]
    return pl.DataFrame(rows, schema=["user", "item", "time"], orient="row")


@pytest.fixture(scope="module")
def earlier() -> pathdex.DeepRetrieval:
    details = pl.DataFrame({"item": [1, 2], "title": ["One", "Two"]})
    return pathdex.DeepRetrieval(**SETTINGS).fit(frame(range(20)), items=details, callbacks=())


def test_new_items_join_and_lost_items_leave(earlier: pathdex.DeepRetrieval) -> None:
    model = pathdex.DeepRetrieval(**SETTINGS).fit(frame(range(2, 26)), callbacks=(), start_from=earlier)
    assert sorted(model.items.first_ids(100)) == list(range(2, 26))
    assert all(len(model.item_paths(item)) == 2 for item in range(2, 26))
    found = {item for item, _ in model.recommend([3, 4], 20)}
    assert found & set(range(20, 26))
    # Half of the epochs, at the end of the schedule; details are those of the earlier model.
    assert [one["number"] for one in model.records if one["phase"] == "encoder"] == [1, 2]
    assert model.details is not None
    assert model.details.title(2) == "Two"


def test_without_a_step_known_items_stay_as_they_are(earlier: pathdex.DeepRetrieval) -> None:
    still = pathdex.DeepRetrieval(**{**SETTINGS, "epochs": 0, "rounds": 0, "popularity_weight": 0.0})
    model = still.fit(frame(range(24)), callbacks=(), start_from=earlier)
    for item in range(20):
        assert model.item_paths(item) == earlier.item_paths(item)
    order = [earlier.items.code(item) for item in range(20)], [model.items.code(item) for item in range(20)]
    assert (model.item_vectors[order[1]] == earlier.item_vectors[order[0]]).all()


def test_a_training_that_starts_from_a_model_can_be_resumed(
    earlier: pathdex.DeepRetrieval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pathdex.read(frame(range(24)))
    whole = pathdex.DeepRetrieval(**SETTINGS).fit(data, callbacks=(), start_from=earlier)

    class Stop(pathdex.Callback):
        def on_epoch_end(self, record: dict[str, Any]) -> None:
            if (record["phase"], record["number"]) == ("encoder", 1):
                raise KeyboardInterrupt

    given: dict[str, Any] = {"checkpoint": tmp_path / "saved", "start_from": earlier}
    with pytest.raises(KeyboardInterrupt):
        pathdex.DeepRetrieval(**SETTINGS).fit(data, callbacks=[Stop()], **given)
    other = pathdex.DeepRetrieval(**SETTINGS).fit(frame(range(20)), callbacks=(), start_from=earlier)
    with pytest.raises(RunError, match="different start"):
        pathdex.DeepRetrieval(**SETTINGS).fit(data, callbacks=(), resume=True, **{**given, "start_from": other})
    model = pathdex.DeepRetrieval(**SETTINGS).fit(data, callbacks=(), resume=True, **given)
    assert (model.item_vectors == whole.item_vectors).all()
    assert (model.paths == whole.paths).all()


def test_the_paper_schedule_starts_from_a_model_as_well(earlier: pathdex.DeepRetrieval) -> None:
    paper = pathdex.DeepRetrieval(**{**SETTINGS, "schedule": "paper", "start": "random"})
    model = paper.fit(frame(range(24)), callbacks=(), start_from=earlier)
    assert len(model.recommend([3], 5)) == 5


def test_what_does_not_fit_is_refused(earlier: pathdex.DeepRetrieval) -> None:
    with pytest.raises(ConfigError, match="embedding_dim=4: the earlier model has 8"):
        pathdex.DeepRetrieval(**{**SETTINGS, "embedding_dim": 4}).fit(frame(range(20)), start_from=earlier)
    text = frame(range(20)).with_columns(item=pl.format("i{}", "item"))
    with pytest.raises(DataError, match="knows none of the 20 items of the data; ids are such as 'i0' and 0"):
        pathdex.DeepRetrieval(**SETTINGS).fit(text, start_from=earlier)


def test_the_number_of_nodes_is_that_of_the_earlier_model(earlier: pathdex.DeepRetrieval) -> None:
    data = pathdex.read(frame(range(24)))
    config = pathdex.Config(**{name: value for name, value in SETTINGS.items() if name not in ("threads", "num_nodes")})
    trainer = Trainer(config, pathdex.RunOptions(threads=1), data, start=warm_start(earlier, data.items))
    assert trainer.config.num_nodes == 8
    assert np.array_equal(warm_start(earlier, data.items).codes >= 0, np.array(data.items.first_ids(24)) < 20)  # type: ignore[union-attr]
    assert warm_start(None, data.items) is None
