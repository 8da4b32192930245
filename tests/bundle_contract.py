"""What every estimator's bundles have in common: whatever is wrong with one, opening it is a clear error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pathdex.errors import BundleError
from pathdex.recommenders.base import Recommender
from pathdex.storage.bundle import Bundle, read_bundle, write_bundle


def broken_arrays(array: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Arrays that no rule can accept in the place of another."""
    other = np.float64 if array.dtype.kind == "f" else np.int16
    broken = {
        "dtype": array.astype(other),
        "dimension": array[None],
        "length": array[:-1],
    }
    if array.dtype.itemsize > 1:
        broken["byte order"] = array.astype(array.dtype.newbyteorder(">"))
    if array.ndim > 1:
        broken["width"] = np.ascontiguousarray(array[:, :-1])
    if array.dtype.kind == "f":
        broken |= {f"value {value}": with_value(array, value) for value in (np.nan, np.inf, -np.inf, 1e30)}
    return broken


def with_value(array: NDArray[Any], value: Any) -> NDArray[Any]:
    changed = np.array(array)
    changed.reshape(-1)[changed.size // 2] = value
    return changed


class BundleContract:
    """Inherited by `RecommenderContract`: how an estimator's bundles are checked."""

    @pytest.fixture(scope="class")
    @classmethod
    def bundle(cls, model: Recommender, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
        return read_bundle(model.save(tmp_path_factory.mktemp("bundles") / "bundle"))

    def test_a_bundle_has_no_problems(self, model: Recommender, bundle: Bundle) -> None:
        assert type(model).bundle_problems(bundle) == []

    def test_a_wrong_array_is_named(self, model: Recommender, bundle: Bundle) -> None:
        for part in ("arrays", "weights"):
            for name, array in getattr(bundle, part).items():
                for kind, wrong in broken_arrays(array).items():
                    changed = replace(bundle, **{part: {**getattr(bundle, part), name: wrong}})
                    with pytest.raises(BundleError, match=r"is damaged: .*; copy or save the model again") as caught:
                        type(model).from_bundle(changed)
                    # A wrong length of the ids makes all others wrong.
                    prefix = "items" if name.startswith("items.") else name
                    assert prefix in str(caught.value) or kind == "length", (name, kind)

    def test_codes_out_of_range_are_named(self, model: Recommender, bundle: Bundle) -> None:
        codes = [name for name, array in bundle.arrays.items() if array.dtype.kind == "i" and name != "items.ids"]
        for name in codes:
            for value in (-5, np.iinfo(bundle.arrays[name].dtype).max):
                arrays = {**bundle.arrays, name: with_value(bundle.arrays[name], value)}
                with pytest.raises(BundleError, match=name):
                    type(model).from_bundle(replace(bundle, arrays=arrays))

    def test_a_missing_array_is_named(self, model: Recommender, bundle: Bundle) -> None:
        for part in ("arrays", "weights"):
            for name in getattr(bundle, part):
                rest = {one: array for one, array in getattr(bundle, part).items() if one != name}
                with pytest.raises(BundleError, match=name.split(".")[0]):
                    type(model).from_bundle(replace(bundle, **{part: rest}))

    def test_an_unknown_array_or_weight_is_refused(self, model: Recommender, bundle: Bundle) -> None:
        for part in ("arrays", "weights"):
            more = {**getattr(bundle, part), "more": np.zeros(3, np.float32)}
            with pytest.raises(BundleError, match="more: is not an array of this estimator"):
                type(model).from_bundle(replace(bundle, **{part: more}))

    def test_an_unknown_setting_is_refused(self, model: Recommender, bundle: Bundle) -> None:
        with pytest.raises(BundleError, match=r"settings: .*'?more"):
            type(model).from_bundle(replace(bundle, settings={**bundle.settings, "more": 1}))

    def test_a_setting_of_another_kind_is_refused(self, model: Recommender, bundle: Bundle) -> None:
        for name in bundle.settings:
            for wrong in (object(), [], 2**70, "\ud800"):
                changed = replace(bundle, settings={**bundle.settings, name: wrong})
                if name == "records" and wrong == []:
                    continue
                with pytest.raises(BundleError, match="settings: "):
                    type(model).from_bundle(changed)

    def test_all_problems_are_listed(self, model: Recommender, bundle: Bundle) -> None:
        arrays = {name: array for name, array in bundle.arrays.items() if name.startswith("items.")}
        wrong = {"one": np.zeros(1), "two": np.zeros(1)}
        with pytest.raises(BundleError, match=r"(?s)[0-9]+ problems.*  - .*one.*  - .*two"):
            type(model).from_bundle(replace(bundle, arrays={**arrays, **wrong}, weights={}))

    def test_a_model_that_could_not_be_opened_is_not_saved(
        self, model: Recommender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        bundle = model.to_bundle()
        broken = replace(bundle, arrays={**bundle.arrays, "more": np.zeros(1)})
        monkeypatch.setattr(type(model), "to_bundle", lambda _: broken)
        with pytest.raises(BundleError, match=f"the '{model.name}' model cannot be saved: more: .*; train it again"):
            model.save(tmp_path / "bundle")
        assert not (tmp_path / "bundle").exists()

    def test_a_bundle_of_wrong_content_with_right_checksums_is_refused(
        self, model: Recommender, bundle: Bundle, tmp_path: Path
    ) -> None:
        ids = "items.offsets" if "items.offsets" in bundle.arrays else "items.ids"
        arrays = {**bundle.arrays, ids: bundle.arrays[ids][::-1].copy(), "more": np.zeros(1)}
        path = write_bundle(tmp_path / "bundle", replace(bundle, arrays=arrays))
        with pytest.raises(BundleError, match=f"^{path} is damaged: "):
            type(model).load(path)
