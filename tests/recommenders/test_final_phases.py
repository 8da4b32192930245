from typing import Any

import numpy as np
import pytest

import pathdex
from pathdex.config import Config
from pathdex.data import Interactions
from pathdex.data.demo_catalogue import demo_catalogue
from pathdex.errors import AccuracyWarning
from pathdex.recommenders.final_phases import accuracy_warnings, has_open_score, is_open
from pathdex.training.callbacks import describe_record
from tests.tiny import TINY


@pytest.fixture(scope="module")
def data() -> Interactions:
    return demo_catalogue(items=200, users=700, mean_length=12, seed=0).data


@pytest.fixture(scope="module")
def model(data: Interactions) -> pathdex.DeepRetrieval:
    return pathdex.DeepRetrieval(**TINY, threads=1).fit(data, callbacks=())


def records(model: pathdex.DeepRetrieval, phase: str) -> list[dict[str, Any]]:
    return [record for record in model.records if record["phase"] == phase]


def test_everything_left_open_is_chosen_stored_and_explained(model: pathdex.DeepRetrieval, tmp_path: Any) -> None:
    horizon, scores = records(model, "encoder")[0], records(model, "scores")[0]
    chosen = {**horizon["choices"], **scores["choices"]}
    assert set(chosen) == {
        "next_items",
        "path_weight",
        "popularity_weight",
        "neighbours",
        "neighbour_weight",
        "neighbour_smoothing",
        "neighbour_share",
        "neighbour_recency",
    }
    assert {name: model.get_params()[name] for name in chosen} == chosen
    assert "chosen: path_weight=" in describe_record({**scores, "seconds": 1.0})
    assert "70 held-out users" in scores["reason"]
    same = pathdex.load(model.save(tmp_path / "model"))
    assert same.get_params() == model.get_params()
    history = model.items.ids([0, 1])
    assert same.recommend(history, 5) == model.recommend(history, 5)


def test_the_result_is_compared_with_simple_baselines(model: pathdex.DeepRetrieval) -> None:
    record = records(model, "comparison")[0]
    assert set(record["comparison"]) == {"deep-retrieval", "popularity", "item-cf"}
    assert record["reason"].startswith("F@10 and F@50 on 70 held-out users: deep-retrieval ")


def test_too_few_users_to_choose_by_are_reported_with_the_defaults_in_use(data: Interactions) -> None:
    few = data.take(np.arange(60))
    model = pathdex.DeepRetrieval(**TINY, path_weight=0.3, threads=1).fit(few, callbacks=())
    (record,) = records(model, "defaults")
    assert record["reason"] == "defaults: choosing takes 500 users or 50 validation users"
    assert record["choices"]["next_items"] == 1
    assert "path_weight" not in record["choices"], "it was set"
    assert {name: model.get_params()[name] for name in record["choices"]} == record["choices"]
    assert "chosen: next_items=1" in describe_record({**record, "seconds": 0.0})


def test_a_second_fit_chooses_again(data: Interactions) -> None:
    model = pathdex.DeepRetrieval(**TINY, threads=1)
    first = model.fit(data, callbacks=()).get_params()
    assert model.fit(data, callbacks=()).get_params() == first
    assert records(model, "scores")


def test_a_reused_encoder_keeps_its_horizon(data: Interactions) -> None:
    far = pathdex.DeepRetrieval(**TINY, next_items=64, threads=1).fit(data, callbacks=())
    near = pathdex.DeepRetrieval(**TINY, threads=1).fit(data, callbacks=(), encoder_of=far)
    assert near.get_params()["next_items"] == 64


def test_set_values_are_not_chosen(data: Interactions) -> None:
    given = {"next_items": 3, "path_weight": 0.4, "neighbours": 0, "popularity_weight": 0.1}
    model = pathdex.DeepRetrieval(**TINY, **given, threads=1).fit(data, callbacks=())
    assert {name: model.get_params()[name] for name in given} == given
    assert not any("choices" in record for record in model.records)
    assert not records(model, "comparison"), "nothing was held out"


def test_a_popularity_weight_becomes_part_of_the_bias(data: Interactions) -> None:
    given = {**TINY, "next_items": 1, "path_weight": 0.0, "neighbours": 0, "threads": 1}
    plain, popular = (
        pathdex.DeepRetrieval(**given, popularity_weight=weight).fit(data, callbacks=()) for weight in (0.0, 2.0)
    )
    logs = np.log(data.item_counts() + 1.0)
    np.testing.assert_allclose(popular.item_bias - plain.item_bias, 2 * (logs - logs.mean()), rtol=1e-4, atol=1e-5)


def test_a_resumed_training_makes_the_same_choices(data: Interactions, tmp_path: Any) -> None:
    class Stop(pathdex.Callback):
        def on_epoch_end(self, record: dict[str, Any]) -> None:
            if record["phase"] == phase:
                raise KeyboardInterrupt

    whole = pathdex.DeepRetrieval(**TINY, threads=1).fit(data, callbacks=())
    for phase in ("encoder", "scores"):
        checkpoint = tmp_path / phase
        with pytest.raises(KeyboardInterrupt):
            pathdex.DeepRetrieval(**TINY, threads=1).fit(data, callbacks=[Stop()], checkpoint=checkpoint)
        resumed = pathdex.DeepRetrieval(**TINY, threads=1).fit(data, callbacks=(), checkpoint=checkpoint, resume=True)
        assert resumed.get_params() == whole.get_params()
        np.testing.assert_array_equal(resumed.item_vectors, whole.item_vectors)


def test_being_below_a_baseline_is_a_warning_with_a_code() -> None:
    low, high = np.full((100, 2), 0.1), np.full((100, 2), 0.2)
    assert accuracy_warnings({"mine": high, "popularity": low, "item-cf": low}) == []
    (text,) = accuracy_warnings({"mine": low, "popularity": low / 2, "item-cf": high})
    assert text.startswith("W202: mine is 50.0% below item-cf on 100 held-out users; docs/warnings.md")
    (text,) = accuracy_warnings({"mine": low, "popularity": high, "item-cf": low})
    assert text.startswith("W201")
    assert accuracy_warnings({"mine": low, "popularity": 1.004 * low, "item-cf": low}) == []


def test_a_difference_within_its_standard_error_is_no_warning() -> None:
    random = np.random.default_rng(0)
    own = random.random((100, 2))
    assert accuracy_warnings({"mine": own, "popularity": own + random.normal(0.001, 0.5, (100, 2))}) == []


def test_a_model_below_a_baseline_warns(data: Interactions) -> None:
    # Without epochs the vectors are random.
    given = {**TINY, "epochs": 0, "path_weight": 0.0, "popularity_weight": 0.0, "neighbours": 0, "bias_start": "zero"}
    with pytest.warns(AccuracyWarning, match=r"W202: deep-retrieval is .* below item-cf"):
        pathdex.DeepRetrieval(**given, threads=1).fit(data, callbacks=())


def test_what_is_open() -> None:
    assert is_open(Config())
    assert is_open(Config(neighbours=0, path_weight=0.0))
    assert not is_open(Config(neighbours=0, path_weight=0.0, popularity_weight=0.0, next_items=1))
    assert not is_open(Config.preset("paper-amazon-books"))
    assert has_open_score(Config(neighbours=5))
