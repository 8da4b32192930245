"""Batches on several threads."""

import threading

import pytest

from pathdex.recommenders.query_threads import in_threads


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100, 1001])
@pytest.mark.parametrize("threads", [None, 1, 2, 5])
def test_every_query_is_answered_once(count: int, threads: int | None) -> None:
    answered: list[int] = []
    lock = threading.Lock()

    def answer(queries: range) -> None:
        with lock:
            answered.extend(queries)

    in_threads(answer, count, threads)
    assert sorted(answered) == list(range(count))


def test_an_error_is_raised() -> None:
    def fail(queries: range) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_threads(fail, 100, 2)
