"""What a training records: bounded, the same after a resume, and checked when it is opened."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pathdex
from pathdex.errors import RunError
from pathdex.storage.array_folder import write_arrays, write_folder
from pathdex.training import recording as module
from pathdex.training.recording import RECORDING_FORMAT, Recorder, Recording, sample_histories
from tests.recommender_contract import TEXT_IDS, grouped_data
from tests.tiny import TINY


@pytest.fixture(scope="module")
def model() -> pathdex.DeepRetrieval:
    return pathdex.DeepRetrieval(**TINY, threads=1).fit(grouped_data(TEXT_IDS), callbacks=(), record=True)


def test_the_last_round_is_the_model(model: pathdex.DeepRetrieval) -> None:
    found = model.recording
    assert found is not None
    assert found.num_rounds == TINY["rounds"]
    assert np.array_equal(found.rounds[-1], model.paths)
    assert found.fits(model.paths, TINY["num_nodes"], TINY["depth"])
    assert not found.fits(model.paths[:, ::-1].copy() + 1, TINY["num_nodes"], TINY["depth"])


def test_it_does_not_change_the_training(model: pathdex.DeepRetrieval) -> None:
    plain = pathdex.DeepRetrieval(**TINY, threads=1).fit(grouped_data(TEXT_IDS), callbacks=())
    assert plain.recording is None
    assert np.array_equal(plain.paths, model.paths)


def test_it_survives_a_resume(tmp_path: Path, model: pathdex.DeepRetrieval) -> None:
    class Stop(pathdex.Callback):
        def on_epoch_end(self, record: dict[str, object]) -> None:
            if record["phase"] == "structure" and record["number"] == 2:
                raise KeyboardInterrupt

    file, data = tmp_path / "checkpoint", grouped_data(TEXT_IDS)
    with pytest.raises(KeyboardInterrupt):
        pathdex.DeepRetrieval(**TINY, threads=1).fit(data, callbacks=[Stop()], checkpoint=file, record=True)
    again = pathdex.DeepRetrieval(**TINY, threads=1)
    again.fit(data, callbacks=(), checkpoint=file, resume=True, record=True)
    assert again.recording is not None
    assert model.recording is not None
    assert np.array_equal(again.recording.rounds, model.recording.rounds)
    assert np.array_equal(again.recording.histories.values, model.recording.histories.values)


def test_histories_are_beginnings_of_sequences() -> None:
    data = grouped_data(TEXT_IDS)
    histories, following = sample_histories(data, 0)
    sequences = [row.tolist() for row in data.sequences]
    assert 0 < len(histories) == len(following) <= data.num_users
    for history, one in zip(histories, following.tolist(), strict=True):
        assert 0 < len(history) <= module.MAX_LENGTH
        assert any(
            row[place - len(history) : place] == history.tolist() and row[place] == one
            for row in sequences
            for place in range(len(history), len(row))
        )


def test_samples_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_ITEMS", "MAX_HISTORIES", "MAX_LENGTH"):
        monkeypatch.setattr(module, name, 3)
    data = grouped_data(TEXT_IDS)
    recorder = Recorder(data, 4, 2, seed=0)
    paths = np.zeros((data.num_items, 2), np.int64)
    recorder.add(paths)
    recorder.add(paths)
    found = recorder.finish(paths)
    assert (len(found.items), found.rounds.shape, len(found.histories)) == (3, (2, 3, 2), 3)
    assert found.histories.lengths.max() <= 3


def test_rounds_that_are_not_complete_are_left_out() -> None:
    data = grouped_data(TEXT_IDS)
    recorder = Recorder(data, 4, 2, seed=0)
    paths = np.zeros((data.num_items, 2), np.int64)
    assert recorder.finish(paths).num_rounds == 0
    recorder.add(paths)
    recorder.add(paths + 1)
    assert recorder.finish(paths).num_rounds == 0


def test_it_is_stored_and_opened(tmp_path: Path, model: pathdex.DeepRetrieval) -> None:
    assert model.recording is not None
    for _ in range(2):
        model.recording.save(tmp_path / "recording")
    found = Recording.load(tmp_path / "recording")
    assert np.array_equal(found.rounds, model.recording.rounds)
    assert np.array_equal(found.recall, model.recording.recall)
    assert [row.tolist() for row in found.histories] == [row.tolist() for row in model.recording.histories]


def test_without_held_out_queries_no_recall_is_recorded(model: pathdex.DeepRetrieval) -> None:
    assert model.recording is not None
    assert len(model.recording.recall) == 0


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("items", np.array([1, 0]), "items: must be ascending"),
        ("rounds", np.full((1, 2, 2), 16), "rounds: holds 16, must hold no value above 15"),
        ("histories", np.array([9], np.int32), "histories: holds 9, must hold no value above 4"),
        ("offsets", np.array([0, 5]), "offsets: must"),
        ("recall", np.array([1.5]), "recall: holds 1.5"),
        ("recall", np.array([0.5, 0.5]), "recall: has 2 values for 1 rounds"),
        ("next", np.array([-1]), "next: holds -1"),
    ],
)
def test_bad_content_is_refused(tmp_path: Path, name: str, value: np.ndarray, message: str) -> None:  # type: ignore[type-arg]
    arrays = {
        "items": np.array([0, 1]),
        "rounds": np.zeros((1, 2, 2), np.int64),
        "recall": np.zeros(0),
        "histories": np.zeros(1, np.int32),
        "offsets": np.array([0, 1]),
        "next": np.array([0]),
    } | {name: value}
    facts = {"num_items": 5, "num_nodes": 4, "depth": 2}
    write_folder(tmp_path / "r", RECORDING_FORMAT, facts, lambda folder: write_arrays(folder, arrays))
    with pytest.raises(RunError, match=message):
        Recording.load(tmp_path / "r")
