"""The broker's metadata on disk: one SQLite file, `metadata.sqlite`, in the data directory.

Here live the file, its tables, their upgrades and the functions that commit a change. What the rows mean to a
running broker (`state.topics`, `state.producer_ids`) is elsewhere, and no log is touched.

Every function is synchronous and may be called from a worker thread; one lock makes them take turns. When a
function that changes something returns, the change is on the disk: the journal is a write-ahead log with
`synchronous=FULL`, so that each commit is one fsync. Callers publish a change in memory only after that.

The version of the tables is the file's `user_version`. `STEPS[n]` takes a file from version n to n + 1; an
empty file has version 0. A file that a newer LeafCuttr wrote is refused, and so is a damaged one: starting
without its topics would be worse than not starting.

Longer than other modules because it has all the SQL of the broker: the steps of the tables beside the functions that
read and write them.
"""

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self, TypeAlias

from leafcuttr import crashpoints
from leafcuttr.errors import StartError, StorageError
from leafcuttr.log.layout.folders import holds_records, partition_of

FILE_NAME: Final = "metadata.sqlite"

# Tells our file from any other SQLite file ("LCut"), as SQLite's documentation of application_id says.
APPLICATION_ID: Final = 0x4C437574

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})

STEPS: Final[Sequence[Sequence[str]]] = (
    (
        """CREATE TABLE topics (
            id BLOB PRIMARY KEY CHECK (length(id) = 16),
            name TEXT NOT NULL UNIQUE,
            partitions INTEGER NOT NULL CHECK (partitions > 0)
        ) WITHOUT ROWID""",
        """CREATE TABLE topic_configs (
            topic_id BLOB NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (topic_id, name)
        ) WITHOUT ROWID""",
        # The scope is a broker's id, or empty for what holds for every broker.
        """CREATE TABLE broker_configs (
            scope TEXT NOT NULL,
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (scope, name)
        ) WITHOUT ROWID""",
        """CREATE TABLE counters (
            name TEXT PRIMARY KEY,
            value INTEGER NOT NULL
        ) WITHOUT ROWID""",
        """CREATE TABLE features (
            name TEXT PRIMARY KEY,
            level INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "INSERT INTO counters VALUES ('changes', 0), ('next_producer_id', 0)",
    ),
    (
        # Topics whose folders may still have their names: a start after a crash finishes their deletion.
        "CREATE TABLE deleted_topics (id BLOB PRIMARY KEY CHECK (length(id) = 16)) WITHOUT ROWID",
    ),
    (
        # Topics that plugins keep for themselves; those of the core are known by name.
        "ALTER TABLE topics ADD COLUMN internal INTEGER NOT NULL DEFAULT 0",
    ),
    (
        # Topic settings of plugins that imply a filter or validator, also for the time in which the plugin is gone.
        """CREATE TABLE implied_parts (
            setting TEXT NOT NULL,
            kind TEXT NOT NULL,
            name TEXT NOT NULL,
            plugin TEXT NOT NULL,
            type INTEGER NOT NULL,
            unset TEXT,
            PRIMARY KEY (setting, kind, name)
        ) WITHOUT ROWID""",
        # The plugin to which a topic belongs; NULL: to nobody.
        "ALTER TABLE topics ADD COLUMN owner TEXT",
    ),
    (
        # KIP-554; the mechanism is Kafka's number of it.
        """CREATE TABLE scram_credentials (
            name TEXT NOT NULL,
            mechanism INTEGER NOT NULL,
            salt BLOB NOT NULL,
            stored_key BLOB NOT NULL,
            server_key BLOB NOT NULL,
            iterations INTEGER NOT NULL,
            PRIMARY KEY (name, mechanism)
        ) WITHOUT ROWID""",
        # What is made by chance, once for a data directory.
        "CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    ),
    (
        # KIP-48. Principals are JSON: [type, name], and a list of such.
        """CREATE TABLE delegation_tokens (
            id TEXT PRIMARY KEY,
            owner TEXT NOT NULL,
            requester TEXT NOT NULL,
            renewers TEXT NOT NULL,
            issued_ms INTEGER NOT NULL,
            expires_ms INTEGER NOT NULL,
            last_ms INTEGER NOT NULL
        ) WITHOUT ROWID""",
    ),
    (
        # KIP-546; the entity is JSON, as `state.security.quota_entities` writes it.
        """CREATE TABLE quotas (
            entity TEXT NOT NULL,
            name TEXT NOT NULL,
            value REAL NOT NULL,
            PRIMARY KEY (entity, name)
        ) WITHOUT ROWID""",
    ),
    (
        # The numbers are Kafka's.
        """CREATE TABLE acls (
            resource_type INTEGER NOT NULL,
            name TEXT NOT NULL,
            pattern_type INTEGER NOT NULL,
            principal TEXT NOT NULL,
            host TEXT NOT NULL,
            operation INTEGER NOT NULL,
            permission INTEGER NOT NULL,
            PRIMARY KEY (resource_type, name, pattern_type, principal, host, operation, permission)
        ) WITHOUT ROWID""",
    ),
)


class TopicRecord(NamedTuple):
    """A topic as it is stored. `id` is its 16 bytes, `overrides` the settings that differ from the
    broker's; `internal` marks a topic that a plugin keeps for itself, `owner` is the plugin if no other may write
    to it."""

    name: str
    id: bytes
    partitions: int
    overrides: Mapping[str, str]
    internal: bool = False
    owner: str | None = None


class StoredImplied(NamedTuple):
    """A filter or validator that a topic setting of a plugin implies, as it is stored. `kind` is the setting that would
    name it (`lc.filters`), `type` the number of the setting's type, `unset` the text of its default, if it has one."""

    setting: str
    kind: str
    name: str
    plugin: str
    type: int
    unset: str | None


class StoredScramCredential(NamedTuple):
    """A credential of a user as it is stored."""

    name: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


StoredPrincipal: TypeAlias = tuple[str, str]
"""Type and name."""


class StoredDelegationToken(NamedTuple):
    """A delegation token as it is stored: without its HMAC."""

    id: str
    owner: StoredPrincipal
    requester: StoredPrincipal
    renewers: Sequence[StoredPrincipal]
    issued_ms: int
    expires_ms: int
    last_ms: int


class StoredQuota(NamedTuple):
    """A quota as it is stored."""

    entity: str
    name: str
    value: float


class StoredAcl(NamedTuple):
    """An ACL as it is stored."""

    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class MetadataStore:
    """The open file. Close it: a clean close leaves one file instead of a file and its write-ahead log.

    Errors: a commit that the disk refuses raises StorageError and changes nothing.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.Lock()
        self._changes = self._counter("changes")

    @classmethod
    def open(cls, directory: Path) -> Self:
        """Open or create the file in `directory`, upgraded to this version.

        Raises StartError, with one line that names the file: it is damaged, not ours, newer, or cannot be
        written.
        """
        path = directory / FILE_NAME
        _check_not_emptied(path)
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
            _prepare(path, connection)
            store = cls(path, connection)
        except (sqlite3.Error, StorageError) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.Error) and error.sqlite_errorcode & 0xFF in _DAMAGED:
                raise _damaged(path, error) from error
            raise StartError(f"cannot use {path}: {error}") from error
        except StartError:
            if connection is not None:
                connection.close()
            raise
        return store

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @property
    def changes(self) -> int:
        """How many changes were ever committed: it only grows, as the offset of Kafka's metadata log does."""
        return self._changes

    # Topics

    def topics(self) -> list[TopicRecord]:
        """Every topic, in order of name."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT name, id, partitions, internal, owner FROM topics ORDER BY name"
            ).fetchall()
            configs: dict[bytes, dict[str, str]] = {}
            for topic_id, name, value in connection.execute(
                "SELECT topic_id, name, value FROM topic_configs"
            ):
                configs.setdefault(topic_id, {})[name] = value
        return [
            TopicRecord(name, id_, partitions, configs.get(id_, {}), bool(internal), owner)
            for name, id_, partitions, internal, owner in rows
        ]

    def add_topics(self, records: Iterable[TopicRecord]) -> None:
        """Store new topics, all or none."""
        records = list(records)
        with self._writing() as connection:
            for record in records:
                connection.execute(
                    "INSERT INTO topics (name, id, partitions, internal, owner) VALUES (?, ?, ?, ?, ?)",
                    (record.name, record.id, record.partitions, record.internal, record.owner),
                )
                _insert_overrides(connection, record.id, record.overrides)
            connection.executemany("DELETE FROM deleted_topics WHERE id = ?", [(r.id,) for r in records])

    def remove_topics(self, ids: Iterable[bytes]) -> None:
        """Forget topics and their settings, all or none; their ids are kept until `folders_are_gone`."""
        rows = [(topic_id,) for topic_id in ids]
        with self._writing() as connection:
            connection.executemany("DELETE FROM topics WHERE id = ?", rows)
            connection.executemany("INSERT OR IGNORE INTO deleted_topics VALUES (?)", rows)

    def deleted_topics(self) -> list[bytes]:
        """The ids of deleted topics of which folders may be left."""
        with self._reading() as connection:
            return [topic_id for (topic_id,) in connection.execute("SELECT id FROM deleted_topics")]

    def folders_are_gone(self, ids: Iterable[bytes]) -> None:
        """Of these deleted topics no folder is left under its own name."""
        rows = [(topic_id,) for topic_id in ids]
        if rows:
            with self._writing() as connection:
                connection.executemany("DELETE FROM deleted_topics WHERE id = ?", rows)

    def set_partitions(self, topic_id: bytes, partitions: int) -> None:
        """Give a topic a new number of partitions."""
        with self._writing() as connection:
            connection.execute("UPDATE topics SET partitions = ? WHERE id = ?", (partitions, topic_id))

    def set_topic_overrides(self, topic_id: bytes, overrides: Mapping[str, str]) -> None:
        """Replace all settings of a topic."""
        with self._writing() as connection:
            connection.execute("DELETE FROM topic_configs WHERE topic_id = ?", (topic_id,))
            _insert_overrides(connection, topic_id, overrides)

    # Settings of brokers

    def broker_configs(self) -> dict[str, dict[str, str]]:
        """The dynamic settings by scope: a broker's id, or "" for all brokers."""
        scopes: dict[str, dict[str, str]] = {}
        with self._reading() as connection:
            for scope, name, value in connection.execute("SELECT scope, name, value FROM broker_configs"):
                scopes.setdefault(scope, {})[name] = value
        return scopes

    def set_broker_configs(self, scope: str, changes: Mapping[str, str | None]) -> None:
        """Change settings of one scope; None removes one. What `changes` does not name stays."""
        with self._writing() as connection:
            for name, value in changes.items():
                if value is None:
                    connection.execute(
                        "DELETE FROM broker_configs WHERE scope = ? AND name = ?", (scope, name)
                    )
                else:
                    connection.execute("REPLACE INTO broker_configs VALUES (?, ?, ?)", (scope, name, value))

    # What settings of plugins imply

    def implied_parts(self) -> list[StoredImplied]:
        """All that is remembered."""
        with self._reading() as connection:
            rows = connection.execute("SELECT setting, kind, name, plugin, type, unset FROM implied_parts")
            return [StoredImplied(*row) for row in rows]

    def set_implied_parts(self, parts: Iterable[StoredImplied]) -> None:
        """Replace all that is remembered."""
        with self._writing() as connection:
            connection.execute("DELETE FROM implied_parts")
            connection.executemany("INSERT INTO implied_parts VALUES (?, ?, ?, ?, ?, ?)", list(parts))

    # Users

    def scram_credentials(self) -> list[StoredScramCredential]:
        """All of them."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT name, mechanism, salt, stored_key, server_key, iterations FROM scram_credentials"
            )
            return [StoredScramCredential(*row) for row in rows]

    def set_scram_credentials(
        self, upsertions: Iterable[StoredScramCredential], deletions: Iterable[tuple[str, int]]
    ) -> None:
        """Set these and delete those, by name and mechanism; all or none."""
        with self._writing() as connection:
            connection.executemany(
                "DELETE FROM scram_credentials WHERE name = ? AND mechanism = ?", list(deletions)
            )
            connection.executemany(
                "REPLACE INTO scram_credentials VALUES (?, ?, ?, ?, ?, ?)", list(upsertions)
            )

    def delegation_tokens(self) -> list[StoredDelegationToken]:
        """All of them."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT id, owner, requester, renewers, issued_ms, expires_ms, last_ms FROM delegation_tokens"
            )
            return [
                StoredDelegationToken(
                    id_,
                    _principal(json.loads(owner)),
                    _principal(json.loads(requester)),
                    [_principal(one) for one in json.loads(renewers)],
                    *times,
                )
                for id_, owner, requester, renewers, *times in rows
            ]

    def set_delegation_token(self, token: StoredDelegationToken) -> None:
        """Store it, in the place of one with this id."""
        principals = (json.dumps(each) for each in (token.owner, token.requester, token.renewers))
        with self._writing() as connection:
            connection.execute(
                "REPLACE INTO delegation_tokens VALUES (?, ?, ?, ?, ?, ?, ?)",
                (token.id, *principals, token.issued_ms, token.expires_ms, token.last_ms),
            )

    def remove_delegation_tokens(self, ids: Iterable[str]) -> None:
        """All or none."""
        rows = [(token_id,) for token_id in ids]
        with self._writing() as connection:
            connection.executemany("DELETE FROM delegation_tokens WHERE id = ?", rows)

    def quotas(self) -> list[StoredQuota]:
        """All of them."""
        with self._reading() as connection:
            rows = connection.execute("SELECT entity, name, value FROM quotas ORDER BY entity, name")
            return [StoredQuota(*row) for row in rows]

    def set_quotas(self, stored: Iterable[StoredQuota], removed: Iterable[tuple[str, str]]) -> None:
        """Set these and remove those, by entity and name; all or none."""
        with self._writing() as connection:
            connection.executemany("DELETE FROM quotas WHERE entity = ? AND name = ?", list(removed))
            connection.executemany("REPLACE INTO quotas VALUES (?, ?, ?)", list(stored))

    def acls(self) -> list[StoredAcl]:
        """All of them, in order."""
        with self._reading() as connection:
            rows = connection.execute(
                "SELECT resource_type, name, pattern_type, principal, host, operation, permission FROM acls"
                " ORDER BY resource_type, name, pattern_type, principal, host, operation, permission"
            )
            return [StoredAcl(*row) for row in rows]

    def change_acls(self, new: Iterable[StoredAcl], gone: Iterable[StoredAcl]) -> None:
        """Add these, which may be there already, and delete those; all or none."""
        with self._writing() as connection:
            connection.executemany(
                "DELETE FROM acls WHERE resource_type = ? AND name = ? AND pattern_type = ? AND principal = ?"
                " AND host = ? AND operation = ? AND permission = ?",
                list(gone),
            )
            connection.executemany("INSERT OR IGNORE INTO acls VALUES (?, ?, ?, ?, ?, ?, ?)", list(new))

    def secret(self, name: str) -> bytes:
        """32 bytes that only this data directory has, made by chance when they are first wanted."""
        with self._reading() as connection:
            row = connection.execute("SELECT value FROM secrets WHERE name = ?", (name,)).fetchone()
        if row is None:
            row = (os.urandom(32),)
            with self._writing() as connection:
                connection.execute("INSERT INTO secrets VALUES (?, ?)", (name, row[0]))
        return bytes(row[0])

    # Producer ids and features

    def take_producer_ids(self, count: int) -> range:
        """Take the next `count` producer ids. No later call returns one of them, whatever happens in
        between."""
        with self._writing() as connection:
            (first,) = connection.execute(
                "SELECT value FROM counters WHERE name = 'next_producer_id'"
            ).fetchone()
            connection.execute(
                "UPDATE counters SET value = ? WHERE name = 'next_producer_id'",
                (first + count,),
            )
        return range(first, first + count)

    def features(self) -> dict[str, int]:
        """The finalized feature levels that were changed from their defaults."""
        with self._reading() as connection:
            return dict(connection.execute("SELECT name, level FROM features").fetchall())

    def set_features(self, levels: Mapping[str, int]) -> None:
        """Store finalized feature levels; those not named stay."""
        with self._writing() as connection:
            connection.executemany("REPLACE INTO features VALUES (?, ?)", list(levels.items()))

    # The file

    def _counter(self, name: str) -> int:
        with self._reading() as connection:
            row = connection.execute("SELECT value FROM counters WHERE name = ?", (name,)).fetchone()
        return int(row[0])

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise StorageError(f"cannot read {self.path}: {error}") from error

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, durable when the block is left; undone if it raises."""
        with self._lock:
            connection = self._connection
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("UPDATE counters SET value = value + 1 WHERE name = 'changes'")
                crashpoints.reach("metadata.before-commit")
                connection.execute("COMMIT")
            except BaseException as error:
                if connection.in_transaction:
                    with contextlib.suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise StorageError(f"cannot write {self.path}: {error}") from error
                raise
            self._changes += 1
            crashpoints.reach("metadata.committed")


def _principal(pair: Sequence[str]) -> StoredPrincipal:
    kind, name = pair
    return kind, name


def _insert_overrides(connection: sqlite3.Connection, topic_id: bytes, overrides: Mapping[str, str]) -> None:
    connection.executemany(
        "INSERT INTO topic_configs VALUES (?, ?, ?)",
        [(topic_id, name, value) for name, value in overrides.items()],
    )


def _damaged(path: Path, why: object) -> StartError:
    return StartError(f"{path} is damaged: {' '.join(str(why).split())}{_way_out(path)}")


def _way_out(path: Path) -> str:
    return (
        "; put a backup of it back, or rebuild it from the partition folders: "
        f"leafcuttr repair --metadata --execute {path.parent}"
    )


def _check_not_emptied(path: Path) -> None:
    """SQLite takes an empty file for a new one, and the start would come up without its topics. Raises StartError."""
    try:
        emptied = path.stat().st_size == 0 and not path.with_name(f"{FILE_NAME}-wal").exists()
        folders = (child for child in path.parent.iterdir() if partition_of(child.name)) if emptied else ()
        if any(holds_records(folder) for folder in folders if folder.is_dir()):
            raise _damaged(path, "it is empty, and there are partitions")
    except FileNotFoundError:
        return
    except OSError as error:
        raise StartError(f"cannot use {path}: {error.strerror}") from error


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    """Check whose file it is and that it is whole, and bring its tables to this version."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (tables or version):
        raise StartError(f"{path} is not a metadata file of LeafCuttr{_way_out(path)}")
    if version > len(STEPS):
        raise StartError(
            f"{path} was written by a newer LeafCuttr (version {version}, this one knows up to {len(STEPS)})"
        )
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise _damaged(path, found)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    if version < len(STEPS):
        # One transaction, so one wait for the disk: a crash in the middle leaves the file as it was.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        for step in STEPS[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(STEPS)}")
        connection.execute("COMMIT")
    if version == 0:
        # SQLite syncs what it writes, but not the name of a new database in its directory.
        for name in (path, path.parent):
            descriptor = os.open(name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
