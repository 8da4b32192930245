"""`python -m tests.torture WHAT --seed 0 --report report.json`; exit code 1 on any failure.

WHAT is one of
  bundles  mutated bundles, opened and queried:   --count 20000
  crashes  failing calls, power cuts, kills:      --kills 2000 --power-cuts 500
  fuzz     coverage-guided fuzzing with atheris:  --target manifest --minutes 10
  server   load, swaps and kills of a server:     --minutes 30
  stops    SIGTERM to a server under load:        --rounds 100 --workers 2
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# Children are forked, which needs a process without threads of its own.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")


def run_bundles(given: argparse.Namespace) -> dict[str, Any]:
    from tests.torture.bundle_fuzzer import fuzz

    return fuzz(given.count, given.seed, first=given.first)


def run_crashes(given: argparse.Namespace) -> dict[str, Any]:
    from tests.torture.crashes import torture

    return torture(
        kills=given.kills,
        power_cuts=given.power_cuts,
        seed=given.seed,
        faults_per_site=None if given.no_faults else given.per_site,
        names=given.only,
        is_repeatable=given.repeatable,
    )


def run_fuzz(given: argparse.Namespace) -> dict[str, Any]:
    from tests.torture.fuzz_targets import TARGETS
    from tests.torture.fuzzing import fuzz, mutate_at_random

    names = given.target or list(TARGETS)
    if given.inputs is not None:
        return mutate_at_random(names, given.inputs, given.seed)
    return fuzz(names, given.minutes, given.seed)


def run_server(given: argparse.Namespace) -> dict[str, Any]:
    from tests.torture.server_torture import torture

    return torture(
        given.minutes, given.seed, idle=given.idle, swap_seconds=given.swap_seconds, kill_seconds=given.kill_seconds
    )


def run_stops(given: argparse.Namespace) -> dict[str, Any]:
    from tests.torture.stops import stop_often

    return stop_often(Path(__file__).parents[1] / "golden" / "bundles" / "popularity", given.rounds, given.workers)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--seed", type=int, default=0)
    shared.add_argument("--report", type=Path, default=None, help="JSON file for the report")

    bundles = commands.add_parser("bundles", parents=[shared])
    bundles.add_argument("--count", type=int, default=20_000, help="number of mutations")
    bundles.add_argument("--first", type=int, default=0, help="number of the first mutation, to repeat one of a report")
    bundles.set_defaults(run=run_bundles)

    crashes = commands.add_parser("crashes", parents=[shared])
    crashes.add_argument("--kills", type=int, default=2000, help="number of kills -9")
    crashes.add_argument("--power-cuts", type=int, default=500, help="number of states after simulated power cuts")
    crashes.add_argument("--per-site", type=int, default=2, help="failing calls per line of the source; 0: short form")
    crashes.add_argument("--no-faults", action="store_true", help="crashes without failing calls")
    crashes.add_argument("--repeatable", action="store_true", help="only crashes that the seed repeats exactly")
    crashes.add_argument("--only", nargs="*", default=[], help="scenarios of crashes; default: all")
    crashes.set_defaults(run=run_crashes)

    fuzz = commands.add_parser("fuzz", parents=[shared])
    fuzz.add_argument("--target", action="append", help="manifest, http, csv, parquet or filters; default: each")
    fuzz.add_argument("--minutes", type=float, default=10.0, help="minutes per target")
    fuzz.add_argument("--inputs", type=int, default=None, help="so many random inputs per target instead, not guided")
    fuzz.set_defaults(run=run_fuzz)

    server = commands.add_parser("server", parents=[shared])
    server.add_argument("--minutes", type=float, default=30.0)
    server.add_argument("--idle", type=int, default=500, help="idle connections")
    server.add_argument("--swap-seconds", type=float, default=5.0, help="seconds between two models")
    server.add_argument("--kill-seconds", type=float, default=20.0, help="seconds between two kills, on average")
    server.set_defaults(run=run_server)

    stops = commands.add_parser("stops", parents=[shared])
    stops.add_argument("--rounds", type=int, default=100)
    stops.add_argument("--workers", type=int, default=2)
    stops.set_defaults(run=run_stops)

    given = parser.parse_args()
    from tests.torture.io_calls import VARIABLE, shim_environment

    if given.run is run_crashes and VARIABLE not in os.environ:
        with shim_environment() as environment:
            return subprocess.run([sys.executable, "-m", "tests.torture", *sys.argv[1:]], env=environment).returncode
    report = given.run(given)
    text = json.dumps(report, indent=2)
    if given.report is not None:
        given.report.write_text(text + "\n")
    print(json.dumps({**report, "failures": report["failures"][:20]}, indent=2))
    return 1 if report["failures"] or report.get("untested call sites") else 0


if __name__ == "__main__":
    raise SystemExit(main())
