"""The tree of errors, and what their messages say."""

import inspect
import pickle

import pytest

from pathdex import errors
from pathdex.errors import (
    ConfigError,
    DataError,
    MissingExtraError,
    NotFittedError,
    PathdexError,
    Problem,
    QueryError,
    did_you_mean,
)

PUBLIC = [
    one
    for _, one in inspect.getmembers(errors, inspect.isclass)
    if one.__module__ == errors.__name__ and issubclass(one, PathdexError)
]


@pytest.mark.parametrize("error", PUBLIC, ids=lambda error: error.__name__)
def test_every_error_is_a_pathdex_error_with_a_docstring(error: type[Exception]) -> None:
    assert issubclass(error, PathdexError)
    assert error.__doc__


@pytest.mark.parametrize("error", [one for one in PUBLIC if one is not PathdexError], ids=lambda error: error.__name__)
def test_the_tree_in_the_docstring_is_the_real_one(error: type[Exception]) -> None:
    line = next(line for line in (errors.__doc__ or "").splitlines() if f"─ {error.__name__} " in line)
    builtin = [f"({base.__name__})" for base in error.__bases__ if base.__module__ == "builtins"]
    assert line.split(error.__name__)[1].split()[0].startswith("(") == bool(builtin)
    assert all(name in line for name in builtin)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ConfigError, ValueError),
        (errors.DataError, ValueError),
        (errors.QueryError, ValueError),
        (errors.StorageError, OSError),
        (errors.MissingExtraError, ImportError),
    ],
)
def test_errors_are_also_what_python_code_expects(error: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(error, builtin)


@pytest.mark.parametrize(
    "error",
    [
        ConfigError([Problem("must be whole", "n", 0.5, "round it"), "b=2: wrong"]),
        DataError(Problem("must be whole", "n", 0.5), "b=2: wrong"),
        DataError("wrong"),
        MissingExtraError("ray", "ray", "training on Ray"),
        errors.LostWorkerError("worker 0 is gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_another_process_arrives_as_it_was(error: PathdexError) -> None:
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert getattr(arrived, "problems", None) == getattr(error, "problems", None)


@pytest.mark.parametrize(
    ("error", "subject"),
    [(ConfigError(["a=1: wrong", "b=2: wrong"]), "configuration"), (DataError("a=1: wrong", "b=2: wrong"), "data")],
)
def test_many_problems_are_listed(error: ConfigError | DataError, subject: str) -> None:
    assert error.problems == (Problem("a=1: wrong"), Problem("b=2: wrong"))
    assert str(error) == f"2 problems in the {subject}:\n  - a=1: wrong\n  - b=2: wrong"


@pytest.mark.parametrize("error", [ConfigError(["a=1: wrong"]), DataError("a=1: wrong")])
def test_one_problem_stands_alone(error: ConfigError | DataError) -> None:
    assert str(error) == "a=1: wrong"


def test_not_fitted_names_the_estimator_and_the_way_out() -> None:
    assert str(NotFittedError(3)) == "int is not fitted; call int.fit(data) or pathdex.load(path) first"


def test_a_missing_extra_names_the_command_that_installs_it() -> None:
    error = MissingExtraError("matplotlib", "plot", "a picture of the index")
    assert str(error) == "a picture of the index needs matplotlib; install it with: pip install 'pathdex[plot]'"


def test_a_query_error_carries_its_fields_and_writes_its_message_from_them() -> None:
    error = QueryError("must be at least 1", argument="n", value=0, remedy="ask for one item or more")
    assert (error.argument, error.value, error.rule, error.remedy) == (
        "n",
        0,
        "must be at least 1",
        "ask for one item or more",
    )
    assert str(error) == "n=0: must be at least 1; ask for one item or more"


def test_a_problem_without_an_argument_is_its_rule() -> None:
    assert str(Problem("pass either --history or --input")) == "pass either --history or --input"


def test_a_long_value_is_cut_in_the_message() -> None:
    assert str(Problem("is too long", "history", list(range(10_000)))).endswith("...: is too long")


def test_did_you_mean_names_the_closest_word_or_nothing() -> None:
    assert did_you_mean("epoch", ["epochs", "rounds"]) == "; did you mean 'epochs'?"
    assert did_you_mean("xyz", ["epochs", "rounds"]) == ""
