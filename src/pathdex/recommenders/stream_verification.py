"""What can be checked about the folder of a stream besides its published model: the checkpoint and the histories."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pathdex.errors import PathdexError, RunError
from pathdex.storage.checkpoint_chain import CheckpointChain, StoredCheckpoint
from pathdex.storage.live_folder import is_live_folder
from pathdex.storage.run_folder import STREAM_HISTORIES, STREAM_REQUEST, STREAM_STATE

if TYPE_CHECKING:
    from pathdex.training.loop import TrainingState

ATTEMPTS = 3
"""How often to read a chain of checkpoints that a running stream merges meanwhile."""
_BACKUP = "restore the folder from a backup, or stream into a new one"


def merge_stored(found: Sequence[StoredCheckpoint]) -> TrainingState:
    """The state of the last of these checkpoints, the first of which is a full one."""
    from pathdex.training.loop import TrainingState
    from pathdex.training.stream.checkpoint_merge import merge_changes

    full, *changes = (TrainingState(one.values, one.arrays) for one in found)
    return merge_changes(full, changes)


def verify_stream_state(path: Path, on_step: Callable[[str], object] = lambda _: None) -> list[str]:
    """All problems of the request, the checkpoints and the histories of a stream, which may be running."""
    problems, state = [], path / STREAM_STATE
    on_step(str(path / STREAM_REQUEST))
    try:
        if not isinstance(json.loads((path / STREAM_REQUEST).read_bytes()), dict):
            problems.append(f"{path / STREAM_REQUEST} is not the request of a stream")
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{path / STREAM_REQUEST} is damaged ({error})")
    # The histories first: those of a running stream are never ahead of its checkpoint, but a moment later they could be
    # ahead of one that was read before.
    file = state / STREAM_HISTORIES
    committed = None
    if file.exists():
        on_step(str(file))
        try:
            committed, found = _read_histories(file)
            problems += [f"{file} is damaged: {one}; {_BACKUP}" for one in found]
        except (sqlite3.Error, OSError) as error:
            problems.append(f"{file} is damaged ({error}); {_BACKUP}")
            return problems + _chain_problems(state, on_step)[1]
    last, found = _chain_problems(state, on_step)
    problems += found
    if found:
        return problems
    if last is None:
        if committed is not None or is_live_folder(path):
            problems.append(f"{state} has no checkpoint, but there are histories or a model of one; {_BACKUP}")
    elif committed is not None and committed > last:
        problems.append(f"{file} belongs to checkpoint {committed}, newer than checkpoint {last}; {_BACKUP}")
    elif last > 1 and (committed or 0) < last - 1:
        problems.append(f"{file} belongs to checkpoint {committed or 0}, older than checkpoint {last}; {_BACKUP}")
    return problems


def _chain_problems(state: Path, on_step: Callable[[str], object]) -> tuple[int | None, list[str]]:
    """The number of the last checkpoint, and what is wrong: checksums, the chain, numbers that are not finite."""
    from pathdex.training.stream.checkpoint_merge import not_finite

    try:
        found = _load(state)
    except (PathdexError, OSError) as error:
        on_step(str(state))
        return None, [str(error)]
    if not found:
        return None, []
    on_step(f"{state}: checkpoints {found[0].number} to {found[-1].number}")
    try:
        names = not_finite(merge_stored(found))
    except (KeyError, ValueError, IndexError, TypeError) as error:
        return found[-1].number, [f"the checkpoint in {state} is damaged ({error!r}); {_BACKUP}"]
    where = f"the checkpoint in {state} is damaged"
    return found[-1].number, [f"{where}: {name} holds NaN or infinity; {_BACKUP}" for name in names]


def _load(state: Path) -> list[StoredCheckpoint]:
    for attempt in range(ATTEMPTS):
        before = _names(state)
        try:
            return CheckpointChain(state).load()
        except RunError:
            if attempt == ATTEMPTS - 1 or _names(state) == before:
                raise
    raise AssertionError


def _names(state: Path) -> list[str]:
    return sorted(entry.name for entry in state.iterdir())


def _read_histories(file: Path) -> tuple[int | None, list[str]]:
    """The checkpoint that histories belong to, and what SQLite and their form have against them. Writes nothing."""
    # Without a log, no process has the file open, and opening it as usual would create one.
    mode = "mode=ro" if Path(f"{file}-wal").exists() else "immutable=1"
    with closing(sqlite3.connect(f"file:{quote(str(file))}?{mode}", uri=True)) as connection:
        row = connection.execute("SELECT number FROM commits").fetchone()
        found = [str(one) for (one,) in connection.execute("PRAGMA integrity_check(10)") if one != "ok"]
        [odd] = connection.execute("SELECT count(*) FROM histories WHERE length(tokens) % 8 != 0").fetchone()
    if odd:
        found.append(f"{odd:,} histories are cut off")
    return (None if row is None else int(row[0])), found
