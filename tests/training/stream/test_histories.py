"""Histories: bounds, eviction, and what a crash between checkpoint and commit leaves behind."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathdex.errors import StorageError
from pathdex.training.stream.histories import UserHistories


def test_a_history_holds_the_latest_items():
    histories = UserHistories(3)
    for time, token in enumerate([5, 6, 7, 8]):
        histories.append("u", token, time)
    assert histories.tokens("u") == [6, 7, 8]
    assert histories.last_time("u") == 3
    assert histories.tokens("v") == []
    assert histories.last_time("v") == -math.inf
    assert len(histories) == 1


def test_a_late_event_does_not_move_the_last_time_back():
    histories = UserHistories(3)
    histories.append("u", 1, 10)
    histories.append("u", 2, 5)
    assert histories.last_time("u") == 10


def test_users_beyond_memory_are_read_from_the_file(tmp_path):
    histories = UserHistories(2, tmp_path / "histories.sqlite", users_in_memory=2)
    for user in "abcde":
        histories.append(user, ord(user), 0)
    histories.commit(1)
    assert [histories.tokens(user) for user in "abcde"] == [[ord(user)] for user in "abcde"]
    histories.append("a", 1, 1)
    assert histories.tokens("a") == [97, 1]
    assert len(histories) == 5


def test_users_without_events_for_long_are_forgotten(tmp_path):
    for file in (None, tmp_path / "histories.sqlite"):
        histories = UserHistories(2, file, users_in_memory=1)
        for user, time in (("older", 0), ("old", 1), ("new", 11)):
            histories.append(user, 7, time)
        histories.commit(1)
        histories.forget_before(5)
        assert [histories.tokens(user) for user in ("older", "old", "new")] == [[], [], [7]]
        assert len(histories) == 1
        recovered = UserHistories(2, file)
        recovered.recover(histories.journal(), 2)
        assert [recovered.tokens(user) for user in ("older", "old", "new")] == [[], [], [7]]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), max_size=30), st.booleans())
@settings(deadline=None, max_examples=40)
def test_recovery_returns_to_the_checkpoint(tmp_path_factory, events, committed):
    """A crash after the checkpoint is published, before or after its commit, and some events later."""
    file = tmp_path_factory.mktemp("histories") / "histories.sqlite"
    half = len(events) // 2
    expected, histories = UserHistories(4), UserHistories(4, file, users_in_memory=1)
    for part, chunk in enumerate((events[: half // 2], events[half // 2 : half])):
        for time, (user, token) in enumerate(chunk):
            for one in (expected, histories):
                one.append(f"u{user}", token, time)
        journal = histories.journal()
        if part == 0 or committed:
            histories.commit(part + 1)
    for time, (user, token) in enumerate(events[half:]):
        histories.append(f"u{user}", token, time)
    histories.close()
    recovered = UserHistories(4, file, users_in_memory=1)
    recovered.recover(journal, 2)
    users = [f"u{user}" for user in range(6)]
    assert [recovered.tokens(user) for user in users] == [expected.tokens(user) for user in users]
    assert [recovered.last_time(user) for user in users] == [expected.last_time(user) for user in users]


def test_without_a_file_the_journal_has_all_users():
    histories = UserHistories(2)
    histories.append("ä", 1, 0.5)
    histories.commit(1)
    histories.append("b", 2, 1.5)
    recovered = UserHistories(2)
    recovered.recover(histories.journal(), 2)
    assert [recovered.tokens(user) for user in "äb"] == [[1], [2]]


def test_a_forgotten_user_who_returns_with_an_old_event_is_kept(tmp_path):
    histories = UserHistories(2, tmp_path / "histories.sqlite", users_in_memory=1)
    histories.append("u", 1, 0)
    histories.forget_before(100)
    histories.append("u", 2, 5)
    histories.commit(1)
    histories.append("v", 3, 200)
    histories.commit(2)
    assert histories.tokens("u") == [2]


def test_a_file_older_than_the_checkpoint_is_rejected(tmp_path):
    histories = UserHistories(2, tmp_path / "histories.sqlite")
    with pytest.raises(StorageError, match="belongs to checkpoint 0, older than checkpoint 3"):
        histories.recover(UserHistories(2).journal(), 3)


def test_a_file_newer_than_the_checkpoint_is_rejected(tmp_path):
    histories = UserHistories(2, tmp_path / "histories.sqlite")
    histories.commit(8)
    with pytest.raises(StorageError, match="belongs to checkpoint 8, newer than checkpoint 7"):
        histories.recover(UserHistories(2).journal(), 7)


def test_a_file_that_is_no_database_is_rejected(tmp_path):
    (tmp_path / "histories.sqlite").write_bytes(np.random.default_rng(0).bytes(4096))
    with pytest.raises(StorageError, match="cannot open the histories"):
        UserHistories(2, tmp_path / "histories.sqlite")


def test_a_file_that_cannot_be_created_is_an_error_with_the_reason(tmp_path):
    (tmp_path / "histories.sqlite").mkdir()
    with pytest.raises(StorageError, match=r"cannot open the histories .*: Is a directory; check the path"):
        UserHistories(2, tmp_path / "histories.sqlite")
