"""Steps run once; mismatches are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pathdex.errors import RunError
from pathdex.experiments.provenance import source_digest
from pathdex.experiments.steps import Step, StepStore


def double(**inputs: Any) -> dict[str, Any]:
    return {"doubled": 2 * inputs["value"]}


def test_a_step_stores_its_result_time_and_memory(tmp_path: Path) -> None:
    store, step = StepStore(tmp_path / "report"), Step("one", "double", "Double one", {"value": 1})
    assert not store.has(step)
    seconds = store.run(step, double)
    assert store.has(step)
    assert store.result("one") == {"doubled": 2}
    record = store.record("one")
    assert record["seconds"] == seconds >= 0
    assert record["peak_memory"] > 0
    assert record["title"] == "Double one"
    assert record["code"] == source_digest()


def test_a_failed_step_stores_nothing(tmp_path: Path) -> None:
    store, step = StepStore(tmp_path / "report"), Step("one", "double", "Double one")
    with pytest.raises(KeyError):
        store.run(step, double)
    assert not store.has(step)


def test_changed_inputs_are_refused_unless_the_step_is_replaceable(tmp_path: Path) -> None:
    store = StepStore(tmp_path)
    store.run(Step("one", "double", "", {"value": 1}), double)
    with pytest.raises(RunError, match=r"one.json cannot be resumed with other options: value=2, but the report has 1"):
        store.has(Step("one", "double", "", {"value": 2}))
    assert not store.has(Step("one", "double", "", {"value": 2}, replaceable=True))
    assert store.has(Step("one", "double", "", {"value": 1}, replaceable=True))


def test_a_folder_that_is_not_a_report_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(RunError, match=r"exists and is not a report; choose another folder$"):
        StepStore(tmp_path).begin({"n": 1})
    with pytest.raises(RunError, match=r"exists and is not a report; choose another folder$"):
        StepStore(tmp_path / "mine.txt").begin({"n": 1})
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_report_keeps_its_request(tmp_path: Path) -> None:
    StepStore(tmp_path / "report").begin({"n": 1, "seeds": (0, 1)})
    StepStore(tmp_path / "report").begin({"n": 1, "seeds": (0, 1)})
    with pytest.raises(RunError, match="n=2, but the report has 1"):
        StepStore(tmp_path / "report").begin({"n": 2, "seeds": (0, 1)})


def test_a_damaged_file_is_reported_with_a_remedy(tmp_path: Path) -> None:
    store, step = StepStore(tmp_path), Step("one", "double", "", {"value": 1})
    store.run(step, double)
    (tmp_path / "steps" / "one.json").write_text("{")
    with pytest.raises(RunError, match=r"one.json is damaged .*; delete it to run this step again$"):
        store.has(step)
    with pytest.raises(RunError, match=r"two.json cannot be read .*; write the report to a new folder$"):
        store.result("two")
