"""The schema registry on a disk that is full, with a topic that is compacted while it is used, and with a topic of a
million records."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.registry import SETTINGS, Asked, RegistryProcess, running_registry
from support.small_disk import ended, small_disk
from support.waiting import free_port, until

TOPIC = "_schemas"
RECORDS = 1_000_000
SUBJECTS = 2_000
VERSIONS = 10


def avro(number: int, fields: int = 1) -> str:
    members = [{"name": f"f{number}_{at}", "type": "int", "default": 0} for at in range(fields)]
    return json.dumps({"type": "record", "name": "R", "fields": members})


@contextmanager
def asked(broker: BrokerProcess) -> Iterator[Asked]:
    with httpx.Client(timeout=60) as client:
        yield Asked(f"http://{broker.about['plugin_listeners']['lc.schema.registry']}", client)


@pytest.mark.long
def test_a_full_disk_refuses_registrations_and_serves_what_there_is(tmp_path: Path) -> None:
    settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    given = {**settings, "lc_log_min_free_bytes": "0"}

    def register(ask: Asked, number: int) -> Any:
        return ask("POST", f"/subjects/s{number}/versions", {"schema": avro(number, 200)})

    with small_disk(tmp_path) as disk:
        with ended(disk.broker(tmp_path / "home", **given)) as broker, asked(broker) as ask:
            ids = {number: register(ask, number).json["id"] for number in range(20)}
            disk.fill()
            answers: list[Any] = []
            for number in range(100, 200):
                answers.append(register(ask, number))
                if answers[-1].status != 200:
                    break
                ids[number] = answers[-1].json["id"]
            refused = answers[-1]
            assert (refused.status, refused.code) == (500, 50001), refused
            for method, path, body in (
                ("PUT", "/config/s0", {"compatibility": "NONE"}),
                ("DELETE", "/subjects/s0", None),
            ):
                answer = ask(method, path, body)
                assert answer.status in (200, 500) and (answer.status == 200 or answer.code == 50001), answer
            for number, id in ids.items():
                if number:
                    assert json.loads(ask.get(f"/schemas/ids/{id}")["schema"]) == json.loads(
                        avro(number, 200)
                    )
            # What is there is found again, which writes nothing.
            assert register(ask, 1).json["id"] == ids[1]
            assert ask.get("/subjects/s1/versions") == [1]
            (disk.seen / "filler").unlink()
            until(lambda: register(ask, 200).status == 200, "registrations to go on by themselves")
            ids[200] = register(ask, 200).json["id"]
            ids[201] = register(ask, 201).json["id"]
            assert len(set(ids.values())) == len(ids)
            disk.fill()
        # Killed while the disk is full.
        (disk.seen / "filler").unlink()
        with ended(disk.broker(tmp_path / "home", **given)) as broker, asked(broker) as ask:
            for number, id in ids.items():
                if number:
                    assert register(ask, number).json["id"] == id
            assert register(ask, 300).json["id"] == max(ids.values()) + 1
            assert broker.stop() == 0


@pytest.mark.long
def test_compaction_while_clients_register_and_a_restart(tmp_path: Path) -> None:
    cleaner = {"log.cleaner.backoff.ms": "50", "log.cleaner.min.cleanable.ratio": "0.01"}

    def told(ask: Asked) -> Any:
        paths = ("/schemas?deleted=true", "/config/a", "/mode/a", "/contexts", "/subjects?deleted=true")
        return [ask.get(path) for path in paths]

    with running_registry(tmp_path, cleaner) as registry:
        ask, folder = registry.ask, registry.broker.data / f"{TOPIC}-0"
        small = {
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "file.delete.delay.ms": "0",
        }
        librdkafka.alter(registry.broker.address, "topic", TOPIC, small)
        ask("PUT", "/mode/a", {"mode": "READWRITE"})
        for number in range(120):
            ask("PUT", "/config/a", {"compatibility": "FULL" if number % 2 else "NONE"})
            ask.register(f"s{number % 7}", f"c{number}", schemaType="COLUMNS")
            ask("PUT", f"/config/s{number % 7}", {"compatibility": "NONE"})
        gone = ask.register("gone", "z,last")["id"]
        for permanent in ("false", "true"):
            ask("DELETE", f"/subjects/gone?permanent={permanent}")
        written = librdkafka.watermarks(registry.broker.address, TOPIC)[1]

        def compacted() -> bool:
            ask("PUT", "/config/a", {"compatibility": "FULL"})
            return stored(folder) < written / 2

        until(compacted, "the topic to be compacted")
        before = told(ask)
    with running_registry(tmp_path, cleaner) as registry:
        assert told(registry.ask) == before
        assert registry.ask.register("new", "n")["id"] == gone + 1


def stored(folder: Path) -> int:
    """Records in the files of a partition."""
    from leafcuttr.wire.batch import parse

    count = 0
    for file in folder.glob("*.log"):
        try:
            data, at = file.read_bytes(), 0
        except FileNotFoundError:
            continue
        while at < len(data):
            header = parse(data, at)
            count += header.count
            at += header.size
    return count


@pytest.mark.long
def test_a_topic_of_a_million_records(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Of 20,000 versions, each written fifty times: it was not compacted for long. The gate has each once."""
    records = RECORDS if request.config.getoption("--long") else RECORDS // 50
    known = SUBJECTS * VERSIONS
    settings = {"log.cleaner.enable": "false"}
    with running_registry(tmp_path, settings) as registry:
        fill(registry, records)
    port = free_port()
    given = {**SETTINGS, **settings, "lc.schema.registry.port": str(port)}
    began = time.perf_counter()
    with running_broker(tmp_path / "broker", given) as broker, httpx.Client(timeout=60) as client:
        ask = Asked(f"http://127.0.0.1:{port}", client)
        until(lambda: answers(ask), "the topic to be read", seconds=300)
        took, resident = time.perf_counter() - began, broker.resident_mb()
        print(f"{records} records: the registry answers after {took:.1f} s, {resident:.0f} MB resident")
        last = ask.get(f"/schemas/ids/{known}")
        assert json.loads(last["schema"]) == json.loads(avro(known - 1))
        assert len(ask.get(f"/subjects/s{SUBJECTS - 1}/versions")) == VERSIONS
        assert ask("POST", "/subjects/new/versions", {"schema": avro(records)}).json["id"] == known + 1
        # By what there is, and not by what was written.
        assert resident < 250


def answers(ask: Asked) -> bool:
    """The port is open: it opens when the topic is read."""
    try:
        return ask("GET", "/").status == 200
    except httpx.ConnectError:
        return False


def fill(registry: RegistryProcess, records: int) -> None:
    from confluent_kafka import Producer

    known = SUBJECTS * VERSIONS
    producer = Producer({"bootstrap.servers": registry.broker.address, "linger.ms": 20, "acks": 1})
    for number in range(records):
        at = number % known
        subject, version = f"s{at // VERSIONS}", at % VERSIONS + 1
        value = {"subject": subject, "version": version, "id": at + 1, "schema": avro(at), "deleted": False}
        key = f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":1}}'
        while True:
            try:
                producer.produce(TOPIC, json.dumps(value).encode(), key.encode())
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(120) == 0
