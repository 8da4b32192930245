"""Findings: one line each, and one error for all of them."""

import pytest

from pathdex.data.findings import Finding, finding, raise_errors
from pathdex.errors import DataError, Problem

MISSING = finding("error", "D103", "has no such column", argument="item", value="itme", remedy="name another")


def test_a_finding_is_one_line():
    assert str(MISSING) == "error D103: item='itme': has no such column; name another"
    assert str(finding("warning", "D403", "short users", remedy="drop them")) == "warning D403: short users; drop them"
    assert finding("info", "D410", "all is well") == Finding("info", "D410", Problem("all is well"))


def test_errors_are_raised_together_with_their_fields():
    with pytest.raises(DataError) as caught:
        raise_errors([MISSING, finding("warning", "D403", "short users"), finding("error", "D201", "no ids")])
    assert caught.value.problems == (MISSING.problem, Problem("no ids"))


def test_warnings_alone_raise_nothing():
    raise_errors([finding("warning", "D403", "short users"), finding("info", "D410", "all is well")])
