"""The exported file: bounded, complete where it fits, and safe for any title."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from pathdex.errors import StorageError
from pathdex.explorer import export as module
from pathdex.explorer.explorer import Explorer
from pathdex.explorer.export import DATA_ID, export_data, export_page, safe_json, self_contained
from tests.random_model import random_model
from tests.recommender_contract import TEXT_IDS

PAGE = {
    "index.html": b"<!doctype html><html><head><title>x</title>"
    b'<link rel="stylesheet" crossorigin href="./assets/a.css">'
    b'<script type="module" crossorigin src="./assets/a.js"></script></head><body><div id="app"></div></body></html>',
    "assets/a.css": b"p{color:red}",
    "assets/a.js": b'const text = "</script><b>"; // <!-- ',
}
EVIL = "</script><script>alert(1)</script><!-- \u2028 &amp;"


class Page(HTMLParser):
    """The scripts of a page, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.loaded += [str(value) for name, value in attrs if name in ("src", "href")]
        if tag == "script":
            self.scripts.append((given, ""))
        self._tag = tag

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.scripts:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data


def test_the_file_holds_everything_once(explorer: Explorer, tmp_path: Path) -> None:
    file = tmp_path / "x.html"
    size = export_page(explorer, PAGE, file)
    assert size == file.stat().st_size
    page = Page(file.read_text())
    assert page.loaded == []
    [(_, data), (_, script)] = page.scripts
    assert page.scripts[0][0]["id"] == DATA_ID
    assert "<\\/script>" in script
    found = json.loads(data)
    assert (found["format"], found["version"], found["compare"]) == ("pathdex-explorer", 1, None)
    assert set(found["items"]) == set(TEXT_IDS)
    assert found["limits"]["complete"] is True
    assert len(found["search"]) == len(TEXT_IDS)
    assert found["queries"][0]["trace"]["n"] == 10
    path = next(iter(found["paths"]))
    assert found["paths"][path]["path"] == [int(node) for node in path.split("-")]
    assert all(one["layer"] == 2 for one in found["nodes"].values())
    assert sum(one["items"] for one in found["nodes"].values()) == found["overview"]["entries"]
    assert found["nodes"]["2:1-1"]["first"] == 1
    assert found["prefixes"][""]["items"] == found["overview"]["entries"]


def test_titles_cannot_break_out(tmp_path: Path) -> None:
    model = random_model(5)
    model.describe_items(pl.DataFrame({"item": list(range(100, 105)), "title": [EVIL] * 5}))
    file = tmp_path / "x.html"
    export_page(Explorer(model, "v"), PAGE, file)
    page = Page(file.read_text())
    assert len(page.scripts) == 2
    assert json.loads(page.scripts[0][1])["items"]["100"]["title"] == EVIL
    assert "alert(1)</script>" not in file.read_text()


def test_the_page_allows_nothing_else(explorer: Explorer, tmp_path: Path) -> None:
    file = tmp_path / "x.html"
    export_page(explorer, PAGE, file)
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', file.read_text())
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_what_does_not_fit_is_left_out(explorer: Explorer) -> None:
    whole = len(safe_json(export_data(explorer)))
    limit = whole // 2
    found = json.loads(safe_json(export_data(explorer, max_bytes=limit)))
    assert found["limits"]["complete"] is False
    assert len(found["items"]) < len(TEXT_IDS)
    assert len(json.dumps(found, separators=(",", ":"))) < limit + 10_000


def test_what_one_kind_leaves_is_free_for_the_next(explorer: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = export_data(explorer)
    assert list(module.SHARES)[-1] == "items"
    monkeypatch.setattr(module, "SHARES", {**dict.fromkeys(module.SHARES, 0.0), "queries": 1.0})
    assert len(export_data(explorer)["items"]) == len(whole["items"])


def test_a_limit_below_the_overview_is_an_error(explorer: Explorer) -> None:
    with pytest.raises(StorageError, match="the overview alone exceeds the limit of 10 bytes; raise it"):
        export_data(explorer, max_bytes=10)


def test_a_page_that_is_not_built_is_an_error(explorer: Explorer, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="is not built; run `make explorer`"):
        export_page(explorer, {}, tmp_path / "x.html")
    with pytest.raises(StorageError, match=r"has no file assets/a\.js"):
        self_contained({"index.html": PAGE["index.html"], "assets/a.css": b""}, "{}", "t")


def test_json_in_a_page_has_no_markup() -> None:
    text = safe_json({"a": EVIL})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": EVIL}
    assert module.MAX_BYTES == 20 * 2**20
