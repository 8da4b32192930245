"""A valid new model replaces the current one under load; an invalid one does not."""

from __future__ import annotations

import gc
import shutil
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pathdex
from pathdex.data import Interactions, Ragged, Vocabulary
from pathdex.recommenders.popularity import Popularity
from pathdex.server.routes import recommend
from pathdex.server.schemas import RecommendRequest
from tests.bundle_edits import change_manifest, sign_files
from tests.recommender_contract import TEXT_IDS
from tests.server.conftest import SLOW, Gate, Running, running


def favourite(place: int) -> Popularity:
    """A model that ranks one item first."""
    rows = [[place] * 5, list(range(len(TEXT_IDS)))]
    return Popularity().fit(Interactions(Ragged.from_rows(rows), Vocabulary(np.arange(2)), Vocabulary(TEXT_IDS)))


def wait_for(rule: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not rule():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def first_item(server: Running) -> Any:
    return server.post("/v1/recommend", {"history": [], "n": 1}).json["items"][0]["id"]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return favourite(0).save(tmp_path / "run" / "bundle")


@pytest.fixture
def server(bundle: Path) -> Iterator[Running]:
    # A new model is tried in another process, which takes seconds on a busy machine.
    with running(bundle.parent, {"timeout": 60.0}, watch=0.02) as server:
        yield server


class Load:
    """Sends queries from several threads and keeps every response."""

    def __init__(self, url: str) -> None:
        self.answers: list[tuple[str, Any]] = []
        self._url, self._done = url, threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(3)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        with pathdex.Client(self._url) as client:
            while not self._done.is_set():
                response = client._pool.call(recommend, RecommendRequest(history=[], n=1))
                assert response.items is not None
                self.answers.append((response.model, response.items[0].id))


def test_no_request_fails_while_versions_change(server: Running, bundle: Path) -> None:
    versions = {server.get("/v1/model").json["model"]: TEXT_IDS[0]}
    with Load(server.url) as load:
        for place in (3, 9, 27):
            favourite(place).save(bundle, overwrite=True)
            wait_for(lambda place=place: first_item(server) == TEXT_IDS[place])  # type: ignore[misc]
            versions[server.get("/v1/model").json["model"]] = TEXT_IDS[place]
        seen = len(load.answers)
        wait_for(lambda: len(load.answers) > seen + 3)
    assert len(versions) == 4
    assert {*load.answers} <= versions.items()
    assert {version for version, _ in load.answers} == {*versions}
    assert server.metric("pathdex_model_reloads_total") == 3
    assert server.metric("pathdex_model_reload_failures_total") == 0


def _flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda bundle: _flip(bundle / "counts.npy"),
        lambda bundle: (bundle / "counts.npy").unlink(),
        lambda bundle: (bundle / "manifest.json").write_text("{"),
        lambda bundle: (bundle / "manifest.json").write_text('{"format": "other"}'),
        lambda bundle: (np.save(bundle / "counts.npy", np.full(32, -1)), sign_files(bundle)),
        lambda bundle: change_manifest(bundle, sign=False, settings={"depth": 3}),
    ],
    ids=["checksum", "missing file", "manifest", "format", "content", "manifest digest"],
)
def test_an_invalid_version_is_rejected(
    server: Running, bundle: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    version = server.get("/v1/model").json["model"]
    fresh = favourite(3).save(bundle.parent / "fresh")
    spoil(fresh)
    bundle.rename(bundle.parent / "old")
    fresh.rename(bundle)
    wait_for(lambda: server.metric("pathdex_model_reload_failures_total") == 1)
    time.sleep(0.1)
    assert server.metric("pathdex_model_reload_failures_total") == 1
    assert (first_item(server), server.get("/v1/model").json["model"]) == (TEXT_IDS[0], version)
    assert server.get("/health/ready").status == 200
    assert f"still serving model {version}" in caplog.text
    shutil.rmtree(bundle)
    favourite(9).save(bundle)
    wait_for(lambda: first_item(server) == TEXT_IDS[9])


def test_a_model_that_fails_its_test_queries_is_rejected(server: Running, bundle: Path, monkeypatch: Any) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("pathdex.server.model_loader.probe_model", fail)
        favourite(3).save(bundle, overwrite=True)
        wait_for(lambda: server.metric("pathdex_model_reload_failures_total") == 1)
    assert first_item(server) == TEXT_IDS[0]


def test_files_copied_one_by_one_are_loaded_once_complete(server: Running, bundle: Path) -> None:
    fresh = favourite(3).save(bundle.parent / "fresh")
    for file in sorted(fresh.iterdir(), reverse=True):
        shutil.copy(file, bundle / file.name)
        time.sleep(0.05)
    wait_for(lambda: first_item(server) == TEXT_IDS[3])


def test_a_removed_bundle_is_still_served(server: Running, bundle: Path) -> None:
    shutil.rmtree(bundle)
    time.sleep(0.1)
    assert first_item(server) == TEXT_IDS[0]
    assert server.metric("pathdex_model_reload_failures_total") == 0


def test_a_touched_bundle_is_not_reloaded(server: Running, bundle: Path) -> None:
    before = server.worker.models.current
    (bundle / "counts.npy").touch()
    time.sleep(0.15)
    assert server.worker.models.current is before
    assert server.metric("pathdex_model_reloads_total") == 0


def test_a_changed_link_is_followed(tmp_path: Path) -> None:
    old, new = favourite(1).save(tmp_path / "old"), favourite(2).save(tmp_path / "new")
    (tmp_path / "current").symlink_to(old)
    with running(tmp_path / "current", watch=0.02) as server:
        assert first_item(server) == TEXT_IDS[1]
        (tmp_path / "next").symlink_to(new)
        (tmp_path / "next").rename(tmp_path / "current")
        wait_for(lambda: first_item(server) == TEXT_IDS[2])


def test_a_new_catalogue_table_is_loaded(bundle: Path, tmp_path: Path) -> None:
    table = tmp_path / "shop.csv"
    table.write_text("item_id,colour\nitem 1,red\n")
    with running(bundle, watch=0.02, catalogue=table) as server:
        body = {"history": [], "where": {"colour": "red"}}
        assert [item["id"] for item in server.post("/v1/recommend", body).json["items"]] == ["item 1"]
        table.write_text("item_id,colour\nitem 22,red\n")
        wait_for(lambda: [i["id"] for i in server.post("/v1/recommend", body).json["items"]] == ["item 22"])


def test_requests_in_flight_keep_the_old_model(server: Running, bundle: Path, gate: Gate) -> None:
    waiting, go = gate
    assert server.worker.models.current is not None
    version = server.worker.models.current.version
    old = weakref.ref(server.worker.models.current.recommender)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(server.post, "/v1/recommend", SLOW)
        assert waiting.wait(10)
        favourite(3).save(bundle, overwrite=True)
        wait_for(lambda: first_item(server) == TEXT_IDS[3])
        assert old() is not None
        go.set()
        done = answer.result()
    assert (done.json["model"], done.headers["x-pathdex-model"]) == (version, version)
    assert done.json["results"][0]["items"][0]["id"] == TEXT_IDS[0]
    del done

    def is_freed() -> bool:
        gc.collect()
        return old() is None

    wait_for(is_freed)


def test_a_failed_check_is_followed_by_others(
    server: Running, bundle: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(type(server.worker.models.loader), "signature", lambda _: fail())
        wait_for(lambda: "ZeroDivisionError" in caplog.text)
    favourite(3).save(bundle, overwrite=True)
    wait_for(lambda: first_item(server) == TEXT_IDS[3])


def test_a_model_that_crashes_its_process_does_not_reach_the_worker(
    server: Running, bundle: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -SEGV $$\n")
    python.chmod(0o755)
    loaded: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setenv("PATHDEX_CACHE", "")
        patch.setattr("sys.executable", str(python))
        patch.setattr("pathdex.server.model_loader.load", lambda *given: loaded.append(given))
        favourite(3).save(bundle, overwrite=True)
        wait_for(lambda: server.metric("pathdex_model_reload_failures_total") == 1)
    assert "ended the process that tried it with code -11" in caplog.text
    assert not loaded
    assert first_item(server) == TEXT_IDS[0]


def test_a_large_model_is_verified_while_it_serves(
    bundle: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("pathdex.storage.array_folder.VERIFY_LIMIT", 10)
    content = bytearray((bundle / "counts.npy").read_bytes())
    content[-8] ^= 1  # Another count, which is valid.
    (bundle / "counts.npy").write_bytes(content)
    with running(bundle) as server:
        wait_for(lambda: server.metric("pathdex_model_verification_failures_total") == 1)
        assert server.get("/health/ready").status == 200
    assert "the model that is served is damaged" in caplog.text
