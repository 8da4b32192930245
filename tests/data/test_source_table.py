"""Options of files."""

import pytest

from pathdex.data.source_table import FileOptions


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"separator": ""}, "must be one ASCII character"),
        ({"separator": "é"}, "must be one ASCII character"),
        ({"encoding": "base64"}, "is no known encoding of text"),
        ({"header": 1}, "must be true or false"),
    ],
)
def test_wrong_options(options, rule):
    (problem,) = FileOptions(**options).problems()
    assert problem.rule == rule


def test_only_given_options_of_text_files_count():
    assert FileOptions("csv", ";", header=False).text_options() == {"separator": ";", "header": False}
    assert not FileOptions().problems()
