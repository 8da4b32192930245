"""Events and item changes through the server into a stream: file, Redis, NATS."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.data.event_sinks.file_sink import FileSink
from pathdex.data.events import Event
from pathdex.data.item_changes import AddItem, RemoveItem
from pathdex.errors import ConfigError, QueryError, ServerError, StorageError
from tests.data.event_sinks.conftest import nats_broker, read_back, redis_broker
from tests.data.event_sources.conftest import Broker, free_port
from tests.data.event_sources.test_nats_source import new_stream
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import Running, running

__all__ = ["nats_broker", "redis_broker"]


@pytest.fixture(params=["file", "redis", "nats"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "events.jsonl")
    broker: Broker = request.getfixturevalue(f"{request.param}_broker")
    return new_stream(broker) if request.param == "nats" else f"{broker.address}?stream={tmp_path.name}"


def test_a_request_is_in_the_stream_when_it_is_answered(popular: Path, place: str) -> None:
    before = time.time()
    with running(popular, events=place) as server, pathdex.Client(server.url) as client:
        assert client.add_events("ada", TEXT_IDS[:2], time=1000.5) == 2
        assert client.add_events(7, [1]) == 1
        body = {"events": [{"user": "ada", "items": ["x"], "time": 5}, {"user": "bob", "items": []}]}
        assert server.post("/v1/events", body).json["stored"] == 1
        assert client.add_items(["new", 8], like={"new": TEXT_IDS[:1]}, attributes={8: {"genre": ["a", "b"]}}) == 2
        assert client.remove_items(["new"]) == 1
        answer = server.request("DELETE", "/v1/items/8")
        assert (answer.status, answer.json["accepted"]) == (202, 1)
        assert server.metric("pathdex_sink_events_total") == 4
        assert server.metric("pathdex_sink_item_changes_total") == 4
        assert server.metric("pathdex_user_events_total") == 0
    found: list[Any] = read_back(place, 8)
    first, second, third, *rest = found
    assert [first, second] == [Event("ada", TEXT_IDS[0], 1000.5), Event("ada", TEXT_IDS[1], 1000.5)]
    assert (third.user, third.item) == (7, 1)
    assert before <= third.time <= time.time()
    assert rest == [
        Event("ada", "x", 5.0),
        AddItem("new", (TEXT_IDS[0],)),
        AddItem(8, (), {"genre": ["a", "b"]}),
        RemoveItem("new"),
        RemoveItem("8"),
    ]


def test_the_user_store_gets_the_events_as_well(popular: Path, tmp_path: Path) -> None:
    stream, store = tmp_path / "events.jsonl", tmp_path / "users.sqlite"
    with running(popular, events=str(stream), user_store=str(store)) as server:
        server.post("/v1/events", {"user": "ada", "items": TEXT_IDS[:3]})
        with pathdex.Client(server.url) as client:
            assert client.recommend_user("ada", 32) == client.recommend(TEXT_IDS[:3], 32)
        assert server.metric("pathdex_user_events_total") == 3
    assert len(stream.read_text().splitlines()) == 3


def test_a_server_without_a_stream(popular: Path, tmp_path: Path) -> None:
    with running(popular, user_store=str(tmp_path / "users.sqlite")) as server, pathdex.Client(server.url) as client:
        for method, path, body in (
            ("POST", "/v1/items", {"id": 1}),
            ("DELETE", "/v1/items", {"ids": [1]}),
            ("DELETE", "/v1/items/1", None),
        ):
            answer = server.request(method, path, body)
            assert (answer.status, answer.message) == (
                409,
                "this server has no stream of events; start it with --events",
            )
        with pytest.raises(ServerError, match="start it with --events") as caught:
            client.add_items([1])
        assert caught.value.status == 409


def test_a_token_guards_the_stream(popular: Path, tmp_path: Path) -> None:
    with running(popular, events=str(tmp_path / "events.jsonl"), token="secret") as server:
        for method, path, body in (("POST", "/v1/items", {"id": 1}), ("DELETE", "/v1/items/1", None)):
            assert server.request(method, path, body).status == 401
            assert server.request(method, path, body, {"authorization": "Bearer secret"}).status == 202
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/v1/events", {"user": "", "items": ["a"]}, "user='': is empty"),
        ("/v1/events", {"user": "a", "items": [""]}, "items='': is empty"),
        ("/v1/events", {"events": [{"user": "a", "items": []}, {"user": "", "items": [1]}]}, "events[1].user='': is"),
        (
            "/v1/events",
            {"user": "a", "items": [], "time": 1e12},
            "time=1000000000000.0: must be seconds since 1970, before",
        ),
        ("/v1/events", {"user": "a", "items": [], "time": "now"}, "time='now': must be seconds since 1970, before"),
        ("/v1/items", {"id": ""}, "id='': add_item is empty"),
        ("/v1/items", {"like": [1]}, "id=None: is required; send the id of an item, or a list of items as new_items"),
        ("/v1/items", {"id": 1, "like": [1] * 101}, "like=[1, 1, "),
        ("/v1/items", {"id": 1, "attributes": {"a": {"b": 1}}}, "attributes={'a': {'b': 1}}: must map columns to text"),
        ("/v1/items", {"new_items": [{"id": 1}] * 257}, "new_items='257 new_items': must have at most 256; split them"),
        ("/v1/items", {"id": 1, "new_items": []}, "new_items='0 new_items': must be the only field; put id, like and"),
        ("/v1/items", {"new_items": [{"id": 1, "colour": 2}]}, "new_items[0].colour=2: is not a field of this request"),
    ],
)
def test_wrong_requests_leave_nothing(sink: Running, path: str, body: Any, message: str) -> None:
    answer = sink.post(path, body)
    assert answer.status == 422
    assert answer.message.startswith(message)
    assert sink.metric("pathdex_sink_events_total") == sink.metric("pathdex_sink_item_changes_total") == 0


@pytest.fixture(scope="module")
def sink(popular: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(popular, events=str(tmp_path_factory.mktemp("sink") / "events.jsonl")) as server:
        yield server


def test_concurrent_requests_are_all_in_the_file(popular: Path, tmp_path: Path) -> None:
    """Two workers append to one file."""
    stream = tmp_path / "events.jsonl"
    with running(popular, events=str(stream)) as one, running(popular, events=str(stream)) as two:

        def send(number: int) -> int:
            return (one, two)[number % 2].post("/v1/events", {"user": number, "items": [number, -number]}).status

        with ThreadPoolExecutor(16) as threads:
            assert set(threads.map(send, range(100))) == {200}
    lines = [json.loads(line) for line in stream.read_text().splitlines()]
    assert sorted(line["item"] for line in lines[::2]) == list(range(100))
    assert all(first["item"] == -second["item"] for first, second in zip(lines[::2], lines[1::2], strict=True))


def test_a_broker_that_is_gone_is_503_and_comes_back(popular: Path, redis_broker: Broker) -> None:
    place = f"{redis_broker.address}?stream=outage"
    with running(popular, events=place) as server:
        assert server.post("/v1/events", {"user": 1, "items": [1]}).status == 200
        redis_broker.kill()
        answer = server.post("/v1/events", {"user": 1, "items": [2]})
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.message == "the stream is unavailable; try again later"
        assert server.post("/v1/recommend", {"history": []}).status == 200
        assert server.metric("pathdex_sink_errors_total") == 1
        redis_broker.start()
        assert server.post("/v1/events", {"user": 1, "items": [3]}).status == 200
    assert [event.item for event in read_back(place, 2)] == [1, 3]  # type: ignore[union-attr]


def test_a_slow_sink_is_503(popular: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, append = threading.Event(), FileSink.append

    def slow(self: FileSink, records: Any) -> None:
        assert not records or go.wait(20)
        append(self, records)

    monkeypatch.setattr(FileSink, "append", slow)
    with running(popular, {"timeout": 0.2}, events=str(tmp_path / "events.jsonl")) as server:
        answer = server.post("/v1/events", {"user": 1, "items": [2]})
        assert answer.status == 503
        assert answer.message.startswith(
            "the stream did not confirm within 0.2 s; the records may be stored; send them"
        )
        assert server.metric("pathdex_sink_errors_total") == 1
        go.set()


def test_a_failed_append_is_503(popular: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(popular, events=str(tmp_path / "events.jsonl")) as server:

        def fail(self: FileSink, records: Any) -> None:
            raise StorageError("the disk is full")

        monkeypatch.setattr(FileSink, "append", fail)
        answer = server.post("/v1/items", {"id": 1})
        assert (answer.status, answer.message) == (503, "the disk of the stream is full; try again later")


def test_removed_items_are_hidden_at_once(deep: Path, tmp_path: Path) -> None:
    with running(deep, events=str(tmp_path / "events.jsonl")) as server, pathdex.Client(server.url) as client:
        best = [one.id for one in client.recommend(TEXT_IDS[:2], 5)]
        near = [one.id for one in client.similar_items(TEXT_IDS[0], 3)]
        client.remove_items([best[0], near[0]])
        gone = {best[0], near[0]}
        assert [one.id for one in client.recommend(TEXT_IDS[:2], 3)] == [one for one in best if one not in gone][:3]
        assert best[0] not in [one.id for one in client.recommend(TEXT_IDS[:2], 32, deny=best[1:2])]
        similar = [one.id for one in client.similar_items(TEXT_IDS[0], 3)]
        assert len(similar) == 3
        assert not gone & set(similar)
        client.add_items([best[0]])
        assert client.recommend(TEXT_IDS[:2], 5)[0].id == best[0]


def test_a_place_that_is_no_sink(popular: Path, tmp_path: Path) -> None:
    for place, error, why in (
        ("ftp://host", ConfigError, "the scheme ftp:// is unknown"),
        (str(tmp_path / "no" / "events.jsonl"), StorageError, "No such file or directory"),
    ):
        with pytest.raises(error, match=why), running(popular, events=place):
            pass


def test_a_broker_may_be_down_when_the_server_starts(popular: Path) -> None:
    with running(popular, events=f"redis://127.0.0.1:{free_port()}?stream=events") as server:
        assert server.post("/v1/events", {"user": 1, "items": [2]}).status == 503


def test_the_client_checks_ids(sink: Running) -> None:
    with pathdex.Client(sink.url) as client:
        assert client.add_items([]) == client.remove_items([]) == 0
        with pytest.raises(QueryError):
            client.remove_items("abc")
        with pytest.raises(QueryError, match="which JSON cannot hold"):
            client.add_items([1], attributes={1: {"a": object()}})
