#!/usr/bin/env python3
"""How fast the schema registry answers, beside a bare application on the same server; how soon it is ready; what the
validation of topics costs, and what an idle registry costs others.

  registry.py [--part reads writes transitive ready validation beside start] [--seconds 5] [--runs 3] [--subjects 5000]

Prints a table: a line for each figure, with the median of the runs, in which both sides take turns. Needs wrk (Debian:
wrk). `CPU` is processor time of the broker and of its worker processes.

reads       16 connections of one thread of wrk
writes      registrations from eight clients, each with one request under way; checks of a record of 200 fields
transitive  checks against 1000 versions of 20 fields, of each format: of a new text, and of one compared before
ready       a start with four versions in each of so many subjects
validation  batches of 500 records of 1000 bytes, and of 500 to 1500, with the id of a schema, five under way; and
            records of five fields; and of JSON Schema, in the process and by a worker process
beside      the same batches to a broker without a registry, and to one with an idle one
start       a broker without the plugin, with the registry off, and on
"""

import argparse
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from support import librdkafka  # noqa: E402
from support.broker_process import BrokerProcess, start_broker  # noqa: E402
from support.registry import SETTINGS, RegistryProcess, running_registry  # noqa: E402

REGISTRATIONS: Final = 600
CLIENTS: Final = 8
CHECKS: Final = 20
BATCHES: Final = 60
ROUNDS: Final = 5
"""Of each run of what produces: short ones in turn, since the machine has other work."""
RECORDS: Final = 500
FIELDS: Final = 5
VERSIONS: Final = 4
TRANSITIVE: Final = 1000
_CPU_OF_PROCESS: Final = 2  # CPUCLOCK_SCHED
_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")

figures: dict[str, list[float]] = {}


def note(name: str, value: float) -> None:
    figures.setdefault(name, []).append(value)


def avro(number: int, fields: int = 2) -> str:
    """A record of so many fields."""
    more = [{"name": f"f{number}_{at}", "type": ["null", "string"], "default": None} for at in range(fields)]
    return json.dumps({"type": "record", "name": "Row", "fields": more})


def cpu_s(process: int) -> float:
    """User and system time of a process, of those below it that live, and of those of them that have ended."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == process:
            total += sum(map(int, words[11:15])) * _TICK_S
        elif int(words[1]) == process:
            total += cpu_s(int(stat.parent.name))
    return total


def own_cpu_s(process: int) -> float:
    """That of a process alone, in nanoseconds: /proc has ticks."""
    return time.clock_gettime((~process << 3) | _CPU_OF_PROCESS)


def wrk(url: str, seconds: float, script: str = "") -> float:
    """Requests a second. Raises for an answer that is an error."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        words = ["wrk", "-t1", "-c16", f"-d{seconds:.0f}s", "-s", file.name, url]
        told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in told or "Socket errors" in told:
        raise SystemExit(told)
    found = re.search(r"Requests/sec:\s+([\d.]+)", told)
    assert found is not None
    return float(found[1])


def post(connection: http.client.HTTPConnection, path: str, body: object) -> Any:
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    data = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {data!r}")
    return json.loads(data)


def host_of(registry: RegistryProcess) -> str:
    return registry.url.removeprefix("http://")


def reads(given: argparse.Namespace) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    bare = subprocess.Popen([sys.executable, str(HERE / "http_bare.py"), str(port)])
    script = 'wrk.method = "POST"\nwrk.body = "{}"\n'
    try:
        with running_registry(Path(tempfile.mkdtemp())) as registry:
            post(http.client.HTTPConnection(host_of(registry)), "/subjects/a/versions", {"schema": avro(0)})
            cases = {
                "bare application": (f"http://127.0.0.1:{port}/topics/a", script, bare.pid),
                "GET /schemas/ids/1": (f"{registry.url}/schemas/ids/1", "", registry.broker.process.pid),
                "GET versions/latest": (
                    f"{registry.url}/subjects/a/versions/latest",
                    "",
                    registry.broker.process.pid,
                ),
            }
            for _ in range(given.runs):
                rates = {}
                for name, (url, text, process) in cases.items():
                    before = cpu_s(process)
                    rates[name] = wrk(url, given.seconds, text)
                    used = cpu_s(process) - before
                    note(f"{name}, requests/s", rates[name])
                    note(f"{name}, µs CPU a request", used / (rates[name] * given.seconds) * 1e6)
                for name in list(rates)[1:]:
                    note(f"{name}, of the bare application", rates[name] / rates["bare application"])
    finally:
        bare.kill()
        bare.wait()


def registrations(registry: RegistryProcess, run: int) -> None:
    """New schemas, each in a subject of its own."""

    def client(first: int) -> None:
        connection = http.client.HTTPConnection(host_of(registry))
        for number in range(first, REGISTRATIONS, CLIENTS):
            body = {"schema": avro(run * REGISTRATIONS + number)}
            post(connection, f"/subjects/run{run}-{number}/versions", body)

    threads = [threading.Thread(target=client, args=(first,)) for first in range(CLIENTS)]
    before, began = cpu_s(registry.broker.process.pid), time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    note("registrations/s", REGISTRATIONS / (time.perf_counter() - began))
    note("registration, ms CPU", (cpu_s(registry.broker.process.pid) - before) / REGISTRATIONS * 1e3)


def checks(registry: RegistryProcess, run: int) -> None:
    """Of 200 fields against 200, of texts that were not seen before, and of one that was."""
    connection = http.client.HTTPConnection(host_of(registry))
    process = registry.broker.process.pid
    post(connection, f"/subjects/wide{run}/versions", {"schema": avro(run, 200)})
    path = f"/compatibility/subjects/wide{run}/versions/latest"
    took = []
    for kind in ("a new text", "a text seen before"):
        before = cpu_s(process)
        took = []
        for number in range(CHECKS):
            fields = [*json.loads(avro(run, 200))["fields"]]
            name = f"new{number}" if kind == "a new text" else "new"
            fields.append({"name": name, "type": "int", "default": 0})
            body = {"schema": json.dumps({"type": "record", "name": "Row", "fields": fields})}
            began = time.perf_counter()
            answer = post(connection, path, body)
            took.append((time.perf_counter() - began) * 1e3)
            assert answer == {"is_compatible": True}
        note(f"check of 200 fields, {kind}, ms", statistics.median(took))
        note(f"check of 200 fields, {kind}, fastest, ms", min(took))
        note(f"check of 200 fields, {kind}, ms CPU", (cpu_s(process) - before) / CHECKS * 1e3)


def writes(given: argparse.Namespace) -> None:
    with running_registry(Path(tempfile.mkdtemp())) as registry:
        for run in range(1, given.runs + 1):
            registrations(registry, run)
            checks(registry, run)


def member(format: str, number: int) -> str:
    """A version of a subject: 20 fields, and one more that no other version has."""
    names = [*(f"f{at}" for at in range(20)), f"g{number}"]
    if format == "AVRO":
        kind = ["null", "string"]
        fields = [{"name": name, "type": kind, "default": None} for name in names]
        return json.dumps({"type": "record", "name": "Row", "fields": fields})
    if format == "JSON":
        properties = {name: {"type": "string"} for name in names}
        return json.dumps(
            {"type": "object", "properties": properties, "additionalProperties": {"type": "string"}}
        )
    numbers = [*range(1, 21), 21 + number]
    lines = [f"  string {name} = {at};" for name, at in zip(names, numbers, strict=True)]
    return "\n".join(('syntax = "proto3";', "message Row {", *lines, "}"))


def transitive(given: argparse.Namespace) -> None:
    from confluent_kafka import Producer

    formats = ("AVRO", "JSON", "PROTOBUF")
    with running_registry(Path(tempfile.mkdtemp())) as registry:
        producer = Producer({"bootstrap.servers": registry.broker.address})
        for at, format in enumerate(formats):
            for version in range(1, TRANSITIVE + 1):
                key = f'{{"keytype":"SCHEMA","subject":"{format}","version":{version},"magic":1}}'
                value = {
                    "subject": format,
                    "version": version,
                    "id": at * TRANSITIVE + version,
                    "schemaType": format,
                    "schema": member(format, version),
                    "deleted": False,
                }
                producer.produce("_schemas", json.dumps(value).encode(), key.encode())
            producer.flush()
        connection = http.client.HTTPConnection(host_of(registry))
        for run in range(1, given.runs + 1):
            for format in formats:
                connection.request(
                    "PUT", f"/config/{format}", json.dumps({"compatibility": "FULL_TRANSITIVE"})
                )
                connection.getresponse().read()
                body = {"schemaType": format, "schema": member(format, TRANSITIVE + run)}
                path = f"/compatibility/subjects/{format}/versions?verbose=true"
                for kind in ("a new text", "a text compared before"):
                    requests, began = 0, time.perf_counter()
                    told = {"messages": ["too complex"]}
                    while told["messages"] and "too complex" in told["messages"][0]:
                        told = post(connection, path, body)
                        requests += 1
                    assert told["is_compatible"], told
                    took = time.perf_counter() - began
                    note(f"check of {TRANSITIVE} versions, {format}, {kind}, s", took)
                    note(f"check of {TRANSITIVE} versions, {format}, {kind}, requests", requests)


def fill(address: str, subjects: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address})
    for number in range(subjects * VERSIONS):
        subject, version = f"topic-{number // VERSIONS}-value", number % VERSIONS + 1
        value = {
            "subject": subject,
            "version": version,
            "id": number + 1,
            "schema": avro(number, 3 + version),
        }
        key = f'{{"keytype":"SCHEMA","subject":"{subject}","version":{version},"magic":1}}'
        producer.produce("_schemas", json.dumps({**value, "deleted": False}).encode(), key.encode())
        if number % 2000 == 0:
            producer.flush()
    producer.flush()


def started(folder: Path, settings: dict[str, str], name: str) -> BrokerProcess:
    """A broker, and how long it took until it was ready."""
    began = time.perf_counter()
    broker = start_broker(folder, settings)
    note(f"{name}, s", time.perf_counter() - began)
    note(f"{name}, s CPU", cpu_s(broker.process.pid))
    note(f"{name}, resident MB", broker.resident_mb())
    return broker


def ready(given: argparse.Namespace) -> None:
    folder, versions = Path(tempfile.mkdtemp()), given.subjects * VERSIONS
    with running_registry(folder) as registry:
        fill(registry.broker.address, given.subjects)
    for _ in range(given.runs):
        for enable in ("false", "true"):
            name = f"ready with {versions} versions" if enable == "true" else "ready without a registry"
            broker = started(folder / "broker", {**SETTINGS, "lc.schema.registry.enable": enable}, name)
            if enable == "true":
                url = broker.about["plugin_listeners"]["lc.schema.registry"]
                connection = http.client.HTTPConnection(url)
                connection.request("GET", f"/schemas/ids/{versions}")
                assert connection.getresponse().status == 200
            broker.stop()


def start(given: argparse.Namespace) -> None:
    """A broker at its start, and at rest."""
    cases = {
        "start without the plugin": {"lc.plugins.disabled": "registry"},
        "start, registry off": {},
        "start, registry on": SETTINGS,
    }
    for _ in range(given.runs):
        for name, settings in cases.items():
            broker = started(Path(tempfile.mkdtemp()), settings, name)
            time.sleep(1)  # what has been put off until after the start
            before = cpu_s(broker.process.pid)
            time.sleep(given.seconds)
            note(
                f"{name}, at rest, ms CPU a second",
                (cpu_s(broker.process.pid) - before) / given.seconds * 1e3,
            )
            broker.stop()


def row_of(fields: int = FIELDS) -> tuple[str, bytes]:
    """A schema of so many fields, and a record of it."""
    kinds = ["long", "string", "double", "boolean", ["null", "string"]]
    names = [{"name": f"f{at}", "type": kinds[at % len(kinds)]} for at in range(fields)]
    values = [b"\x80\x89\x0f", b"\x12some name", bytes(8), b"\1", b"\2\x0ca note"]
    text = json.dumps({"type": "record", "name": "Row", "fields": names})
    return text, b"".join(values[at % len(values)] for at in range(fields))


def json_of(pattern: str) -> tuple[str, bytes]:
    """A schema with a regular expression, and an object of it."""
    properties = {"name": {"type": "string", "pattern": pattern}, "age": {"type": "integer"}}
    return json.dumps(
        {"type": "object", "properties": properties}
    ), b'{"name":"some.name@example.org","age":36}'


def request_of(topic: str, value: bytes, shortest: int) -> bytes:
    """`shortest`: values of this length to the whole one, evenly spread."""
    from rawclient import produce_request

    from leafcuttr.wire.records import Record, encode_batch

    now, chance = int(time.time() * 1000), random.Random(1)
    records = [
        Record(number, now, b"key%07d" % number, value[: chance.randint(shortest, len(value))])
        for number in range(RECORDS)
    ]
    return produce_request(topic, bytes(encode_batch(records)))


def send(broker: BrokerProcess, topic: str, value: bytes, shortest: int | None = None) -> tuple[float, float]:
    """Records a second, and microseconds of the broker's processor time for each."""
    from peeking import rate

    request = request_of(topic, value, len(value) if shortest is None else shortest)
    rate(broker.port, request, 3)  # the first batch of an instance is a worker's
    before = own_cpu_s(broker.process.pid)
    found = rate(broker.port, request, BATCHES)
    used = own_cpu_s(broker.process.pid) - before
    librdkafka.delete(broker.address, topic)
    return found, used / (BATCHES * RECORDS) * 1e6


def in_turn(given: argparse.Namespace, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each name with that of a new topic, one after the other, and the other way round the next time."""
    for number in range(given.runs * ROUNDS):
        for name in names if number % 2 else reversed(names):
            yield name, f"{re.sub('[^a-z]+', '-', name)}-{number}"


@contextmanager
def sides(folder: Path, cases: dict[str, dict[str, str]]) -> Iterator[dict[str, BrokerProcess]]:
    """A broker for each."""
    running = {name: start_broker(folder / name, settings) for name, settings in cases.items()}
    try:
        yield running
    finally:
        for broker in running.values():
            broker.stop()


def validation(given: argparse.Namespace) -> None:
    text, row = row_of()
    with running_registry(Path(tempfile.mkdtemp())) as registry:
        broker = registry.broker
        connection = http.client.HTTPConnection(host_of(registry))
        cases = {
            "off": "off",
            "id": "id",
            "uneven, off": "off",
            "uneven, id": "id",
            "five fields, off": "off",
            "five fields, full": "full",
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for name, topic in in_turn(given, list(cases)):
            librdkafka.create(broker.address, topic, **{"lc.schema.validation.value": cases[name]})
            id = post(connection, f"/subjects/{topic}-value/versions", {"schema": text})["id"]
            data = b"\0" + id.to_bytes(4, "big") + row
            if "uneven" in name:
                found[name].append(send(broker, topic, data.ljust(1500, b"\0"), 500))
            else:
                found[name].append(send(broker, topic, data if "five" in name else data.ljust(1000, b"\0")))
        for name, pattern in (
            ("JSON, full", "^[a-z.]{1,30}@"),
            ("JSON, full, by a worker", r"[a-z.]+@[a-z.]+\.org$"),
        ):
            found[name] = []
            text, data = json_of(pattern)
            for number in range(given.runs):
                topic = f"json-{len(found)}-{number}"
                librdkafka.create(broker.address, topic, **{"lc.schema.validation.value": "full"})
                body = {"schema": text, "schemaType": "JSON"}
                id = post(connection, f"/subjects/{topic}-value/versions", body)["id"]
                found[name].append(send(broker, topic, b"\0" + id.to_bytes(4, "big") + data))
        note_all("validation", found)
        note_ratios("validation id, {} of off", found["id"], found["off"])
        note_ratios("validation id, uneven, {} of off", found["uneven, id"], found["uneven, off"])
        for (_, full), (_, off) in zip(found["five fields, full"], found["five fields, off"], strict=True):
            note("validation five fields, full, records/s of CPU", 1e6 / full)
            note("validation five fields, full, µs CPU more than off", full - off)


def note_all(what: str, found: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    for name, pairs in found.items():
        for rate, used in pairs:
            note(f"{what} {name}, records/s", rate)
            note(f"{what} {name}, µs CPU a record", used)


def note_ratios(
    what: str, found: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]
) -> None:
    for one, other in zip(found, others, strict=True):
        note(what.format("throughput"), one[0] / other[0])
        note(what.format("CPU"), one[1] / other[1])


def beside(given: argparse.Namespace) -> None:
    cases: dict[str, dict[str, str]] = {"registry off": {}, "registry on": SETTINGS}
    with sides(Path(tempfile.mkdtemp()), cases) as brokers:
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for name, topic in in_turn(given, list(cases)):
            librdkafka.create(brokers[name].address, topic)
            found[name].append(send(brokers[name], topic, bytes(1000)))
        note_all("produce,", found)
        note_ratios(
            "produce, {} with an idle registry of without", found["registry on"], found["registry off"]
        )


PARTS: Final[dict[str, Callable[[argparse.Namespace], None]]] = {
    "reads": reads,
    "writes": writes,
    "transitive": transitive,
    "ready": ready,
    "validation": validation,
    "beside": beside,
    "start": start,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--subjects", type=int, default=5000)
    given = parser.parse_args()
    for name in given.part:
        PARTS[name](given)
    print("| what | median | runs |\n|---|---:|---|")
    for name, values in figures.items():
        print(f"| {name} | {statistics.median(values):,.2f} | {', '.join(f'{one:,.2f}' for one in values)} |")


if __name__ == "__main__":
    main()
