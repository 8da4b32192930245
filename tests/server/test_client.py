"""The client over a real socket: it has the interface and the results of the model."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pathdex
from pathdex.errors import QueryError
from pathdex.recommenders.query import Query
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


def test_results_equal_the_model(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    for options in ({}, {"beam": 3}, {"candidates": 12}, {"deny": TEXT_IDS[:4]}, {"exclude_seen": False}):
        assert client.recommend(HISTORY, 8, **options) == model.recommend(HISTORY, 8, **options)  # type: ignore[arg-type]
    assert client.similar_items(TEXT_IDS[3], 6) == model.similar_items(TEXT_IDS[3], 6)


def test_queries_of_a_batch_have_separate_filters(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    queries = [
        Query(HISTORY, exclude_seen=False, deny=TEXT_IDS[:2]),
        Query([], allow=TEXT_IDS[4:9]),
        Query((TEXT_IDS[20],)),
    ]
    assert same_answers(client.recommend_batch(queries, 7), model.recommend_batch(queries, 7))


def test_a_large_batch_is_split(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    histories = [[one] for one in TEXT_IDS] * 8
    assert same_answers(client.recommend_batch(histories, 3), model.recommend_batch(histories, 3))


def test_index_methods_equal_the_model(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    assert client.explain(HISTORY, TEXT_IDS[3], beam=4) == model.explain(HISTORY, TEXT_IDS[3], beam=4)
    assert client.why_not(HISTORY, TEXT_IDS[30], n=3) == model.why_not(HISTORY, TEXT_IDS[30], n=3)
    assert client.item_paths(TEXT_IDS[3]) == model.item_paths(TEXT_IDS[3])
    path = model.item_paths(TEXT_IDS[3])[0]
    assert client.path_items(path) == model.path_items(path)
    assert client.health() == model.health()


def test_model_properties(client: pathdex.Client, model: pathdex.DeepRetrieval, server: Running) -> None:
    assert (client.name, client.history_length) == ("deep-retrieval", model.history_length)
    assert server.worker.models.current is not None
    assert client.version == server.worker.models.current.version
    assert (len(client.items), client.items.kind) == (32, "str")
    assert TEXT_IDS[3] in client.items
    assert not {"nothing", "", 2.5} & {one for one in ("nothing", "", 2.5) if one in client.items}
    assert repr(client) == f"Client({server.url!r})"


def test_errors_equal_the_model(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
    def caught(one: Any, verb: str, *args: Any, **options: Any) -> QueryError:
        with pytest.raises(QueryError) as caught:
            getattr(one, verb)(*args, **options)
        return caught.value

    for verb, args, options in (
        ("recommend", (HISTORY, 5), {"candidates": 2}),
        ("recommend", (HISTORY,), {"where": {"colour": "red"}}),
        ("similar_items", ("nothing",), {}),
        ("explain", (HISTORY, "nothing"), {}),
        ("path_items", ([0, 99],), {}),
        ("recommend", ([["nothing"]],), {}),
    ):
        remote, local = caught(client, verb, *args, **options), caught(model, verb, *args, **options)
        assert str(remote) == str(local)
        assert (remote.argument, remote.rule, remote.remedy) == (local.argument, local.rule, local.remedy)


def test_errors_have_fields(client: pathdex.Client) -> None:
    with pytest.raises(QueryError) as caught:
        client.recommend(HISTORY, n=5000)
    error = caught.value
    assert (error.argument, error.value, error.rule) == ("queries[0].n", 5000, "must be at most 1000")
    assert error.remedy == "request less, or raise the server's limit"
    with pytest.raises(QueryError, match=r"^id='nothing': is not in the catalogue of 32 items; request a known id$"):
        client.item_paths("nothing")
    with pytest.raises(QueryError, match=r"^bean=3: the server has no such option; did you mean 'beam'\?$"):
        client.recommend(HISTORY, bean=3)
    with pytest.raises(QueryError, match="must be a list of ids"):
        client.recommend("item 1")


def test_a_model_without_an_index(popular: Path) -> None:
    with running(popular) as server, pathdex.Client(server.url) as client:
        for call in (lambda: client.item_paths(TEXT_IDS[0]), client.health, lambda: client.path_items([0, 0])):
            with pytest.raises(QueryError, match="a popularity model has no paths"):
                call()
        with pytest.raises(QueryError, match="a popularity model cannot explain its answers"):
            client.explain([], TEXT_IDS[0])
        assert client.recommend([], n=1)


def test_integer_ids_stay_integers(numbered: Path) -> None:
    with running(numbered) as server, pathdex.Client(server.url) as client:
        answer = ids_of(client.recommend(np.array(INTEGER_IDS[:2]), n=40))  # type: ignore[arg-type]
        assert set(answer) == set(INTEGER_IDS[2:])
        assert all(type(one) is int for one in answer)
        assert ids_of(client.recommend([str(INTEGER_IDS[0])], n=40, deny={INTEGER_IDS[1]})) == answer
        assert (client.items.kind, INTEGER_IDS[3] in client.items) == ("int", True)


def test_threads_can_share_a_client(client: pathdex.Client, model: pathdex.DeepRetrieval) -> None:
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


@pytest.mark.parametrize("package", ["urllib3", "msgspec"])
def test_a_missing_package_names_the_extra(package: str) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; import pathdex; pathdex.Client"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    message = f"the HTTP client (pathdex.Client) needs {package}; install it with: pip install 'pathdex[client]'"
    assert f"MissingExtraError: {message}" in done.stderr
