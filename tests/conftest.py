"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A test that fails because the machine is busy says nothing about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

# Workers of pytest-xdist have 80 columns, and tables would be folded there only.
os.environ.pop("COLUMNS", None)
