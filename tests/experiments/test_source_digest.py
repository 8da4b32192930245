"""The digest of the source files."""

from __future__ import annotations

import re

from pathdex.experiments.source_digest import source_digest


def test_the_digest_is_short_and_stable() -> None:
    first = source_digest()
    source_digest.cache_clear()
    assert re.fullmatch("[0-9a-f]{12}", first)
    assert source_digest() == first
