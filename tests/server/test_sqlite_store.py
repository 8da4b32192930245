"""The user store in SQLite: durability and errors. test_stores.py has the contract."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from pathdex.errors import StorageError
from pathdex.server.sqlite_store import SqliteStore
from pathdex.server.stores import UserStore, open_store
from tests.server.test_stores import use


def test_sqlite_syncs_every_commit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "users.sqlite", 5)

    def pragmas(connection: sqlite3.Connection) -> list[Any]:
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]

    assert asyncio.run(store._writer.call(pragmas)) == ["wal", 2]
    asyncio.run(store.close())


def test_concurrent_appends_share_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathdex.server import sqlite_store

    sizes, write = [], sqlite_store._write

    def counting(connection: sqlite3.Connection, *, batch: Any, keep: int) -> None:
        sizes.append(len(batch))
        time.sleep(0.05)
        write(connection, batch=batch, keep=keep)

    monkeypatch.setattr(sqlite_store, "_write", counting)

    async def work(store: UserStore) -> None:
        await asyncio.gather(*(store.append([("ada", [number])]) for number in range(50)))

    use(str(tmp_path / "users.sqlite"), work)
    assert sum(sizes) == 50
    assert len(sizes) < 10


def test_a_file_of_another_application_is_not_changed(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE photos (name)")
    other.close()
    with pytest.raises(StorageError, match="is a SQLite file of another application; choose another path"):
        open_store(str(tmp_path / "other.sqlite"), 5)
    (tmp_path / "text").write_text("no database " * 1000)
    with pytest.raises(StorageError, match=r"user store .*text: file is not a database; check the file"):
        open_store(str(tmp_path / "text"), 5)
    assert (tmp_path / "text").read_text() == "no database " * 1000


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match=r"cannot write beside .*; choose another path"):
        open_store(str(tmp_path / "file" / "users.sqlite"), 5)
