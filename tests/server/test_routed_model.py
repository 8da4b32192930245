"""A router accepts the shards of one model only, and changes to another model when all shards have it."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.errors import ServerError
from pathdex.recommenders.sharding import write_shards
from pathdex.server import routed_model
from pathdex.server.kept_shards import KeptShards
from pathdex.server.limits import RouterLimits
from pathdex.server.model_loader import ModelLoader, ServedModel
from pathdex.server.model_manager import ModelManager
from pathdex.server.options import ServerOptions
from pathdex.server.serving import address_of, listen
from pathdex.server.worker import Worker
from tests.random_model import random_model
from tests.server.conftest import Running, running

PATIENT = RouterLimits(shard_timeout=60.0, hedge_after=0.0)


@contextmanager
def serving(folders: list[Path], **options: Any) -> Iterator[list[Running]]:
    """A server for each folder."""
    with ExitStack() as stack:
        yield [stack.enter_context(running(folder, **options)) for folder in folders]


def failure(*urls: str) -> str:
    """The message of a router that does not start."""
    worker = Worker(ServerOptions(shards=urls, port=0, router=PATIENT))
    with listen("127.0.0.1", 0) as listening, pytest.raises(ServerError) as caught:
        worker.serve_on(listening)
    return str(caught.value)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    root = tmp_path_factory.mktemp("shards")
    for seed in (0, 1):
        random_model(60, seed=seed, neighbours=3).save(root / f"model-{seed}")
    return {
        "two": write_shards(root / "model-0", 2, root / "two").folders,
        "other": write_shards(root / "model-1", 2, root / "other").folders,
        "three": write_shards(root / "model-0", 3, root / "three").folders,
        "whole": [root / "model-0"],
    }


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


@contextmanager
def starting(urls: tuple[str, ...]) -> Iterator[tuple[Running, threading.Event, list[Exception]]]:
    """A router that may not be ready yet, an event that says when it is, and why it failed."""
    ready, failures = threading.Event(), list[Exception]()
    worker = Worker(ServerOptions(shards=urls, port=0, router=PATIENT), on_ready=lambda _: ready.set())
    listening = listen("127.0.0.1", 0)

    def serve() -> None:
        try:
            worker.serve_on(listening)
        except ServerError as error:
            failures.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Running(address_of(listening), worker, thread), ready, failures
    finally:
        worker.drain(now=True)
        thread.join(30)
        assert not thread.is_alive()


@contextmanager
def loading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, threading.Event]]:
    """The URL of a server that loads its model until the event is set."""
    go, load = threading.Event(), ModelLoader.load

    def slow(self: ModelLoader) -> ServedModel:
        if self.model == folder:
            assert go.wait(60)
        return load(self)

    monkeypatch.setattr(ModelLoader, "load", slow)
    worker = Worker(ServerOptions(model=folder, port=0, watch=0.0))
    listening = listen("127.0.0.1", 0)
    thread = threading.Thread(target=worker.serve_on, args=(listening,))
    thread.start()
    try:
        yield address_of(listening), go
    finally:
        go.set()
        worker.drain(now=True)
        thread.join(30)
        assert not thread.is_alive()


def test_a_router_waits_for_shards_that_load(
    folders: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Longer than it would wait for a URL at which nothing answers; it is not ready meanwhile."""
    monkeypatch.setattr(routed_model, "REACH_SECONDS", 1e-9)
    caplog.set_level("INFO", "pathdex.server")
    first, second = folders["two"]
    with running(first) as server, loading(second, monkeypatch) as (url, go):
        wait_for(lambda: answers(url))
        with starting((server.url, url)) as (router, ready, failures):
            wait_for(lambda: "waiting for 1 of 2 shards" in caplog.text)
            answer = router.get("/health/ready")
            assert (answer.status, answer.json["status"]) == (503, "loading")
            assert "the model is still loading" in caplog.text
            assert not failures
            go.set()
            assert ready.wait(60)
            assert router.post("/v1/recommend", {"history": [100, 101]}).status == 200


def test_a_router_does_not_wait_for_ever_for_shards_that_load(
    folders: dict[str, list[Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routed_model, "LOADING_SECONDS", 0.5)
    with loading(folders["two"][1], monkeypatch) as (url, _):
        wait_for(lambda: answers(url))
        assert "1 of 1 shards cannot be reached" in failure(url)


def test_a_router_waits_a_little_for_urls_that_cannot_be_reached(folders: dict[str, list[Path]]) -> None:
    listening = listen("127.0.0.1", 0)
    url = address_of(listening)
    listening.close()
    port = int(url.rsplit(":", 1)[1])
    with (
        running(folders["two"][0]) as server,
        starting((server.url, url)) as (_, ready, failures),
        running(folders["two"][1], listening=listen("127.0.0.1", port)),
    ):
        wait_for(lambda: ready.is_set() or failures)
        assert not failures


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health/live", timeout=20) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


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


def wait_for(rule: Any) -> None:
    deadline = time.monotonic() + 60
    while not rule():
        assert time.monotonic() < deadline
        time.sleep(0.01)


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
