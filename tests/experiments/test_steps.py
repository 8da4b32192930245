"""Steps are done once; what does not fit is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pathdex.errors import RunError
from pathdex.experiments.source_digest import source_digest
from pathdex.experiments.steps import Step, Store


def work(**inputs: Any) -> dict[str, Any]:
    return {"doubled": 2 * inputs["value"]}


def test_a_step_leaves_its_result_time_and_memory(tmp_path: Path) -> None:
    store, step = Store(tmp_path / "report"), Step("one", "double", "Double one", {"value": 1})
    assert not store.has(step)
    seconds = store.do(step, work)
    assert store.has(step)
    assert store.result("one") == {"doubled": 2}
    record = store.record("one")
    assert record["seconds"] == seconds >= 0
    assert record["peak_memory"] > 0
    assert record["title"] == "Double one"
    assert record["code"] == source_digest()


def test_a_step_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store, step = Store(tmp_path / "report"), Step("one", "double", "Double one")
    with pytest.raises(KeyError):
        store.do(step, work)
    assert not store.has(step)


def test_other_inputs_are_refused_or_done_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.do(Step("one", "double", "", {"value": 1}), work)
    with pytest.raises(RunError, match=r"one.json goes on as it was begun: value=2, but the report has 1"):
        store.has(Step("one", "double", "", {"value": 2}))
    assert not store.has(Step("one", "double", "", {"value": 2}, again=True))
    assert store.has(Step("one", "double", "", {"value": 1}, again=True))


def test_a_folder_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(RunError, match=r"exists and holds no report; choose another folder$"):
        Store(tmp_path).begin({"n": 1})
    with pytest.raises(RunError, match=r"exists and holds no report; choose another folder$"):
        Store(tmp_path / "mine.txt").begin({"n": 1})
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_report_is_begun_once(tmp_path: Path) -> None:
    Store(tmp_path / "report").begin({"n": 1, "seeds": (0, 1)})
    Store(tmp_path / "report").begin({"n": 1, "seeds": (0, 1)})
    with pytest.raises(RunError, match="n=2, but the report has 1"):
        Store(tmp_path / "report").begin({"n": 2, "seeds": (0, 1)})


def test_a_damaged_file_names_the_way_out(tmp_path: Path) -> None:
    store, step = Store(tmp_path), Step("one", "double", "", {"value": 1})
    store.do(step, work)
    (tmp_path / "steps" / "one.json").write_text("{")
    with pytest.raises(RunError, match=r"one.json is damaged .*; remove it, and this step is done again$"):
        store.has(step)
    with pytest.raises(RunError, match=r"two.json cannot be read .*; make the report again in a new folder$"):
        store.result("two")
