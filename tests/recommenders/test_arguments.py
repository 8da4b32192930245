"""Checks of query arguments. The contract of recommenders tests them through every estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pathdex.errors import QueryError
from pathdex.recommenders.arguments import check_ids, check_n, check_positive, check_width, id_list


@pytest.mark.parametrize("value", ["5", float("nan"), 2.0, True, 0, -3, None, np.float64(3)])
def test_a_number_is_whole_and_positive(value: Any) -> None:
    with pytest.raises(QueryError, match=r"^beam=.*: must be a whole number of at least 1; leave it out$") as caught:
        check_positive("beam", value, "leave it out")
    assert (caught.value.argument, caught.value.remedy) == ("beam", "leave it out")


def test_a_number_fits_into_64_bits() -> None:
    assert check_positive("beam", 2**63 - 1, "") == 2**63 - 1
    assert type(check_positive("beam", np.int32(7), "")) is int
    with pytest.raises(QueryError, match=r"^beam=9223372036854775808: must be below 2\^63"):
        check_positive("beam", 2**63, "leave it out")


def test_n_is_capped_by_the_catalogue() -> None:
    assert [check_n(n, 10) for n in (1, 10, 11, 2**62)] == [1, 10, 10, 10]
    assert check_n(3, 0) == 1


def test_places_beyond_the_catalogue_are_bounded() -> None:
    check_width(10_000, 5)
    check_width(20_000, 20_000)
    with pytest.raises(QueryError, match=r"^n=10001: must be at most 10,000; ask for fewer items$"):
        check_width(10_001, 5)


def test_ids_are_a_collection() -> None:
    assert id_list("deny", (one for one in "ab")) == ["a", "b"]
    with pytest.raises(QueryError, match=r"deny='ab': must be a list of ids, not a string; pass \['ab'\]"):
        check_ids("deny", "ab")
    with pytest.raises(QueryError, match=r"deny=5: must be a list of ids; pass \[5\]"):
        check_ids("deny", 5)
    with pytest.raises(QueryError, match=r"deny=0.5: must be a list of ids; pass strings or integers"):
        check_ids("deny", 0.5)
