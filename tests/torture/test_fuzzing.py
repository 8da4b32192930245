"""A short run of the fuzz targets, not guided by coverage; `make torture` runs the long one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.snippets import ROOT
from tests.torture.fuzz_targets import TARGETS, BrokenPromiseError
from tests.torture.fuzzing import Recorder

INPUTS = 300


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_breaks_a_promise(target: str, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--target", target, "--inputs", str(INPUTS), "--report", str(report)]
    # In a process of its own, since a crash would end it.
    subprocess.run(
        [sys.executable, "-m", "tests.torture", "fuzz", *options], cwd=ROOT, capture_output=True, check=False
    )
    found = json.loads(report.read_text())
    assert found["failures"] == []
    assert found["targets"] == {target: {"inputs": INPUTS}}


def test_what_a_target_raises_is_recorded_once_per_place(tmp_path: Path) -> None:
    def check(data: bytes) -> None:
        if data == b"a":
            raise BrokenPromiseError("one")
        if data == b"b":
            raise ZeroDivisionError("two")

    recorder = Recorder(check, tmp_path / "findings.jsonl")
    for data in (b"a", b"ok", b"b", b"a"):
        recorder(data)
    lines = [json.loads(line) for line in (tmp_path / "findings.jsonl").read_text().splitlines()]
    assert [bytes.fromhex(line["input"]) for line in lines] == [b"a", b"b"]
    assert [line["place"].split()[0] for line in lines] == ["BrokenPromiseError", "ZeroDivisionError"]
