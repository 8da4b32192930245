"""The user store in SQLite: durability and errors. test_stores.py has the contract."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
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
    with pytest.raises(StorageError, match=r"cannot write .*: .*; choose another path"):
        open_store(str(tmp_path / "file" / "users.sqlite"), 5)


def test_a_new_store_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "users.sqlite", 5)
        asyncio.run(store.append([("ada", [1])]))
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
        asyncio.run(store.close())
    finally:
        os.umask(before)
    assert modes == {"users.sqlite": 0o600, "users.sqlite-wal": 0o600, "users.sqlite-shm": 0o600}


@pytest.mark.parametrize(
    "error", [OverflowError("too large"), MemoryError(), sqlite3.OperationalError("disk I/O error")]
)
def test_a_writer_that_dies_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    from pathdex.server import sqlite_store

    write, broken = sqlite_store._write, [True]

    def dying(connection: sqlite3.Connection, *, batch: Any, keep: int) -> None:
        if broken:
            connection.execute("BEGIN IMMEDIATE")  # Left open, as by a crash in the middle.
            raise error
        write(connection, batch=batch, keep=keep)

    monkeypatch.setattr(sqlite_store, "_write", dying)

    async def work(store: UserStore) -> list[list[Any]]:
        failed = await asyncio.gather(
            *(store.append([("ada", [number])]) for number in range(3)), return_exceptions=True
        )
        assert [type(one) for one in failed] == [StorageError] * 3
        broken.clear()
        await asyncio.wait_for(store.append([("ada", [7])]), 20)
        return await store.histories(["ada"])

    assert use(str(tmp_path / "users.sqlite"), work) == [[7]]


def test_a_writer_of_another_process_that_dies_does_not_block(tmp_path: Path) -> None:
    file = tmp_path / "users.sqlite"
    asyncio.run(open_store(str(file), 5).close())
    script = f"""
import sqlite3, sys, time
connection = sqlite3.connect({str(file)!r}, isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO events VALUES ('ada', 1, 1)")
print("writing", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"

        async def work(store: UserStore) -> list[list[Any]]:
            with pytest.raises(StorageError, match="database is locked"):
                await store.append([("ada", [2])])
            other.kill()
            other.wait()
            await store.append([("ada", [3])])
            return await store.histories(["ada"])

        assert use(str(file), work) == [[3]]


def test_a_file_that_was_removed_is_created_again(tmp_path: Path) -> None:
    file = tmp_path / "users.sqlite"

    async def work(store: UserStore) -> list[list[Any]]:
        await store.append([("ada", [1])])
        for one in list(tmp_path.iterdir()):
            one.unlink()
        await store.append([("ada", [2])])
        return await store.histories(["ada"])

    assert use(str(file), work) == [[2]]
    assert use(str(file), lambda store: store.histories(["ada"])) == [[2]]


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "users.sqlite", 100_000)

    async def fill() -> None:
        await store._writer.call(lambda connection: connection.execute("PRAGMA max_page_count=4").fetchone())
        with pytest.raises(StorageError, match=r"user store .*: database or disk is full; free space on its disk"):
            await store.append([("ada", ["x" * 100] * 1000)])
        await store.append([("ada", [1])])
        assert await store.histories(["ada"]) == [[1]]
        await store.close()

    asyncio.run(fill())


LOOK = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT count(*) FROM events'); c.close()"
COUNT = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM events').fetchone()[0])"


def test_a_process_that_looks_into_the_file_does_not_remove_the_log_under_a_server(tmp_path: Path) -> None:
    file = tmp_path / "users.sqlite"

    async def work() -> int:
        store = SqliteStore(file, 10)
        await store.append([("ada", [1])])
        await store.histories(["ada"])  # The second connection of this process.
        subprocess.run([sys.executable, "-c", LOOK, str(file)], check=True)
        assert file.with_name("users.sqlite-wal").exists()
        await store.append([("bob", [2])])
        seen = subprocess.run([sys.executable, "-c", COUNT, str(file)], check=True, capture_output=True, text=True)
        await store.close()
        return int(seen.stdout)

    assert asyncio.run(work()) == 2


def test_a_folder_or_a_pipe_is_no_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(StorageError, match="it is not a plain file; choose another path"):
            SqliteStore(tmp_path / name, 10)
