"""The folder of a stream: checkpoints, the request, and one process at a time."""

import pytest

import pathdex
from pathdex.errors import RunError, StorageError
from pathdex.experiments.stream_folder import StreamFolder
from pathdex.recommenders.stream_trainer import StreamTrainer
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
    with StreamFolder.open(tmp_path / "live", REQUEST):
        pass
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
    with StreamFolder.open(tmp_path / "live", REQUEST):
        pass
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
