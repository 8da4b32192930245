import numba
import pytest

from pathdex.kernels import threads
from pathdex.kernels.threads import run_ranges


@pytest.mark.parametrize(("count", "least"), [(0, 1), (1, 1), (7, 1), (1000, 10), (1000, 600)])
@pytest.mark.parametrize("available", [1, 3])
def test_every_row_is_in_one_range(count: int, least: int, available: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "get_num_threads", lambda: available)
    found: list[tuple[int, int]] = []
    run_ranges(lambda first, end: found.append((first, end)), count, least=least)
    assert [row for first, end in sorted(found) for row in range(first, end)] == list(range(count))
    assert len(found) <= threads.RANGES_PER_THREAD * available
    assert len(found) == 1 or all(end - first >= least for first, end in found)


def test_an_error_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba, "get_num_threads", lambda: 2)

    def fail(first: int, end: int) -> None:
        raise ValueError(f"{first} to {end}")

    with pytest.raises(ValueError, match="0 to 1"):
        run_ranges(fail, 8, least=1)
