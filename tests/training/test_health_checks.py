from pathlib import Path
from typing import Any

import pytest

from pathdex.config import Config
from pathdex.training.health_checks import index_warnings, outgrown_warning

GOOD: dict[str, Any] = {"used_paths": 1000, "entropy_share": 0.9, "item_mean_size": 8.0, "top_size": 40}


def codes(previous: dict[str, Any] | None = None, path_size: float | None = 8.0, **changes: Any) -> list[str]:
    return [text[:4] for text in index_warnings({**GOOD, **changes}, previous, path_size)]


def test_healthy_index_has_no_warnings() -> None:
    assert codes() == []
    assert codes(previous=GOOD) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"used_paths": 700}, "W101"),
        ({"entropy_share": 0.4}, "W102"),
        ({"top_size": 200}, "W103"),
        ({"item_mean_size": 10.0}, "W104"),
        ({"item_mean_size": 6.0}, "W104"),
    ],
)
def test_each_problem_has_a_code(changes: dict[str, Any], code: str) -> None:
    assert codes(previous=GOOD, **changes) == [code]


def test_fixed_penalty_has_no_target_size() -> None:
    assert codes(path_size=None, item_mean_size=30.0) == []


def test_docs_explain_every_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "warnings.md").read_text()
    assert all(f"## {code}" in page for code in ("W101", "W102", "W103", "W104"))


def test_a_catalogue_that_needs_more_than_half_of_the_paths_has_outgrown_them() -> None:
    config = Config(num_nodes=10, depth=2, paths_per_item=2, path_size=4)
    assert outgrown_warning(100, config) is None
    expected = "W301: 101 items need about 50 paths, and num_nodes=10 has 100; train a model on more nodes and stream "
    assert outgrown_warning(101, config) == f"{expected}--from it"
