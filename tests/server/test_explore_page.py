"""The page: public, with a strict policy, cached by ETag; its data needs the token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest

from pathdex.server import explore_page
from tests.server.conftest import Running, running

PAGE = {
    "index.html": b"<!doctype html><title>x</title>",
    "assets/explorer.js": b"let a",
    "assets/explorer.css": b"p{}",
    "assets/odd.exe": b"",
}


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore_page, "page_files", lambda: PAGE)


@pytest.fixture(scope="module")
def server(deep: Path) -> Iterator[Running]:
    with running(deep, token="secret") as server:
        yield server


def test_the_page_is_public_and_its_data_is_not(server: Running) -> None:
    assert server.get("/explore/").body == PAGE["index.html"]
    assert server.get("/explore/assets/explorer.js").status == 200
    for path in ("overview", "paths", "items", "items/x", "replay", "compare"):
        assert server.get(f"/v1/explore/{path}").status == 401
    assert server.get("/v1/explore/overview", authorization="Bearer secret").status == 200


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/explore/", "text/html; charset=utf-8"),
        ("/explore/assets/explorer.js", "text/javascript; charset=utf-8"),
        ("/explore/assets/explorer.css", "text/css; charset=utf-8"),
    ],
)
def test_files_have_their_type_and_a_strict_policy(server: Running, path: str, kind: str) -> None:
    answer = server.get(path)
    assert (answer.status, answer.headers["content-type"]) == (200, kind)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert not {"'unsafe-inline'", "'unsafe-eval'", "http:", "https:", "*"} & set(policy.replace(";", " ").split())
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-cache"


def test_an_unchanged_file_is_not_sent_again(server: Running) -> None:
    first = server.get("/explore/assets/explorer.js")
    etag = first.headers["etag"]
    for given in (etag, f"W/{etag}", f'"x", {etag}'):
        again = server.get("/explore/assets/explorer.js", **{"If-None-Match": given})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", etag)
    assert server.get("/explore/assets/explorer.js", **{"If-None-Match": '"other"'}).status == 200


@pytest.mark.parametrize("name", ["none.js", "odd.exe", "..%2Findex.html", "%2e%2e", "explorer.js%00"])
def test_other_files_do_not_exist(server: Running, name: str) -> None:
    answer = server.get(f"/explore/assets/{name}")
    assert (answer.status, answer.json["error"]["rule"]) == (404, "is not a file of the explorer")


def test_the_address_without_a_slash_leads_to_the_page(server: Running) -> None:
    """Also behind a proxy that adds a prefix."""
    answer = server.get("/explore")
    assert (answer.status, answer.headers["location"]) == (307, "explore/")
    assert urljoin("https://shop.example/models/one/explore", answer.headers["location"]) == (
        "https://shop.example/models/one/explore/"
    )


def test_a_page_that_is_not_built_is_named(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore_page, "page_files", dict)
    answer = server.get("/explore/")
    assert (answer.status, answer.message) == (
        404,
        "the page of the explorer is not built; run `make explorer`, or install a wheel",
    )
