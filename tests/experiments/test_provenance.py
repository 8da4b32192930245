"""What a report records about its origin: checksums, memory, versions, machine, steps."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pathdex
from pathdex.experiments.provenance import checksum, peak_memory, provenance, reset_peak, source_digest
from pathdex.experiments.report_request import ReproduceOptions, make_report_request
from pathdex.experiments.steps import Step, StepStore


def test_command_data_machine_and_steps(tmp_path: Path) -> None:
    request = make_report_request(
        ReproduceOptions(Path("/data/events.csv"), methods=["popularity"], options={"threads": 1})
    )
    store, step = StepStore(tmp_path), Step("one", "double", "Double one", {"value": 1})
    store.run(step, lambda **inputs: {"doubled": 2 * inputs["value"]})
    found = provenance(
        request, [store.record("one")], tmp_path, checksum="ab12", command="pathdex reproduce events.csv"
    )
    assert (found["source"], found["checksum"]) == ("events.csv", "sha256:ab12")
    assert (found["threads"], found["device"], found["seeds"]) == (1, "cpu", [0, 1, 2])
    assert found["versions"]["pathdex"] == pathdex.__version__
    assert found["machine"]["cores"] >= 1
    (recorded,) = found["steps"]
    assert (recorded["step"], recorded["title"]) == ("one", "Double one")
    assert found["seconds"] == recorded["seconds"]
    assert "result" not in recorded


def test_the_digest_is_short_and_stable() -> None:
    first = source_digest()
    source_digest.cache_clear()
    assert re.fullmatch("[0-9a-f]{12}", first)
    assert source_digest() == first


def test_the_checksum_of_a_folder_depends_on_all_its_files(tmp_path: Path) -> None:
    for name, text in (("a", "1"), ("b/c", "2")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    before = checksum(tmp_path)
    assert before == checksum(tmp_path)
    (tmp_path / "b" / "c").write_text("3")
    assert checksum(tmp_path) != before
    assert checksum(tmp_path / "a") == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"


def test_the_peak_includes_an_allocation() -> None:
    if not reset_peak():
        pytest.skip("this system cannot reset its peak")
    before, size = peak_memory(), 64 * 2**20
    assert before is not None
    held = np.ones(size, np.uint8)
    peak = peak_memory()
    assert peak is not None
    assert peak >= before + 0.9 * size
    assert held[0] == 1
