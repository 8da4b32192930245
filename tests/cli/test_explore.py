"""`pathdex explore`: the exported file, and errors. The page itself is tested in a browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pathdex.server import explore_page
from tests.cli.conftest import Pathdex

PAGE = {"index.html": b"<html><head></head><body></body></html>"}


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore_page, "page_files", lambda: PAGE)


def exported(file: Path) -> dict[str, Any]:
    [data] = re.findall(r'<script type="application/json" id="pathdex-data">(.*?)</script>', file.read_text())
    found: dict[str, Any] = json.loads(data)
    return found


def test_a_run_is_exported_with_its_recording(pathdex: Pathdex, titled_run: Path, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    outcome = pathdex("explore", titled_run, "--compare", titled_run, "--export", file)
    assert f"Wrote {file}" in outcome.stdout.replace("\n", "")
    found = exported(file)
    abilities = found["overview"]["abilities"]
    assert (abilities["rounds"], abilities["histories"], abilities["comparison"]) == (True, True, True)
    assert abilities["attributes"]
    assert found["compare"]["overlap"] == 1
    assert found["replay"]["recorded"] is True


def test_a_limit_is_checked(pathdex: Pathdex, titled_run: Path, tmp_path: Path) -> None:
    outcome = pathdex("explore", titled_run, "--export", tmp_path / "x.html", "--export-limit", 0, fails=1)
    assert "--export-limit=0: must be at least 1" in " ".join(outcome.stderr.split())


def test_a_page_opens_when_the_server_is_ready(
    pathdex: Pathdex, titled_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, served = list[str](), list[Any]()

    def serve(options: Any, on_ready: Any) -> None:
        served.append(options)
        on_ready("http://127.0.0.1:1234", "0123456789ab")

    monkeypatch.setattr("pathdex.server.serving.serve", serve)
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) is not None)
    outcome = pathdex("explore", titled_run)
    assert opened == ["http://127.0.0.1:1234/explore/"]
    assert "No browser was found" in outcome.stderr
    assert (served[0].host, served[0].port, served[0].model) == ("127.0.0.1", 0, titled_run)
    pathdex("explore", titled_run, "--no-browser", "--port", 1234)
    assert len(opened) == 1
    assert served[1].port == 1234
    assert served[0].explorer


def test_a_missing_model_to_compare_with_is_named_at_once(pathdex: Pathdex, titled_run: Path, tmp_path: Path) -> None:
    outcome = pathdex("explore", titled_run, "--compare", tmp_path / "none", "--no-browser", fails=1)
    assert "none does not exist" in " ".join(outcome.stderr.split())
