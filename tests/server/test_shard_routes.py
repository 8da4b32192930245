"""The routes that a router calls, over HTTP."""

from __future__ import annotations

from pathlib import Path

from pathdex.recommenders.sharding import write_shards
from tests.random_model import random_model
from tests.server.conftest import running


def test_a_shard_tells_its_place_and_its_versions(tmp_path: Path) -> None:
    random_model(20).save(tmp_path / "model")
    made = write_shards(tmp_path / "model", 2, tmp_path / "shards")
    with running(made.folders[1]) as shard:
        status = shard.get("/v1/shard").json
        assert status == {"index": 1, "count": 2, "versions": [made.version]}
        place = {"index": 1, "count": 2}
        own = {"version": made.version, **place}
        assert shard.post("/v1/shard/keep", own).json == status
        gone = shard.post("/v1/shard/keep", {"version": "0" * 12, **place})
        assert gone.status == 409
        assert f"this shard has version {made.version}" in gone.message
        found = shard.post("/v1/shard/resolve", {**own, "queries": [{"history": [101, 100]}]})
        assert len(found.json["queries"]) == 1
        bad = shard.post("/v1/shard/find", {**own, "queries": [{"user": 3}]})
        assert bad.status == 422
        assert "use the same version of Pathdex everywhere" in bad.message
        for other in ({"index": 0, "count": 2}, {"index": 1, "count": 3}, {}):
            for route, body in (("keep", {}), ("parts", {}), ("item", {"id": 101}), ("describe", {"codes": [0]})):
                refused = shard.post(f"/v1/shard/{route}", {"version": made.version, **body, **other})
                assert refused.status == 421
                assert f"this is shard 2 of 2 of model {made.version}, not shard" in refused.message
        # By itself it answers from its own items.
        items = shard.post("/v1/recommend", {"history": [101], "n": 20}).json["items"]
        assert {one["id"] % 2 for one in items} == {1}


def test_other_models_have_no_place(popular: Path) -> None:
    with running(popular) as server:
        answer = server.get("/v1/shard")
        assert answer.status == 404
        assert "serve a folder that pathdex shard wrote" in answer.message
