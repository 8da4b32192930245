"""What a report records about its origin."""

from __future__ import annotations

from pathlib import Path

import pathdex
from pathdex.experiments.provenance import provenance
from pathdex.experiments.report_request import ReproduceOptions, make_report_request
from pathdex.experiments.steps import Step, StepStore


def test_command_data_machine_and_steps(tmp_path: Path) -> None:
    request = make_report_request(
        ReproduceOptions(Path("/data/events.csv"), methods=["popularity"], options={"threads": 1})
    )
    store, step = StepStore(tmp_path), Step("one", "double", "Double one", {"value": 1})
    store.run(step, lambda **inputs: {"doubled": 2 * inputs["value"]})
    found = provenance(request, [step], store, checksum="ab12", command="pathdex reproduce events.csv")
    assert (found["source"], found["checksum"]) == ("events.csv", "sha256:ab12")
    assert (found["threads"], found["device"], found["seeds"]) == (1, "cpu", [0, 1, 2])
    assert found["versions"]["pathdex"] == pathdex.__version__
    assert found["machine"]["cores"] >= 1
    (recorded,) = found["steps"]
    assert (recorded["step"], recorded["title"]) == ("one", "Double one")
    assert found["seconds"] == recorded["seconds"]
    assert "result" not in recorded
