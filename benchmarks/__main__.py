"""`python -m benchmarks` runs all of them; `python -m benchmarks NAME ...` runs one with its options."""

from __future__ import annotations

import importlib
import os
import sys

NAMES = {"accuracy": "benchmarks.accuracy", "m-step": "benchmarks.m_step", "scale": "benchmarks.scale"}


def main(arguments: list[str]) -> None:
    if arguments and arguments[0] not in NAMES:
        raise SystemExit(f"{arguments[0]!r} is no benchmark; choose one of {', '.join(NAMES)}")
    # Threads that wait for work by spinning make figures on a shared machine worthless.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for name in arguments[:1] or NAMES:
        print(f"== {name}", flush=True)
        importlib.import_module(NAMES[name]).main(arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
