"""Everything that can be checked about a saved model offline: files, checksums, content, chains of deltas."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from pathdex.data.serialization import load_split
from pathdex.errors import BundleError, DataError, PathdexError, RunError
from pathdex.recommenders.live_model import LiveModel
from pathdex.recommenders.live_reader import from_stored
from pathdex.recommenders.local_shards import LocalShards
from pathdex.recommenders.registry import estimator_class, is_known
from pathdex.recommenders.sharding import LISTING, read_listing
from pathdex.recommenders.stream_verification import verify_stream_state
from pathdex.storage import verified
from pathdex.storage.array_folder import MANIFEST_LIMIT, file_problems, manifest_of, read_folder, sum_problems
from pathdex.storage.bundle import BUNDLE_FORMAT, bundle_of
from pathdex.storage.checkpoint import load_checkpoint
from pathdex.storage.live_folder import is_live_folder, manifest_digest, read_current, read_delta
from pathdex.storage.open_folder import OpenFolder, read_plain
from pathdex.storage.run_folder import (
    CHECKPOINT,
    REQUEST,
    SHARDS,
    SPLIT,
    STREAM_REQUEST,
    STREAM_START,
    STREAM_STATE,
    find_bundle,
)


def verify_model(path: Path, on_step: Callable[[str], object] = lambda _: None) -> list[str]:
    """All problems of a bundle, a run folder, a live folder, a stream or a folder of shards.

    `on_step` gets the name of each part before its check.
    Nothing is taken from the cache of checked bundles. A large bundle without problems is entered there.
    """
    if (path / STREAM_REQUEST).exists():
        problems = verify_stream_state(path, on_step)
        if (path / STREAM_STATE / STREAM_START).exists():
            on_step(str(path / STREAM_STATE / STREAM_START))
            problems += verify_bundle(path / STREAM_STATE / STREAM_START)
        return problems + (verify_live(path, on_step) if is_live_folder(path) else [])
    if is_live_folder(path):
        return verify_live(path, on_step)
    if (path / LISTING).exists():
        return verify_shards(path, on_step)
    problems = _run_problems(path, on_step) if (path / REQUEST).exists() else []
    if (path / REQUEST).exists() and (path / SHARDS).exists():
        return problems + verify_shards(path / SHARDS, on_step)
    try:
        folder = find_bundle(path)
    except RunError:  # Not finished, which is no damage.
        return problems
    if is_live_folder(folder):
        return problems + verify_live(folder, on_step)
    on_step(str(folder))
    return problems + verify_bundle(folder)


def _run_problems(path: Path, on_step: Callable[[str], object]) -> list[str]:
    """Problems of a run folder besides its bundle: the request, the split and the checkpoint."""
    problems = []
    try:
        json.loads(read_plain(path, REQUEST, MANIFEST_LIMIT))
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{path / REQUEST} is damaged ({error})")
    for part, read in ((SPLIT, lambda one: load_split(one, mmap=False)), (CHECKPOINT, load_checkpoint)):
        if (path / part).exists():
            on_step(str(path / part))
            try:
                read(path / part)
            except (PathdexError, OSError) as error:
                problems.append(str(error))
    return problems


def verify_bundle(path: Path) -> list[str]:
    """All problems of a bundle: its manifest, then all files, then the content of those that are whole."""
    try:
        folder = read_folder(path, BUNDLE_FORMAT)
    except PathdexError as error:
        return [str(error)]
    with folder:
        try:
            manifest = manifest_of(folder, BUNDLE_FORMAT)
        except PathdexError as error:
            return [str(error)]
        files = manifest["files"]
        problems = [f"{path} {problem}" for problem in file_problems(folder, files)]
        if problems:
            return problems
        problems = [f"{path} {problem}" for problem in sum_problems(folder, files)]
        return problems + _content_problems(folder, manifest)


def verify_shards(path: Path, on_step: Callable[[str], object] = lambda _: None) -> list[str]:
    """All problems of a folder of shards: of each shard, and whether they are all those of one model."""
    try:
        _, count = read_listing(path)
    except BundleError as error:
        return [str(error)]
    problems = []
    for number in range(1, count + 1):
        on_step(str(path / f"shard-{number}"))
        problems += verify_bundle(path / f"shard-{number}")
    if not problems:
        try:
            LocalShards.open(path)
        except PathdexError as error:
            problems.append(str(error))
    return problems


def _content_problems(folder: OpenFolder, manifest: dict[str, object]) -> list[str]:
    try:
        bundle = bundle_of(folder, manifest, verify=False)
        if not is_known(bundle.estimator):
            return [f"{folder.path} holds a {bundle.estimator!r} model, which this Pathdex does not know"]
        problems = estimator_class(bundle.estimator).bundle_problems(bundle)
    except PathdexError as error:
        return [str(error)]
    if not problems and bundle.key is not None:
        verified.set_checked(bundle.key, verified.CONTENT)
        verified.set_checked(bundle.key, verified.CHECKSUMS)
    return [f"{folder.path} is damaged: {problem}" for problem in problems]


def verify_live(path: Path, on_step: Callable[[str], object] = lambda _: None) -> list[str]:
    """All problems of a live folder: every base that is kept, and the chain of deltas after the current one."""
    try:
        version = read_current(path)
    except PathdexError as error:
        return [str(error)]
    problems = []
    for base in version.bases:
        on_step(str(path / base.name))
        found = verify_bundle(path / base.name)
        if not found and manifest_digest(path / base.name) != base.manifest:
            found = [f"{path / base.name} is not the base that {path} was published with"]
        problems += found
        if base == version.base and found:
            return problems
    model, digest = LiveModel.open(path / version.base.name), version.base.digest
    for number in version.deltas:
        on_step(f"delta {number}")
        try:
            delta = read_delta(path, number, before=digest)
            model.apply(from_stored(delta))
        except (BundleError, DataError, OSError) as error:
            return [*problems, f"delta {number}: {error}"]
        digest = delta.digest
    if digest != version.digest:
        problems.append(f"{path} does not end in the state that CURRENT names; publish a new base")
    return problems
