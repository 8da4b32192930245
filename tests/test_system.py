"""The machine and the installation."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from pathdex.config import tomllib
from pathdex.errors import ConfigError, MissingExtraError
from pathdex.system import FEATURES, PACKAGES, Feature, check_device, devices, examine, package_version
from tests.snippets import ROOT


def test_versions_cores_and_disk_space_are_reported(tmp_path: Path) -> None:
    system = examine(tmp_path)
    assert system.versions["python"] == platform.python_version()
    assert all(system.versions[package] for package in PACKAGES)
    assert system.cores >= 1
    assert system.disk_free > 0
    assert system.folder == tmp_path


def test_installed_features_are_available() -> None:
    Feature("reading JSON", "json", "json").require()
    large = {"excel", "s3", "gs", "hugging-face", "ray"}  # large packages, which the development extra leaves out
    assert all(feature.available for feature in FEATURES if feature.extra not in large)


def test_every_extra_has_a_feature() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) - {"dev", "docs"} == {feature.extra for feature in FEATURES}


def test_the_version_of_a_missing_package_is_none() -> None:
    assert package_version("no-such-package") is None
    assert package_version("numpy")


def test_a_missing_feature_names_the_command_that_installs_it() -> None:
    feature = Feature("flying", "no_such_package", "wings")
    assert not feature.available
    message = r"^flying needs no_such_package; install it with: pip install 'pathdex\[wings\]'$"
    with pytest.raises(MissingExtraError, match=message):
        feature.require()


def test_the_cpu_is_always_a_device() -> None:
    assert devices()[0] == "cpu"
    check_device("cpu")


def test_an_unknown_device_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pathdex.system.devices", lambda: ("cpu",))
    with pytest.raises(ConfigError, match=r"^device='cuda': this machine has cpu; choose one of these$"):
        check_device("cuda")
    monkeypatch.setattr("pathdex.system.devices", lambda: ("cpu", "cuda:0"))
    check_device("cuda")
    check_device("cuda:0")
    with pytest.raises(ConfigError, match="this machine has cpu, cuda:0"):
        check_device("cuda:1")
