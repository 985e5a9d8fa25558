"""MirrorMaker 2 between two brokers over SASL_SSL has the rights of the page, and no others: what is missing the broker
names, and once it is given records, partitions, settings and offsets of groups are at the target."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support import jars
from support.mirror_maker import start_mirror_maker
from support.needed_rights import (
    MIRROR_SOURCE,
    MIRROR_TARGET,
    Need,
    Rights,
    authorized_broker,
    client,
    seen,
)
from support.pages import DOCS
from support.secured_broker import SecuredBroker
from support.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
SECONDS = 400.0
VALUES = [str(number) for number in range(10)]
RETENTION = "7654321000"
OFFSET = len(VALUES)
"""Of groups: one that lies before what MirrorMaker has copied before it was started again it does not translate."""
READERS, OTHERS = "readers", "others"
INTERVALS = """emit.heartbeats.enabled=false
sync.topic.acls.enabled=false
sync.group.offsets.enabled=true
refresh.topics.interval.seconds=1
refresh.groups.interval.seconds=1
sync.topic.configs.interval.seconds=1
sync.group.offsets.interval.seconds=1
emit.checkpoints.interval.seconds=1
offset.lag.max=0
offset.flush.interval.ms=500
plugin.discovery=service_load
"""


class Cluster:
    """What root sees of one of the two."""

    def __init__(self, broker: SecuredBroker) -> None:
        from confluent_kafka.admin import AdminClient

        self.rights = Rights(broker)
        self._settings = broker.administrator
        self._admin = AdminClient(self._settings)

    def alter(self, retention: str) -> None:
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

        entry = ConfigEntry("retention.ms", retention, incremental_operation=AlterConfigOpType.SET)
        wanted = ConfigResource("topic", "orders", incremental_configs=[entry])
        for future in self._admin.incremental_alter_configs([wanted]).values():
            future.result(60)

    def grow(self) -> None:
        from confluent_kafka.admin import NewPartitions

        for future in self._admin.create_partitions([NewPartitions("orders", 2)]).values():
            future.result(60)

    def commit(self, group: str) -> None:
        from confluent_kafka import Consumer, TopicPartition

        reader = Consumer({**self._settings, "group.id": group})
        reader.commit(offsets=[TopicPartition("orders", 0, OFFSET)], asynchronous=False)
        reader.close()

    def partitions(self) -> int:
        found = self._admin.list_topics(timeout=60).topics.get("orders")
        return 0 if found is None else len(found.partitions)

    def has_records(self) -> bool:
        return self.partitions() > 0 and len(self.rights.read("orders")) >= len(VALUES)

    def retention(self) -> str:
        from confluent_kafka.admin import ConfigResource

        (asked,) = self._admin.describe_configs([ConfigResource("topic", "orders")]).values()
        return str(asked.result(60)["retention.ms"].value)

    def committed(self, group: str) -> int:
        from confluent_kafka import Consumer, TopicPartition

        reader = Consumer({**self._settings, "group.id": group})
        try:
            return int(reader.committed([TopicPartition("orders", 0)], timeout=60)[0].offset)
        finally:
            reader.close()


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[str, SecuredBroker]]:
    with authorized_broker(tmp_path / "old") as old, authorized_broker(tmp_path / "new") as new:
        yield {"old": old, "new": new}


@pytest.fixture
def mirror(brokers: dict[str, SecuredBroker], tmp_path: Path) -> Iterator[Mirror]:
    found = Mirror(brokers, tmp_path)
    yield found
    found.kill()


class Mirror:
    """MirrorMaker with the settings of the how-to page, and a log-in at both."""

    def __init__(self, brokers: dict[str, SecuredBroker], folder: Path) -> None:
        page = (DOCS / "how-to" / "mirror.properties").read_text()
        lines = [line for line in page.splitlines() if "bootstrap.servers" not in line]
        for alias, broker in brokers.items():
            lines += [f"{alias}.{name}={value}" for name, value in client(broker).items()]
        self._settings, self._log = folder / "mirror.properties", folder / "mirror.log"
        self._settings.write_text("\n".join(lines) + "\n" + INTERVALS)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Anew, where it runs."""
        self.kill()
        self._process = start_mirror_maker(self._settings, self._log)

    def go_on(self) -> None:
        """A MirrorMaker that has ended is started again, as its service would do."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


NEEDS = [*(("old", need) for need in MIRROR_SOURCE), *(("new", need) for need in MIRROR_TARGET)]


@pytest.mark.parametrize(("at", "missing"), NEEDS, ids=[f"{at}: {need}" for at, need in NEEDS])
def test_a_right_is_missing(
    brokers: dict[str, SecuredBroker], mirror: Mirror, at: str, missing: Need
) -> None:
    clusters = {alias: Cluster(broker) for alias, broker in brokers.items()}
    old, new = clusters["old"], clusters["new"]
    for alias, needs in (("old", MIRROR_SOURCE), ("new", MIRROR_TARGET)):
        given = [need for need in needs if (alias, need) != (at, missing)]
        # A group that it may know of, whatever is missing.
        given += [replace(need, name=OTHERS) for need in needs if need.name == READERS]
        clusters[alias].rights.give(given, "")
    old.rights.create(["orders"])
    if missing.operation == "alter":
        new.rights.create(["orders"])
    old.rights.send("orders", VALUES)
    for group in (READERS, OTHERS):
        old.commit(group)
    old.grow()
    old.alter(RETENTION)
    restarted = False

    def said() -> str:
        nonlocal restarted
        mirror.go_on()
        if (
            not restarted
            and missing.name.endswith("checkpoints.internal")
            and new.committed(READERS) >= OFFSET
        ):
            # What it has written it reads when it begins anew.
            mirror.start()
            restarted = True
        return ""

    if missing.says:
        # It would not see what it may not read.
        clusters[at].rights.give([seen(missing)], "")
        mirror.start()
        clusters[at].rights.wait_for(missing, "", said)
    else:
        mirror.start()
        until(lambda: new.committed(OTHERS) >= OFFSET, "the other group", seconds=SECONDS)
        assert new.committed(READERS) < 0
    if missing.without.startswith("it goes on"):
        until(new.has_records, "the records", seconds=SECONDS)
    clusters[at].rights.give([missing], "")
    mirror.start()

    def found() -> Any:
        mirror.go_on()
        return new.has_records() and (new.partitions(), new.retention(), new.committed(READERS))

    def is_there() -> bool:
        # What was copied before MirrorMaker was killed may come again.
        return bool(found() == (2, RETENTION, len(new.rights.read("orders"))))

    until(is_there, "all that is at the source", seconds=SECONDS, pause=0.5)
    assert set(new.rights.read("orders")) == set(VALUES)
