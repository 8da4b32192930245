"""The most memory that a piece of work held, measured from inside the process."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> bool:
    """Start to measure anew, after giving freed memory back; False where the system cannot."""
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        _CLEAR.write_text("5")
    except (OSError, AttributeError):
        return False
    return True


def peak_memory() -> int | None:
    """The most resident bytes since `forget_peak`, or since the process began where that does not work."""
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
