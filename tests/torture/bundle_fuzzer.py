"""Mutated bundles, with checksums made valid again, loaded and queried in child processes.

The outcome must be a `PathdexError`, or answers that are valid: known, distinct items with finite, descending scores. A
crash, a hang, another exception and an invalid answer are failures. Children are forked from a process that has loaded
and compiled everything, so that a mutation takes milliseconds.
"""

from __future__ import annotations

import contextlib
import copy
import math
import os
import resource
import select
import shutil
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pathdex
from pathdex.errors import PathdexError
from pathdex.recommenders.base import EstimatorState, Recommender
from pathdex.recommenders.deep_retrieval import DeepRetrieval
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.model_delta import ModelDelta
from pathdex.recommenders.registry import from_bundle
from pathdex.storage.bundle import Bundle, read_bundle
from tests.random_deltas import random_delta
from tests.random_model import random_model
from tests.torture.mutations import Draft, mutate, mutate_array

GOLDEN = Path(__file__).parents[1] / "golden" / "bundles"
TIME_LIMIT = 20.0
MEMORY_LIMIT = 4 * 2**30
"""Bytes that a child may allocate beyond what its parent has."""
SHOWN = 20


class InvalidAnswerError(Exception):
    """An answer with unknown or repeated items, or scores that are not finite and descending."""


def seeds() -> dict[str, Bundle]:
    """Valid bundles of every estimator."""
    found = {folder.name: in_memory(read_bundle(folder)) for folder in sorted(GOLDEN.iterdir())}
    text = random_model(40, neighbours=5, encoder="pooled")
    live = LiveModel(random_model(40, neighbours=5, structure="recurrent"))
    for seed in range(3):
        live.apply(random_delta(live, np.random.default_rng(seed)))
    found |= {"random-pooled": in_memory(text.to_bundle()), "after-deltas": in_memory(live.to_bundle())}
    for name, bundle in found.items():
        query(from_bundle(bundle, name), np.random.default_rng(0))
    return found


def in_memory(bundle: Bundle) -> Bundle:
    arrays = {name: np.array(array) for name, array in bundle.arrays.items()}
    return Bundle(bundle.estimator, bundle.settings, arrays, bundle.weights)


def query(model: Recommender, random: np.random.Generator) -> None:
    """Ask everything that a model can be asked, and check the answers."""
    known = model.items.first_ids(1000)
    if not known:
        return
    picked = [known[int(place)] for place in random.integers(0, len(known), 7)]
    last = known[-1]
    for history, n, options in (
        ([], 10, {}),
        (picked[:3], 5, {}),
        ([last] * 90, 3, {"exclude_seen": False}),
        (picked, 2**31, {"deny": picked[:2]}),
        (picked[:1], 4, {"allow": known[: len(known) // 2]}),
        (picked[:2], 3, {name: 7 for name in model.query_options if name != "candidates"}),
    ):
        check_answer(model, model.recommend(history, n, **options), n)
    for answer in model.recommend_batch([[one] for one in picked], 4):
        check_answer(model, answer, 4)
    check_answer(model, model.similar_items(picked[0], 6), 6)
    if isinstance(model, DeepRetrieval):
        check_answer(model, model.recommend(picked[:3], 5, candidates=9), 5)
        check_answer(model, model.recommend_next(model.advance(model.state(picked[:2]), last), 4), 4)
        score = model.explain(picked[:2], last).score
        if score is not None and not math.isfinite(score):
            raise InvalidAnswerError(f"explained with score {score}")
        str(model.why_not(picked[:2], last))
        model.health()


def check_answer(model: Recommender, answer: list[Any], n: int) -> None:
    items, scores = [item for item, _ in answer], [score for _, score in answer]
    valid = (
        len(items) <= n
        and len(set(items)) == len(items)
        and all(item in model.items for item in items)
        and all(map(math.isfinite, scores))
        and scores == sorted(scores, reverse=True)
    )
    if not valid:
        raise InvalidAnswerError(f"{answer[:3]} of {len(answer)}")


def try_bundle(bundle: Bundle, random: np.random.Generator, folder: Path) -> list[str]:
    """Write a mutated bundle, open it and query it; returns the mutations."""
    draft = Draft(bundle.estimator, copy.deepcopy(bundle.settings), dict(bundle.arrays), dict(bundle.weights))
    mutate(draft, random)
    draft.write(folder / "bundle")
    model = pathdex.load(folder / "bundle")
    query(model, random)
    if isinstance(model, DeepRetrieval) and random.integers(2):
        live = LiveModel.open(folder / "bundle")
        live.apply(random_delta(live, random) if live.items.kind == "int" else _no_delta(live))
        query(live, random)
    if random.integers(4) == 0:
        query(pathdex.load(model.save(folder / "again")), random)
    return draft.kinds


def _no_delta(model: LiveModel) -> ModelDelta:
    state, none = model.model_state, np.empty(0, np.int64)
    rows, paths = np.empty((0, state.rows.shape[1]), np.float32), np.empty((0, state.paths.shape[1]), np.int64)
    return ModelDelta(len(model.items), none, rows, paths, none)


def try_delta(random: np.random.Generator) -> None:
    """Apply a mutated delta to a live model."""
    model = LiveModel(random_model(30, neighbours=4))
    for _ in range(2):
        model.apply(random_delta(model, random))
    stored = random_delta(model, random, weights=bool(random.integers(2))).state()
    for _ in range(int(random.integers(1, 3))):
        part = stored.weights if stored.weights and random.integers(3) == 0 else stored.arrays
        name = sorted(part)[int(random.integers(len(part)))]
        part[name] = mutate_array(part[name], random)
    if random.integers(4) == 0:
        stored.settings["num_items"] = [-1, 0, 29, 31, 2**31 - 1, 2**40, "30", None, True, 1.5][
            int(random.integers(10))
        ]
    before = model.recommend([], 10)
    try:
        model.apply(ModelDelta.from_state(EstimatorState(stored.settings, stored.arrays, stored.weights)))
    except PathdexError:
        if model.recommend([], 10) != before:
            raise InvalidAnswerError("a refused delta changed the model") from None
        raise
    query(model, random)


def fuzz(count: int, seed: int, *, first: int = 0) -> dict[str, Any]:
    """Try so many mutations; returns the report. The same seed and numbers give the same mutations."""
    bundles = seeds()
    names = [*sorted(bundles), "delta"]
    outcomes: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    failures: list[dict[str, Any]] = []
    began = time.monotonic()
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        for number in range(first, first + count):
            name = names[number % len(names)]
            outcome, detail = in_child(bundles.get(name), [seed, number], Path(scratch))
            outcomes[outcome] += 1
            if outcome == "refused":
                errors[detail] += 1
            elif outcome != "answered":
                failures.append({"number": number, "bundle": name, "outcome": outcome, "detail": detail})
    return {
        "seed": seed,
        "mutations": count,
        "seconds": round(time.monotonic() - began, 1),
        "outcomes": dict(outcomes),
        "errors": dict(errors.most_common()),
        "failures": failures,
    }


def in_child(bundle: Bundle | None, seed: list[int], scratch: Path) -> tuple[str, str]:
    """The outcome of one mutation, and its detail."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        text = b"raw\nno outcome"
        with contextlib.suppress(BaseException):
            text = _outcome(bundle, seed, folder).encode("utf-8", "replace")
        os.write(writing, text[:60_000])
        os._exit(0)
    os.close(writing)
    try:
        with _deadline(child) as timed_out:
            content = b"".join(_read_all(reading))
            _, status = os.waitpid(child, 0)
    finally:
        os.close(reading)
        shutil.rmtree(folder, ignore_errors=True)
    if os.WIFSIGNALED(status):
        return ("hang", "") if timed_out() else ("crash", signal.Signals(os.WTERMSIG(status)).name)
    outcome, _, detail = content.decode("utf-8", "replace").partition("\n")
    return outcome or "crash", detail


def _outcome(bundle: Bundle | None, seed: list[int], folder: Path) -> str:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    random = np.random.default_rng(seed)
    try:
        try_delta(random) if bundle is None else try_bundle(bundle, random, folder)
    except PathdexError as error:
        return f"refused\n{type(error).__name__}"
    except InvalidAnswerError as error:
        return f"invalid answer\n{error}\n{traceback.format_exc()[-3000:]}"
    except BaseException:
        return f"raw\n{traceback.format_exc()[-3000:]}"
    return "answered\n"


@contextlib.contextmanager
def _deadline(child: int) -> Iterator[Any]:
    """Kill the child after the time limit."""
    fired = []

    def kill(*_: Any) -> None:
        fired.append(True)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)

    before = signal.signal(signal.SIGALRM, kill)
    signal.setitimer(signal.ITIMER_REAL, TIME_LIMIT)
    try:
        yield lambda: bool(fired)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _read_all(handle: int) -> Iterator[bytes]:
    while True:
        select.select([handle], [], [])
        block = os.read(handle, 65_536)
        if not block:
            return
        yield block
