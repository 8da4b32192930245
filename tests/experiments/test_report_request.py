"""What is asked for, with everything filled in, and what is refused before anything is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pathdex.errors import ConfigError, QueryError, RunError
from pathdex.experiments.report_request import Asked, check_asked, check_same, command_line

EVENTS = Asked(Path("events.parquet"), methods=["item-cf", "deep-retrieval", "brute-force"])


def test_defaults_for_any_data() -> None:
    request = check_asked(EVENTS)
    assert (request.n, request.seeds, request.preset, request.split) == (10, (0, 1, 2), "none", {"kind": "users"})
    assert request.tuned == ("item-cf", "deep-retrieval")
    assert request.parameters == {"item-cf": {}, "deep-retrieval": {}, "brute-force": {}}


def test_a_preset_is_overridden_by_what_is_given() -> None:
    books = check_asked(replace(EVENTS, source=Path("ratings_Books.csv"), n=50, reading={"min_interactions": 5}))
    assert (books.n, books.seeds) == (50, (0, 1, 2, 3, 4))
    assert books.reading == {"min_interactions": 5, "format": "amazon"}
    assert books.parameters["deep-retrieval"]["schedule"] == "paper"
    assert books.tuned == ("item-cf",)  # the paper's settings stay as they are
    later = check_asked(replace(EVENTS, source=Path("ratings_Books.csv"), split={"kind": "temporal"}))
    assert later.split == {"kind": "temporal"}


def test_a_quick_look_has_one_seed_few_epochs_and_nothing_tuned() -> None:
    quick = check_asked(replace(EVENTS, quick=True, parameters={"deep-retrieval": {"epochs": 1}}))
    assert (quick.seeds, quick.tuned) == ((0,), ())
    assert quick.parameters["deep-retrieval"] == {"epochs": 1, "rounds": 2, "final_epochs": 1}
    assert quick.effort.most_held_out == 200
    assert check_asked(replace(EVENTS, quick=True, seeds=[4, 5])).seeds == (4, 5)


def test_without_deep_retrieval_there_is_no_index_to_study() -> None:
    assert not check_asked(replace(EVENTS, methods=["item-cf"])).sensitivity
    assert check_asked(EVENTS).sensitivity


def test_what_is_known_to_be_wrong() -> None:
    with pytest.raises(QueryError, match=r"^n=0: must be a whole number of at least 1"):
        check_asked(replace(EVENTS, n=0))
    with pytest.raises(ConfigError, match=r"^seeds=1,2,1: must differ; a seed twice is one measurement$"):
        check_asked(replace(EVENTS, seeds=[1, 2, 1]))
    with pytest.raises(ConfigError, match=r"^parameters of tdm: is not among the methods, item-cf, deep-retrieval"):
        check_asked(replace(EVENTS, parameters={"tdm": {"epochs": 2}}))
    with pytest.raises(ConfigError, match=r"^parameters of brute-force: it searches the vectors of deep-retrieval"):
        check_asked(replace(EVENTS, parameters={"brute-force": {"epochs": 2}}))
    with pytest.raises(ConfigError, match=r"^depth=0: must be at least 1"):
        check_asked(replace(EVENTS, parameters={"deep-retrieval": {"depth": 0}}))
    with pytest.raises(ConfigError, match=r"^k=2: belongs to split='leave-last', not 'users'; leave it out$"):
        check_asked(replace(EVENTS, split={"k": 2}))


def test_the_command_that_asks_for_the_same() -> None:
    asked = replace(
        EVENTS,
        source=Path("/somewhere/events.parquet"),
        split={"kind": "leave-last", "k": 2},
        reading={"min_rating": 4.0},
        seeds=[0, 1],
        n=20,
        tune=False,
        parameters={"deep-retrieval": {"encoder": "pooled"}},
    )
    assert command_line(asked, Path("out")) == (
        "pathdex reproduce events.parquet --out out --min-rating 4.0 --split leave-last --k 2 "
        "--methods item-cf,deep-retrieval,brute-force --seeds 0,1 --n 20 --no-tune "
        "--set 'deep-retrieval.encoder=\"pooled\"'"
    )


def test_differences_are_named() -> None:
    check_same(Path("r"), {"n": 10}, {"n": 10})
    with pytest.raises(
        RunError, match=r"^r goes on as it was begun: n=5, but the report has 10; ask for the same, or wr"
    ):
        check_same(Path("r"), {"n": 10, "quick": True}, {"n": 5, "quick": True})
