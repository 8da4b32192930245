"""Tokens, hostile titles, errors, and models that lack what a view shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explorer_page.conftest import OpenPage, settle
from tests.explorer_page.places import PLACES, place
from tests.explorer_page.shop import HOSTILE
from tests.server.conftest import Running, running


def test_titles_are_text_in_every_view(server: Running, open_page: OpenPage) -> None:
    hostile = server.get("/v1/explore/items?size=1").json["items"][0]
    assert hostile["title"] == HOSTILE
    page = open_page(f"{server.url}/explore/#/item/{hostile['id']}")
    assert page.get_by_role("heading", level=1).inner_text() == HOSTILE
    views = [place(server, view) for view in PLACES if view != "item"]
    for address in [*views, f"#/query?h={hostile['id']}&seen=keep", f"#/items?search={hostile['id']}"]:
        page.goto(f"{server.url}/explore/{address}")
        settle(page)
        assert "injected" not in page.title()
        assert page.locator("main img, main script, .finder img").count() == 0
    page.get_by_role("combobox", name="Find an item or a path").fill(str(hostile["id"]))
    page.get_by_role("option").filter(has_text=HOSTILE).first.wait_for()
    assert page.locator("img").count() == 0


@pytest.mark.expected_errors("401")
def test_a_token_is_asked_for_and_kept_for_the_tab(shop: Path, open_page: OpenPage) -> None:
    with running(shop / "run", token="secret-token") as guarded:
        page = open_page(f"{guarded.url}/explore/#/items")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        page.get_by_text("the token is wrong").wait_for()
        page.get_by_label("Token").fill("secret-token")
        page.get_by_role("button", name="Open").click()
        page.get_by_role("heading", name="Items", level=1).wait_for()
        assert page.url.endswith("#/items")
        assert page.evaluate("Object.values(sessionStorage)") == ["secret-token"]
        assert page.evaluate("Object.values(localStorage)") == []
        page.reload()
        page.get_by_role("heading", name="Items", level=1).wait_for()
        assert page.context.cookies() == []


@pytest.mark.expected_errors("404")
@pytest.mark.expected_errors("422")
def test_what_is_not_there_is_said(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/#/item/no-such-item")
    page.get_by_role("alert").get_by_role("heading", name="Not found").wait_for()
    page.goto(f"{server.url}/explore/#/nowhere")
    page.get_by_role("heading", name="No such view").wait_for()
    page.goto(f"{server.url}/explore/#/paths/999999")
    page.get_by_role("alert").or_(page.get_by_text("No path in use begins like this")).first.wait_for()


@pytest.mark.expected_errors("422")
def test_a_wrong_condition_names_the_remedy(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/#/query?where=%7B%22prize%22%3A1%7D")
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "prize" in alert.inner_text()
    page.get_by_role("button", name="Remove the condition on prize").click()
    page.locator(".ranking").first.wait_for()


@pytest.mark.expected_errors("ERR_FAILED")
def test_without_a_connection_one_can_try_again(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/")
    page.route("**/v1/explore/items*", lambda route: route.abort())
    page.get_by_role("link", name="Items", exact=True).click()
    page.get_by_role("alert").get_by_role("heading", name="No connection").wait_for()
    page.unroute("**/v1/explore/items*")
    page.get_by_role("button", name="Try again").click()
    page.locator("table .item-link").first.wait_for()


def test_a_model_without_titles_rounds_and_comparison(deep: Path, open_page: OpenPage) -> None:
    """Every view says what it lacks, and shows the rest."""
    with running(deep) as bare:
        page = open_page(f"{bare.url}/explore/")
        item = bare.get("/v1/explore/items?size=1").json["items"][0]
        path = "-".join(map(str, bare.get("/v1/explore/overview").json["largest"][0]["path"]))
        for address, text in {
            f"#/item/{item['id']}": "No sample histories were recorded",
            f"#/path/{path}": "Rounds were not recorded",
            "#/compare": "There is no second model",
            "#/replay": "were not recorded",
            "#/query": "Empty. Without a history",
        }.items():
            page.goto(f"{bare.url}/explore/{address}")
            page.get_by_text(text).first.wait_for()
            settle(page)
            assert page.locator(".message").count() == 0
