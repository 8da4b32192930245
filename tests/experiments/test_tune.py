"""Tuning: what is compared, pruned, kept and resumed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import pathdex
from pathdex.config import Config
from pathdex.data.splits import Split
from pathdex.errors import ConfigError, DataError, RunError
from pathdex.experiments import tune as module
from pathdex.experiments.search_space import make_space
from pathdex.experiments.trials import TuneProgress
from pathdex.experiments.tune import mean_f_measure, tune
from tests.cli.conftest import SETTINGS

FIXED = {name: value for name, value in SETTINGS.items() if name != "threads"} | {
    "rounds": 0, "next_items": 1, "neighbours": 0, "path_weight": 0.0, "popularity_weight": 0.0,
}  # fmt: skip
SEARCH = ["dropout", "weight_decay=0..0.01"]


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    file = pathdex.generate(tmp_path_factory.mktemp("rows") / "rows.parquet", users=160, items=40, interactions=2000)
    return pathdex.split_users(pathdex.read(file), valid_users=50, test_users=10)


def run(split: Split, folder: Path, **given: Any) -> Any:
    return tune(split, folder, **{"search": SEARCH, "parameters": FIXED, "trials": 3, **given})


class Interrupts(TuneProgress):
    """Stops a study in its second trial."""

    def on_trial_begin(self, number: int, parameters: Mapping[str, Any]) -> None:
        self.parameters = dict(parameters)
        if number == 1:
            raise KeyboardInterrupt


def test_a_study_ends_with_the_best_trial_as_toml(split: Split, tmp_path: Path) -> None:
    found = run(split, tmp_path)
    assert [one.state for one in found.trials] == ["finished"] * 3
    # The first trial has the defaults where they are searched.
    assert found.trials[0].parameters["dropout"] == Config().dropout
    assert Config.from_toml(tmp_path / "best.toml") == found.config
    assert found.best.f_measure == max(one.f_measure for one in found.trials)
    assert f"F@10 {found.best.f_measure:.4f} on 50 validation users" in (tmp_path / "best.toml").read_text()


def test_the_figure_is_that_of_the_validation_users(split: Split, tmp_path: Path) -> None:
    found = run(split, tmp_path, trials=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = pathdex.DeepRetrieval(found.config).fit(split.train, validation=split.valid, callbacks=())
    assert found.best.f_measure == pytest.approx(mean_f_measure(model, split.valid, 10))
    expected = pathdex.evaluate([pathdex.Method("x", model, {"candidates": 100})], split.valid).results[0]
    assert expected.filter_seen
    assert found.best.f_measure == pytest.approx(expected.figures["f_measure"])


def test_test_users_do_not_matter(split: Split, tmp_path: Path) -> None:
    without = Split(split.train, split.valid, split.test.take(np.arange(0)))
    assert [one.f_measure for one in run(without, tmp_path / "a", trials=2).trials] == [
        one.f_measure for one in run(split, tmp_path / "b", trials=2).trials
    ]


def test_an_interrupted_study_is_resumed_with_the_trial_that_was_running(split: Split, tmp_path: Path) -> None:
    follower = Interrupts()
    with pytest.raises(KeyboardInterrupt):
        run(split, tmp_path, progress=follower)
    assert (tmp_path / "best.toml").exists()
    found = run(split, tmp_path)
    assert len(found.trials) == 3
    assert found.trials[1].parameters == follower.parameters
    assert len({str(one.parameters) for one in found.trials}) == 3
    again = run(split, tmp_path)
    assert again.trials == found.trials
    assert len(run(split, tmp_path, trials=4).trials) == 4


def test_hopeless_trials_are_pruned(split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Two good trials, then one that cannot learn.
    monkeypatch.setattr(module, "STARTUP_TRIALS", 2)
    rates = ["learning_rate=1e-9..0.01", "item_learning_rate=1e-9..0.01"]
    fixed = {**FIXED, "epochs": 4}
    run(split, tmp_path, search=rates, parameters=fixed, trials=1)
    study = optuna.load_study(study_name="pathdex", storage=f"sqlite:///{tmp_path / 'study.sqlite'}")
    study.enqueue_trial({"learning_rate": 0.01, "item_learning_rate": 0.01})
    study.enqueue_trial({"learning_rate": 1e-9, "item_learning_rate": 1e-9})
    found = run(split, tmp_path, search=rates, parameters=fixed, trials=3)
    assert [one.state for one in found.trials] == ["finished", "finished", "pruned"]
    assert found.trials[2].f_measure is None


def test_a_trial_that_fails_does_not_end_the_study(split: Split, tmp_path: Path) -> None:
    # At depth 1, two nodes have fewer paths than an item needs.
    search = ["depth=1,2"]
    fixed = {**FIXED, "num_nodes": 2, "paths_per_item": 3}
    del fixed["depth"]
    found = run(split, tmp_path, search=search, parameters=fixed, trials=4)
    assert {one.state for one in found.trials} == {"finished", "failed"}
    assert any(one.error and "J must be at most K^D=2" in one.error for one in found.trials)
    assert found.best.parameters == {"depth": 2}


def test_time_ends_a_study(split: Split, tmp_path: Path) -> None:
    assert len(run(split, tmp_path, minutes=1e-9).trials) == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"minutes": 0}, "minutes=0: must be greater than 0"),
        ({"parameters": {"dropuot": 1}}, "did you mean 'dropout'?"),
        ({"search": ["dropout=0.5..0.2"]}, "the range must end above its begin"),
    ],
)
def test_wrong_arguments_leave_no_folder(split: Split, tmp_path: Path, given: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run(split, tmp_path / "study", **given)
    assert message in str(caught.value)
    assert not (tmp_path / "study").exists()


def test_validation_users_are_needed(split: Split, tmp_path: Path) -> None:
    nobody = Split(split.train, split.valid.take(np.arange(0)), split.test)
    with pytest.raises(DataError, match="no validation users"):
        run(nobody, tmp_path)


def test_a_study_is_resumed_with_its_own_options(split: Split, tmp_path: Path) -> None:
    run(split, tmp_path, trials=1)
    with pytest.raises(RunError) as caught:
        run(split, tmp_path, n=5, search=["dropout=0.1..0.2"])
    assert "n=5, but the study has 10" in str(caught.value)
    assert "search={'dropout': '0.1..0.2'}, but the study has" in str(caught.value)


def test_a_file_that_is_no_study_is_named(split: Split, tmp_path: Path) -> None:
    (tmp_path / "study.sqlite").write_text("not a data base, " * 100)
    with pytest.raises(RunError, match=r"cannot be used: file is not a database; restore .*--out"):
        run(split, tmp_path)


def test_the_space_of_a_study_can_be_given_as_a_mapping(split: Split, tmp_path: Path) -> None:
    space = make_space({"dropout": (0.1, 0.2)}, {})
    found = run(split, tmp_path, search=space, trials=2)
    assert all(0.1 <= one.parameters["dropout"] <= 0.2 for one in found.trials)


@pytest.mark.parametrize("content", [None, b""])
def test_an_empty_study_beside_a_result_is_refused(split: Split, tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "best.toml").write_text("dropout = 0.1\n")
    if content is not None:
        (tmp_path / "study.sqlite").write_bytes(content)
    with pytest.raises(RunError, match="no finished trial; move it away"):
        run(split, tmp_path)
    assert (tmp_path / "best.toml").read_text() == "dropout = 0.1\n"
