"""What is needed to repeat a report: versions, machine, data, command, time and memory of each step."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pathdex.experiments.report_request import ReportRequest
from pathdex.experiments.steps import Step, StepStore
from pathdex.system import examine, package_version

OPTIONAL_PACKAGES = ("usearch", "implicit", "matplotlib", "threadpoolctl")
"""Packages that single methods, the figures and the timing use."""


def provenance(
    request: ReportRequest, steps: Sequence[Step], store: StepStore, *, checksum: str, command: str
) -> dict[str, Any]:
    """The provenance of a finished report."""
    system = examine(store.path)
    records = [store.record(step.name) for step in steps]
    kept = ("step", "title", "started", "seconds", "peak_memory", "pathdex", "code")
    return {
        "command": command,
        "source": request.source.name,
        "checksum": f"sha256:{checksum}",
        "reading": request.reading,
        "split": request.split,
        "preset": request.preset,
        "seeds": list(request.seeds),
        "threads": request.threads or system.torch_threads,
        "device": request.device,
        "versions": {**system.versions, **{name: package_version(name) for name in OPTIONAL_PACKAGES}},
        "machine": {
            "processor": _processor(),
            "cores": system.cores,
            "memory": system.memory,
            "system": f"{platform.system()} {platform.release()}",
            "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
        },
        "seconds": sum(record["seconds"] for record in records),
        "steps": [{name: record.get(name) for name in kept} for record in records],
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
