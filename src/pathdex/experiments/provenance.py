"""What is needed to repeat a report: versions, machine, data, command, time and memory of each step."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pathdex
from pathdex.errors import DataError, Problem
from pathdex.experiments.report_request import ReportRequest
from pathdex.storage.array_folder import file_digest
from pathdex.system import examine, package_version
from pathdex.training.malloc import return_freed_memory

OPTIONAL_PACKAGES = ("usearch", "implicit", "matplotlib", "threadpoolctl")
"""Packages that single methods, the figures and the timing use."""
_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def provenance(
    request: ReportRequest, records: Sequence[Mapping[str, Any]], folder: Path, *, checksum: str, command: str
) -> dict[str, Any]:
    """The provenance of a finished report in a folder, with the records of its steps."""
    found = environment(folder)
    kept = ("step", "title", "started", "seconds", "peak_memory", "pathdex", "code")
    return {
        "command": command,
        "source": request.source.name,
        "checksum": f"sha256:{checksum}",
        "reading": request.reading,
        "split": request.split,
        "preset": request.preset,
        "seeds": list(request.seeds),
        "threads": request.threads or found["threads"],
        "device": request.device,
        "versions": found["versions"],
        "machine": found["machine"],
        "seconds": sum(record["seconds"] for record in records),
        "steps": [{name: record.get(name) for name in kept} for record in records],
    }


def environment(folder: Path) -> dict[str, Any]:
    """Versions, the machine and the number of threads."""
    system = examine(folder)
    return {
        "threads": system.torch_threads,
        "versions": {**system.versions, **{name: package_version(name) for name in OPTIONAL_PACKAGES}},
        "machine": {
            "processor": _processor(),
            "cores": system.cores,
            "memory": system.memory,
            "system": f"{platform.system()} {platform.release()}",
            "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        },
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def checksum(source: Path, pattern: str = "*") -> str:
    """SHA-256 of a file, or of the names and checksums of all files of a folder that match the pattern."""
    if source.is_file():
        return file_digest(source, "sha256")
    if not source.is_dir():
        raise DataError(Problem(f"{source} does not exist", remedy="check the path"))
    digest = hashlib.sha256()
    for file in sorted(file for file in source.rglob(pattern) if file.is_file()):
        digest.update(f"{file.relative_to(source)} {file_digest(file, 'sha256')}\n".encode())
    return digest.hexdigest()


@functools.cache
def source_digest() -> str:
    """The first 12 digits of a checksum over the source files of the package."""
    return checksum(Path(pathdex.__file__).parent, "*.py")[:12]


def reset_peak() -> bool:
    """Return freed memory to the system and restart the measurement; False if the system does not support it."""
    returned = return_freed_memory()
    try:
        _CLEAR.write_text("5")
    except OSError:
        return False
    return returned


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
