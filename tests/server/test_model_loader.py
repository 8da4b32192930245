"""Loading a model for serving."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import pathdex
from pathdex.errors import BundleError, ConfigError, RunError
from pathdex.recommenders.popularity import Popularity
from pathdex.recommenders.registry import make_estimator
from pathdex.retrieval.ranking import Ranking
from pathdex.server import model_loader
from pathdex.server.model_loader import ModelLoader, probe_model
from pathdex.storage.bundle import bundle_version
from tests.recommender_contract import INTEGER_IDS, TEXT_IDS, grouped_data
from tests.tiny import TINY


@pytest.fixture
def bundle(tmp_path: Path, popular: Path) -> Path:
    return Path(shutil.copytree(popular, tmp_path / "run" / "bundle"))


def test_bundles_runs_and_links(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(bundle)
    (tmp_path / "latest").symlink_to(bundle.parent)
    for path in (bundle, bundle.parent, tmp_path / "current", tmp_path / "latest"):
        loader = ModelLoader(path)
        loader.check()
        assert loader.folder() == bundle.resolve()
        served = loader.load()
        assert served.version == bundle_version(bundle)
        assert served.recommender.name == "popularity"
        assert loader.is_current(served)


def test_the_signature_changes_with_any_file(bundle: Path) -> None:
    loader = ModelLoader(bundle)
    before = loader.signature()
    assert before == loader.signature()
    (bundle / "counts.npy").touch()
    assert loader.signature() not in (before, None)
    touched = loader.signature()
    (bundle / "link").symlink_to("nowhere")
    assert loader.signature() not in (touched, None)
    shutil.rmtree(bundle)
    assert loader.signature() is None


def test_a_touched_folder_is_the_same_model(bundle: Path) -> None:
    loader = ModelLoader(bundle)
    served = loader.load()
    (bundle / "counts.npy").touch()
    assert loader.is_current(served)
    pathdex.Popularity().fit(grouped_data(INTEGER_IDS)).save(bundle, overwrite=True)
    assert not loader.is_current(served)


def test_a_changed_catalogue_table_is_another_model(bundle: Path, tmp_path: Path) -> None:
    table = tmp_path / "shop.csv"
    table.write_text("item_id,colour\nitem 1,red\n")
    loader = ModelLoader(bundle, table)
    loader.check()
    served = loader.load()
    assert served.columns == ("colour",)
    table.write_text("item_id,colour\nitem 2,red\nitem 3,red\n")
    assert not loader.is_current(served)
    again = loader.load().recommender.recommend([], where={"colour": "red"})
    assert {id for id, _ in again} == {"item 2", "item 3"}


def test_check_finds_errors_without_loading(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="nowhere does not exist; pass the folder that `pathdex train`"):
        ModelLoader(tmp_path / "nowhere").check()
    with pytest.raises(ConfigError, match=r"catalogue='nowhere.csv': does not exist; check the path"):
        ModelLoader(bundle, Path("nowhere.csv")).check()
    (bundle / "manifest.json").write_text("{")
    with pytest.raises(BundleError, match=r"manifest.json is damaged"):
        ModelLoader(bundle).check()
    shutil.rmtree(bundle)
    (bundle.parent / "run.json").write_text("{}")
    with pytest.raises(RunError, match="is not finished; continue it with: pathdex train --out"):
        ModelLoader(bundle.parent).check()


def test_checksums_of_large_bundles_are_verified(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.storage.array_folder.VERIFY_LIMIT", 1)
    content = bytearray((bundle / "counts.npy").read_bytes())
    content[-8] ^= 1  # Another count, which is valid.
    (bundle / "counts.npy").write_bytes(content)
    assert ModelLoader(bundle).load()
    with pytest.raises(BundleError, match=r"the checksum of counts.npy is wrong"):
        ModelLoader(bundle).load(verify=True)


def test_checksums_of_large_bundles_are_read_once(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATHDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("pathdex.storage.array_folder.VERIFY_LIMIT", 1)
    ModelLoader(bundle).verify()
    with monkeypatch.context() as patch:
        patch.setattr(model_loader, "check_sums", None)
        ModelLoader(bundle).verify()


def test_a_folder_that_changes_during_loading_is_loaded_again(
    bundle: Path, numbered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def load(path: Path) -> Any:
        model = pathdex.load(path)
        opened.append(model)
        if len(opened) == 1:
            pathdex.load(numbered).save(bundle, overwrite=True)
        return model

    monkeypatch.setattr(model_loader, "load", load)
    served = ModelLoader(bundle).load()
    assert [model.items.kind for model in opened] == ["str", "int"]
    assert (served.recommender, served.version) == (opened[1], bundle_version(numbered))
    # The files of the first model are deleted, but still mapped.
    assert opened[0].recommend([], 1)[0].id in TEXT_IDS


def test_an_error_during_a_replacement_is_retried(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def load(path: Path) -> Any:
        tried.append(path)
        if len(tried) == 1:
            (bundle / "counts.npy").touch()
            raise BundleError("half of it is missing")
        return pathdex.load(path)

    monkeypatch.setattr(model_loader, "load", load)
    assert ModelLoader(bundle).load().recommender.name == "popularity"


def test_a_folder_that_keeps_changing_is_an_error(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path) -> Any:
        (bundle / "counts.npy").touch()
        return pathdex.load(path)

    monkeypatch.setattr(model_loader, "load", load)
    with pytest.raises(BundleError, match="was replaced 5 times while it was loaded; replace it less often"):
        ModelLoader(bundle).load()


class Odd(Popularity):
    """Returns invalid results."""

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong

    def rank(self, histories: Any, n: int, *args: Any, **options: Any) -> Ranking:
        right = super().rank(histories, n, *args, **options)
        return right._replace(**{name: change(getattr(right, name)) for name, change in self.wrong.items()})


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": lambda scores: np.full_like(scores, np.nan)},
        {"scores": lambda scores: np.full_like(scores, np.inf)},
        {"scores": lambda scores: scores[:, ::-1] + np.arange(scores.shape[1], dtype=np.float32)},
        {"items": lambda items: np.where(np.arange(items.shape[1]) > 2, -1, items)},
    ],
    ids=["nan", "infinite", "rising", "too few"],
)
def test_a_model_with_invalid_results_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(
        BundleError, match=r"the model returns .* items with scores .* for the history \[\], .*; train it again"
    ):
        probe_model(Odd(**wrong).fit(grouped_data(TEXT_IDS)))


def test_probing_returns_the_query_time() -> None:
    assert 0 < probe_model(Popularity().fit(grouped_data(TEXT_IDS))) < 10


def test_a_model_of_one_item_can_be_served(tmp_path: Path) -> None:
    from pathdex.data import Interactions, Ragged, Vocabulary

    data = Interactions(Ragged.from_rows([[0]]), Vocabulary(np.arange(1)), Vocabulary(["only"]))
    Popularity().fit(data).save(tmp_path / "bundle")
    assert json.loads((tmp_path / "bundle" / "manifest.json").read_text())["estimator"] == "popularity"
    assert ModelLoader(tmp_path / "bundle").load().recommender.recommend([], 3)[0].id == "only"


def model_info(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(msgspec.json.encode(ModelLoader(path).load().info))
    return found


def test_a_model_with_an_index_shows_its_nodes(deep: Path) -> None:
    info = model_info(deep)
    assert info["config"]["num_nodes"] == info["health"]["num_nodes"] == TINY["num_nodes"]


@pytest.mark.parametrize("name", ["popularity", "youtube-dnn", "ffm-hnsw"])
def test_a_model_without_an_index_shows_no_nodes(name: str, tmp_path: Path) -> None:
    tiny = {} if name == "popularity" else {"epochs": 1}
    model = make_estimator(name, tiny, threads=1).fit(grouped_data(TEXT_IDS), callbacks=[])
    info = model_info(model.save(tmp_path / "bundle"))
    assert (info["estimator"], info["health"]) == (name, None)
    assert info["config"] == json.loads(json.dumps(model.get_params()))
    assert "num_nodes" not in json.dumps(info)


def test_the_model_is_described_once(popular: Path) -> None:
    served = ModelLoader(popular).load()
    assert served.info is served.info
