"""The metadata file: what is committed is there after a reopen, and what is not ours or not whole is
refused."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from leafcuttr.errors import StartError, StorageError
from leafcuttr.state import metadata
from leafcuttr.state.metadata import FILE_NAME, MetadataStore, StoredImplied, TopicRecord

A, B = b"a" * 16, b"b" * 16


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MetadataStore]:
    store = MetadataStore.open(tmp_path)
    yield store
    store.close()


def reopened(store: MetadataStore) -> MetadataStore:
    store.close()
    return MetadataStore.open(store.path.parent)


def test_topics_and_settings_survive_a_reopen(store: MetadataStore) -> None:
    orders = TopicRecord("orders", A, 3, {"retention.ms": "1000", "cleanup.policy": "compact"})
    store.add_topics([orders, TopicRecord("events", B, 1, {})])
    store.set_partitions(B, 12)
    store.set_topic_overrides(A, {"retention.ms": "2000"})

    again = reopened(store)

    assert again.topics() == [
        TopicRecord("events", B, 12, {}),
        TopicRecord("orders", A, 3, {"retention.ms": "2000"}),
    ]
    assert again.changes == 3
    again.close()


def test_removing_a_topic_removes_its_settings(store: MetadataStore) -> None:
    store.add_topics([TopicRecord("orders", A, 3, {"retention.ms": "1000"})])
    store.remove_topics([A])
    store.add_topics([TopicRecord("orders", A, 1, {})])
    assert store.topics() == [TopicRecord("orders", A, 1, {})]


def test_a_refused_change_leaves_nothing(store: MetadataStore) -> None:
    store.add_topics([TopicRecord("orders", A, 3, {})])
    with pytest.raises(StorageError, match="UNIQUE"):
        store.add_topics([TopicRecord("new", B, 1, {}), TopicRecord("orders", b"c" * 16, 1, {})])
    assert [record.name for record in store.topics()] == ["orders"]
    assert store.changes == 1


def test_broker_settings_by_scope(store: MetadataStore) -> None:
    store.set_broker_configs("", {"log.retention.ms": "1", "log.cleaner.threads": "2"})
    store.set_broker_configs("1", {"log.retention.ms": "5"})
    store.set_broker_configs("", {"log.retention.ms": None, "log.cleaner.threads": "3"})
    assert reopened(store).broker_configs() == {
        "": {"log.cleaner.threads": "3"},
        "1": {"log.retention.ms": "5"},
    }


def test_what_settings_of_plugins_imply(store: MetadataStore) -> None:
    assert store.implied_parts() == []
    parts = [
        StoredImplied("lc.plugin.x.check", "lc.validators", "check", "x", 1, "false"),
        StoredImplied("lc.plugin.x.mark", "lc.filters", "mark", "x", 2, None),
    ]
    store.set_implied_parts(parts)
    store = reopened(store)
    assert store.implied_parts() == parts
    with pytest.raises(StorageError, match="UNIQUE"):
        store.set_implied_parts([parts[1], parts[1]])
    assert store.implied_parts() == parts
    store.set_implied_parts(parts[1:])
    assert reopened(store).implied_parts() == parts[1:]


def test_features(store: MetadataStore) -> None:
    assert store.features() == {}
    store.set_features({"group.version": 1})
    store.set_features({"group.version": 0, "transaction.version": 2})
    assert store.features() == {"group.version": 0, "transaction.version": 2}


def test_producer_ids_are_never_given_twice(store: MetadataStore) -> None:
    assert store.take_producer_ids(10) == range(10)
    assert reopened(store).take_producer_ids(5) == range(10, 15)


def test_threads_take_turns(store: MetadataStore) -> None:
    taken: list[range] = []

    def take() -> None:
        for _ in range(10):
            taken.append(store.take_producer_ids(7))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(i for block in taken for i in block) == list(range(4 * 10 * 7))


def test_ten_thousand_topics_load_in_two_queries(store: MetadataStore) -> None:
    records = [
        TopicRecord(f"t{n:05}", n.to_bytes(16, "big"), 1, {"retention.ms": str(n)}) for n in range(10_000)
    ]
    store.add_topics(records)
    asked: list[str] = []
    store._connection.set_trace_callback(asked.append)
    assert store.topics() == records
    assert len(asked) == 2


def test_a_clean_close_leaves_one_file(tmp_path: Path) -> None:
    MetadataStore.open(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_a_file_of_the_version_before_is_upgraded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MetadataStore.open(tmp_path)
    store.add_topics([TopicRecord("orders", A, 3, {})])
    store.close()

    monkeypatch.setattr(metadata, "STEPS", (*metadata.STEPS, ("ALTER TABLE topics ADD COLUMN note TEXT",)))
    store = MetadataStore.open(tmp_path)
    assert store.topics() == [TopicRecord("orders", A, 3, {})]
    assert store._connection.execute("SELECT note FROM topics").fetchall() == [(None,)]
    store.close()
    MetadataStore.open(tmp_path).close()


@pytest.mark.parametrize("there", [0, 3], ids=["a new file", "an older file"])
def test_what_is_not_upgraded_to_its_end_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: int
) -> None:
    """All steps are one transaction: that is one wait for the disk at the first start."""

    def tables() -> list[tuple[str]]:
        with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (there,)
            return connection.execute("SELECT sql FROM sqlite_master").fetchall()

    if there:
        with monkeypatch.context() as older:
            older.setattr(metadata, "STEPS", metadata.STEPS[:there])
            MetadataStore.open(tmp_path).close()
    before = tables()
    with monkeypatch.context() as broken:
        broken.setattr(metadata, "STEPS", (*metadata.STEPS, ("CREATE TABLE topics (x)",)))
        with pytest.raises(StartError, match="table topics already exists"):
            MetadataStore.open(tmp_path)
    assert tables() == before
    store = MetadataStore.open(tmp_path)
    store.add_topics([TopicRecord("orders", A, 3, {})])
    assert reopened(store).topics() == [TopicRecord("orders", A, 3, {})]


def test_topics_of_before_plugins_have_no_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(metadata, "STEPS", metadata.STEPS[:2])
        MetadataStore.open(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("INSERT INTO topics (name, id, partitions) VALUES ('orders', ?, 3)", (A,))
    connection.close()
    store = MetadataStore.open(tmp_path)
    store.add_topics([TopicRecord("state", B, 1, {}, internal=True)])
    assert store.topics() == [TopicRecord("orders", A, 3, {}), TopicRecord("state", B, 1, {}, internal=True)]
    store.close()


def test_topics_of_before_owners_belong_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(metadata, "STEPS", metadata.STEPS[:3])
        MetadataStore.open(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute(
            "INSERT INTO topics (name, id, partitions, internal) VALUES ('state', ?, 3, 1)", (A,)
        )
    connection.close()
    store = MetadataStore.open(tmp_path)
    store.add_topics([TopicRecord("table", B, 1, {}, internal=True, owner="tables")])
    topics = [
        TopicRecord("state", A, 3, {}, internal=True),
        TopicRecord("table", B, 1, {}, internal=True, owner="tables"),
    ]
    assert store.topics() == topics
    again = reopened(store)
    assert again.topics() == topics
    again.close()


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    MetadataStore.open(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute(f"PRAGMA user_version = {len(metadata.STEPS) + 1}")
    connection.close()
    with pytest.raises(
        StartError, match=rf"{FILE_NAME} was written by a newer LeafCuttr \(version {len(metadata.STEPS) + 1}"
    ):
        MetadataStore.open(tmp_path)


def test_another_programs_file_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    with pytest.raises(StartError, match="is not a metadata file"):
        MetadataStore.open(tmp_path)


@pytest.mark.parametrize("damage", ["header", "page", "cut"])
def test_a_damaged_file_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    store = MetadataStore.open(tmp_path)
    store.add_topics([TopicRecord(f"t{n}", n.to_bytes(16, "big"), 1, {}) for n in range(1000)])
    store.close()
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    if damage == "header":
        content[:16] = b"not a database!!"
    elif damage == "page":
        content[5 * 4096 : 6 * 4096] = os.urandom(4096)
    else:
        del content[3 * 4096 :]
    path.write_bytes(content)

    with pytest.raises(StartError) as refused:
        MetadataStore.open(tmp_path)

    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("cannot", ["directory", "file"])
def test_a_file_that_cannot_be_opened_is_refused_by_name(tmp_path: Path, cannot: str) -> None:
    directory = tmp_path / "missing"
    if cannot == "file":
        (directory / FILE_NAME).mkdir(parents=True)
    with pytest.raises(StartError, match=FILE_NAME):
        MetadataStore.open(directory)


KILLED = """
import sys
from pathlib import Path
from leafcuttr.state.metadata import MetadataStore, TopicRecord
store = MetadataStore.open(Path(sys.argv[1]))
store.take_producer_ids(1000)
store.add_topics([TopicRecord("orders", b"a" * 16, 3, {"retention.ms": "1"})])
"""


@pytest.mark.parametrize(("point", "topics"), [("metadata.before-commit:2", 0), ("metadata.committed:2", 1)])
def test_a_kill_leaves_the_change_or_nothing_of_it(tmp_path: Path, point: str, topics: int) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        env={**os.environ, "LEAFCUTTR_CRASH_POINT": point},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    store = MetadataStore.open(tmp_path)
    assert len(store.topics()) == topics
    assert store.take_producer_ids(1) == range(1000, 1001)
    store.close()


KILLED_WITH_ACLS = """
import sys
from pathlib import Path
from leafcuttr.state.metadata import MetadataStore, StoredAcl
store = MetadataStore.open(Path(sys.argv[1]))
old, new = (StoredAcl(2, name, 3, "User:a", "*", 3, 3) for name in ("old", "n\\0w"))
store.change_acls([old], [])
store.change_acls([new], [old])
"""


@pytest.mark.parametrize(
    ("point", "left"), [("metadata.before-commit:2", "old"), ("metadata.committed:2", "n\0w")]
)
def test_a_kill_leaves_the_acls_of_before_or_of_after(tmp_path: Path, point: str, left: str) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WITH_ACLS, str(tmp_path)],
        env={**os.environ, "LEAFCUTTR_CRASH_POINT": point},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    store = MetadataStore.open(tmp_path)
    assert [acl.name for acl in store.acls()] == [left]
    store.close()
