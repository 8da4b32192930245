"""Values of records; tests/data/test_events.py has the same rules inside events."""

from __future__ import annotations

import pytest

from pathdex.data.event_values import BrokenRuleError, parse_id, parse_time, parse_weight


def test_ids_keep_their_type_unless_all_is_text() -> None:
    assert (parse_id("item", "12"), parse_id("item", 12.0), parse_id("item", "007", text=True)) == ("12", 12, "007")
    assert parse_id("item", "12", text=True) == 12
    with pytest.raises(BrokenRuleError, match=r"^like must be text or a whole number, not True$"):
        parse_id("like", True)


def test_times_and_weights() -> None:
    assert (parse_time(None), parse_time("1970-01-01T00:00:09Z"), parse_weight("")) == (None, 9.0, 1.0)
    with pytest.raises(
        BrokenRuleError, match=r"^time must be seconds since 1970, before the year 2106, not 1000000000000.0$"
    ):
        parse_time(1e12)
    with pytest.raises(BrokenRuleError, match=r"^weight must be a number of at least 0, not -1$"):
        parse_weight(-1)
