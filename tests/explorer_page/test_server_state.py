"""What the page says and does while the server prepares, and when the model changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pathdex.explorer.explorer import Doing, Explorer
from pathdex.server import explorers
from tests.explorer_page.conftest import OpenPage, axe_problems, settle
from tests.recommenders.test_live_reader import Feed
from tests.server.conftest import Running, running


@pytest.mark.expected_errors("503")
def test_a_search_waits_for_its_index(server: Running, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    page = open_page(f"{server.url}/explore/")
    monkeypatch.setattr(Explorer, "waits_for", lambda *_: 7.4)
    page.goto(f"{server.url}/explore/#/items?search=a")
    page.get_by_text("The search index of 600 items is being prepared, for 7 seconds so far").wait_for()
    finder = page.get_by_role("combobox", name="Find an item or a path")
    finder.fill("a")
    page.locator(".finder-note").get_by_text("is being prepared").wait_for()
    monkeypatch.undo()
    page.get_by_role("option").first.wait_for()
    page.locator("table .item-link").first.wait_for()


def test_preparing_is_shown(server: Running, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Explorer, "doing", property(lambda _: Doing("the search index", -1e6)))
    page = open_page(f"{server.url}/explore/")
    page.get_by_role("status").get_by_text("Preparing the search index").wait_for()
    assert axe_problems(page) == []
    monkeypatch.undo()
    page.get_by_text("Preparing the search index").wait_for(state="detached")


def test_a_newer_model_takes_the_place_of_the_old_one(shop: Path, tmp_path: Path, open_page: OpenPage) -> None:
    run = shutil.copytree(shop / "run", tmp_path / "run")
    with running(run, watch=0.1) as server:
        before = server.get("/v1/explore/overview").json
        page = open_page(f"{server.url}/explore/#/items?search=ba")
        page.get_by_text(f"model {before['model']}").wait_for()
        shutil.rmtree(run / "bundle")
        shutil.copytree(shop / "other" / "bundle", run / "bundle")
        page.get_by_text("The server has a newer model.").wait_for()
        assert axe_problems(page) == []
        page.locator("#items-search").fill("bab")
        page.get_by_role("button", name="Update").click()
        page.get_by_text("The server has a newer model.").wait_for(state="detached")
        after = server.get("/v1/explore/overview").json
        assert after["model"] != before["model"]
        page.get_by_text(f"model {after['model']}").wait_for()
        assert page.locator("#items-search").input_value() == "bab"


def test_a_live_model_is_followed(tmp_path: Path, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorers, "RENEW_SECONDS", 0.0)
    monkeypatch.setattr(explorers, "RENEW_FACTOR", 0.0)
    feed = Feed(tmp_path / "live")
    with running(feed.path, watch=0.1) as server:
        page = open_page(f"{server.url}/explore/")
        first = server.get("/v1/explore/overview").json["model"]
        feed.publish()
        page.get_by_text("The live model has moved on.").wait_for()
        page.get_by_role("button", name="Keep updating").click()
        page.get_by_text(f"model {first}").wait_for(state="detached")
        assert page.get_by_label("Update by itself").is_checked()
        second = server.get("/v1/explore/overview").json["model"]
        page.get_by_text(f"model {second}").wait_for()
        feed.publish()
        page.get_by_text(f"model {second}").wait_for(state="detached")

        rounds = server.get("/v1/explore/replay?items=1").json
        item = rounds["items"][0]["id"]
        page.goto(f"{server.url}/explore/#/item/{item}")
        settle(page)
        table = page.get_by_role("region", name="Its paths over the publishes")
        assert table.locator("tbody tr").count() == len(rounds["rounds"])
        path = "-".join(map(str, server.get(f"/v1/explore/items/{item}").json["paths"][0]["path"]))
        page.goto(f"{server.url}/explore/#/path/{path}")
        settle(page)
        page.get_by_role("img", name="Items after each publish: at the start").wait_for()
        page.get_by_text("After each publish of the live model").wait_for()
    feed.publisher.close()
