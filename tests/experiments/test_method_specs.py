"""How methods are selected, queried and tuned in the comparison."""

from __future__ import annotations

import pytest

from pathdex.errors import ConfigError, MissingExtraError, QueryError
from pathdex.experiments import method_specs
from pathdex.experiments.method_specs import METHOD_SPECS, choose_methods
from pathdex.recommenders.registry import ESTIMATORS, make_estimator


def test_every_registered_estimator_has_a_spec() -> None:
    assert list(METHOD_SPECS) == list(ESTIMATORS)


def test_all_tuned_methods_have_the_same_number_of_trials() -> None:
    assert {len(one.trials) for one in METHOD_SPECS.values()} == {0, 3}
    assert [name for name, one in METHOD_SPECS.items() if not one.trials] == ["popularity", "brute-force"]


@pytest.mark.parametrize("name", METHOD_SPECS)
def test_the_hyper_parameters_of_trials_and_quick_runs_are_valid(name: str) -> None:
    for values in ({}, METHOD_SPECS[name].quick, *METHOD_SPECS[name].trials):
        made = make_estimator(name, values, seed=3, threads=1)
        assert made.name == name
        taken = {"seed": 3, "threads": 1}
        if name != "brute-force":
            assert all(getattr(made.options, one) == taken[one] for one in taken if one in made.run_options)


def test_searches_score_ten_times_n_candidates() -> None:
    """A beam of 5 n nodes has 10 n children."""
    assert METHOD_SPECS["deep-retrieval"].query_options(20) == {"candidates": 200}
    assert METHOD_SPECS["tdm"].query_options(20) == {"beam": 100}
    assert METHOD_SPECS["ffm-hnsw"].query_options(20) == {"ef_search": 200}
    assert METHOD_SPECS["item-cf"].query_options(20) == {}


def test_the_curves() -> None:
    assert METHOD_SPECS["tdm"].curve_options(10) == [{"beam": beam} for beam in (10, 20, 50, 100, 200, 400)]
    assert METHOD_SPECS["deep-retrieval"].curve_options(10)[:3] == [{"beam": 1}, {"beam": 2}, {"beam": 5}]
    assert METHOD_SPECS["popularity"].curve_options(10) == []


def test_an_unknown_hyper_parameter_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^item-cf: .*unexpected keyword argument 'epochs'; docs/baselines.md lists"):
        make_estimator("item-cf", {"epochs": 3})


def test_methods_are_in_the_order_of_the_registry() -> None:
    assert choose_methods(["brute-force", "popularity", "deep-retrieval"])[0] == [
        "popularity",
        "deep-retrieval",
        "brute-force",
    ]
    with pytest.raises(
        QueryError, match=r"^methods='item-fc': must be among popularity, .*; did you mean 'item-cf'\?$"
    ):
        choose_methods(["item-fc"])


def test_a_method_without_its_package_is_left_out_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(name: str, *_: object, **__: object) -> None:
        if name == "ffm-hnsw":
            raise MissingExtraError("usearch", "ann", "the HNSW graph of ffm-hnsw")

    monkeypatch.setattr(method_specs, "make_estimator", lacking)
    chosen, missing = choose_methods(None)
    assert set(chosen) | set(missing) == set(METHOD_SPECS)
    assert missing == {
        "ffm-hnsw": "the HNSW graph of ffm-hnsw needs usearch; install it with: pip install 'pathdex[ann]'"
    }
    with pytest.raises(MissingExtraError):
        choose_methods(["item-cf", "ffm-hnsw"])
