"""Selecting trials, and the hyper-parameters of the sensitivity study."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pathdex.config import Config
from pathdex.experiments.step_runner import changed_values, selected_values
from pathdex.experiments.steps import Step, StepStore
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from tests.tiny import TINY


def test_the_trial_with_the_highest_f_is_selected_and_the_first_of_equals(tmp_path: Path) -> None:
    store = StepStore(tmp_path)
    for number, f in enumerate([0.1, 0.3, 0.3]):
        result = {"figures": {"f_measure": f}}
        step = Step(f"tune-{number}", "tune", "", {"parameters": {"epochs": number}})
        store.run(step, lambda result=result, **_: result)  # type: ignore[misc]
    assert selected_values(store, ["tune-0", "tune-1", "tune-2"]) == {"epochs": 1}
    assert selected_values(store, []) == {}


def model(records: list[dict[str, Any]], **parameters: Any) -> DeepRetrieval:
    """A model as far as `changed_values` reads it."""
    config = Config.from_dict({**TINY, "num_nodes": 16, **parameters})
    known = SimpleNamespace(config=config, num_nodes=16, records=records)
    return cast(DeepRetrieval, known)


def test_alpha_is_fixed_to_the_value_that_training_found() -> None:
    trained = model([{"penalty": 0.5}, {"penalty": 0.2}, {}])
    assert changed_values(trained, {}) == {"num_nodes": 16, "penalty": 0.2, "candidates_per_query": None}
    assert changed_values(trained, {"penalty_factor": 10.0})["penalty"] == 2.0
    assert changed_values(model([{"penalty": 0.2}], penalty=3.0), {})["penalty"] == 3.0


def test_nodes_are_scaled() -> None:
    trained = model([{"penalty": 0.2}])
    assert changed_values(trained, {"nodes_factor": 0.25})["num_nodes"] == 4
    assert changed_values(trained, {"depth": 2, "nodes_power": 1.5})["num_nodes"] == 64
    assert changed_values(trained, {"nodes_factor": 0.01})["num_nodes"] == 2
