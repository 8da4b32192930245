"""The results of a serving benchmark: one JSON file, updated after every part."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.machine import describe_machine

ROOT = Path(__file__).parent
RESULTS = ROOT / "results"
CACHE = ROOT / "cache"
"""Trained models for later runs, and the results of `--quick`."""


class Report:
    """The figures of one benchmark by part. Parts of an earlier run stay until they are measured again."""

    def __init__(self, name: str, folder: Path) -> None:
        self.file = folder / f"{name}.json"
        folder.mkdir(parents=True, exist_ok=True)
        self.parts: dict[str, Any] = json.loads(self.file.read_text()) if self.file.exists() else {}
        self._console = Console(width=120)
        self._started = time.monotonic()

    def add(self, part: str, figures: dict[str, Any], table: Table | None = None) -> None:
        """Store and print the figures of one part."""
        self.parts[part] = {"measured": circumstances(), **figures}
        self.file.write_text(json.dumps({**self.parts, "machine": describe_machine()}, indent=1) + "\n")
        if table is not None:
            self._console.print(table)
        self.say(f"{part} is in {self.file}")

    def say(self, text: str) -> None:
        """Print a progress line."""
        print(f"[{time.monotonic() - self._started:6.0f} s] {text}", flush=True)

    def plot_file(self, suffix: str = "") -> Path:
        """The file for a plot of these figures."""
        return self.file.with_name(f"{self.file.stem}{suffix}.png")


def arguments_parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """A parser with the options of all serving benchmarks."""
    parser = argparse.ArgumentParser(prog=f"benchmarks {name}", description=(description or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="small sizes and few repeats, to check the benchmark itself"
    )
    parser.add_argument("--out", type=Path, help="folder for results and plots [default: benchmarks/results]")
    return parser


def open_report(name: str, given: argparse.Namespace) -> Report:
    """The report for the options of `arguments_parser`; `--quick` does not touch the stored results."""
    return Report(name, given.out or (CACHE / "quick" if given.quick else RESULTS))


def chosen(parser: argparse.ArgumentParser, names: str | None, known: tuple[str, ...]) -> list[str]:
    """A comma-separated choice among `known`, in their order; all by default."""
    wanted = set(known) if names is None else set(names.split(","))
    if wanted - set(known):
        parser.error(f"{', '.join(sorted(wanted - set(known)))}: choose among {', '.join(known)}")
    return [name for name in known if name in wanted]


def circumstances() -> dict[str, Any]:
    """Time, commit and load of the machine."""
    return {
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude", "*"),
        "load_average": [round(value, 2) for value in os.getloadavg()],
    }


def _git(*command: str) -> str | None:
    try:
        return subprocess.run(
            ["git", "-C", str(ROOT), *command], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None  # No git, or no repository.
