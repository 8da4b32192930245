"""The contract of user stores, for SQLite and for a real Redis."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pathdex
from pathdex.errors import ConfigError, StorageError
from pathdex.server.stores import UserStore, open_store, owned_store
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import running


@pytest.fixture(scope="module")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis server for these tests."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed; install it with: apt-get install redis-server")
    place = tmp_path_factory.mktemp("redis") / "socket"
    short = Path(f"/tmp/pathdex-{os.getpid()}.sock") if len(str(place)) > 100 else place
    command = [program, "--port", "0", "--unixsocket", str(short), "--save", "", "--dir", str(place.parent)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not short.exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"unix://{short}"
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of an empty store."""
    if request.param == "sqlite":
        return str(tmp_path / "folder" / "users.sqlite")
    address: str = request.getfixturevalue("redis_server")
    subprocess.run(["redis-cli", "-s", address.removeprefix("unix://"), "flushall"], check=True, capture_output=True)
    return address


def use(place: str, work: Callable[[UserStore], Awaitable[Any]], keep: int = 5) -> Any:
    """Open a store, use it, close it."""

    async def run() -> Any:
        store = open_store(place, keep)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def test_events_are_read_in_order(place: str) -> None:
    async def work(store: UserStore) -> None:
        await store.append([("ada", ["a", 7]), ("bob", ["7"])])
        await store.append([("ada", ["b"]), ("ada", ["c"])])
        assert await store.histories(["bob", "nobody", "ada", "ada"]) == [
            ["7"],
            [],
            ["a", 7, "b", "c"],
            ["a", 7, "b", "c"],
        ]
        assert await store.histories([]) == []

    use(place, work)


def test_only_the_latest_items_are_kept(place: str) -> None:
    async def work(store: UserStore) -> None:
        await store.append([("ada", [1, 2, 3])])
        await store.append([("ada", [4, 5, 6])])
        assert await store.histories(["ada"]) == [[2, 3, 4, 5, 6]]
        await store.append([("ada", list(range(20)))])
        assert await store.histories(["ada"]) == [[15, 16, 17, 18, 19]]
        await store.append([("ada", [])])
        assert await store.histories(["ada"]) == [[15, 16, 17, 18, 19]]

    use(place, work)


def test_events_survive_reopening(place: str) -> None:
    use(place, lambda store: store.append([("ada", ["a", "ä", "", "\0", "日本", -(2**63), 2**63 - 1])]), keep=10)
    found = use(place, lambda store: store.histories(["ada"]), keep=10)
    assert found == [["a", "ä", "", "\0", "日本", -(2**63), 2**63 - 1]]


def test_concurrent_appends_are_all_stored(place: str) -> None:
    async def work(store: UserStore) -> None:
        await asyncio.gather(*(store.append([(f"user {number % 7}", [number])]) for number in range(200)))
        histories = await store.histories([f"user {user}" for user in range(7)])
        assert sorted(item for history in histories for item in history) == list(range(200))

    use(place, work, keep=100)


def test_two_writers_can_share_a_store(place: str) -> None:
    async def run() -> list[list[Any]]:
        stores = [open_store(place, 1000), open_store(place, 1000)]
        appends = [stores[number % 2].append([("ada", [number])]) for number in range(100)]
        await asyncio.gather(*appends)
        found = await stores[0].histories(["ada"])
        for store in stores:
            await store.close()
        return found

    [history] = asyncio.run(run())
    assert sorted(history) == list(range(100))


@pytest.mark.parametrize("place", ["mysql://host/db", "http://host"])
def test_an_unknown_kind_of_store(place: str) -> None:
    with pytest.raises(ConfigError, match=r"user_store=.*: must be a file or a URL that starts with redis://"):
        open_store(place, 5)


def test_recommend_user(popular: Path, place: str) -> None:
    with running(popular, user_store=place) as server, pathdex.Client(server.url) as client:
        assert client.recommend_user("ada", 32) == client.recommend([], 32)
        assert client.add_events("ada", TEXT_IDS[:3]) == 3
        assert client.recommend_user("ada", 32) == client.recommend(TEXT_IDS[:3], 32)
        assert client.recommend_user("ada", 3, deny=TEXT_IDS[3:9]) == client.recommend(
            TEXT_IDS[:3], 3, deny=TEXT_IDS[3:9]
        )
        body = {"events": [{"user": 12, "items": TEXT_IDS[5:6]}, {"user": "bob", "items": []}]}
        assert server.post("/v1/events", body).json["stored"] == 1
        assert client.recommend_user("12", 32) == client.recommend_user(12, 32) == client.recommend(TEXT_IDS[5:6], 32)
        many = {"queries": [{"user": "ada", "n": 2}, {"history": [], "n": 2}, {"user": 12, "n": 2}]}
        results = server.post("/v1/recommend", many).json["results"]
        wanted = [client.recommend(history, 2) for history in (TEXT_IDS[:3], [], TEXT_IDS[5:6])]
        assert [[item["id"] for item in one["items"]] for one in results] == [[id for id, _ in one] for one in wanted]
        assert server.metric("pathdex_user_events_total") == 4


def test_a_user_with_only_unknown_items_is_a_new_user(popular: Path, place: str) -> None:
    with running(popular, user_store=place) as server, pathdex.Client(server.url) as client:
        client.add_events("ada", ["of", "an", 0, "older", "catalogue"])
        answer = server.post("/v1/recommend", {"user": "ada", "n": 2}).json
        assert answer["unknown"] == 5
        assert [item["id"] for item in answer["items"]] == [id for id, _ in client.recommend([], 2)]


def test_a_server_without_a_store(popular: Path) -> None:
    with running(popular) as server:
        answer = server.post("/v1/recommend", {"user": "ada"})
        assert (answer.status, answer.json["error"]["field"]) == (422, "user")
        assert answer.json["error"]["remedy"] == "send a history, or start the server with --user-store"
        answer = server.post("/v1/events", {"user": "ada", "items": []})
        assert (answer.status, answer.message) == (
            422,
            "user='ada': this server has neither a user store nor a stream of events; "
            "start it with --user-store or --events",
        )


def test_a_store_that_fails_is_503(popular: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        with running(popular, user_store=address) as server:
            answer = server.post("/v1/events", {"user": "ada", "items": [1]})
            assert (answer.status, answer.headers["retry-after"]) == (503, "1")
            assert server.post("/v1/recommend", {"history": []}).status == 200
            assert server.metric("pathdex_user_store_errors_total") == 1


def test_a_store_has_one_owner(tmp_path: Path) -> None:
    place = str(tmp_path / "folder" / "users.sqlite")
    with owned_store(place):
        message = (
            rf"the user store {place} is in use by pathdex serve \(process {os.getpid()} on .*\); "
            "stop that server, or choose another --user-store"
        )
        with pytest.raises(StorageError, match=message), owned_store(place):
            pass
    with owned_store(place), owned_store(None), owned_store("redis://x"), owned_store("redis://x"):
        pass


def test_the_lock_of_a_killed_server_is_stale(tmp_path: Path) -> None:
    place = str(tmp_path / "users.sqlite")
    script = f"""
import time
from pathdex.server.stores import owned_store
with owned_store({place!r}):
    print("owned", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "owned\n"
        with pytest.raises(StorageError, match=f"process {other.pid} on"), owned_store(place):
            pass
        other.kill()
        other.wait()
    with owned_store(place):
        pass


def test_no_response_names_a_file(popular: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "secret"
    with running(popular, user_store=str(folder / "users.sqlite"), events=str(folder / "events.jsonl")) as server:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        folder.write_text("no folder")
        for body in ({"user": "ada", "items": [1]}, {"user": "ada"}):
            answer = server.post("/v1/events" if "items" in body else "/v1/recommend", body)
            assert answer.status == 503
            assert b"secret" not in answer.body
            assert answer.message.endswith("is unavailable; try again later")
    assert str(folder) in caplog.text


def test_a_forgotten_user_is_a_new_user(popular: Path, place: str) -> None:
    with running(popular, user_store=place) as server, pathdex.Client(server.url) as client:
        client.add_events("a/b c", TEXT_IDS[:3])
        client.add_events("other", TEXT_IDS[3:5])
        assert client.user_history("a/b c") == TEXT_IDS[:3]
        assert server.get("/v1/users/other").json["items"] == TEXT_IDS[3:5]
        client.forget_user("a/b c")
        assert client.user_history("a/b c") == []
        assert client.user_history("other") == TEXT_IDS[3:5]
        assert client.recommend_user("a/b c", 3) == client.recommend([], 3)
        assert server.request("DELETE", "/v1/users/nobody").status == 200
    with running(popular, user_store=place) as server, pathdex.Client(server.url) as client:
        assert client.user_history("a/b c") == []


def test_users_of_a_server_without_a_store(popular: Path) -> None:
    with running(popular) as server:
        for method in ("GET", "DELETE"):
            answer = server.request(method, "/v1/users/ada")
            assert answer.status == 422
            assert "this server has no user store" in answer.message
        root = server.get("/")
        assert (root.status, root.headers["location"]) == (307, "/docs")
