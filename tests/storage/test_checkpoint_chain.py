"""A full checkpoint and the changes since, in files that are written once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pathdex.errors import RunError, StorageError
from pathdex.storage.checkpoint import load_checkpoint, save_checkpoint
from pathdex.storage.checkpoint_chain import CheckpointChain, StoredCheckpoint
from tests.storage.test_atomic import file_size_limit, names


def save(chain: CheckpointChain, number: int, *, full: bool = False, value: float | None = None) -> None:
    content = number if value is None else value
    chain.save(number, {"at": content}, {"x": np.array([content], np.float32)}, full=full)


@pytest.fixture
def chain(tmp_path: Path) -> CheckpointChain:
    chain = CheckpointChain(tmp_path / "state")
    assert chain.is_empty
    save(chain, 1, full=True)
    save(chain, 2)
    save(chain, 3)
    return chain


def found(folder: Path) -> list[tuple[int, float, float]]:
    return [(one.number, one.values["at"], float(one.arrays["x"][0])) for one in CheckpointChain(folder).load()]


def test_it_is_read_in_order(chain: CheckpointChain) -> None:
    assert found(chain.folder) == [(1, 1, 1.0), (2, 2, 2.0), (3, 3, 3.0)]
    assert (chain.is_empty, chain.num_changes) == (False, 2)
    assert names(chain.folder) == [
        "changes-000000002.safetensors",
        "changes-000000003.safetensors",
        "full-000000001.safetensors",
    ]
    sizes = [(chain.folder / name).stat().st_size for name in names(chain.folder)]
    assert (chain.changes_bytes, chain.full_bytes) == (sizes[0] + sizes[1], sizes[2])


def test_an_empty_folder_has_no_checkpoints(tmp_path: Path) -> None:
    assert CheckpointChain(tmp_path).load() == CheckpointChain(tmp_path / "missing").load() == []


def test_another_process_continues_it(chain: CheckpointChain) -> None:
    again = CheckpointChain(chain.folder)
    again.load()
    save(again, 4)
    assert [number for number, *_ in found(chain.folder)] == [1, 2, 3, 4]


def test_a_repeated_number_replaces_the_file(chain: CheckpointChain) -> None:
    save(chain, 3, value=7)
    save(chain, 4)
    assert found(chain.folder)[2:] == [(3, 7, 7.0), (4, 4, 4.0)]


def test_a_merged_checkpoint_replaces_its_parts_and_is_continued(chain: CheckpointChain) -> None:
    last = chain.load()[-1]
    save(chain, 4)  # While the merge is under way.
    chain.replace(StoredCheckpoint(3, last.link, {"at": 33}, {"x": np.array([33.0], np.float32)}))
    save(chain, 5)
    assert found(chain.folder) == [(3, 33, 33.0), (4, 4, 4.0), (5, 5, 5.0)]
    assert names(chain.folder)[-1] == "full-000000003.safetensors"


def test_a_full_checkpoint_removes_all_before_it(chain: CheckpointChain) -> None:
    save(chain, 4, full=True)
    assert names(chain.folder) == ["full-000000004.safetensors"]


def test_a_full_checkpoint_removes_what_a_killed_merge_left(chain: CheckpointChain) -> None:
    left = chain.folder / ".full-000000002.safetensors.abcd1234.staging"
    left.mkdir()
    (left / "new").write_text("part")
    save(chain, 4, full=True)
    assert names(chain.folder) == ["full-000000004.safetensors"]


def test_parts_of_a_merge_that_was_killed_are_ignored(chain: CheckpointChain) -> None:
    before = {name: (chain.folder / name).read_bytes() for name in names(chain.folder)}
    last = chain.load()[-1]
    chain.replace(StoredCheckpoint(3, last.link, {"at": 33}, {"x": np.array([33.0], np.float32)}))
    for name, content in before.items():
        (chain.folder / name).write_bytes(content)
    assert found(chain.folder) == [(3, 33, 33.0)]


def test_a_full_disk_leaves_the_checkpoint_before(chain: CheckpointChain) -> None:
    with file_size_limit(4096), pytest.raises(StorageError, match=r"cannot write .*changes-000000004"):
        chain.save(4, {}, {"large": np.zeros(100_000)}, full=False)
    assert [number for number, *_ in found(chain.folder)] == [1, 2, 3]
    save(chain, 4)
    assert [number for number, *_ in found(chain.folder)] == [1, 2, 3, 4]


def test_a_changed_value_is_noticed(chain: CheckpointChain) -> None:
    file = chain.folder / "changes-000000002.safetensors"
    facts, arrays = load_checkpoint(file)
    save_checkpoint(file, facts, {"x": arrays["x"] + 1})
    with pytest.raises(RunError, match=r"changes-000000002.* does not match its checksum; restore the folder"):
        chain.load()
    save_checkpoint(file, {**facts, "values": {"at": 99}}, arrays)
    with pytest.raises(RunError, match="does not match its checksum"):
        chain.load()


def test_a_file_of_another_state_is_noticed(chain: CheckpointChain, tmp_path: Path) -> None:
    other = CheckpointChain(tmp_path / "other")
    save(other, 1, full=True, value=5)
    save(other, 2)
    name = "changes-000000002.safetensors"
    (chain.folder / name).write_bytes((other.folder / name).read_bytes())
    with pytest.raises(RunError, match="does not continue the checkpoint before it"):
        chain.load()


def test_a_missing_file_is_noticed(chain: CheckpointChain) -> None:
    (chain.folder / "changes-000000002.safetensors").unlink()
    with pytest.raises(RunError, match=r"changes-000000002\.safetensors is missing, but later changes are there"):
        chain.load()


def test_another_kind_of_file_is_an_error(chain: CheckpointChain) -> None:
    save_checkpoint(chain.folder / "full-000000001.safetensors", {"values": {}}, {})
    with pytest.raises(RunError, match="is not a checkpoint of a stream"):
        chain.load()


def test_a_file_that_cannot_be_removed_is_ignored_and_removed_later(
    chain: CheckpointChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Path) -> None:
        raise OSError("Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        save(chain, 4, full=True)
    assert chain.num_changes == 2
    assert [one.number for one in CheckpointChain(chain.folder).load()] == [4]
    save(chain, 5, full=True)
    assert names(chain.folder) == ["full-000000005.safetensors"]
