"""What is built and published: the wheel, the source archive, and the files around the code that name versions."""

from __future__ import annotations

import email
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import pathdex
from pathdex.config import tomllib
from tests.snippets import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCE = ROOT / "src" / "pathdex"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    tracked = {file for file in SOURCE.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    expected = {f"pathdex/{file.relative_to(SOURCE).as_posix()}" for file in tracked}
    assert {"pathdex/py.typed", "pathdex/server/docs.html"} <= expected
    found = files_of(wheel)
    assert {name for name in found if not name.startswith(f"pathdex-{pathdex.__version__}.dist-info/")} == expected


def test_the_metadata_of_the_wheel(wheel: Path) -> None:
    folder = f"pathdex-{pathdex.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(f"{folder}/METADATA"))
        scripts = archive.read(f"{folder}/entry_points.txt").decode()
    assert wheel.name == f"pathdex-{pathdex.__version__}-py3-none-any.whl"
    assert (metadata["Name"], metadata["Version"]) == ("pathdex", pathdex.__version__)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == PROJECT["requires-python"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(PROJECT["optional-dependencies"])
    assert metadata.get_payload().startswith("# Pathdex")  # type: ignore[union-attr]
    assert "pathdex = pathdex.cli:main" in scripts
    assert f"{folder}/licenses/LICENSE" in files_of(wheel)


def test_the_source_archive_can_run_the_tests(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "constraints.txt", "Makefile", "LICENSE", "tests/test_packaging.py", "docs/index.md"}
    assert needed <= names
    assert not {name for name in names if name.startswith((".venv", "site/", "dist/"))}


@pytest.mark.slow
def test_the_unpacked_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    """The commands run from the wheel's files alone; `make test-wheel` adds an empty environment."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); import pathdex; "
        f"assert pathdex.__file__.startswith({str(tmp_path)!r}), pathdex.__file__; "
        "from pathdex.cli import main; main()"
    )
    for arguments in (["doctor"], ["demo", "--users", "300", "--items", "120"]):
        done = subprocess.run([sys.executable, "-c", code, *arguments], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_every_file_names_the_same_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == pathdex.__version__ == citation["version"]
    assert citation["license"] == PROJECT["license"]


def test_every_constraint_is_an_exact_version() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[\w-]+==[\w.]+( ; python_version >= \"3\.11\")?", line)] == []
    assert lines[1:] == sorted(lines[1:], key=str.lower)


def test_continuous_integration_runs_what_must_pass() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    ran = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    must_pass = re.findall(r"^make .+$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert must_pass == ["make check", "make docs", "make test"]
    assert set(must_pass) <= set(ran)
    tested = workflow["jobs"]["test"]["strategy"]["matrix"]["python-version"]
    declared = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert tested == declared


def test_commit_hooks_run_the_same_targets() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert [hook["entry"] for hook in hooks] == ["make check", "make test"]
    assert {hook["entry"].removeprefix("make ") for hook in hooks} <= targets
