"""Signals that arrive before a server handles them."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from pathdex.server.early_signals import SIGNALS, EarlySignals


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_exits_until_it_is_held(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in SIGNALS]
    with EarlySignals() as early:
        with pytest.raises(SystemExit) as caught:
            os.kill(os.getpid(), number)
        assert caught.value.code == 0
        assert not early.received
        early.hold()
        os.kill(os.getpid(), number)
        assert early.received
        with pytest.raises(SystemExit):  # Whoever sends it twice does not want to wait.
            os.kill(os.getpid(), number)
    assert [signal.getsignal(one) for one in SIGNALS] == before


def test_other_threads_get_no_signals() -> None:
    def work() -> None:
        with EarlySignals() as early:
            early.hold()
            found.append(signal.getsignal(signal.SIGTERM))

    found: list[object] = []
    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]
