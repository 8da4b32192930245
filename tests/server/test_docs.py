"""docs/server.md agrees with the server, and its example runs."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import pathdex
from pathdex.data import Vocabulary
from pathdex.server.metrics import STATUSES, ServerMetrics
from pathdex.server.routes import ROUTES
from tests.random_model import random_model
from tests.server.conftest import running
from tests.snippets import MOVIES, ROOT, run_python

PAGE = ROOT / "docs" / "server.md"


def test_every_route_is_listed() -> None:
    listed = re.findall(r"^\| `((?:GET|POST|DELETE) [^`]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert listed == [f"{route.method} {route.path}" for route in ROUTES if not route.internal]


def test_every_status_is_listed() -> None:
    listed = [int(status) for status in re.findall(r"^\| (\d{3}) \|", PAGE.read_text(), re.MULTILINE)]
    # 499 is recorded but never sent.
    assert listed == [status for status in STATUSES if status not in (200, 202, 304, 307, 499)]


def test_every_metric_is_listed() -> None:
    named = set(re.findall(r"`(pathdex_\w+)`", PAGE.read_text()))
    assert named == set(re.findall(r"# TYPE (\w+) ", ServerMetrics().render().decode()))


def test_the_docs_page_loads_nothing_else() -> None:
    page = files("pathdex.server").joinpath("docs.html").read_text()
    assert not re.findall(r"https?://|//cdn|@import|<link|src=", page)
    assert 'fetch("openapi.json")' in page


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import numpy as np

    model = random_model(len(MOVIES))
    model._items = Vocabulary(np.array(MOVIES))
    model.save(tmp_path / "bundle")
    with running(tmp_path / "bundle", user_store=str(tmp_path / "users.sqlite")) as server:
        client = pathdex.Client
        monkeypatch.setattr(pathdex, "Client", lambda url: client(server.url))
        run_python(PAGE)
        assert server.metric("pathdex_user_events_total") == 2
    assert "ScoredItem(id=" in capsys.readouterr().out
