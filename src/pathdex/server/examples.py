"""Examples of the OpenAPI document with ids of the served catalogue, so that they can be sent as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pathdex.data.vocabulary import Id
from pathdex.recommenders.capabilities import HasIndex
from pathdex.server.model_loader import ServedModel

PLACEHOLDERS = (260, 1196, 1210)
"""The ids in the examples of the routes."""


def with_served_ids(document: bytes, served: ServedModel) -> bytes:
    """The document with examples for this model."""
    model = served.recommender
    ids = model.items.first_ids(len(PLACEHOLDERS))
    paths = model.item_paths(ids[0]) if ids and isinstance(model, HasIndex) else []
    return with_ids(document, ids, paths[0] if paths else None)


def with_ids(document: bytes, ids: Sequence[Id], path: Sequence[int] | None) -> bytes:
    """The document with these ids and this path in its examples.

    A document of a server with a token stays as it is: it is public, and ids are not.
    """
    content = msgspec.json.decode(document)
    if "securitySchemes" in content["components"] or not ids:
        return document
    shown: dict[Any, Id] = {old: ids[min(place, len(ids) - 1)] for place, old in enumerate(PLACEHOLDERS)}
    parameters = {"path": "-".join(map(str, path))} if path else {}
    for path, methods in content["paths"].items():
        for operation in methods.values():
            for body in operation.get("requestBody", {}).get("content", {}).values():
                body["example"] = _replaced(body["example"], shown)
            for parameter in operation.get("parameters", ()):
                known = {**parameters, "id": "ada" if "/users/" in path else str(ids[0])}
                if parameter["name"] in known:
                    parameter["example"] = known[parameter["name"]]
    return msgspec.json.encode(content)


def _replaced(value: Any, shown: Mapping[Any, Id]) -> Any:
    if isinstance(value, dict):
        return {name: one if name == "n" else _replaced(one, shown) for name, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, shown) for one in value]
    return shown.get(value, value)
