"""How much memory this process may use: the machine's, or less by a control group or a resource limit."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

resource: Any = importlib.import_module("resource") if os.name == "posix" else None
GROUPS = Path("/sys/fs/cgroup")
OWN_GROUPS = Path("/proc/self/cgroup")
UNKNOWN = 4 * 2**30
"""Where the system says nothing."""


@functools.cache
def allowed_memory() -> int:
    """Bytes of memory that this process may use at most."""
    return min([*_machine(), *group_limits(GROUPS, OWN_GROUPS), *_resource_limits()], default=UNKNOWN)


def group_limits(groups: Path, own: Path) -> Iterator[int]:
    """The limits of the control groups that this process belongs to, and of those around them."""
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, name = line.split(":", 2)
            if controllers and "memory" not in controllers.split(","):
                continue
            base, file = (groups / "memory", "memory.limit_in_bytes") if controllers else (groups, "memory.max")
            place = base / name.strip("/")
            for folder in (place, *place.parents):
                with contextlib.suppress(OSError, ValueError):
                    yield int((folder / file).read_text())
                if folder == base:
                    break


def _machine() -> Iterator[int]:
    with contextlib.suppress(AttributeError, ValueError, OSError):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _resource_limits() -> Iterator[int]:
    for name in ("RLIMIT_AS", "RLIMIT_DATA"):
        if resource is not None and hasattr(resource, name):
            limit = resource.getrlimit(getattr(resource, name))[0]
            if limit != resource.RLIM_INFINITY:
                yield limit
