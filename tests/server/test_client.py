"""The client over a real socket: what can be asked of a model here can be asked of one elsewhere."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pathdex
from pathdex.errors import ConfigError, QueryError, ServerError
from pathdex.recommenders.base import Query
from tests.recommender_contract import INTEGER_IDS, TEXT_IDS, QueryContract, ids_of, same_answers
from tests.server.conftest import Running, running

HISTORY = [TEXT_IDS[1], TEXT_IDS[5]]


class TestContractOverHTTP(QueryContract):
    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, deep: Path) -> Iterator[pathdex.Client]:
        with running(deep) as server, pathdex.Client(server.url) as client:
            yield client


class TestContractOfABaselineOverHTTP(QueryContract):
    personal = False

    @pytest.fixture(scope="class")
    @classmethod
    def model(cls, popular: Path) -> Iterator[pathdex.Client]:
        with running(popular) as server, pathdex.Client(server.url) as client:
            yield client


@pytest.fixture(scope="module")
def server(deep: Path) -> Iterator[Running]:
    with running(deep) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[pathdex.Client]:
    with pathdex.Client(server.url) as client:
        yield client


@pytest.fixture(scope="module")
def model(deep: Path) -> pathdex.DeepRetrieval:
    return pathdex.DeepRetrieval.load(deep)


def test_answers_are_exactly_those_of_the_model(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    for options in ({}, {"beam": 3}, {"candidates": 12}, {"deny": TEXT_IDS[:4]}, {"exclude_seen": False}):
        assert client.recommend(HISTORY, 8, **options) == model.recommend(HISTORY, 8, **options)  # type: ignore[arg-type]
    assert client.similar_items(TEXT_IDS[3], 6) == model.similar_items(TEXT_IDS[3], 6)


def test_each_query_of_a_batch_has_its_own_filters(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    queries = [
        Query(HISTORY, exclude_seen=False, deny=TEXT_IDS[:2]),
        Query([], allow=TEXT_IDS[4:9]),
        Query((TEXT_IDS[20],)),
    ]
    assert same_answers(client.recommend_batch(queries, 7), model.recommend_batch(queries, 7))


def test_a_large_batch_is_sent_in_parts(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    histories = [[one] for one in TEXT_IDS] * 8
    assert same_answers(client.recommend_batch(histories, 3), model.recommend_batch(histories, 3))


def test_the_index_can_be_looked_at(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    assert client.explain(HISTORY, TEXT_IDS[3], beam=4) == model.explain(HISTORY, TEXT_IDS[3], beam=4)
    assert client.why_not(HISTORY, TEXT_IDS[30], n=3) == model.why_not(HISTORY, TEXT_IDS[30], n=3)
    assert client.item_paths(TEXT_IDS[3]) == model.item_paths(TEXT_IDS[3])
    path = model.item_paths(TEXT_IDS[3])[0]
    assert client.path_items(path) == model.path_items(path)
    assert client.health() == model.health()


def test_the_model_is_known_by_its_facts(client: pathdex.Client, model: pathdex.DeepRetrieval, server: Running) -> None:
    assert (client.name, client.history_length) == ("deep-retrieval", model.history_length)
    assert server.worker.live.current is not None
    assert client.version == server.worker.live.current.version
    assert (len(client.items), client.items.kind) == (32, "str")
    assert TEXT_IDS[3] in client.items
    assert not {"nothing", "", 2.5} & {one for one in ("nothing", "", 2.5) if one in client.items}
    assert repr(client) == f"Client({server.url!r})"


def test_errors_are_those_of_the_library(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    def message(one: Any, verb: str, *args: Any, **options: Any) -> str:
        with pytest.raises(QueryError) as caught:
            getattr(one, verb)(*args, **options)
        return str(caught.value)

    for verb, args, options in (
        ("recommend", (HISTORY, 5), {"candidates": 2}),
        ("recommend", (HISTORY,), {"where": {"colour": "red"}}),
        ("similar_items", ("nothing",), {}),
        ("explain", (HISTORY, "nothing"), {}),
        ("path_items", ([0, 99],), {}),
        ("recommend", ([["nothing"]],), {}),
    ):
        assert message(client, verb, *args, **options) == message(model, verb, *args, **options)
    assert "is not in the catalogue of 32 items" in message(client, "item_paths", "nothing")
    assert "bean: is not a field of this request; leave it out" in message(client, "recommend", HISTORY, bean=3)
    assert "must be a list of ids" in message(client, "recommend", "item 1")
    assert "cannot be written as JSON" in message(client, "recommend", HISTORY, where={"price": float("nan")})
    assert "is a object, which JSON cannot hold" in message(client, "recommend", HISTORY, where={"price": object()})


def test_a_model_without_paths_says_so(popular: Path) -> None:
    with running(popular) as server, pathdex.Client(server.url) as client:
        for ask in (lambda: client.item_paths(TEXT_IDS[0]), client.health, lambda: client.explain([], TEXT_IDS[0])):
            with pytest.raises(QueryError, match="a popularity model has no paths"):
                ask()
        assert client.recommend([], n=1)


def test_integer_ids_go_in_and_come_out_as_integers(numbered: Path) -> None:
    with running(numbered) as server, pathdex.Client(server.url) as client:
        answer = ids_of(client.recommend(np.array(INTEGER_IDS[:2]), n=40))  # type: ignore[arg-type]
        assert set(answer) == set(INTEGER_IDS[2:])
        assert all(type(one) is int for one in answer)
        assert ids_of(client.recommend([str(INTEGER_IDS[0])], n=40, deny={INTEGER_IDS[1]})) == answer
        assert (client.items.kind, INTEGER_IDS[3] in client.items) == ("int", True)


def test_a_dropped_idle_connection_is_replaced(deep: Path) -> None:
    with running(deep) as server, pathdex.Client(server.url) as client:
        before = client.recommend(HISTORY)
        [kept] = client._transport._idle
        assert kept.sock is not None
        kept.sock.shutdown(socket.SHUT_RDWR)
        assert client.recommend(HISTORY) == before


def test_a_connection_that_breaks_while_it_is_used_is_tried_once_more(deep: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("pathdex.server.transport._dropped", lambda sock: False)
    with running(deep) as server, pathdex.Client(server.url) as client:
        before = client.recommend(HISTORY)
        client._transport._idle[0].sock.shutdown(socket.SHUT_RDWR)
        assert client.recommend(HISTORY) == before
        client._transport._idle[0].sock.shutdown(socket.SHUT_RDWR)
        with pytest.raises(ServerError, match=r"cannot be reached \(.*\); check the address"):
            client.add_events("ada", HISTORY)


def test_threads_share_a_client(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    wanted = {one: model.recommend([one], 5) for one in TEXT_IDS}
    found: dict[Any, Any] = {}

    def ask(ids: list[str]) -> None:
        for one in ids:
            found[one] = client.recommend([one], 5)

    threads = [threading.Thread(target=ask, args=(TEXT_IDS[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == wanted


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        client = pathdex.Client(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(
            ServerError, match=r"http://127.0.0.1:\d+ cannot be reached .*; check the address"
        ) as caught:
            client.recommend([])
    assert caught.value.status is None


def test_a_server_that_does_not_answer_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = pathdex.Client(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.1)
        with pytest.raises(ServerError, match=r"did not answer within 0.1 s; pass a longer timeout"):
            client.recommend([])


def test_a_server_of_another_kind_is_noticed(deep: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def answer() -> None:
            connection, _ = other.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")

        thread = threading.Thread(target=answer)
        thread.start()
        client = pathdex.Client(f"http://127.0.0.1:{other.getsockname()[1]}")
        with pytest.raises(ServerError, match="with status 200 and no reason; is it a Pathdex server"):
            client.model()
        client.close()
        thread.join()


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", ""])
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(ConfigError, match=r"url=.*: must be like http://127.0.0.1:8000"):
        pathdex.Client(url)


def test_a_timeout_must_be_one() -> None:
    with pytest.raises(ConfigError, match=r"timeout=0: must be a number of seconds greater than 0"):
        pathdex.Client("http://localhost", timeout=0)
