import pytest

from pathdex.training.schedule import cosine_rate


def test_the_rate_falls_from_1_to_2_percent() -> None:
    assert cosine_rate(0.0) == pytest.approx(1.0)
    assert cosine_rate(0.5) == pytest.approx(0.51)
    assert cosine_rate(1.0) == pytest.approx(0.02)


def test_the_rate_stays_in_its_range_outside() -> None:
    assert (cosine_rate(-1.0), cosine_rate(2.0)) == (cosine_rate(0.0), cosine_rate(1.0))
