"""Where the command line prints."""

from __future__ import annotations

import pytest

from pathdex.cli.console import LOG_WIDTH, err, out


def test_results_and_messages_go_to_different_streams(capsys: pytest.CaptureFixture[str]) -> None:
    out().print("a result")
    err().print("a message")
    assert capsys.readouterr() == ("a result\n", "a message\n")


def test_text_is_not_taken_as_markup_and_long_lines_are_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    line = "item [red]:smile: " + "x" * (2 * LOG_WIDTH)
    out().print(line)
    assert capsys.readouterr().out == f"{line}\n"


def test_piped_tables_are_as_wide_as_the_variable_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert out().width == 80
    monkeypatch.delenv("COLUMNS")
    assert out().width == LOG_WIDTH
