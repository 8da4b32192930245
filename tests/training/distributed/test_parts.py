"""What several workers cannot train is an error that lists everything."""

import pytest

from pathdex.config import Config
from pathdex.errors import ConfigError
from pathdex.training.distributed.parts import check_parameters


def test_unsupported_settings_are_one_error() -> None:
    config = Config(schedule="paper", start="random", candidates_per_query=100)
    with pytest.raises(ConfigError, match="5 problems") as caught:
        check_parameters(config, 5, 3, starts=True, records=True)
    assert [one.argument for one in caught.value.problems] == [
        "workers",
        "schedule",
        "candidates_per_query",
        None,
        None,
    ]
    check_parameters(Config(), 3, 3)
    check_parameters(config, 1, starts=True)
