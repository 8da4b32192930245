"""Coverage-guided fuzzing of what comes from outside: manifests, HTTP bodies, CSV and Parquet files, filters.

atheris (libFuzzer for Python) runs in a child process, which it ends on a crash, a hang or an out-of-memory; the parent
records that and starts it again. Findings in Python are recorded once per place and fuzzing goes on.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from tests.torture.fuzz_targets import TARGETS, Target

HANG_SECONDS = 25
MEMORY_MB = 4096
RESTARTS = 20
_WORDS = (b"null", b"true", b"1e999", b"-0.0", b"9223372036854775808", b"1.0", b"NaN", b"[[", b'{"":', b'\\ud800"')
"""Words that the seeds do not have."""
MISSING = "atheris is not installed; `make torture` installs it into build/fuzz where a wheel exists"


def fuzz(names: list[str], minutes: float, seed: int) -> dict[str, Any]:
    """Fuzz each target for so long; returns the report."""
    if importlib.util.find_spec("atheris") is None:
        return {"seed": seed, "skipped": MISSING, "targets": {}, "failures": []}
    targets = {name: _fuzz_one(name, 60 * minutes, seed) for name in names}
    failures = [{"target": name, **one} for name, found in targets.items() for one in found.pop("failures")]
    return {"seed": seed, "targets": targets, "failures": failures}


def mutate_at_random(names: list[str], count: int, seed: int) -> dict[str, Any]:
    """The short form: so many inputs per target, changed at random and not guided by coverage."""
    failures: list[dict[str, Any]] = []
    for name in names:
        target, numbers = TARGETS[name], random.Random(f"{seed} {name}")
        seeds = target.seeds()
        with tempfile.TemporaryDirectory() as scratch:
            findings = Path(scratch, "findings.jsonl")
            recorder = prepare(target, Path(scratch, "work"), findings)
            for place in range(count):
                content = seeds[place % len(seeds)]
                recorder(content if place < len(seeds) else _mutate(content, numbers))
            lines = findings.read_text().splitlines() if findings.exists() else []
            failures += [{"target": name, "kind": "raised", **json.loads(line)} for line in lines]
    return {"seed": seed, "targets": {name: {"inputs": count} for name in names}, "failures": failures}


def _mutate(content: bytes, numbers: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(numbers.randint(1, 4)):
        start = numbers.randrange(1, len(changed) + 1)
        end = min(len(changed), start + numbers.randint(0, 8))
        word = numbers.choice([b"", bytes([numbers.randrange(256)]), bytes(changed[1:9]), *_WORDS])
        changed[start:end] = word
    return bytes(changed)


def _fuzz_one(name: str, seconds: float, seed: int) -> dict[str, Any]:
    inputs = edges = starts = 0
    failures: list[dict[str, Any]] = []
    began = time.monotonic()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        findings, artifacts = Path(scratch, "findings.jsonl"), Path(scratch, "artifacts")
        for folder in ("corpus", "artifacts"):
            Path(scratch, folder).mkdir()
        for number, content in enumerate(TARGETS[name].seeds()):
            Path(scratch, "corpus", f"seed-{number}").write_bytes(content)
        Path(scratch, "words").write_text(_dictionary(TARGETS[name].seeds()))
        while (left := seconds - (time.monotonic() - began)) > 5 and starts < RESTARTS:
            starts += 1
            log = _run_child(name, scratch, int(left), seed + starts)
            inputs += int((re.findall(r"stat::number_of_executed_units:\s*(\d+)", log) or [0])[-1])
            edges = max(edges, *(int(one) for one in re.findall(r"\bcov: (\d+)", log)), 0)
            stopped = list(artifacts.iterdir())
            failures += [{"kind": one.name.split("-")[0], "input": one.read_bytes().hex()} for one in stopped]
            for one in stopped:
                one.unlink()
            if not stopped and "stat::" not in log:
                failures.append({"kind": "no run", "log": log[-3000:]})
                break
        lines = findings.read_text().splitlines() if findings.exists() else []
        failures += [{"kind": "raised", **json.loads(line)} for line in lines]
        corpus = len(list(Path(scratch, "corpus").iterdir()))
    spent = round(time.monotonic() - began, 1)
    figures = {"seconds": spent, "inputs": inputs, "branches": edges, "corpus": corpus, "starts": starts}
    return {**figures, "failures": failures}


def _run_child(name: str, scratch: str, seconds: int, seed: int) -> str:
    """Fuzz in a child process; returns what libFuzzer wrote."""
    options = {
        "max_total_time": seconds,
        "seed": seed,
        "max_len": TARGETS[name].max_bytes,
        "timeout": HANG_SECONDS,
        "rss_limit_mb": MEMORY_MB,
        "artifact_prefix": f"{scratch}/artifacts/",
        "dict": f"{scratch}/words",
        "print_final_stats": 1,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]
    command = [sys.executable, "-m", "tests.torture.fuzzing", name, scratch, f"{scratch}/corpus", *flags]
    with Path(scratch, "log").open("w+b") as log:
        subprocess.run(command, stdout=log, stderr=log, check=False, env={**os.environ, "PATHDEX_CACHE": ""})
        log.seek(0)
        return log.read().decode("utf-8", "replace")


def _dictionary(seeds: list[bytes]) -> str:
    """The words of the seeds in libFuzzer's format."""
    words = sorted({word for one in seeds for word in re.findall(rb'"?[A-Za-z_][A-Za-z_-]{1,30}"?', one)})
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in (*words[:400], *_WORDS))
    return "".join(f'"{word}"\n' for word in quoted)


class Recorder:
    """Calls a check and writes what it raises to a file, once per place in the code."""

    def __init__(self, check: Any, file: Path) -> None:
        self._check, self._file = check, file
        self._places: set[str] = set()

    def __call__(self, data: bytes) -> None:
        try:
            self._check(data)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # A panic of polars is no Exception.
            frames = traceback.extract_tb(error.__traceback__)
            inside = [one for one in frames if "/tests/torture/" not in one.filename] or frames
            place = f"{type(error).__name__} {inside[-1].name}:{inside[-1].lineno}"
            if place not in self._places:
                self._places.add(place)
                text = "".join(traceback.format_exception(error))[-3000:]
                with self._file.open("a") as file:
                    file.write(json.dumps({"place": place, "traceback": text, "input": data.hex()}) + "\n")


def prepare(target: Target, folder: Path, findings: Path) -> Recorder:
    folder.mkdir()
    return Recorder(target.prepare(folder), findings)


def _others(target: Target) -> list[str]:
    """The modules that are not instrumented."""
    spec = importlib.util.find_spec("pathdex")
    assert spec is not None
    assert spec.origin is not None
    root = Path(spec.origin).parent
    names = (".".join(file.relative_to(root.parent).with_suffix("").parts) for file in root.rglob("*.py"))
    modules = [name.removesuffix(".__init__") for name in names]
    return [name for name in modules if not name.startswith(target.instrument)]


def main() -> None:
    """Entry point of the child: TARGET SCRATCH CORPUS FLAGS..."""
    import atheris

    name, scratch, *arguments = sys.argv[1:]
    target = TARGETS[name]
    with atheris.instrument_imports(include=["pathdex"], exclude=_others(target)):
        recorder = prepare(target, Path(tempfile.mkdtemp(dir=scratch)) / "work", Path(scratch, "findings.jsonl"))
        for seed in target.seeds():  # What is imported late is instrumented too.
            recorder(seed)
    atheris.Setup([sys.argv[0], *arguments], recorder)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
