"""Options of a stream."""

import pytest

from pathdex.errors import ConfigError
from pathdex.training.stream.options import StreamOptions


def test_all_wrong_values_are_reported_at_once():
    with pytest.raises(ConfigError) as failure:
        StreamOptions(batch_events=0, admit_after=0, expire_after=-1.0)
    assert all(name in str(failure.value) for name in ("batch_events", "admit_after", "expire_after"))
