"""Lists in options."""

from __future__ import annotations

import pytest

from pathdex.cli.command import numbers, words
from pathdex.errors import ConfigError


def test_words_are_separated_by_commas() -> None:
    assert words(" a, b c,,d ", "--deny") == ["a", "b c", "d"]
    assert words(None, "--deny") == []


def test_an_option_that_names_nothing_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^--deny ' ,': must name at least one, separated by commas$"):
        words(" ,", "--deny")


def test_numbers_are_whole_and_positive() -> None:
    assert numbers("50, 100", "--beam") == [50, 100]
    message = r"^--beam '5,x,0': x, 0 must be whole numbers of at least 1; write them as 50,100,200$"
    with pytest.raises(ConfigError, match=message):
        numbers("5,x,0", "--beam")
