"""Everything about a saved model is checked, and all problems are found."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from pathdex.recommenders.live_publisher import LivePublisher
from pathdex.recommenders.sharding import write_shards
from pathdex.recommenders.verification import verify_bundle, verify_live, verify_model
from pathdex.storage import verified
from pathdex.storage.live_folder import delta_folder
from tests.bundle_edits import change_manifest, sign_files
from tests.random_deltas import changed_model, random_delta
from tests.random_model import random_model
from tests.snippets import ROOT

GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return random_model(20, neighbours=3).save(tmp_path / "bundle")


@pytest.fixture
def live(tmp_path: Path) -> Path:
    model = random_model(20)
    with LivePublisher.create(tmp_path / "live", model) as publisher:
        for seed in range(3):
            delta = random_delta(model, np.random.default_rng(seed))
            publisher.publish(delta)
            model = changed_model(model, delta)
    return tmp_path / "live"


def spoil(file: Path, place: int = -1) -> None:
    content = bytearray(file.read_bytes())
    content[place] ^= 0x40
    file.write_bytes(content)


@pytest.mark.parametrize("folder", sorted((GOLDEN / "bundles").iterdir()), ids=lambda folder: folder.name)
def test_golden_bundles_have_no_problems(folder: Path) -> None:
    assert verify_model(folder) == []


def test_checksums_and_content_are_reported_together(bundle: Path) -> None:
    spoil(bundle / "counts.npy")
    spoil(bundle / "rows.npy")
    found = verify_bundle(bundle)
    assert found[:2] == [
        f"{bundle} is damaged: the checksum of counts.npy is wrong",
        f"{bundle} is damaged: the checksum of rows.npy is wrong",
    ]
    assert any("counts: holds" in problem for problem in found[2:])


def test_content_is_checked_behind_valid_checksums(bundle: Path) -> None:
    items = np.load(bundle / "postings.items.npy")
    items[3] = 10**9
    np.save(bundle / "postings.items.npy", items)
    sign_files(bundle)
    (problem,) = verify_bundle(bundle)
    assert problem == f"{bundle} is damaged: postings.items: holds 1000000000, must hold no value above 19"


def test_a_changed_manifest_is_found(bundle: Path) -> None:
    change_manifest(bundle, sign=False, estimator="popularity")
    assert [problem.split(" is ")[1][:20] for problem in verify_bundle(bundle)] == ["damaged (digest); co"]
    change_manifest(bundle, estimator="other")
    assert verify_bundle(bundle) == [f"{bundle} holds a 'other' model, which this Pathdex does not know"]


def test_a_large_bundle_is_entered_in_the_cache(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("pathdex.storage.array_folder.VERIFY_LIMIT", 1)
    assert verify_bundle(bundle) == []
    (entry,) = (tmp_path / "cache" / "verified").iterdir()
    assert verified.is_checked(entry.name, verified.CONTENT)
    assert verified.is_checked(entry.name, verified.CHECKSUMS)


def test_a_run_with_its_split_and_checkpoint(tmp_path: Path) -> None:
    run, parts = Path(shutil.copytree(GOLDEN / "runs" / "finished", tmp_path / "run")), []
    assert verify_model(run, parts.append) == []
    assert [Path(part).name for part in parts] == ["split", "checkpoint.safetensors", "bundle"]
    spoil(
        run / "split" / "users.ids.npy"
        if (run / "split" / "users.ids.npy").exists()
        else next((run / "split").glob("*.npy"))
    )
    spoil(run / "checkpoint.safetensors", 3)
    (run / "run.json").write_text("{")
    assert len(verify_model(run)) == 3


def test_the_shards_of_a_run(tmp_path: Path, bundle: Path) -> None:
    run, parts = Path(shutil.copytree(GOLDEN / "runs" / "finished", tmp_path / "run")), []
    shutil.rmtree(run / "bundle")
    first, second = write_shards(bundle, 2, run / "shards").folders
    assert verify_model(run, parts.append) == []
    assert [Path(part).name for part in parts] == ["split", "checkpoint.safetensors", "shard-1", "shard-2"]
    assert verify_model(run / "shards") == []
    shutil.rmtree(second)
    shutil.copytree(first, second)
    [problem] = verify_model(run)
    assert "holds shard 1 of 2 of model" in problem
    spoil(second / "rows.npy")
    spoil(first / "paths.npy")
    problems = "\n".join(verify_model(run / "shards"))
    assert "shard-1 is damaged: the checksum of paths.npy" in problems
    assert "shard-2 is damaged: the checksum of rows.npy" in problems
    (run / "shards" / "shards.json").write_text("{}")
    [problem] = verify_model(run)
    assert "is no complete folder of shards" in problem


def test_an_unfinished_run_is_no_problem() -> None:
    assert verify_model(GOLDEN / "runs" / "interrupted") == []


def test_a_live_folder(live: Path) -> None:
    parts: list[str] = []
    assert verify_model(live, parts.append) == []
    assert [Path(part).name for part in parts] == ["base-000001", "delta 1", "delta 2", "delta 3"]


def test_a_damaged_delta_ends_the_chain(live: Path) -> None:
    spoil(delta_folder(live, 2) / "delta.safetensors")
    (problem,) = verify_live(live)
    assert problem.startswith("delta 2: ")
    assert "checksum" in problem


def test_a_damaged_base(live: Path) -> None:
    spoil(live / "base-000001" / "rows.npy")
    assert any("the checksum of rows.npy is wrong" in problem for problem in verify_live(live))


def test_what_is_missing(tmp_path: Path, live: Path) -> None:
    assert len(verify_model(tmp_path / "nothing")) == 1
    (live / "CURRENT").write_text("{")
    assert len(verify_model(live)) == 1
