"""How figures are written."""

from __future__ import annotations

from pathdex.experiments.report.wording import difference, listed, mean, milliseconds, share, times


def test_shares_have_a_deviation_if_it_is_known() -> None:
    assert share({"f": 0.12345, "f_deviation": 0.01}, "f") == "12.35 ± 1.00"
    assert share({"f": 0.5, "f_deviation": None}, "f", 1) == "50.0"


def test_differences_have_a_sign_and_an_interval() -> None:
    assert difference({"difference": 0.01, "low": -0.005, "high": 0.025}) == ["+1.00", "-0.50 to +2.50"]


def test_times_are_in_milliseconds() -> None:
    assert milliseconds(0.0012345) == "1.234"
    assert times({"t": 0.002, "t_low": 0.001, "t_high": 0.003}, "t") == ["2.000", "1.000 to 3.000"]


def test_the_mean_skips_unknown_values() -> None:
    assert mean([1.0, None, 3.0]) == 2.0
    assert mean([None]) is None


def test_hyper_parameters_are_listed_as_json() -> None:
    assert listed({"encoder": "gru", "epochs": 3}) == 'encoder "gru", epochs 3'


def test_a_figure_that_was_not_measured_is_a_dash() -> None:
    assert share({"f": 0.5, "f_deviation": None}, "g") == "–"
