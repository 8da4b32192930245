"""Loading any saved model. The contract suite tests the round trip of each estimator."""

from pathlib import Path

import numpy as np
import pytest

import pathdex
from pathdex.data.interactions import Interactions
from pathdex.data.ragged import Ragged
from pathdex.data.vocabulary import Vocabulary
from pathdex.errors import BundleError
from pathdex.storage.bundle import Bundle, write_bundle


@pytest.fixture
def model() -> pathdex.Popularity:
    data = Interactions(Ragged.from_rows([[0, 1, 1]]), Vocabulary(np.arange(1)), Vocabulary(["a", "b"]))
    return pathdex.Popularity().fit(data)


def test_load_opens_a_bundle_or_a_run(model: pathdex.Popularity, tmp_path: Path) -> None:
    model.save(tmp_path / "run" / "bundle")
    for path in (tmp_path / "run" / "bundle", tmp_path / "run", str(tmp_path / "run")):
        assert isinstance(pathdex.load(path), pathdex.Popularity)


def test_unknown_estimator_is_an_error(tmp_path: Path) -> None:
    path = write_bundle(tmp_path / "bundle", Bundle("crystal-ball", {}))
    with pytest.raises(
        BundleError, match=r"holds a 'crystal-ball' model, which this Pathdex does not know .*; upgrade"
    ):
        pathdex.load(path)


def test_missing_bundle_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="nothing does not exist; pass the folder that `pathdex train`"):
        pathdex.load(tmp_path / "nothing")
    with pytest.raises(BundleError, match="is not a Pathdex bundle"):
        pathdex.load(tmp_path)
