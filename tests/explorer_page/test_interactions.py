"""What a person does with the page: click, search, filter, drag, play; and all of it with the keyboard alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.explorer_page.conftest import OpenPage, axe_problems, settle
from tests.explorer_page.places import place
from tests.server.conftest import Running

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route


def heading(page: Page) -> str:
    text: str = page.get_by_role("heading", level=1).inner_text()
    return text


def ranking(page: Page) -> list[str]:
    """The recommended titles, in order."""
    found: list[str] = page.locator(".ranking").first.locator(".item-link").all_inner_texts()
    return found


def popular(server: Running, count: int) -> list[dict[str, object]]:
    """Popular items, without the one that has a hostile title."""
    found: list[dict[str, object]] = server.get(f"/v1/explore/items?size={count + 1}").json["items"][1:]
    return found


def test_a_node_leads_to_its_paths_and_a_path_to_its_items(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/")
    loads = server.get("/v1/explore/overview").json["layers"][0]["items"]
    busiest = loads.index(max(loads))
    page.get_by_role("link", name=re.compile(rf"^node {busiest}: {max(loads)} items")).click()
    settle(page)
    answer = server.get(f"/v1/explore/paths?prefix={busiest}").json
    assert page.url.endswith(f"#/paths/{busiest}")
    assert f"{answer['items']} items on {answer['num_paths']} paths" in page.locator("main").inner_text()
    page.locator(".paths-list .path-chips a").last.click()
    settle(page)
    assert "#/path/" in page.url
    page.locator("table .item-link").first.click()
    settle(page)
    assert "#/item/" in page.url
    page.go_back()
    settle(page)
    assert "#/path/" in page.url


def test_a_node_of_a_deeper_layer_leads_to_the_paths_through_it(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/")
    loads = server.get("/v1/explore/overview").json["layers"][1]["items"]
    busiest = loads.index(max(loads))
    strip = page.get_by_role("group", name=re.compile("^Load of layer 2"))
    strip.get_by_role("link", name=re.compile(rf"^node {busiest}: ")).click()
    page.wait_for_url(re.compile(rf"#/node/{busiest}\?layer=2"))
    settle(page)
    answer = server.get(f"/v1/explore/nodes/{busiest}?layer=2&size=25").json
    assert f"{answer['items']} items on {answer['num_paths']} paths through node" in page.locator("main").inner_text()
    shown = page.locator(".paths-list > li .path-chips")
    paths = [f"Path {', '.join(map(str, one['path']))}" for one in answer["paths"]]
    assert [one.get_attribute("aria-label") for one in shown.all()] == paths
    assert axe_problems(page) == []
    page.get_by_role("button", name="by number").click()
    page.wait_for_url(re.compile("sort=path"))
    page.get_by_role("region", name="Layer 3").get_by_role("link").first.click()
    page.wait_for_url(re.compile(r"#/node/\d+\?layer=3"))
    page.get_by_text(re.compile("of layer 3, whatever")).wait_for()


def test_nodes_sort_by_load(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/")
    page.get_by_role("button", name="by load").click()
    first = page.get_by_role("group", name=re.compile("^Load of layer 2")).locator("rect").first
    most = max(server.get("/v1/explore/overview").json["layers"][1]["items"])
    assert f": {most} items" in (first.get_attribute("aria-label") or "")


def test_paths_sort_and_turn_pages(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/#/paths")
    page.get_by_role("button", name="by number").click()
    settle(page)
    lowest = server.get("/v1/explore/paths?sort=path&size=25").json["paths"]
    shown = page.locator(".paths-list > li")
    assert shown.count() == len(lowest)
    assert (
        shown.first.locator(".path-chips").get_attribute("aria-label")
        == f"Path {', '.join(map(str, lowest[0]['path']))}"
    )
    page.get_by_role("button", name="Next").click()
    settle(page)
    assert "page=2" in page.url
    assert page.get_by_role("navigation", name="Pages of paths").inner_text().count("Page 2 of") == 1


def test_items_are_searched_by_the_beginnings_of_words(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/#/items")
    title = str(popular(server, 3)[2]["title"])
    page.get_by_role("searchbox").or_(page.locator("#items-search")).last.fill(title.split()[-1][:4].upper())
    page.get_by_role("link", name=title, exact=True).wait_for()
    assert "search=" in page.url
    page.locator("#items-search").fill("zzzz")
    page.get_by_text("No item has a word that begins with “zzzz”").wait_for()


def test_the_finder_takes_titles_ids_and_paths(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/")
    finder = page.get_by_role("combobox", name="Find an item or a path")
    item = popular(server, 1)[0]
    finder.fill(str(item["title"])[:6])
    option = page.get_by_role("option").filter(has_text=str(item["title"])).first
    option.click()
    settle(page)
    assert heading(page) == item["title"]
    path = server.get("/v1/explore/overview").json["largest"][0]["path"]
    finder.fill("-".join(map(str, path)))
    finder.press("Enter")
    settle(page)
    assert page.url.endswith(f"#/path/{'-'.join(map(str, path))}")


def test_a_query_is_built_asked_widened_and_filtered(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/#/query")
    items = popular(server, 2)
    for item in items:
        page.get_by_role("combobox", name="Add an item").fill(str(item["id"]))
        page.get_by_role("option").filter(has_text=str(item["title"])).first.click()
        page.locator(".basket").get_by_text(str(item["title"])).wait_for()
    settle(page)
    history = [item["id"] for item in items]
    answer = server.post("/v1/recommend", {"history": history, "n": 10}).json["items"]
    assert ranking(page) == [one["title"] for one in answer]

    slider = page.get_by_role("slider", name="Paths per layer")
    slider.focus()
    slider.press("Home")
    page.get_by_text("kept 1 of").first.wait_for()
    settle(page)
    narrow = server.post("/v1/recommend", {"history": history, "n": 10, "beam": 1}).json["items"]
    assert ranking(page) == [one["title"] for one in narrow]
    assert "are also in the default answer" in page.locator("main").inner_text()

    page.get_by_label("Leave out items of the history").uncheck()
    page.wait_for_url(re.compile("seen=keep"))
    settle(page)
    seen = {"history": history, "n": 10, "beam": 1, "exclude_seen": False}
    assert ranking(page) == [one["title"] for one in server.post("/v1/recommend", seen).json["items"]]

    page.get_by_label("Column").select_option("price")
    page.get_by_label("Value of price").fill("..40")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("price: at most 40").wait_for()
    settle(page)
    cheap = {**seen, "where": {"price": {"max": 40}}}
    assert ranking(page) == [one["title"] for one in server.post("/v1/recommend", cheap).json["items"]]
    page.reload()
    page.get_by_text("price: at most 40").wait_for()
    settle(page)
    assert ranking(page) == [one["title"] for one in server.post("/v1/recommend", cheap).json["items"]]


def test_candidates_bound_a_query(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/{place(server, 'query')}")
    page.get_by_role("button", name="candidates").click()
    page.get_by_text("100 candidates of").wait_for()
    slider = page.get_by_role("slider", name="Items to score")
    slider.focus()
    slider.press("ArrowLeft")
    page.wait_for_url(re.compile(r"candidates=(?!100)\d+"))
    budget = int(re.findall(r"candidates=(\d+)", page.url)[0])
    page.get_by_text(f"{budget} candidates of").wait_for()
    slider.press("Home")
    page.get_by_text("10 candidates of").wait_for()
    page.get_by_label("Items to recommend").select_option("20")
    page.get_by_text("20 candidates of").wait_for()
    assert page.get_by_role("alert").count() == 0


def test_long_labels_and_counts_fit_the_beam(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/")

    def lengthen(route: Route) -> None:
        answer = route.fetch()
        trace = answer.json()
        for path in trace["paths"]:
            path["label"] = {"text": "Adventure · Action · Thriller · Comedy", "terms": [], "sample": 1}
        for layer in trace["layers"]:
            layer |= {"kept": 1_234_567, "compared": 12_345_678}
        route.fulfill(response=answer, json=trace)

    page.route("**/v1/explore/query", lengthen)
    page.goto(f"{server.url}/explore/{place(server, 'query')}")
    page.get_by_role("button", name="Why").first.click()
    settle(page)
    assert page.locator(".beam-row.asked text").count() > 0
    for edge in ("right", "bottom"):
        beyond = f"node.getBoundingClientRect().{edge} - node.ownerSVGElement.getBoundingClientRect().{edge}"
        assert max(page.locator(".beam text").evaluate_all(f"nodes => nodes.map(node => {beyond})")) <= 0.5


def test_a_page_of_a_list_that_is_not_there_leads_back(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/#/items?page=99999")
    page.get_by_role("button", name="Previous").click()
    page.locator("table .item-link").first.wait_for()
    page.goto(f"{server.url}/explore/#/items?page=1.5")
    page.get_by_text("Page 1 of").wait_for()


def test_why_and_why_not(server: Running, open_page: OpenPage) -> None:
    history = [one["id"] for one in popular(server, 2)]
    page = open_page(f"{server.url}/explore/#/query?h={history[0]}&h={history[1]}&beam=1")
    page.get_by_role("button", name=re.compile("^Why ")).first.click()
    page.locator(".why .verdict").wait_for()
    assert page.get_by_role("button", name=re.compile("^Why ")).first.get_attribute("aria-expanded") == "true"

    lost = next(
        one
        for one in popular(server, 60)
        if one["id"] not in history
        and server.post("/v1/explore/why", {"history": history, "item": one["id"], "beam": 1}).json["reason"] == "beam"
    )
    page.get_by_role("combobox", name="Item to ask about").fill(str(lost["id"]))
    page.get_by_role("option").filter(has_text=str(lost["title"])).first.click()
    why = server.post("/v1/explore/why", {"history": history, "item": lost["id"], "beam": 1}).json
    page.locator(".verdict").get_by_text(why["text"]).wait_for()
    assert page.locator(".why-layers .lost").count() == len(why["paths"])
    page.get_by_role("button", name=f"Use a beam of {why['smallest_beam']}").click()
    page.wait_for_url(re.compile(f"beam={why['smallest_beam']}"))
    settle(page)
    assert (
        server.post("/v1/explore/why", {"history": history, "item": lost["id"], "beam": why["smallest_beam"]}).json[
            "reason"
        ]
        != "beam"
    )
    assert "lost the last of its paths" not in page.locator("main").inner_text()


def test_an_item_is_left_out_and_allowed_again(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/{place(server, 'query')}")
    first = ranking(page)[0]
    page.get_by_role("button", name=f"Why {first}?").click()
    page.get_by_role("button", name="Leave this item out").click()
    page.get_by_role("button", name=f"Allow {first} again").wait_for()
    settle(page)
    assert first not in ranking(page)
    page.get_by_role("button", name=f"Allow {first} again").click()
    page.get_by_role("button", name=f"Why {first}?").wait_for()


def test_the_training_is_replayed(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/#/replay?round=0")
    rounds = server.get("/v1/explore/replay").json["rounds"]
    assert page.locator(".dot.moved").count() == 0
    slider = page.get_by_role("slider", name="Round of training")
    slider.focus()
    slider.press("ArrowRight")
    page.get_by_text("after round 1").first.wait_for()
    assert page.locator(".dot.moved").count() > 0
    page.get_by_text("moves as a table").click()
    assert page.locator("details[open] tbody tr").count() > 0
    page.get_by_label("Follow").select_option(index=2)
    page.wait_for_url(re.compile("item="))
    assert page.locator(".dot.followed").count() > 0
    slider.press("Home")
    page.get_by_role("button", name="Play").click()
    page.get_by_text(f"after round {rounds[-1]['number']}").first.wait_for()
    page.get_by_role("button", name="Play").wait_for()


def test_two_models_are_compared(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/#/compare")
    compare = server.get("/v1/explore/compare?sort=interactions&size=25").json
    assert compare["other"] in page.locator("main").inner_text()
    page.get_by_role("button", name="most popular").click()
    page.wait_for_url(re.compile("sort=interactions"))
    settle(page)
    shown = page.get_by_role("region", name="Items that moved").locator("tbody .item-link")
    assert shown.nth(1).inner_text() == compare["moved"][1]["title"]
    answers = page.locator(".answers > li")
    before = answers.count()
    page.get_by_role("button", name="Show more").click()
    assert answers.count() > before


def test_the_keyboard_is_enough(server: Running, open_page: OpenPage) -> None:
    page = open_page(f"{server.url}/explore/")
    keys = page.keyboard
    keys.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    keys.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    tab_to(page, "document.activeElement.dataset.at === '0'")
    keys.press("ArrowRight")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith("node 1:")
    page.locator(".tip").get_by_text(label).wait_for()
    keys.press("ArrowLeft")
    keys.press("Enter")
    page.wait_for_url(re.compile("#/paths/0"))
    settle(page)
    assert page.evaluate("document.activeElement.id") == "main"

    page.go_back()
    settle(page)
    tab_to(page, "/^Load of layer 3/.test(document.activeElement.closest('svg')?.getAttribute('aria-label'))")
    keys.press("ArrowRight")
    keys.press("Enter")
    page.wait_for_url(re.compile(r"#/node/1\?layer=3"))
    settle(page)
    assert page.evaluate("document.activeElement.id") == "main"

    page.goto(f"{server.url}/explore/#/query")
    settle(page)
    tab_to(page, "document.activeElement.closest('.controls') && document.activeElement.role === 'combobox'")
    item = popular(server, 1)[0]
    keys.type(str(item["title"])[:5])
    page.get_by_role("option").first.wait_for()
    keys.press("ArrowDown")
    keys.press("ArrowUp")
    keys.press("Enter")
    page.wait_for_url(re.compile("h="))
    settle(page)
    tab_to(
        page, "document.activeElement.hasAttribute('aria-expanded') && /^Why/.test(document.activeElement.textContent)"
    )
    keys.press("Enter")
    page.locator(".verdict").wait_for()
    assert page.get_by_role("status").filter(has_text=re.compile(r"\w")).count() > 0


def tab_to(page: Page, condition: str) -> None:
    for _ in range(150):
        if page.evaluate(f"!!({condition})"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no Tab leads to: {condition}")
