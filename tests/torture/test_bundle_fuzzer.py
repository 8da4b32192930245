"""A short run of the bundle fuzzer; `make torture` runs the long one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.snippets import ROOT

MUTATIONS = 300


def test_mutated_bundles_are_refused_or_give_valid_answers(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    # In a process of its own, since a process with threads cannot be forked safely.
    subprocess.run(
        [sys.executable, "-m", "tests.torture", "bundles", "--count", str(MUTATIONS), "--report", str(report)],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    found = json.loads(report.read_text())
    assert found["failures"] == []
    assert found["outcomes"].keys() == {"refused", "answered"}
    assert sum(found["outcomes"].values()) == MUTATIONS
