"""Damaged studies: one sentence with the remedy, and nothing overwritten."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import pytest

from pathdex.errors import RunError
from pathdex.experiments.study_checks import check_best, check_values, readable_study


def study_of(file: Path) -> optuna.Study:
    storage = optuna.storages.RDBStorage(f"sqlite:///{file}")
    study = optuna.create_study(storage=storage, study_name="pathdex", load_if_exists=True)
    study.add_trial(optuna.trial.create_trial(value=0.5))
    return study


def execute(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def test_what_the_data_base_says_is_shown_without_statements(tmp_path: Path) -> None:
    file = tmp_path / "study.sqlite"
    study = study_of(file)
    execute(file, "DROP TABLE trial_values")
    with pytest.raises(RunError) as caught, readable_study(file):
        study.add_trial(optuna.trial.create_trial(value=0.5))
    assert str(caught.value) == (
        f"{file} cannot be used: no such table: trial_values; restore it from a copy, or use another folder (--out)"
    )


def test_other_errors_while_opening_are_damage_too(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="it is damaged or not a study"), readable_study(tmp_path, opening=True):
        raise KeyError("x")
    with pytest.raises(KeyError), readable_study(tmp_path):
        raise KeyError("x")


def test_a_finished_trial_without_a_value_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "study.sqlite"
    check_values(file, study_of(file))
    execute(file, "DELETE FROM trial_values")
    with pytest.raises(RunError, match="trial 0 is finished but has no value; restore"):
        check_values(file, study_of(file))


def test_a_result_without_its_trials_is_not_overwritten(tmp_path: Path) -> None:
    best = tmp_path / "best.toml"
    check_best(best, False)
    best.touch()
    check_best(best, True)
    with pytest.raises(RunError, match="no finished trial; move it away"):
        check_best(best, False)
