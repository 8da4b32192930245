"""A short run of faults, power cuts and kills; `make torture` runs the long one."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.snippets import ROOT
from tests.torture.call_sites import _changing, all_sites, untested_sites
from tests.torture.io_calls import Change, is_available
from tests.torture.power_cuts import Disk, Recording

KILLS, POWER_CUTS = 15, 40


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not is_available():
        pytest.skip("needs Linux and a C compiler")
    file = tmp_path_factory.mktemp("crashes") / "report.json"
    # In a process of its own, since the library that sees the calls is loaded at its start.
    numbers = [
        "--kills",
        str(KILLS),
        "--power-cuts",
        str(POWER_CUTS),
        "--per-site",
        "0",
        "--repeatable",
        "--report",
        str(file),
    ]
    command = [sys.executable, "-m", "tests.torture", "crashes", *numbers]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert file.exists(), done.stderr[-3000:]
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def failures(report: dict[str, Any], what: str) -> list[Any]:
    return [one for one in report["failures"] if one["what"] == what]


def test_a_failing_call_is_a_clear_error_and_can_be_repeated(report: dict[str, Any]) -> None:
    assert not failures(report, "faults")
    assert report["counts"]["faults"] > 50


def test_every_call_site_was_made_to_fail(report: dict[str, Any]) -> None:
    assert not report["untested call sites"]


def test_a_power_cut_leaves_the_old_or_the_new_state(report: dict[str, Any]) -> None:
    assert not failures(report, "power cuts")
    assert report["counts"]["power cuts"] == POWER_CUTS


def test_a_killed_process_leaves_the_old_or_the_new_state(report: dict[str, Any]) -> None:
    assert not failures(report, "kills")
    assert report["counts"]["kills"] == KILLS


def test_a_new_call_site_is_noticed() -> None:
    assert untested_sites(())
    everything = [(site.file, line) for site in all_sites() for line in range(site.first, site.last + 1)]
    assert not untested_sites(everything)
    found = untested_sites(one for one in everything if one[0] != "storage/json_file.py" and one != everything[-1])
    assert found


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("os.write(handle, data)", True),
        ("os.open(path, os.O_RDWR | os.O_CREAT)", True),
        ("os.open(path, os.O_RDONLY)", False),
        ("path.replace(target)", True),
        ("text.replace('a', 'b')", False),
        ("path.open('wb')", True),
        ("path.open('rb')", False),
        ("(folder / name).unlink(missing_ok=True)", True),
        ("shutil.rmtree(folder)", True),
        ("write_file(path, blocks)", True),
        ("sqlite3.connect(path)", True),
        ("frame.rename({'a': 'b'})", False),
        ("table.frame.rename({name: name.lower() for name in names})", False),
    ],
)
def test_calls_that_change_files_are_found_by_their_syntax(text: str, is_one: bool) -> None:
    call = ast.parse(text).body[0].value  # type: ignore[attr-defined]
    assert bool(_changing(call)) == is_one


class TestPowerCuts:
    """The model of what survives."""

    def states(self, tmp_path: Path, changes: list[Change]) -> set[str]:
        """Everything that may be on disk after the last of the changes, as text."""
        root = tmp_path / "root"
        root.mkdir(exist_ok=True)
        (root / "old").write_text("before")
        recording = Recording.of(Disk.read(root), root, changes)
        draws = random.Random(0)
        return {content(recording.cut(len(recording.events), draws, sample)) for sample in range(200)}

    def change(self, tmp_path: Path, kind: str, name: str, other: str = "", **rest: Any) -> Change:
        root = tmp_path / "root"
        return Change(kind, str(root / name), str(root / other) if other else "", **rest)

    def test_a_synced_write_and_a_synced_name_survive(self, tmp_path: Path) -> None:
        changes = [
            self.change(tmp_path, "create", "new"),
            self.change(tmp_path, "write", "new", data=b"text"),
            self.change(tmp_path, "sync", "new"),
            self.change(tmp_path, "rename", "new", "old"),
        ]
        assert self.states(tmp_path, changes) == {"old=before", "old=text", "new=text old=before"}
        assert self.states(tmp_path, [*changes, self.change(tmp_path, "sync", "")]) == {"old=text"}

    def test_a_rename_without_a_sync_of_the_file_may_leave_it_empty_or_torn(self, tmp_path: Path) -> None:
        changes = [
            self.change(tmp_path, "create", "new"),
            self.change(tmp_path, "write", "new", data=b"text"),
            self.change(tmp_path, "rename", "new", "old"),
            self.change(tmp_path, "sync", ""),
        ]
        found = self.states(tmp_path, changes)
        assert {"old=", "old=te", "old=text", "old=\0\0\0\0", "old=te\0\0"} <= found

    def test_an_exchange_is_kept_or_lost_as_a_whole(self, tmp_path: Path) -> None:
        changes = [
            self.change(tmp_path, "create", "new"),
            self.change(tmp_path, "write", "new", data=b"text"),
            self.change(tmp_path, "sync", "new"),
            self.change(tmp_path, "sync", ""),
            self.change(tmp_path, "exchange", "new", "old"),
        ]
        assert self.states(tmp_path, changes) == {"new=text old=before", "new=before old=text"}

    def test_changes_of_a_name_keep_their_order(self, tmp_path: Path) -> None:
        changes = [self.change(tmp_path, "rename", "old", "older"), self.change(tmp_path, "create", "old")]
        assert self.states(tmp_path, changes) == {"old=before", "older=before", "old= older=before"}

    def test_a_folder_that_is_lost_takes_its_files_along(self, tmp_path: Path) -> None:
        changes = [
            self.change(tmp_path, "mkdir", "folder"),
            self.change(tmp_path, "create", "folder/new"),
            self.change(tmp_path, "sync", "folder/new"),
            self.change(tmp_path, "sync", "folder"),
        ]
        assert self.states(tmp_path, changes) == {"old=before", "folder/new= old=before"}

    def test_a_state_can_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "from" / "inner").mkdir(parents=True)
        (tmp_path / "from" / "inner" / "file").write_bytes(b"text")
        Disk.read(tmp_path / "from").write(tmp_path / "to")
        assert (tmp_path / "to" / "inner" / "file").read_bytes() == b"text"


def content(disk: Disk) -> str:
    """`folder/name=content` for every file that can be reached."""
    found = []

    def walk(number: int, path: str) -> None:
        for (folder, name), inner in disk.names.items():
            if folder == number and inner in disk.files:
                found.append(f"{path}{name}={disk.files[inner].decode()}")
            elif folder == number:
                walk(inner, f"{path}{name}/")

    walk(0, "")
    return " ".join(sorted(found))
