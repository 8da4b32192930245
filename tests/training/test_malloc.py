import sys

from pathdex.training.malloc import keep_freed_memory


def test_glibc_takes_the_settings_and_other_systems_are_left_alone() -> None:
    assert keep_freed_memory() is sys.platform.startswith("linux")
