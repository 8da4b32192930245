import os
import sys
import threading

import pytest

from pathdex.training.malloc import keep_freed_memory, return_freed_memory


def test_glibc_takes_the_settings_and_other_systems_are_left_alone() -> None:
    assert keep_freed_memory() is sys.platform.startswith("linux")


def resident_bytes() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_what_a_thread_freed_returns_to_the_system() -> None:
    if not return_freed_memory():
        pytest.skip("needs glibc")
    kept, size = [], 60_000

    def work() -> None:
        blocks = [b"x" * size for _ in range(1000)]
        kept.append(b"x" * size)  # Above the others, so the arena does not shrink by itself.
        blocks.clear()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    before = resident_bytes()
    assert return_freed_memory()
    assert before - resident_bytes() > 30_000_000
