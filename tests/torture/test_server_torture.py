"""A short torture of a server; `make torture` runs the long one."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.snippets import ROOT
from tests.torture.server_load import LAG_SECONDS, Ledger


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc to find the connections of a worker")
def test_a_server_survives_swaps_and_kills_under_load(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    plan = ["--minutes", "0.2", "--idle", "50", "--swap-seconds", "2", "--kill-seconds", "4", "--report", str(report)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.torture", "server", *plan], cwd=ROOT, capture_output=True, check=False, text=True
    )
    assert report.exists(), done.stderr
    found = json.loads(report.read_text())
    assert found["failures"] == []
    assert found["kills"] > 0
    assert found["swaps"]["bad"] > 0
    assert found["counts"]["query"] > 100
    assert found["events"] > 0


def test_a_wrong_answer_and_an_unknown_or_old_model_are_failures() -> None:
    now = time.monotonic()
    ledger = Ledger({"a": [[(1, 0.5), (2, 0.25)]], "b": [[(2, 0.5)]]}, [{}], {"a": now, "b": now})
    right = [{"id": 1, "score": 0.5}, {"id": 2, "score": 0.25}]
    ledger.check_answer(0, "a", right)
    ledger.check_version("a", now)
    assert ledger.failures == []
    for items in (right[:1], right[::-1], [right[0], {"id": 2, "score": 0.26}]):
        ledger.check_answer(0, "a", items)
    ledger.check_answer(0, "b", right)
    ledger.check_version("c", now)
    ledger.replaced["a"] = now
    ledger.check_version("a", now + LAG_SECONDS / 2)
    ledger.check_version("a", now + LAG_SECONDS * 2)
    assert [one["kind"] for one in ledger.failures] == ["wrong answer"] * 4 + ["unknown model", "old model"]
