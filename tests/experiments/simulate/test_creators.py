"""Few creators have large audiences; videos follow their creators."""

from __future__ import annotations

import numpy as np

from pathdex.experiments.simulate.creators import plant_creators, plant_videos

SHARES = np.full(8, 1 / 8)
CREATORS = plant_creators(np.random.default_rng(0), 1000, SHARES)
VIDEOS = plant_videos(np.random.default_rng(1), CREATORS, np.arange(5000.0))


def test_a_fifth_of_the_creators_has_most_of_the_audience() -> None:
    large = CREATORS.audience[~CREATORS.small]
    assert len(large) == 200
    assert large.min() >= CREATORS.audience[CREATORS.small].max()
    assert large.sum() > 0.6 * CREATORS.audience.sum()


def test_a_video_has_the_topics_of_its_creator() -> None:
    expected = np.sort(CREATORS.topics[VIDEOS.creator], axis=1)
    assert np.array_equal(np.sort(VIDEOS.topics, axis=1), expected)


def test_creators_with_large_audiences_upload_more_and_reach_more() -> None:
    uploads = np.bincount(VIDEOS.creator, minlength=1000)
    assert uploads[~CREATORS.small].mean() > 2 * uploads[CREATORS.small].mean()
    assert np.allclose(VIDEOS.reach, np.sqrt(CREATORS.audience[VIDEOS.creator]))


def test_videos_are_counted_by_time() -> None:
    assert [VIDEOS.count(now) for now in (-1.0, 0.0, 9.5, 1e9)] == [0, 1, 10, 5000]
    assert len(VIDEOS) == 5000
