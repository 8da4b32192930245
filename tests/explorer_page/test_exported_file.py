"""The exported file opens from the disk with the network off."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import call
from tests.explorer_page.conftest import OpenPage, axe_problems, settle
from tests.explorer_page.shop import HOSTILE

if TYPE_CHECKING:
    from playwright.sync_api import Page

OFFLINE = {"offline": True, "java_script_enabled": True}


@pytest.fixture(scope="module")
def exported(shop: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("exported") / "shop.html"
    call("explore", shop / "run", "--compare", shop / "other", "--export", file)
    return file.as_uri()


def heading(page: Page) -> str:
    text: str = page.get_by_role("heading", level=1).inner_text()
    return text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_opens_without_a_network(exported: str, scheme: str, open_page: OpenPage) -> None:
    page = open_page(exported, color_scheme=scheme, offline=True)
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))
    assert axe_problems(page) == []
    for name in ("Paths", "Items", "Query", "Training", "Compare", "Overview"):
        page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
        page.locator("nav a[aria-current=page]").get_by_text(name, exact=True).wait_for()
        settle(page)
        assert page.locator(".message").count() == 0
        assert axe_problems(page) == []
    assert asked == []


def test_items_and_paths_of_the_file_are_found(exported: str, open_page: OpenPage) -> None:
    page = open_page(exported, offline=True)
    page.get_by_role("combobox", name="Find an item or a path").fill("baby")
    option = page.get_by_role("option").first
    title = option.locator("span").first.evaluate("node => node.firstChild.textContent")
    option.click()
    settle(page)
    assert heading(page) == title
    page.locator(".item-path .path-chips a").last.click()
    settle(page)
    assert "#/path/" in page.url
    page.goto(f"{exported}#/paths/99999")
    page.get_by_role("alert").get_by_text("This file is a sample").wait_for()


def test_nodes_of_deeper_layers_are_in_the_file(exported: str, open_page: OpenPage) -> None:
    page = open_page(exported, offline=True)
    page.get_by_role("group", name=re.compile("^Load of layer 2")).get_by_role("link").first.click()
    page.get_by_text("through node 0 of layer 2").wait_for()
    assert page.locator(".paths-list > li").count() > 0


def test_recorded_queries_are_shown_and_others_need_a_server(exported: str, open_page: OpenPage) -> None:
    page = open_page(f"{exported}#/query", offline=True)
    choice = page.get_by_label("Recorded history")
    choice.select_option(index=1)
    page.wait_for_url("**#/query?h=*")
    settle(page)
    assert page.locator(".ranking > li").count() > 0
    page.get_by_role("button", name="Why").first.click()
    page.get_by_role("alert").get_by_text("pathdex explore").wait_for()
    page.goto(f"{exported}#/query?h=1&h=2&h=1")
    page.get_by_role("alert").get_by_role("heading", name="Not in this file").wait_for()


@pytest.mark.parametrize("address", ["item/valueOf", "path/constructor", "paths/toString", "node/__proto__?layer=2"])
def test_names_that_every_object_has_are_not_in_the_file(address: str, exported: str, open_page: OpenPage) -> None:
    page = open_page(f"{exported}#/{address}", offline=True)
    page.get_by_role("alert").get_by_text("This file is a sample").wait_for()


def test_the_file_names_the_items_of_any_history_and_says_what_it_searches(exported: str, open_page: OpenPage) -> None:
    page = open_page(f"{exported}#/items", offline=True)
    link = page.locator("table .item-link").nth(1)
    title, item = link.inner_text(), (link.get_attribute("href") or "").rpartition("/")[2]
    assert "are searched" not in page.locator("main").inner_text()
    page.goto(f"{exported}#/query?h={item}&h={item}")
    page.reload()
    page.locator(".basket .name").get_by_text(title).first.wait_for()


def test_hostile_titles_stay_text_in_a_file(exported: str, open_page: OpenPage) -> None:
    page = open_page(f"{exported}#/items", offline=True)
    page.get_by_role("link", name=HOSTILE).wait_for()
    assert page.locator("img").count() == 0
    assert "injected" not in page.title()
