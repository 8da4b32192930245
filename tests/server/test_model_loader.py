"""Opening a model for serving."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pathdex
from pathdex.errors import BundleError, ConfigError, RunError
from pathdex.recommenders.popularity import Popularity
from pathdex.retrieval.ranking import Ranking
from pathdex.server import model_loader
from pathdex.server.model_loader import ModelLoader, probe_model
from pathdex.storage.bundle import bundle_version
from tests.recommender_contract import INTEGER_IDS, TEXT_IDS, grouped_data


@pytest.fixture
def bundle(tmp_path: Path, popular: Path) -> Path:
    return Path(shutil.copytree(popular, tmp_path / "run" / "bundle"))


def test_a_bundle_a_run_and_links_lead_to_the_same_model(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(bundle)
    (tmp_path / "latest").symlink_to(bundle.parent)
    for path in (bundle, bundle.parent, tmp_path / "current", tmp_path / "latest"):
        source = ModelLoader(path)
        source.check()
        assert source.folder() == bundle.resolve()
        served = source.open()
        assert served.version == source.version() == bundle_version(bundle)
        assert served.recommender.name == "popularity"
        assert source.same(served)


def test_the_signature_changes_with_any_file(bundle: Path) -> None:
    source = ModelLoader(bundle)
    before = source.signature()
    assert before == source.signature()
    (bundle / "counts.npy").touch()
    assert source.signature() not in (before, None)
    shutil.rmtree(bundle)
    assert source.signature() is None


def test_a_folder_that_was_only_touched_is_the_same_model(bundle: Path) -> None:
    source = ModelLoader(bundle)
    served = source.open()
    (bundle / "counts.npy").touch()
    assert source.same(served)
    pathdex.Popularity().fit(grouped_data(INTEGER_IDS)).save(bundle, overwrite=True)
    assert not source.same(served)


def test_the_catalogue_table_belongs_to_the_model(bundle: Path, tmp_path: Path) -> None:
    table = tmp_path / "shop.csv"
    table.write_text("item_id,colour\nitem 1,red\n")
    source = ModelLoader(bundle, table)
    source.check()
    served = source.open()
    assert served.columns == ("colour",)
    table.write_text("item_id,colour\nitem 2,red\nitem 3,red\n")
    assert not source.same(served)
    again = source.open().recommender.recommend([], where={"colour": "red"})
    assert {id for id, _ in again} == {"item 2", "item 3"}


def test_what_is_wrong_at_a_glance_is_said_at_once(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="nowhere does not exist; pass the folder that save"):
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


def test_checksums_are_checked_however_large_the_bundle_is(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.storage.array_folder.VERIFY_LIMIT", 1)
    content = bytearray((bundle / "counts.npy").read_bytes())
    content[-1] ^= 1
    (bundle / "counts.npy").write_bytes(content)
    assert pathdex.load(bundle)
    with pytest.raises(BundleError, match=r"the checksum of counts.npy is wrong"):
        ModelLoader(bundle).open()


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(
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
    served = ModelLoader(bundle).open()
    assert [model.items.kind for model in opened] == ["str", "int"]
    assert (served.recommender, served.version) == (opened[1], bundle_version(numbered))
    # What the first one mapped is gone from disk, but not from memory.
    assert opened[0].recommend([], 1)[0].id in TEXT_IDS


def test_a_failure_in_the_middle_of_a_replacement_is_tried_again(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def load(path: Path) -> Any:
        tried.append(path)
        if len(tried) == 1:
            (bundle / "counts.npy").touch()
            raise BundleError("half of it is missing")
        return pathdex.load(path)

    monkeypatch.setattr(model_loader, "load", load)
    assert ModelLoader(bundle).open().recommender.name == "popularity"


def test_a_folder_that_never_rests_is_given_up(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path) -> Any:
        (bundle / "counts.npy").touch()
        return pathdex.load(path)

    monkeypatch.setattr(model_loader, "load", load)
    with pytest.raises(BundleError, match="was replaced 5 times while it was opened; replace it less often"):
        ModelLoader(bundle).open()


class Odd(Popularity):
    """Answers with what it is told to."""

    def __init__(self, **wrong: Any) -> None:
        self.wrong = wrong

    def rank(self, histories: Any, n: int, *args: Any, **options: Any) -> Ranking:
        right = super().rank(histories, n, *args, **options)
        return Ranking(**{**vars(right), **{name: change(getattr(right, name)) for name, change in self.wrong.items()}})


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
def test_a_model_that_answers_badly_is_not_served(wrong: dict[str, Any]) -> None:
    with pytest.raises(BundleError, match=r"the model answers the history \[\] with .* items of scores .*; train it"):
        probe_model(Odd(**wrong).fit(grouped_data(TEXT_IDS)))


def test_a_good_model_says_how_quick_it_is() -> None:
    assert 0 < probe_model(Popularity().fit(grouped_data(TEXT_IDS))) < 10


def test_a_model_of_one_item_can_be_served(tmp_path: Path) -> None:
    from pathdex.data import Interactions, Ragged, Vocabulary

    data = Interactions(Ragged.from_rows([[0]]), Vocabulary(np.arange(1)), Vocabulary(["only"]))
    Popularity().fit(data).save(tmp_path / "bundle")
    assert json.loads((tmp_path / "bundle" / "manifest.json").read_text())["estimator"] == "popularity"
    assert ModelLoader(tmp_path / "bundle").open().recommender.recommend([], 3)[0].id == "only"
