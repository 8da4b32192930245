"""Presets and defaults, and what is refused before any data is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pathdex.errors import ConfigError, QueryError, RunError
from pathdex.experiments.report_request import ReproduceOptions, check_same, command_line, make_report_request

EVENTS = ReproduceOptions(Path("events.parquet"), methods=["item-cf", "deep-retrieval", "brute-force"])


def test_defaults_for_any_data() -> None:
    request = make_report_request(EVENTS)
    assert (request.n, request.seeds, request.preset, request.split) == (10, (0, 1, 2), "none", {"kind": "users"})
    assert request.tuned == ("item-cf", "deep-retrieval")
    assert request.parameters == {"item-cf": {}, "deep-retrieval": {}, "brute-force": {}}


def test_options_override_the_preset() -> None:
    books = make_report_request(
        replace(EVENTS, source=Path("ratings_Books.csv"), n=50, reading={"min_interactions": 5})
    )
    assert (books.n, books.seeds) == (50, (0, 1, 2, 3, 4))
    assert books.reading == {"min_interactions": 5, "format": "amazon"}
    assert books.parameters["deep-retrieval"]["schedule"] == "paper"
    assert books.tuned == ("item-cf",)  # the paper's hyper-parameters are not tuned
    later = make_report_request(replace(EVENTS, source=Path("ratings_Books.csv"), split={"kind": "temporal"}))
    assert later.split == {"kind": "temporal"}


def test_a_quick_run_has_one_seed_four_methods_and_no_tuning() -> None:
    quick = make_report_request(replace(EVENTS, quick=True, parameters={"deep-retrieval": {"epochs": 1}}))
    assert (quick.seeds, quick.tuned) == ((0,), ())
    assert quick.parameters["deep-retrieval"] == {"epochs": 1}
    assert quick.methods == tuple(EVENTS.methods)
    unnamed = make_report_request(replace(EVENTS, quick=True, methods=()))
    assert unnamed.methods == ("popularity", "item-cf", "deep-retrieval", "brute-force")
    assert quick.budget.max_held_out == 200
    assert make_report_request(replace(EVENTS, quick=True, seeds=[4, 5])).seeds == (4, 5)


def test_the_sensitivity_study_needs_deep_retrieval() -> None:
    assert not make_report_request(replace(EVENTS, methods=["item-cf"])).sensitivity
    assert make_report_request(EVENTS).sensitivity


def test_invalid_options_are_refused() -> None:
    with pytest.raises(QueryError, match=r"^n=0: must be a whole number of at least 1"):
        make_report_request(replace(EVENTS, n=0))
    with pytest.raises(ConfigError, match=r"^seeds=\[1, 2, 1\]: must differ; leave repeated seeds out$"):
        make_report_request(replace(EVENTS, seeds=[1, 2, 1]))
    with pytest.raises(
        ConfigError, match=r"^parameters=\{'tdm': .*\}: tdm is not among the methods, item-cf, deep-retr"
    ):
        make_report_request(replace(EVENTS, parameters={"tdm": {"epochs": 2}}))
    with pytest.raises(ConfigError, match=r": brute-force searches the vectors of deep-retrieval; set those of deep-"):
        make_report_request(replace(EVENTS, parameters={"brute-force": {"epochs": 2}}))
    with pytest.raises(ConfigError, match=r"^depth=0: must be at least 1"):
        make_report_request(replace(EVENTS, parameters={"deep-retrieval": {"depth": 0}}))
    with pytest.raises(ConfigError, match=r"^k=2: belongs to split='leave-last', not 'users'; leave it out$"):
        make_report_request(replace(EVENTS, split={"k": 2}))


def test_the_equivalent_command() -> None:
    options = replace(
        EVENTS,
        source=Path("/somewhere/events.parquet"),
        split={"kind": "leave-last", "k": 2},
        reading={"min_rating": 4.0},
        seeds=[0, 1],
        n=20,
        tune=False,
        parameters={"deep-retrieval": {"encoder": "pooled"}},
    )
    assert command_line(options, Path("out")) == (
        "pathdex reproduce events.parquet --out out --min-rating 4.0 --split leave-last --k 2 "
        "--methods item-cf,deep-retrieval,brute-force --seeds 0,1 --n 20 --no-tune "
        "--set 'deep-retrieval.encoder=\"pooled\"'"
    )


def test_differences_are_listed() -> None:
    check_same(Path("r"), {"n": 10}, {"n": 10})
    with pytest.raises(
        RunError, match=r"^r cannot be resumed with other options: n=5, but the report has 10; use the same op"
    ):
        check_same(Path("r"), {"n": 10, "quick": True}, {"n": 5, "quick": True})
