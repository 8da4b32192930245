"""Which estimator can do what, and what a caller is told about one that cannot."""

import pytest

from pathdex.errors import QueryError
from pathdex.recommenders.base import Recommender
from pathdex.recommenders.capabilities import CanExplain, ChoosesOnValidation, HasIndex, HasVectors, require
from pathdex.recommenders.popularity import Popularity
from pathdex.recommenders.registry import ESTIMATORS, estimator_class
from tests.random_model import random_model

CAPABILITIES: dict[str, set[type[Recommender]]] = {
    "deep-retrieval": {HasVectors, HasIndex, CanExplain, ChoosesOnValidation},
    "youtube-dnn": {HasVectors},
    "ffm-hnsw": {HasVectors},
    "implicit-als": {HasVectors},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_capabilities_of_every_estimator(name: str) -> None:
    kind = estimator_class(name)
    found = {one for one in (HasVectors, HasIndex, CanExplain, ChoosesOnValidation) if issubclass(kind, one)}
    assert found == CAPABILITIES.get(name, set())


def test_require_returns_the_model_or_says_what_it_lacks() -> None:
    model = random_model()
    assert require(model, HasIndex) is model
    for capability, lacking in (
        (HasVectors, "has no vectors"),
        (HasIndex, "has no paths"),
        (CanExplain, "cannot explain its answers"),
        (ChoosesOnValidation, "chooses nothing on validation data"),
    ):
        with pytest.raises(QueryError, match=f"a popularity model {lacking}; use a deep-retrieval model"):
            require(Popularity(), capability)
