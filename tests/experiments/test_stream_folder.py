"""The folder of a stream: checkpoints, the request, and one process at a time."""

import numpy as np
import pytest

import pathdex
from pathdex.errors import RunError, StorageError
from pathdex.experiments.stream_folder import StreamFolder
from pathdex.recommenders.stream_trainer import StreamTrainer
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from tests.recommenders.stream_source import ListSource
from tests.recommenders.test_online import SMALL, events
from tests.recommenders.test_stream_trainer import OPTIONS, final_bits

REQUEST = {"source": "list", "seed": 0}


def trainer_of(keeper, rows):
    return StreamTrainer(ListSource(rows), pathdex.DeepRetrieval(**SMALL), options=OPTIONS, keeper=keeper)


def test_a_stream_continues_where_its_checkpoint_is(tmp_path):
    rows = events(rounds=2)
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        assert not keeper.has_checkpoint
        trainer_of(keeper, rows[:192]).run()
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        assert keeper.has_checkpoint
        resumed = trainer_of(keeper, rows)
        resumed.run()
    with StreamFolder.open(tmp_path / "whole", REQUEST) as keeper:
        whole = trainer_of(keeper, rows)
        whole.run()
    assert final_bits(resumed) == final_bits(whole)
    users = [str(user) for user in range(30)]
    found = [[one.online.state.histories.tokens(user) for user in users] for one in (resumed, whole)]
    assert found[0] == found[1]


def test_the_published_model_is_a_bundle(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        model = trainer_of(keeper, events()).run()
    assert pathdex.load(tmp_path / "live").recommend([1, 2], 3) == model.recommend([1, 2], 3)


def test_another_request_is_rejected(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()
    with (
        pytest.raises(RunError, match="was started with seed 0, not 1"),
        StreamFolder.open(tmp_path / "live", {**REQUEST, "seed": 1}),
    ):
        pass


def test_a_folder_with_something_else_is_rejected(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="is not empty and holds no stream"), StreamFolder.open(tmp_path, REQUEST):
        pass


def test_a_damaged_request_is_rejected(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()
    for content in ("{", "[]"):
        (tmp_path / "live" / "stream.json").write_text(content)
        with pytest.raises(RunError, match=r"stream\.json"), StreamFolder.open(tmp_path / "live", REQUEST):
            pass


def test_a_second_trainer_is_rejected(tmp_path):
    with (
        StreamFolder.open(tmp_path / "live", REQUEST),
        pytest.raises(StorageError, match="in use by pathdex stream"),
        StreamFolder.open(tmp_path / "live", REQUEST),
    ):
        pass


def test_a_damaged_checkpoint_is_rejected(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        trainer_of(keeper, events()).run()
        (tmp_path / "live" / "state" / "checkpoint.safetensors").write_bytes(b"damaged")
        with pytest.raises(RunError, match="cannot be read"):
            trainer_of(keeper, events()).run()


def test_a_request_that_is_not_recorded_leaves_the_folder_free(tmp_path):
    with StreamFolder.open(tmp_path / "live", {**REQUEST, "source": "mistyped"}):
        pass
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()


def test_a_stream_that_has_published_nothing_says_so(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()
    with pytest.raises(RunError, match="has not published a model yet"):
        pathdex.load(tmp_path / "live")


def test_the_first_model_is_copied(tmp_path):
    pathdex.DeepRetrieval(**SMALL).partial_fit(events()).save(tmp_path / "model")
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        first = keeper.first_model(tmp_path / "model").recommend([1], 3)
        (tmp_path / "model").rename(tmp_path / "gone")
        assert keeper.first_model(tmp_path / "model").recommend([1], 3) == first


def test_a_checkpoint_with_nan_is_rejected(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        trainer_of(keeper, events()).run()
        file = tmp_path / "live" / "state" / "checkpoint.safetensors"
        values, arrays = load_checkpoint(file)
        arrays["items.rows"] = arrays["items.rows"] * np.float32(np.nan)
        save_checkpoint(file, values, arrays)
        with pytest.raises(RunError, match=r"items\.rows holds NaN"):
            trainer_of(keeper, events()).run()


def test_a_missing_checkpoint_beside_histories_is_rejected(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        trainer_of(keeper, events()).run()
        (tmp_path / "live" / "state" / "checkpoint.safetensors").unlink()
        with pytest.raises(RunError, match="is missing, but histories"):
            trainer_of(keeper, events()).run()
