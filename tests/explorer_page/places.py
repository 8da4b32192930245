"""Addresses of every view, with items and paths of the served model."""

from __future__ import annotations

from typing import Any, Protocol


class Answering(Protocol):
    def get(self, path: str) -> Any: ...


PLACES = ("overview", "paths", "path", "items", "item", "query", "why", "replay", "compare")


def place(server: Answering, view: str) -> str:
    """The address of a view after /explore/."""
    items = [one["id"] for one in server.get("/v1/explore/items?size=8").json["items"]]
    path = server.get("/v1/explore/overview").json["largest"][1]["path"]
    name = "-".join(map(str, path))
    return {
        "overview": "#/",
        "paths": f"#/paths/{path[0]}",
        "path": f"#/path/{name}",
        "items": "#/items",
        "item": f"#/item/{items[1]}",
        "query": f"#/query?h={items[1]}&h={items[3]}&h={items[4]}",
        "why": f"#/query?h={items[1]}&h={items[3]}&beam=3&why={items[6]}",
        "replay": "#/replay?round=2",
        "compare": "#/compare",
    }[view]
