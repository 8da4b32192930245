"""The options of `pathdex.read`."""

from __future__ import annotations

import inspect

from pathdex.cli.reading import OPTIONS
from pathdex.data.readers import read


def test_every_option_of_read_is_a_flag() -> None:
    parameters = inspect.signature(read).parameters
    assert {option.name for option in OPTIONS} == {name for name in parameters if name != "source"}


def test_flags_are_none_if_not_given() -> None:
    assert {option.default for option in OPTIONS} == {None}
