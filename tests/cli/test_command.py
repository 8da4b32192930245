"""Options that hold lists."""

from __future__ import annotations

import pytest

from pathdex.cli.command import split_integers, split_list
from pathdex.errors import ConfigError


def test_parts_are_separated_by_commas() -> None:
    assert split_list(" a, b c,,d ", "--deny") == ["a", "b c", "d"]
    assert split_list(None, "--deny") == []


def test_an_empty_list_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"^--deny=' ,': must name at least one, separated by commas$"):
        split_list(" ,", "--deny")


def test_numbers_are_whole_and_positive() -> None:
    assert split_integers("50, 100", "--beam") == [50, 100]
    assert split_integers("0,3", "--seeds", low=0) == [0, 3]
    message = r"^--beam='5,x,0': must be whole numbers of at least 1; separate them by commas, as in 5,10,20$"
    with pytest.raises(ConfigError, match=message):
        split_integers("5,x,0", "--beam")
