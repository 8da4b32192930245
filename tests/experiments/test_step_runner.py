"""What a step works out from what others left."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pathdex.config import Config
from pathdex.experiments.step_runner import chosen_values, shape
from pathdex.experiments.steps import Step, Store
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from tests.tiny import TINY


def test_the_trial_with_the_highest_f_is_chosen_and_the_first_of_equals(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for number, f in enumerate([0.1, 0.3, 0.3]):
        result = {"figures": {"f_measure": f}}
        step = Step(f"tune-{number}", "tune", "", {"parameters": {"epochs": number}})
        store.do(step, lambda result=result, **_: result)  # type: ignore[misc]
    assert chosen_values(store, ["tune-0", "tune-1", "tune-2"]) == {"epochs": 1}
    assert chosen_values(store, []) == {}


def model(records: list[dict[str, Any]], **parameters: Any) -> DeepRetrieval:
    """A model as far as `shape` looks at it."""
    config = Config.from_dict({**TINY, "num_nodes": 16, **parameters})
    known = SimpleNamespace(config=config, num_nodes=16, records=records)
    return cast(DeepRetrieval, known)


def test_alpha_stays_where_training_left_it() -> None:
    trained = model([{"penalty": 0.5}, {"penalty": 0.2}, {}])
    assert shape(trained, {}) == {"num_nodes": 16, "penalty": 0.2, "candidates_per_query": None}
    assert shape(trained, {"penalty_factor": 10.0})["penalty"] == 2.0
    assert shape(model([{"penalty": 0.2}], penalty=3.0), {})["penalty"] == 3.0


def test_nodes_are_scaled() -> None:
    trained = model([{"penalty": 0.2}])
    assert shape(trained, {"nodes_factor": 0.25})["num_nodes"] == 4
    assert shape(trained, {"depth": 2, "nodes_power": 1.5})["num_nodes"] == 64
    assert shape(trained, {"nodes_factor": 0.01})["num_nodes"] == 2
