"""The options of a split."""

from __future__ import annotations

from pathdex.cli.splitting import OPTIONS, as_split
from pathdex.experiments.splitting import SPLIT_OPTIONS


def test_every_option_of_every_split_is_a_flag() -> None:
    names = {name for names in SPLIT_OPTIONS.values() for name in names}
    assert {option.name for option in OPTIONS} == {"split", *names}


def test_the_kind_is_stored_under_its_own_name() -> None:
    assert as_split({"split": "leave-last", "k": 2}) == {"kind": "leave-last", "k": 2}
    assert as_split({}) == {}
