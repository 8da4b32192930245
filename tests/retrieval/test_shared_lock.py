"""Many readers or one writer."""

from __future__ import annotations

import threading
import time

import pytest

from pathdex.retrieval import shared_lock
from pathdex.retrieval.shared_lock import SharedLock


def in_thread(work) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_readers_share_it_and_may_share_it_again() -> None:
    lock, inside = SharedLock(), threading.Barrier(2, timeout=10)

    def read() -> None:
        with lock, lock:
            inside.wait()

    for thread in [in_thread(read), in_thread(read)]:
        thread.join()
    with lock.exclusive():
        pass


def test_a_writer_is_alone() -> None:
    lock, value, seen = SharedLock(), [0, 0], set()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            with lock:
                seen.add(value[0] == value[1])

    threads = [in_thread(read), in_thread(read)]
    for _ in range(50):
        with lock.exclusive():
            value[0] += 1
            time.sleep(0.0005)
            value[1] += 1
    stop.set()
    for thread in threads:
        thread.join()
    assert seen == {True}


def test_a_long_reader_does_not_hold_up_others_while_a_writer_waits() -> None:
    lock, release, written = SharedLock(), threading.Event(), []

    def long_read() -> None:
        with lock:
            release.wait(10)

    def write() -> None:
        with lock.exclusive():
            written.append(True)

    reader = in_thread(long_read)
    while not lock._readers:
        time.sleep(0.001)
    writer = in_thread(write)
    time.sleep(3 * shared_lock.GRACE_SECONDS)
    with lock:
        assert not written
    release.set()
    writer.join(10)
    reader.join(10)
    assert written


def test_readers_that_never_stop_do_not_starve_a_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_lock, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(shared_lock, "GRACE_SECONDS", 0.0)
    lock, stop = SharedLock(), threading.Event()

    def read() -> None:
        while not stop.is_set():
            with lock:
                time.sleep(0.01)

    threads = [in_thread(read) for _ in range(4)]
    with lock.exclusive():
        stop.set()
    for thread in threads:
        thread.join()


def test_a_reader_cannot_become_the_writer() -> None:
    lock = SharedLock()
    with lock, pytest.raises(RuntimeError, match="leave the `with` block first"), lock.exclusive():
        pass
    with lock.exclusive():
        pass
