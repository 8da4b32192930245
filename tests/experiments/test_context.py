"""Data, splits and models of a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pathdex.errors import DataError
from pathdex.experiments.context import Context
from pathdex.experiments.presets import Budget
from pathdex.experiments.report_request import ReportRequest, ReproduceOptions, make_report_request
from pathdex.experiments.steps import ReportProgress, StepStore
from pathdex.recommenders.brute_force import BruteForce


def make_context(options: ReproduceOptions, folder: Path) -> Context:
    return Context(make_report_request(options), StepStore(folder), ReportProgress())


def test_a_seed_always_draws_the_same_users(options: ReproduceOptions, tmp_path: Path) -> None:
    one = make_context(options, tmp_path)
    first, other = one.split(0), one.split(1)
    users = [split.test.users.ids(range(12)) for split in (first, other, one.split(0))]
    assert users[0] == users[2] != users[1]
    assert (len(first.valid), len(first.test)) == (8, 12)


def test_the_budget_limits_the_users(
    options: ReproduceOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ReportRequest, "budget", Budget(max_held_out=3, max_users=50))
    split = make_context(options, tmp_path).split(0)
    assert (len(split.valid), len(split.test), split.train.num_users) == (3, 3, 44)
    last = make_context(replace(options, split={"kind": "leave-last"}), tmp_path).split(0)
    assert (len(last.valid), len(last.test), last.train.num_users) == (3, 3, 50)


def test_held_out_users_are_needed(options: ReproduceOptions, tmp_path: Path) -> None:
    message = r"^split='users': leaves 8 validation and 0 test users, and both are needed; hold out more of each$"
    with pytest.raises(DataError, match=message):
        make_context(replace(options, split={"valid_users": 8, "test_users": 0}), tmp_path).split(0)
    untuned = replace(options, split={"valid_users": 0, "test_users": 5}, quick=False)
    assert len(make_context(replace(untuned, tune=False), tmp_path).split(0).test) == 5
    with pytest.raises(DataError, match=r"leaves 0 validation and 5 test users"):
        make_context(untuned, tmp_path).split(0)


def test_a_kept_model_can_be_loaded(options: ReproduceOptions, tmp_path: Path) -> None:
    one = make_context(replace(options, methods=["item-cf"], parameters={}), tmp_path)
    model, fitted = one.fit("item-cf", {"neighbours": 7}, 0)
    one.keep("item-cf", 0, model)
    assert one.model("item-cf", 0).get_params()["neighbours"] == 7
    assert fitted["fit_seconds"] > 0
    assert [file.name for file in (tmp_path / "models").iterdir()] == ["item-cf-seed0"]


def test_brute_force_shares_the_model_of_deep_retrieval(options: ReproduceOptions, tmp_path: Path) -> None:
    one = make_context(options, tmp_path)
    model, fitted = one.fit("deep-retrieval", options.parameters["deep-retrieval"], 0)
    one.keep("deep-retrieval", 0, model)
    brute, _ = one.fit("brute-force", {}, 0)
    one.keep("brute-force", 0, brute)
    assert isinstance(brute, BruteForce)
    assert [file.name for file in (tmp_path / "models").iterdir()] == ["deep-retrieval-seed0"]
    assert (brute.model.item_vectors == model.item_vectors).all()  # type: ignore[attr-defined]
    assert [record["phase"] for record in fitted["records"]] == ["encoder"] * 2 + ["structure"] * 5 + ["defaults"]
