"""Traffic depends on the seed and the tick alone; nobody sees a video twice."""

from __future__ import annotations

import numpy as np

from pathdex.experiments.simulate.platform import Platform
from pathdex.experiments.simulate.traffic import (
    ARRIVALS,
    NEW_SECONDS,
    NOTHING,
    Requests,
    arrivals,
    best_of,
    browse,
    buckets,
    draw,
    fill_new_slot,
    new_uploads,
)
from tests.experiments.simulate.conftest import TINY, requests_of, with_changes


def test_different_users_arrive_and_active_ones_more_often() -> None:
    activity = np.array([1.0] * 50 + [9.0] * 50)
    ticks = [arrivals(draw(TINY, ARRIVALS, tick), activity, 20) for tick in range(50)]
    assert all(len(set(users.tolist())) == 20 for users in ticks)
    everyone = np.concatenate(ticks)
    assert (everyone >= 50).sum() > 2 * (everyone < 50).sum()
    assert np.array_equal(ticks[3], arrivals(draw(TINY, ARRIVALS, 3), activity, 20))


def test_buckets_are_even_and_do_not_depend_on_other_users() -> None:
    found = buckets(5000, 5, 0)
    assert np.bincount(found).min() > 900
    assert np.array_equal(found[:100], buckets(100, 5, 0))
    assert not np.array_equal(found, buckets(5000, 5, 1))


def test_the_best_videos_that_were_not_shown() -> None:
    keys = np.array([[5.0, 4.0, 3.0, 2.0], [1.0, 2.0, 3.0, 4.0]])
    requests = requests_of([0, 1], 0.0, [[0, 2], [99]])
    assert best_of(keys, requests, 3).tolist() == [[1, 3, NOTHING], [3, 2, 1]]


def test_fewer_videos_than_places() -> None:
    assert best_of(np.array([[1.0, 2.0]]), requests_of([0], 0.0), 3, first=7).tolist() == [[8, 7, NOTHING]]


def test_browsing_prefers_what_appeals() -> None:
    platform = Platform(TINY)
    requests = requests_of(range(100), 60.0)
    pages = browse(np.random.default_rng(0), platform, requests, 4)
    assert (pages < platform.videos.count(60.0)).all()
    anything = np.random.default_rng(0).integers(0, platform.videos.count(60.0), pages.shape)
    mean = platform.appeal(requests.users, pages, 60.0).mean()
    assert mean > platform.appeal(requests.users, anything, 60.0).mean() + 0.5


def test_the_new_slot_holds_recent_uploads() -> None:
    platform = Platform(with_changes(minutes=30))
    now = 1200.0
    found = new_uploads(np.random.default_rng(0), platform, requests_of(range(200), now))
    ages = now - platform.videos.uploaded[found]
    assert ages.min() >= 0
    assert ages.max() <= NEW_SECONDS


def test_without_uploads_the_slot_stays_empty() -> None:
    platform = Platform(with_changes(uploads_per_minute=0.0, appeal_half_life=0.1))
    assert (new_uploads(np.random.default_rng(0), platform, requests_of([1], 3000.0)) == NOTHING).all()


def test_the_slot_is_filled_unless_the_user_knows_the_video() -> None:
    pages = np.array([[1, 2], [1, 2], [1, 2], [9, 2], [1, 2]])
    requests = requests_of(range(5), 0.0, [[], [], [9], [], []])
    uploads = np.array([9, 9, 9, 9, NOTHING])
    filled_pages, filled = fill_new_slot(pages, requests, uploads, np.array([True, False, True, True, True]))
    assert filled_pages.tolist() == [[1, 9], [1, 2], [1, 2], [9, 2], [1, 2]]
    assert filled.tolist() == [[False, True], *[[False, False]] * 4]


def test_taking_some_requests() -> None:
    requests = Requests(np.array([5, 6, 7]), [[1], [2], [3]], [[4], [5], [6]], 9.0)
    some = requests.take(np.array([2, 0]))
    assert (some.users.tolist(), some.histories, some.shown, some.now) == ([7, 5], [[3], [1]], [[6], [4]], 9.0)
