"""Calls with a time-out of ours."""

import threading

import pytest

from pathdex.training.distributed.bounded_calls import BoundedCalls


def test_results_and_errors_arrive() -> None:
    calls = BoundedCalls()
    assert calls.call(lambda: 7, 60.0) == 7
    with pytest.raises(ZeroDivisionError):
        calls.call(lambda: 1 // 0, 60.0)
    assert calls.call(lambda: 8, 60.0) == 8


def test_a_call_that_does_not_return_is_an_error() -> None:
    calls, end = BoundedCalls(), threading.Event()
    with pytest.raises(RuntimeError, match=r"no answer within 0\.01 s"):
        calls.call(end.wait, 0.01)
    end.set()
    assert calls.call(lambda: 7, 60.0) == 7
