"""Appeal is as planted: interest, style, quality, and age."""

from __future__ import annotations

import numpy as np
import pytest

from pathdex.experiments.simulate.platform import AGE, INTEREST, OFFSET, STYLE, Platform, upload_times
from tests.experiments.simulate.conftest import TINY, with_changes


def test_uploads_come_at_regular_times() -> None:
    times = upload_times(with_changes(videos=60, uploads_per_minute=60.0))
    assert (np.diff(times) > 0).all()
    assert times[:60].max() < 0
    assert times[60:].tolist() == list(range(1, int(TINY.end_seconds) + 1))


def test_without_uploads_the_catalogue_is_closed() -> None:
    assert len(upload_times(with_changes(uploads_per_minute=0.0))) == TINY.videos


def test_appeal_by_hand() -> None:
    platform = Platform(TINY)
    user, video, now = 3, 50, 100.0
    videos, creator = platform.videos, platform.videos.creator[50]
    main, second = videos.topics[video]
    shares = platform.audience.interests(np.array([user]))[0]
    age = now - videos.uploaded[video]
    expected = (
        OFFSET
        + INTEREST * np.sqrt(0.7 * shares[main] + 0.3 * shares[second])
        + STYLE * platform.audience.taste[user] @ platform.creators.style[creator]
        + videos.quality[video]
        - AGE * (1 - 0.5 ** (age / (60 * TINY.appeal_half_life)))
    )
    assert platform.appeal(np.array([user]), np.array([[video]]), now)[0, 0] == pytest.approx(expected)


def test_old_videos_lose_appeal() -> None:
    platform = Platform(TINY)
    users, videos = np.arange(5), np.broadcast_to(np.arange(20), (5, 20))
    assert (platform.appeal(users, videos, 600.0) < platform.appeal(users, videos, 0.0)).all()


def test_a_seed_plants_the_same_platform() -> None:
    first, again, other = Platform(TINY), Platform(TINY), Platform(with_changes(seed=1))
    assert np.array_equal(first.videos.quality, again.videos.quality)
    assert not np.array_equal(first.videos.quality, other.videos.quality)
