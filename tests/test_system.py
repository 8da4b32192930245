"""What the machine offers."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pathdex.errors import ConfigError, MissingExtraError
from pathdex.system import FEATURES, PACKAGES, Feature, check_device, devices, examine


def test_the_examination_names_versions_and_room(tmp_path: Path) -> None:
    system = examine(tmp_path)
    assert system.versions["python"] == platform.python_version()
    assert all(system.versions[package] for package in PACKAGES)
    assert system.cores >= 1
    assert system.disk_free > 0
    assert system.folder == tmp_path


def test_a_feature_that_is_there_is_not_required_in_vain() -> None:
    Feature("reading JSON", "json", "json").require()
    assert all(feature.available for feature in FEATURES)  # the development extra brings them


def test_a_feature_that_is_missing_says_how_to_install_it() -> None:
    feature = Feature("flying", "no_such_package", "wings")
    assert not feature.available
    message = r"^flying needs no_such_package; install it with: pip install 'pathdex\[wings\]'$"
    with pytest.raises(MissingExtraError, match=message):
        feature.require()


def test_the_processor_is_always_a_device() -> None:
    assert devices()[0] == "cpu"
    check_device("cpu")


def test_an_unknown_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.system.devices", lambda: ("cpu",))
    with pytest.raises(ConfigError, match=r"^device='cuda': this machine has cpu; choose one of these$"):
        check_device("cuda")
    monkeypatch.setattr("pathdex.system.devices", lambda: ("cpu", "cuda:0"))
    check_device("cuda")
    check_device("cuda:0")
    with pytest.raises(ConfigError, match="this machine has cpu, cuda:0"):
        check_device("cuda:1")
