"""Peak memory of a piece of work, measured from inside the process."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def reset_peak() -> bool:
    """Return freed memory to the system and restart the measurement; False if the system does not support it."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        _CLEAR.write_text("5")
    except (OSError, AttributeError):
        return False
    return True


def peak_memory() -> int | None:
    """Peak resident bytes since `reset_peak`, or since the process started if that is not supported."""
    try:
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        import resource
    except ImportError:
        return None
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return highest if sys.platform == "darwin" else 1024 * highest
