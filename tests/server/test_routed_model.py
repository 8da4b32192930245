"""A router accepts the shards of one model only, and changes to another model when all shards have it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.recommenders.sharding import write_shards
from pathdex.server import routed_model
from pathdex.server.kept_shards import KeptShards
from pathdex.server.model_manager import ModelManager
from tests.random_model import random_model
from tests.server.conftest import Running, running
from tests.server.shard_servers import PATIENT, failure, folders, serving, wait_for

__all__ = ["folders"]


def test_shards_that_do_not_belong_together_are_refused(
    folders: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routed_model, "REACH_SECONDS", 0.5)
    chosen = [*folders["two"], folders["other"][1], folders["three"][2], *folders["whole"]]
    with serving(chosen) as servers:
        first, _, foreign, third, whole = (server.url for server in servers)
        assert failure(first) == f"shard 2 of 2 is missing among {first}; add the URL to --shards"
        assert "shards 1, 2 of 3 are missing" in failure(third)
        assert "the shards are of different models" in failure(first, foreign)
        assert "split differently" in failure(first, third)
        assert "the model is not a shard" in failure(first, whole)
        assert "serve a folder that pathdex shard wrote" in failure(first, whole)
        message = failure(first, "http://127.0.0.1:1")
        assert message.startswith("1 of 2 shards cannot be reached: http://127.0.0.1:1")
        assert "check the URL and that the shard is running" in message


def test_replicas_of_a_shard_take_turns(folders: dict[str, list[Path]]) -> None:
    with serving([*folders["two"], folders["two"][0]]) as servers:
        urls = tuple(server.url for server in servers)
        with running(Path(), shards=urls, router=PATIENT) as router:
            for _ in range(6):
                assert router.post("/v1/recommend", {"history": [100]}).status == 200
            requests = [server.metric_of("/v1/shard/find") for server in servers]
    assert requests == [3, 6, 3]


def test_a_rolling_change_never_mixes_two_models(
    folders: dict[str, list[Path]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each shard changes on its own; every answer is that of the old model or of the new one."""
    monkeypatch.setattr(ModelManager, "_load_tried", lambda self: self.loader.load())
    query = {"history": [100, 117], "n": 25}
    expected = {}
    for name in ("two", "other"):
        seed = 0 if name == "two" else 1
        model = random_model(60, seed=seed, neighbours=3)
        expected[name] = [[one.id, one.score] for one in model.recommend([100, 117], 25)]
    links = [tmp_path / "one", tmp_path / "two"]
    for link, folder in zip(links, folders["two"], strict=True):
        link.symlink_to(folder)
    with serving(links, watch=0.02) as servers:
        urls = tuple(server.url for server in servers)
        with running(Path(), shards=urls, router=PATIENT, watch=0.05) as router:
            seen, stop = [], threading.Event()

            def load() -> None:
                while not stop.is_set():
                    answer = router.post("/v1/recommend", query)
                    assert answer.headers["x-pathdex-model"] == answer.json["model"]
                    seen.append((answer.status, [[one["id"], one["score"]] for one in answer.json["items"]]))

            thread = threading.Thread(target=load)
            thread.start()
            try:
                for link, folder in zip(links, folders["other"], strict=True):
                    before = len(seen)
                    wait_for(lambda before=before: len(seen) > before + 5)  # type: ignore[misc]
                    (tmp_path / "new").symlink_to(folder)
                    (tmp_path / "new").rename(link)
                wait_for(lambda: router.metric("pathdex_model_reloads_total") == 1)
                before = len(seen)
                wait_for(lambda: len(seen) > before + 5)
            finally:
                stop.set()
                thread.join(60)
            assert {status for status, _ in seen} == {200}
            assert seen[0][1] == expected["two"]
            assert seen[-1][1] == expected["other"]
            assert all(items in expected.values() for _, items in seen)


QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("/v1/recommend", {"history": [100, 117], "n": 25}),
    ("/v1/recommend", {"history": [101], "n": 7, "deny": [103, 106]}),
    ("/v1/similar", {"item": 104, "n": 9}),
    ("/v1/why-not", {"history": [100, 117], "item": 122}),
]


def replace_link(link: Path, folder: Path) -> None:
    new = link.with_name("new")
    new.symlink_to(folder)
    new.rename(link)


def is_shard(server: Running, index: int, count: int) -> bool:
    status = server.get("/v1/shard").json
    return (status["index"], status["count"]) == (index, count)


@pytest.fixture
def quick_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards load new folders without trying them in another process."""
    monkeypatch.setattr(ModelManager, "_load_tried", lambda self: self.loader.load())


@pytest.fixture
def no_kept(quick_swaps: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards lose what they replace, as those that are restarted do."""
    monkeypatch.setattr(KeptShards, "keep", lambda *_: None)


@contextmanager
def under_load(router: Running) -> Iterator[list[tuple[int, int, Any]]]:
    """The number of the query, status and body of each answer while queries are sent."""
    seen: list[tuple[int, int, Any]] = []
    stop = threading.Event()

    def load() -> None:
        while not stop.is_set():
            for number, (path, body) in enumerate(QUERIES):
                answer = router.post(path, body)
                seen.append((number, answer.status, answer.json))

    thread = threading.Thread(target=load)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join(60)


def expected_answers(folder: Path) -> list[Any]:
    with running(folder) as whole:
        return [whole.post(path, body).json for path, body in QUERIES]


def check_exact(seen: list[tuple[int, int, Any]], expected: list[Any]) -> None:
    """Every answer is that of the unsharded model, or says that a shard does not answer."""
    for number, status, body in seen:
        if status == 503:
            assert "does not answer" in body["error"]["message"]
        else:
            assert (status, body) == (200, expected[number])


@pytest.mark.usefixtures("quick_swaps")
def test_a_router_keeps_the_split_that_it_started_with(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    """The same version in three shards instead of two: the servers keep the old split for this router."""
    [whole] = folders["whole"]
    expected, out = expected_answers(whole), tmp_path / "out"
    made = write_shards(whole, 2, out)
    with serving(made.folders, watch=0.02) as servers:
        urls = tuple(server.url for server in servers)
        with running(Path(), shards=urls, router=PATIENT, watch=0.05) as router, under_load(router) as seen:
            wait_for(lambda: len(seen) > 10)
            write_shards(whole, 3, out, overwrite=True)
            wait_for(lambda: all(is_shard(server, index, 3) for index, server in enumerate(servers)))
            before = len(seen)
            wait_for(lambda: len(seen) > before + 20)
            assert router.get("/health/ready").status == 200
    check_exact(seen, expected)
    assert {status for _, status, _ in seen[before:]} == {200}


@pytest.mark.usefixtures("no_kept")
def test_another_split_is_a_shard_that_is_down(
    folders: dict[str, list[Path]], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [whole] = folders["whole"]
    expected, out = expected_answers(whole), tmp_path / "out"
    made = write_shards(whole, 2, out)
    with serving(made.folders, watch=0.02) as servers:
        urls = tuple(server.url for server in servers)
        with running(Path(), shards=urls, router=PATIENT, watch=0.05) as router, under_load(router) as seen:
            wait_for(lambda: len(seen) > 10)
            write_shards(whole, 3, out, overwrite=True)
            wait_for(lambda: router.get("/health/ready").json.get("missing_shards") == [1, 2])
            ready = router.get("/health/ready")
            assert (ready.status, ready.json["status"]) == (503, "shards missing")
            answer = router.post("/v1/recommend", {"history": [100]})
            assert answer.status == 503
            assert f"this is shard 1 of 3 of model {made.version}, not shard 1 of 2" in answer.message
            assert "this is shard 1 of 3" in caplog.text
            write_shards(whole, 2, out, overwrite=True)
            wait_for(lambda: router.get("/health/ready").status == 200)
            assert router.post(*QUERIES[0]).json == expected[0]
    check_exact(seen, expected)
    assert {status for _, status, _ in seen} == {200, 503}


@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.usefixtures("no_kept")
def test_a_shard_in_the_place_of_another_is_down(
    folders: dict[str, list[Path]], tmp_path: Path, *, partial: bool
) -> None:
    links = [tmp_path / "one", tmp_path / "two"]
    for link, folder in zip(links, folders["two"], strict=True):
        link.symlink_to(folder)
    with serving(links, watch=0.02) as servers:
        urls = tuple(server.url for server in servers)
        with running(Path(), shards=urls, router=PATIENT, watch=0.05, partial=partial) as router:
            before = [router.post(*query).json for query in QUERIES]
            replace_link(links[1], folders["two"][0])
            wait_for(lambda: "missing_shards" in router.get("/health/ready").json)
            ready = router.get("/health/ready")
            assert (ready.status, ready.json["missing_shards"]) == (200 if partial else 503, [2])
            for history in ([100], [101], [100, 101]):
                answer = router.post("/v1/recommend", {"history": history, "n": 30})
                if partial:
                    assert (answer.status, answer.json["missing_shards"]) == (200, [2])
                    assert {one["id"] % 2 for one in answer.json["items"]} == {0}
                else:
                    assert answer.status == 503
                    assert "shard 2 of 2 does not answer" in answer.message
            replace_link(links[1], folders["two"][1])
            wait_for(lambda: "missing_shards" not in router.get("/health/ready").json)
            assert [router.post(*query).json for query in QUERIES] == before


@pytest.mark.usefixtures("no_kept")
def test_a_replica_with_another_split_is_left_out(folders: dict[str, list[Path]], tmp_path: Path) -> None:
    [whole] = folders["whole"]
    expected, link = expected_answers(whole), tmp_path / "replica"
    link.symlink_to(folders["two"][0])
    with serving([*folders["two"], link], watch=0.02) as servers:
        urls = tuple(server.url for server in servers)
        with running(Path(), shards=urls, router=PATIENT, watch=0.05) as router, under_load(router) as seen:
            wait_for(lambda: len(seen) > 10)
            replace_link(link, folders["three"][0])
            wait_for(lambda: is_shard(servers[2], 0, 3))
            before = len(seen)
            wait_for(lambda: len(seen) > before + 20)
            assert router.get("/health/ready").status == 200
            asked = servers[2].metric_of("/v1/shard/find")
            replace_link(link, folders["two"][0])
            wait_for(lambda: servers[2].metric_of("/v1/shard/find") > asked)
    check_exact(seen, expected)
    assert {status for _, status, _ in seen} == {200}


def test_a_client_cannot_tell_a_router_from_a_server(folders: dict[str, list[Path]]) -> None:
    model = pathdex.load(folders["whole"][0])
    with serving(folders["two"], token="secret") as servers:
        urls = tuple(server.url for server in servers)
        with (
            running(Path(), shards=urls, router=PATIENT, token="secret") as router,
            pathdex.Client(router.url, token="secret") as client,
        ):
            assert client.recommend([100, 105], 7, deny=[110]) == model.recommend([100, 105], 7, deny=[110])
            assert client.similar_items(103, 5) == model.similar_items(103, 5)
            assert client.item_paths(104) == model.item_paths(104)  # type: ignore[attr-defined]
            assert client.path_items(client.item_paths(104)[0]) == model.path_items(client.item_paths(104)[0])  # type: ignore[attr-defined]
            assert client.explain([100], 105) == model.explain([100], 105)  # type: ignore[attr-defined]
            assert client.why_not([100], 105) == model.why_not([100], 105)  # type: ignore[attr-defined]
            assert client.health() == model.health()  # type: ignore[attr-defined]
            assert len(client.items) == 60
