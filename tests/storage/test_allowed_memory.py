"""Limits of memory by control groups."""

from __future__ import annotations

from pathdex.storage.allowed_memory import allowed_memory, group_limits


def test_this_process_may_use_some_memory():
    assert allowed_memory() > 2**20


def test_the_groups_of_both_versions(tmp_path):
    own = tmp_path / "own"
    own.write_text("4:cpu:/ignored\n5:memory:/a/b\n0::/c/d\n")
    for folder, name, limit in (
        ("groups/memory/a/b", "memory.limit_in_bytes", "300"),
        ("groups/memory/a", "memory.limit_in_bytes", "200"),
        ("groups/c/d", "memory.max", "max"),
        ("groups/c", "memory.max", "100"),
    ):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / name).write_text(f"{limit}\n")
    assert list(group_limits(tmp_path / "groups", own)) == [300, 200, 100]


def test_a_system_without_groups(tmp_path):
    assert list(group_limits(tmp_path, tmp_path / "missing")) == []
