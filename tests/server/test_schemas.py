"""Structs of requests and responses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pathdex.index.health import health
from pathdex.retrieval.explain import Explanation, PathExplanation, WhyNot
from pathdex.server import schemas
from pathdex.server.schemas import ExplainResponse, ModelInfo, RecommendedItem, RecommendResponse, WhyNotResponse

PATH = PathExplanation((0, 1), (0.5, 0.25), 0.125, 1, None, 3)
EXPLANATION = Explanation("a", (PATH,), 1.5)


@pytest.mark.parametrize(
    "value",
    [
        ExplainResponse("m", EXPLANATION),
        WhyNotResponse("m", WhyNot(EXPLANATION, "rerank", 10, 5, None, None, 12, 0.5)),
        ModelInfo("m", "deep-retrieval", 2, "str", None, "now", [], {"depth": 2}, health([[0], [3]], 2, 2)),
        RecommendResponse("m", [RecommendedItem(1, 0.5, EXPLANATION), RecommendedItem("b", 0.25)], unknown=1),
    ],
)
def test_responses_round_trip(value: msgspec.Struct) -> None:
    """Tuples and dataclasses of the library come back as they were."""
    assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value


def test_defaults_are_left_out_of_results() -> None:
    assert msgspec.json.encode(RecommendResponse("m", [RecommendedItem(1, 0.5)])) == (
        b'{"model":"m","items":[{"id":1,"score":0.5}]}'
    )


def test_every_struct_is_documented() -> None:
    structs: list[Any] = [
        one for one in vars(schemas).values() if isinstance(one, type) and one.__module__ == schemas.__name__
    ]
    assert len(structs) > 15
    assert all(struct.__doc__ and struct.__doc__.endswith(".") for struct in structs)
