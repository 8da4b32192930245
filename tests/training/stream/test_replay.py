"""Replayed histories as samples, and the users that they are drawn from."""

import numpy as np
import pytest

from pathdex.training.stream.replay import KEEP, RecentUsers, draw_window, first_target, merge_recent, replay_batch


def batch_of(histories, length=4, next_items=1, seed=0):
    return replay_batch(histories, length, next_items, np.random.default_rng(seed))


def read(batch, sample):
    """The items that the state of a sample has read; -1 is the start token."""
    return batch.inputs[batch.window[sample], : batch.time[sample] + 1].tolist()


def test_every_item_of_a_short_history_is_predicted_from_those_before_it():
    batch = batch_of([[5, 6, 7]])
    assert batch.targets.tolist() == [5, 6, 7]
    assert [read(batch, sample) for sample in range(3)] == [[-1], [-1, 5], [-1, 5, 6]]


def test_a_full_history_has_no_start_and_its_first_half_is_only_read():
    batch = batch_of([[5, 6, 7, 8]])
    assert batch.targets.tolist() == [7, 8]
    assert [read(batch, sample) for sample in range(2)] == [[5, 6], [5, 6, 7]]


def test_histories_of_different_lengths_share_a_batch():
    batch = batch_of([[1, 2], [5, 6, 7, 8]])
    assert batch.targets.tolist() == [1, 2, 7, 8]
    assert batch.window.tolist() == [0, 0, 1, 1]
    assert [read(batch, sample) for sample in range(4)] == [[-1], [-1, 1], [5, 6], [5, 6, 7]]


def test_with_more_next_items_histories_end_earlier_but_never_later():
    histories = [list(range(10, 16))] * 50
    direct, ahead = batch_of(histories, length=9), batch_of(histories, length=9, next_items=3)
    assert ahead.targets.tolist() == direct.targets.tolist()
    distances = np.unique(direct.time - ahead.time)
    assert distances.tolist() == [0, 1, 2]


def test_a_full_history_is_read_far_enough_before_it_predicts_ahead():
    batch = batch_of([list(range(8))] * 50, length=8, next_items=100)
    assert batch.time.min() == 3


@pytest.mark.parametrize(("items", "expected"), [(2, 0), (5, 0), (6, 3), (7, 3)])
def test_only_a_history_that_may_have_lost_its_start_begins_later(items, expected):
    assert first_target([0] * items, 6) == expected


def test_users_are_drawn_by_their_events_until_there_are_enough_samples():
    users = RecentUsers(100)
    for number in range(100):
        users.append(f"u{number % 10}")
    found = users.draw(9, 69, lambda user: [int(user[1:])] * 3, np.random.default_rng(0))
    assert len(found) == 3
    assert len({history[0] for history in found}) == 3


def test_fewer_users_than_wanted_are_all_drawn():
    users = RecentUsers(10)
    for user in ("a", "b", "c"):
        users.append(user)
    histories = {"a": [1, 2], "b": [3], "c": []}
    assert users.draw(1000, 69, histories.__getitem__, np.random.default_rng(0)) == [[1, 2]]


def test_nothing_is_drawn_where_nothing_is_wanted_or_known():
    assert RecentUsers(10).draw(5, 69, lambda user: [1, 2], np.random.default_rng(0)) == []
    users = RecentUsers(10)
    users.append("a")
    assert users.draw(0, 69, lambda user: [1, 2], np.random.default_rng(0)) == []


def test_only_the_users_of_the_last_events_are_kept():
    users = RecentUsers(2)
    for user in ("a", "b", "c"):
        users.append(user)
    drawn = {tuple(one) for one in users.draw(50, 69, lambda user: [ord(user), 0], np.random.default_rng(0))}
    assert drawn == {(ord("b"), 0), (ord("c"), 0)}


def test_the_users_survive_a_checkpoint():
    users, other = RecentUsers(5), RecentUsers(5)
    for user in ("ä", "", "c\udc80"):
        users.append(user)
    other.append("gone")
    other.load_state_dict(users.state_dict())
    assert len(other) == 3
    drawn = [one.draw(30, 69, lambda user: [len(user), 1], np.random.default_rng(1)) for one in (users, other)]
    assert drawn[0] == drawn[1]
    assert sorted(drawn[1]) == [[0, 1], [1, 1], [2, 1]]


@pytest.mark.parametrize("steps", [[3], [2, 2], [0, 4, 1], [9, 2], [1, 9, 0, 3]])
def test_changes_since_each_checkpoint_give_the_users_of_the_last(steps):
    users, number = RecentUsers(4), 0
    found = users.state_dict()
    for step in steps:
        for _ in range(step):
            users.append(f"u{number}")
            number += 1
        change = users.changes_dict()
        assert len(change["ends"]) == min(step, 4)
        found = merge_recent(found, change)
        users.committed()
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in users.state_dict().items()
    }


def test_a_change_of_an_earlier_version_holds_all_users():
    users, other = RecentUsers(4), RecentUsers(4)
    users.append("a")
    other.append("b")
    change = {name: array for name, array in other.state_dict().items() if name != KEEP}
    assert merge_recent(users.state_dict(), change)["names"].tobytes() == b"b"


def test_the_latest_users_come_once_by_their_last_event():
    users = RecentUsers(4)
    for user in "abcdcb":
        users.append(user)
    assert users.latest(10) == ["d", "c", "b"]
    assert users.latest(2) == ["c", "b"]


def test_draws_after_a_restart_are_those_without_one():
    users, other = RecentUsers(5), RecentUsers(5)
    for number in range(13):
        users.append(f"u{number % 7}")
    other.load_state_dict(users.state_dict())
    for one in (users, other):
        one.append("u9")
    drawn = [one.draw(4, 69, lambda user: [int(user[1:]), 0], np.random.default_rng(2)) for one in (users, other)]
    assert drawn[0] == drawn[1]


def windows_of(size, keep=100, length=4):
    generator = np.random.default_rng(0)
    return [list(draw_window(range(size), length, keep, generator)) for _ in range(2000)]


def test_a_history_that_the_encoder_reads_as_a_whole_is_its_own_window():
    assert windows_of(4) == 2000 * [[0, 1, 2, 3]]


def test_windows_of_a_long_history_are_consecutive_items_and_reach_all_of_them():
    windows = windows_of(11)
    assert all(one == list(range(one[0], one[-1] + 1)) and 1 <= len(one) <= 4 for one in windows)
    assert all(len(one) == 4 for one in windows if one[0] > 0)
    predicted = [item for one in windows for item in one[first_target(one, 4) :]]
    counts = np.bincount(predicted, minlength=11)
    assert counts.min() > 0.5 * counts.max()


def test_windows_of_a_history_that_may_have_lost_its_start_are_full():
    assert {len(one) for one in windows_of(11, keep=11)} == {4}
