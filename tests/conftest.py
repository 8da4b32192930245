"""Settings of all tests."""

from __future__ import annotations

from hypothesis import settings

# A test that fails because the machine is busy says nothing about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
