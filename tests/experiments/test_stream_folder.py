"""The folder of a stream: checkpoints, the request, and one process at a time."""

import shutil

import numpy as np
import pytest

import pathdex
from pathdex.errors import BundleError, RunError, StorageError
from pathdex.experiments import stream_folder
from pathdex.experiments.stream_folder import StreamFolder, read_stream_state
from pathdex.recommenders.stream_trainer import StreamTrainer
from pathdex.recommenders.verification import verify_live
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


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"format": "pathdex-live"}'])
def test_a_stream_replaces_a_damaged_current(tmp_path, content):
    rows = events(rounds=2)
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        trainer_of(keeper, rows[:192]).run()
    (tmp_path / "live" / "CURRENT").write_bytes(content)
    with pytest.raises(BundleError, match="run `pathdex stream` again, it publishes again"):
        pathdex.load(tmp_path / "live")
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        assert keeper.live.damage is not None
        model = trainer_of(keeper, rows).run()
    assert pathdex.load(tmp_path / "live").recommend([1, 2], 3) == model.recommend([1, 2], 3)
    assert not verify_live(tmp_path / "live")


def test_a_damaged_current_without_a_checkpoint_is_not_replaced(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()
        (tmp_path / "live" / "CURRENT").write_text("{")
    with (
        StreamFolder.open(tmp_path / "live", REQUEST) as keeper,
        pytest.raises(RunError, match="has neither a checkpoint nor a readable CURRENT"),
    ):
        trainer_of(keeper, events()).run()


def test_another_request_is_rejected(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()
    with (
        pytest.raises(RunError, match="was started otherwise: --seed was 0 and is 1 now; continue with"),
        StreamFolder.open(tmp_path / "live", {**REQUEST, "seed": 1}),
    ):
        pass


def test_an_option_that_is_newer_than_the_folder_is_no_difference(tmp_path):
    with StreamFolder.open(tmp_path / "live", {"source": "a.jsonl", "options": {"replay": 4.0}}) as keeper:
        keeper.record_request()
    with StreamFolder.open(tmp_path / "live", {"source": "a.jsonl", "options": {"replay": 4.0, "newer": 3}}):
        pass
    with (
        pytest.raises(RunError, match=r"--replay was 4\.0 and is 8\.0 now; continue"),
        StreamFolder.open(tmp_path / "live", {"source": "a.jsonl", "options": {"replay": 8.0, "newer": 3}}),
    ):
        pass


def test_only_the_options_that_differ_are_named(tmp_path):
    first = {"source": "a.jsonl", "options": {"replay": 4.0, "admit_after": 1}, "columns": {"user": "u"}, "from": None}
    with StreamFolder.open(tmp_path / "live", first) as keeper:
        keeper.record_request()
    now = {"source": "b.jsonl", "options": {"replay": 8.0, "admit_after": 1}, "columns": {}, "from": "runs/first"}
    with pytest.raises(RunError) as failure, StreamFolder.open(tmp_path / "live", now):
        pass
    assert str(failure.value) == (
        f"{tmp_path / 'live'} was started otherwise: the source was a.jsonl and is b.jsonl now, "
        "--replay was 4.0 and is 8.0 now, --from was not given and is runs/first now, "
        "--user was u and is not given now; continue with the same, or stream into a new folder"
    )


def test_a_folder_with_something_else_is_rejected_and_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match="is not empty and holds no stream"), StreamFolder.open(tmp_path, REQUEST):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


def interrupt(keeper, model=None):
    """What a start does before it fails."""
    keeper.record_request()
    if model is not None:
        keeper.first_model(model)
    trainer_of(keeper, events())  # Opens the histories.
    raise KeyboardInterrupt


def test_a_start_that_fails_leaves_nothing_behind(tmp_path):
    folder = tmp_path / "some" / "where" / "live"
    model = pathdex.DeepRetrieval(**SMALL).partial_fit(events()).save(tmp_path / "model")
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), StreamFolder.open(folder, REQUEST) as keeper:
            interrupt(keeper, model)
        assert list(tmp_path.iterdir()) == [model]


def test_a_stream_that_was_killed_while_it_recorded_its_request_can_be_started_again(tmp_path):
    left = tmp_path / "live" / ".stream.json.abcd1234.staging"
    left.mkdir(parents=True)
    (left / "new").write_text("{")
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()
        assert not left.exists()


def test_a_merge_that_was_killed_leaves_nothing_behind(tmp_path):
    left = tmp_path / "live" / "state" / ".full-000000003.safetensors.abcd1234.staging"
    left.mkdir(parents=True)
    (left / "new").write_text("part")
    with StreamFolder.open(tmp_path / "live", REQUEST):
        assert not left.exists()


def test_a_start_that_fails_keeps_what_was_there(tmp_path):
    (tmp_path / "live" / "state").mkdir(parents=True)
    (tmp_path / "live" / "state" / "dead-letters.jsonl").write_text("{}\n")
    (tmp_path / "live" / "LOCK").write_text("")
    with pytest.raises(KeyboardInterrupt), StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        interrupt(keeper)
    assert sorted(one.name for one in (tmp_path / "live").rglob("*")) == ["LOCK", "dead-letters.jsonl", "state"]


def test_a_failure_after_the_first_checkpoint_keeps_everything(tmp_path):
    def run(keeper):
        trainer_of(keeper, events()).run()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        run(keeper)
    with pytest.raises(RunError, match="--seed was 0"), StreamFolder.open(tmp_path / "live", {**REQUEST, "seed": 1}):
        pass
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        assert keeper.has_checkpoint


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
        (tmp_path / "live" / "state" / "full-000000001.safetensors").write_bytes(b"damaged")
        with pytest.raises(RunError, match=r"full-000000001.safetensors is damaged .*; restore the folder"):
            trainer_of(keeper, events()).run()


def test_a_request_that_is_not_recorded_leaves_the_folder_free(tmp_path):
    with StreamFolder.open(tmp_path / "live", {**REQUEST, "source": "mistyped"}):
        pass
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        keeper.record_request()


def test_a_stream_that_has_published_nothing_says_so(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        with pytest.raises(RunError, match="has not published a model yet"):
            pathdex.load(tmp_path / "live")
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
        found = read_stream_state(tmp_path / "live")
        rows = found.arrays["items.rows"] * np.float32(np.nan)
        arrays = {**found.arrays, "items.rows": rows}
        keeper.checkpoints.save(found.values["checkpoint"], found.values, arrays, full=True)
        with pytest.raises(RunError, match=r"items\.rows holds NaN"):
            trainer_of(keeper, events()).run()


def test_a_missing_checkpoint_beside_histories_is_rejected(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        trainer_of(keeper, events()).run()
        (tmp_path / "live" / "state" / "full-000000001.safetensors").unlink()
        with pytest.raises(RunError, match="is missing, but histories"):
            trainer_of(keeper, events()).run()


def test_many_checkpoints_are_merged_to_the_state_of_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_folder, "MAX_CHANGES", 3)
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        trainer = trainer_of(keeper, events(rounds=4))
        trainer.checkpoint_seconds = 0.0
        trainer.run()
        expected = final_bits(trainer)
    found = read_stream_state(tmp_path / "live")
    assert {name: one.tobytes() for name, one in found.arrays.items() if not name.startswith("histories.")} == expected
    assert found.values["checkpoint"] == trainer.online.state.checkpoints > 3
    assert len(list((tmp_path / "live" / "state").glob("changes-*"))) < found.values["checkpoint"] - 1


def test_a_failed_merge_is_reported_and_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_folder, "MAX_CHANGES", 1)

    def fail(_):
        raise StorageError("disk full")

    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        monkeypatch.setattr(keeper.checkpoints, "replace", fail)
        trainer_of(keeper, events()).run()
        with pytest.raises(StorageError, match="disk full"):
            keeper.finish_merging()
    assert read_stream_state(tmp_path / "live").values["counters"]["learned"] == len(events())


def test_a_published_model_without_a_checkpoint_is_rejected(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        trainer_of(keeper, events()).run()
    shutil.rmtree(tmp_path / "live" / "state")
    with (
        StreamFolder.open(tmp_path / "live", REQUEST) as keeper,
        pytest.raises(RunError, match=r"has a published model, but no checkpoint; .* start a new stream --from"),
    ):
        trainer_of(keeper, events()).run()


def test_a_folder_that_was_moved_stops_the_stream(tmp_path):
    with StreamFolder.open(tmp_path / "live", REQUEST) as keeper:
        trainer = trainer_of(keeper, events())
        (tmp_path / "live").rename(tmp_path / "moved")
        with pytest.raises(RunError, match="was moved or removed while the stream was running; move it back"):
            trainer.run()
    assert not (tmp_path / "live").exists()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*file"), StreamFolder.open(tmp_path / "file", REQUEST):
        pass


def test_a_stream_without_a_checkpoint_has_no_state(tmp_path):
    with pytest.raises(RunError, match="has no checkpoint yet"):
        read_stream_state(tmp_path)
