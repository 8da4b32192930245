"""The bundle of a run folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pathdex.errors import RunError
from pathdex.storage.bundle import Bundle, write_bundle
from pathdex.storage.run_folder import BUNDLE, REQUEST, find_bundle


def test_a_bundle_is_itself(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "model", Bundle("some-model", {}))
    assert find_bundle(bundle) == find_bundle(str(bundle)) == bundle


def test_a_finished_run_has_a_bundle(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / BUNDLE, Bundle("some-model", {}))
    assert find_bundle(tmp_path) == bundle


def test_an_unfinished_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / REQUEST).write_text("{}")
    with pytest.raises(RunError, match=r"is not finished; continue it with: pathdex train --out .* --resume$"):
        find_bundle(tmp_path)


def test_any_other_path_is_returned_as_it_is(tmp_path: Path) -> None:
    assert find_bundle(tmp_path) == tmp_path
    assert find_bundle(tmp_path / "missing") == tmp_path / "missing"
