"""Every view opens, at every size and in both themes, and axe-core finds nothing serious."""

from __future__ import annotations

from typing import Any

import pytest

from tests.explorer_page.conftest import OpenPage, axe_problems, settle
from tests.explorer_page.places import PLACES, place
from tests.server.conftest import Running


@pytest.mark.parametrize("view", PLACES)
def test_a_view_opens_at_its_address(view: str, server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/{place(server, view)}")
    assert page.get_by_role("heading", level=1).inner_text()
    assert page.title().endswith("Pathdex explorer")
    assert page.locator(".message").count() == 0
    assert axe_problems(page) == []


@pytest.mark.parametrize("view", PLACES)
def test_a_view_fits_a_small_phone_in_the_dark(view: str, server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/{place(server, view)}", size=(360, 780), color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert axe_problems(page) == []


def test_the_navigation_leads_to_every_view(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore")
    titles = set()
    for name in ("Overview", "Paths", "Items", "Query", "Training", "Compare"):
        link = page.get_by_role("navigation", name="Views").get_by_role("link", name=name)
        link.click()
        page.locator("nav a[aria-current=page]").get_by_text(name, exact=True).wait_for()
        settle(page)
        titles.add(page.get_by_role("heading", level=1).inner_text())
    assert len(titles) == 6


def test_the_page_is_served_with_a_strict_policy(server: Running) -> None:
    policy = server.get("/explore/").headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_the_theme_is_chosen_and_kept(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/", color_scheme="dark")
    dark = background(page)
    page.get_by_role("button", name="Theme: as the system").click()
    page.get_by_role("button", name="Theme: light").wait_for()
    page.locator("html[data-theme=light]").wait_for()
    light = background(page)
    assert light != dark
    page.reload()
    page.locator("html[data-theme=light]").wait_for()
    assert background(page) == light
    page.get_by_role("button", name="Theme: light").click()
    page.locator("html[data-theme=dark]").wait_for()
    assert background(page) == dark


def background(page: Any) -> str:
    found: str = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    return found


def test_print_is_light(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/", color_scheme="dark")
    dark = background(page)
    page.emulate_media(media="print")
    assert background(page) != dark
    assert not page.get_by_role("navigation", name="Views").is_visible()
