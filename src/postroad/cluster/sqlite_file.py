"""The coordination store's file: created, recognised and checked before anything relies on it.

A SQLite database with application id "PstR" and the layout's number in user_version:

    entries   key BLOB (UTF-8, primary key) · value BLOB · revision INTEGER · lease INTEGER (0: none)
              · checksum INTEGER (CRC-32 of revision and lease as int64, big endian, key, a zero byte, value)
    counters  name TEXT (primary key) · value INTEGER           one row: 'revision'

A file is valid if both numbers are ours, SQLite's own quick check finds no damage, each entry matches its
checksum (SQLite has none for its pages) and none is of a later revision than the counter. Layout 1 had no
checksums; it is brought up to this one when it is opened, in one transaction. A crash is safe
because every change is one transaction (write-ahead log, synced before a commit returns): the next
open replays the log up to the last complete commit. Nothing here ever deletes or empties a file that
it can't read: what looks broken may be all that a user has.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
from pathlib import Path
from typing import Final
from zlib import crc32

from postroad.errors import ConfigurationError

APPLICATION_ID: Final = int.from_bytes(b"PstR", "big")
LAYOUT: Final = 2
FIRST_REVISION: Final = 1  # as etcd's: 0 is left to mean "absent"
BUSY_SECONDS: Final = 1.0  # a node that is just ending may hold the file for a moment

_NUMBERS: Final = struct.Struct(">qq")

_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE entries (
    key BLOB PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL, lease INTEGER NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES ('revision', {FIRST_REVISION});
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {LAYOUT};
COMMIT;
"""


def open_database(path: Path) -> sqlite3.Connection:
    """A connection that alone may use the file, created (0600) if it is missing.

    Raises ConfigurationError if the file is not ours, damaged, or in use by another process.
    """
    _prepare(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        _set_up(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise ConfigurationError(_explain(error, path)) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        _create(path)
        return
    if not stat.S_ISREG(mode):
        raise ConfigurationError(
            f"{path} is a link, or not a regular file; the coordination store must be a regular file."
        )
    if stat.S_IMODE(mode) & 0o077:
        path.chmod(0o600)


def _create(path: Path) -> None:
    """An empty file, which SQLite takes for an empty database; its log gets the same permissions.

    The descriptor is closed before SQLite opens the file: closing one later would drop SQLite's locks.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    # Exclusive: watches and leases live in this process, a second one would never hear of a change.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    application, layout, tables = (
        _number(connection, query)
        for query in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if tables and application != APPLICATION_ID:
        raise ConfigurationError(
            f"{path} is a database of another program. Move it away, or choose another data.dir."
        )
    if layout > LAYOUT:
        raise ConfigurationError(
            f"{path} has layout {layout}, written by a newer Postroad; this one reads {LAYOUT}. Update it."
        )
    damage = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if damage != "ok":
        raise sqlite3.DatabaseError(damage)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    if not tables:
        connection.executescript(_SCHEMA)
    elif layout < LAYOUT:
        _add_checksums(connection)
    _check_entries(connection)
    _write_anew(connection)


def _write_anew(connection: sqlite3.Connection) -> None:
    """Move what the log holds into the database and empty it.

    A sync of the log may have failed before this start: then the kernel shows commits that are not on the
    disk and that no further sync would write, and later ones would be lost with them in a power cut.
    """
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_FULL:  # on a full disk the node starts all the same
            raise


def checksum(key: bytes, value: bytes, revision: int, lease: int) -> int:
    return crc32(b"%b%b\0%b" % (_NUMBERS.pack(revision, lease), key, value))


def _add_checksums(connection: sqlite3.Connection) -> None:
    """From layout 1, all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute("ALTER TABLE entries ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0")
        rows = connection.execute("SELECT key, value, revision, lease FROM entries").fetchall()
        sums = [(checksum(*row), row[0]) for row in rows]
        connection.executemany("UPDATE entries SET checksum = ? WHERE key = ?", sums)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_entries(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.DatabaseError at the first that was changed by something else than a commit."""
    latest = _number(connection, "SELECT value FROM counters WHERE name = 'revision'")
    for key, value, revision, lease, found in connection.execute("SELECT * FROM entries"):
        check_entry(key, value, revision, lease, found)
        if revision > latest:
            raise sqlite3.DatabaseError(f"the counter of revisions, {latest}, is damaged")


def check_entry(key: bytes, value: bytes, revision: int, lease: int, found: int) -> None:
    if checksum(key, value, revision, lease) != found:
        name = key.decode(errors="replace")
        raise sqlite3.DatabaseError(f"the entry {name!r} is damaged: it does not match its checksum")


def _number(connection: sqlite3.Connection, query: str) -> int:
    return int(connection.execute(query).fetchone()[0])


def _explain(error: sqlite3.Error, path: Path) -> str:
    if is_busy(error):
        return f"{path} is in use by another process. Stop the other node, or give this one its own data.dir."
    if is_full(error):
        return f"The disk is full: {path} is unchanged, and can't be opened. Make room, then start again."
    return (
        f"{path} can't be read as a coordination store ({error}). The logs beside it are untouched. "
        f"Restore this file from a backup; to begin anew, choose another data.dir."
    )


def is_busy(error: sqlite3.Error) -> bool:
    return _primary_code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_full(error: sqlite3.Error) -> bool:
    return _primary_code(error) == sqlite3.SQLITE_FULL


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
