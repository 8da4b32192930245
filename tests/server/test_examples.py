"""Examples can be sent as they are."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.server.conftest import running


@pytest.mark.parametrize("model", ["deep", "numbered"])
def test_every_example_of_a_query_is_answered(model: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with running(request.getfixturevalue(model), user_store=str(tmp_path / "users.sqlite")) as server:
        paths = server.get("/openapi.json").json["paths"]
        for path in ("/v1/recommend", "/v1/similar", "/v1/explain", "/v1/why-not", "/v1/events"):
            example = paths[path]["post"]["requestBody"]["content"]["application/json"]["example"]
            answer = server.post(path, example)
            lacking = model == "numbered" and path in ("/v1/explain", "/v1/why-not")  # Popularity explains nothing.
            assert answer.status == (422 if lacking else 200), (path, answer.body)
            assert answer.json.get("unknown", []) == []
        [item] = paths["/v1/items/{id}"]["get"]["parameters"]
        assert server.get(f"/v1/items/{quote(item['example'])}").status == 200
        [place] = paths["/v1/paths/{path}"]["get"]["parameters"]
        assert ("example" in place) is (model == "deep")
        if model == "deep":
            assert server.get(f"/v1/paths/{place['example']}").json["items"]


def test_a_public_document_shows_no_ids_if_there_is_a_token(deep: Path) -> None:
    with running(deep, token="secret") as server:
        document = json.dumps(server.get("/openapi.json").json)
    assert "260" in document
    assert '"a0"' not in document
