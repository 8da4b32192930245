"""No request makes the server fail: no status 500, no crash, and every response conforms to the OpenAPI document."""

from __future__ import annotations

import asyncio
import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from pathdex.server.limits import ServerLimits
from pathdex.server.openapi import describe
from pathdex.server.routes import ROUTES
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import Running, running

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
EXAMPLES = 12
DOCUMENTED = [route for route in ROUTES if not route.internal]
DOCUMENT = schemathesis.openapi.from_dict(describe(ROUTES, ServerLimits(), strict=True))
small = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def server(deep: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    table = tmp_path_factory.mktemp("shop") / "shop.csv"
    table.write_text("\n".join(["item_id,colour,price", *(f"{one},red,{place}" for place, one in enumerate(TEXT_IDS))]))
    store = table.parent / "users.sqlite"
    stream = table.parent / "events.jsonl"
    with running(deep, catalogue=table, user_store=str(store), events=str(stream)) as server:
        yield server


@pytest.mark.parametrize("route", DOCUMENTED, ids=lambda route: route.name)
def test_valid_requests_conform_to_the_document(server: Running, route: Any) -> None:
    check_conformance(server, route, GenerationMode.POSITIVE)


@pytest.mark.parametrize(
    "route",
    [one for one in DOCUMENTED if one.request is not None or one.pattern is not None or one.query is not None],
    ids=lambda route: route.name,
)
def test_invalid_requests_are_rejected(server: Running, route: Any) -> None:
    check_conformance(server, route, GenerationMode.NEGATIVE)


def check_conformance(server: Running, route: Any, mode: GenerationMode) -> None:
    operation = DOCUMENT[route.path][route.method]

    @small
    @given(case=operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        case.call_and_validate(base_url=server.url, checks=CHECKS)

    check()
    assert server.get("/health/ready").status == 200


def nested(opening: bytes, closing: bytes, depth: int) -> bytes:
    return b'{"history": [], "where": ' + opening * depth + b"1" + closing * depth + b"}"


MALICIOUS = [
    b"",
    b"\0",
    b"\xff\xfe",
    b"null",
    b"[]",
    b'"text"',
    b"NaN",
    b"{}",
    b'{"history": [NaN]}',
    b'{"history": [], "n": 1e400}',
    b'{"history": [], "n": -1e400}',
    b'{"history": [], "n": ' + b"9" * 5000 + b"}",
    b'{"history": [' + b"9" * 5000 + b"]}",
    b'{"history": [], "beam": -9223372036854775809}',
    b'{"history": ["\\ud800"]}',
    b'{"history": ["\xed\xa0\x80"]}',
    b'{"history": [' + b'"' + b"x" * 100_000 + b'"]}',
    b'{"history": [], "where": {"price": {"min": 1e999}}}',
    b'{"history": [], "where": {"price": {"min": "a", "max": []}}}',
    b'{"history": [], "where": {"": null, "colour": {"a": {"b": [[]]}}}}',
    b'{"history": [], "where": {"price": ' + b"9" * 5000 + b"}}",
    nested(b"[", b"]", 200_000),
    nested(b'{"a":', b"}", 100_000),
    b'{"history": []' + b', "n": 1' * 10_000 + b', "n": 0}',
    b'{"' + b"k" * 100_000 + b'": 1}',
]


@pytest.mark.parametrize("path", [route.path for route in DOCUMENTED if route.method == "POST"])
def test_malicious_bodies_are_rejected(server: Running, path: str) -> None:
    for body in MALICIOUS:
        answer = server.post(path, body)
        assert answer.status in (400, 422), body[:60]
        assert answer.message


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=8,
)
fields = st.sampled_from(["history", "user", "n", "beam", "candidates", "exclude_seen", "allow", "deny", "explain"])
conditions = st.dictionaries(st.sampled_from(["colour", "price", "size"]), values, max_size=2)


@settings(parent=small, max_examples=150)
@given(
    history=st.lists(st.sampled_from([*TEXT_IDS, "unknown"]) | values, max_size=4),
    others=st.dictionaries(fields, values, max_size=3),
    where=st.none() | conditions | values,
)
def test_any_value_in_any_field(server: Running, history: Any, others: Any, where: Any) -> None:
    answer = server.post("/v1/recommend", {"history": history, "where": where, **others})
    assert answer.status in (200, 422)
    assert ("items" in answer.json) == (answer.status == 200)


@settings(parent=small, max_examples=60)
@given(one=st.text(min_size=1, max_size=40) | st.integers())
def test_any_item_id(server: Running, one: str | int) -> None:
    answer = server.get(f"/v1/items/{quote(str(one), safe='')}")
    assert answer.status == (200 if one in TEXT_IDS else 404)
    similar = server.post("/v1/similar", {"item": one})
    assert similar.status == (200 if one in TEXT_IDS else 422)


@settings(parent=small, max_examples=60)
@given(path=st.binary(max_size=40))
def test_any_path(server: Running, path: bytes) -> None:
    assert server.get("/" + quote(path)).status in (200, 307, 404, 422)


@settings(parent=small, max_examples=40)
@given(user=st.text(max_size=30) | st.integers(-(2**63), 2**63 - 1), items=st.lists(st.text(max_size=30), max_size=5))
def test_any_user_and_any_items(server: Running, user: str | int, items: list[str]) -> None:
    answer = server.post("/v1/events", {"user": user, "items": items})
    if "" in (user, *items) or "\0" in str(user):  # A stream has no empty ids.
        assert answer.status == 422
    else:
        assert answer.json["stored"] == len(items)
    assert server.post("/v1/recommend", {"user": user, "n": 1}).status == 200


@pytest.mark.parametrize("wrong", [{"time": -5}, {"time": -0.1}, {"user": "a\0b"}, {"user": "\0\n"}])
def test_times_before_1970_and_null_characters_are_refused(server: Running, wrong: dict[str, Any]) -> None:
    event = {"user": "ada\n", "items": ["1"], "time": 0}
    for body in ({**event, **wrong}, {"events": [{**event, **wrong}]}):
        answer = server.post("/v1/events", body)
        assert answer.status == 422
        assert next(iter(wrong)) in answer.message
    assert server.post("/v1/events", event).json["stored"] == 1


def test_two_thousand_connections(server: Running) -> None:
    wanted = 2000
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Both ends of each connection are in this process.
    number = wanted if hard == resource.RLIM_INFINITY else min(wanted, (hard - 500) // 2)
    body = json.dumps({"history": TEXT_IDS[:3], "n": 5}).encode()
    head = b"POST /v1/recommend HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    request = head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    parts = urlsplit(server.url)

    async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(parts.hostname, parts.port)

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int:
        writer.write(request)
        status = int((await reader.readuntil(b"\r\n\r\n")).split()[1])
        writer.close()
        return status

    async def run() -> list[int]:
        opened = [await connect() for _ in range(number)]
        return await asyncio.gather(*(ask(*one) for one in opened))

    with raised_file_limit():
        statuses = asyncio.run(run())
    assert len(statuses) == number
    assert {*statuses} <= {200, 429}
    assert statuses.count(200) >= server.worker.options.limits.queue
    assert server.post("/v1/recommend", {"history": []}).status == 200


@contextmanager
def raised_file_limit() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
