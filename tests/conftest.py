"""Settings of all tests."""

from __future__ import annotations

import os
import signal
import threading

from hypothesis import settings

# A test that fails because the machine is busy says nothing about the code.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

# Workers of pytest-xdist have 80 columns, and tables would be folded there only.
os.environ.pop("COLUMNS", None)

# A shell without job control lets background jobs ignore SIGINT, and the commands that tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
