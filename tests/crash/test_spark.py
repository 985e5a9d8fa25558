"""A pipeline on Spark, its workers, its JVM and its broker are killed again and again while records come: in the topic
that it writes is what is in the one that it reads, each record once and those of a key in their order.

It writes topics alone, or a sink in Python too, which has each row once as well. The pipeline is the command
`leafcuttr spark run` in a process of its own. Its driver is killed between any two steps of the commit, while that
sink writes, and at random, a Python worker at its points and at random; the JVM, an executor of a cluster of
two, and the broker at random. With each start batches have another size, so rows are cut in another way. A producer of
librdkafka goes on all the time.

`nox -s spark-crash` kills 20 times each, with `--kills` as often as one likes; `nox -s spark` has the file of thirty
lines. `--crash-seed` repeats the plan of a run, not its timing. Spark and Java have to be there.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import fastavro
import pytest
from confluent_kafka import KafkaException, Producer

from crash.copies import Cluster, check, committed_records
from leafcuttr_spark.contracts import SinkBatch
from leafcuttr_spark.points import DRIVER, VARIABLE, WORKER
from support import librdkafka, own_sinks
from support.broker_process import clean_environ
from support.own_sinks import read_table
from support.waiting import free_port, until

PARTITIONS = 3
"""Of the topic that is read; each has a key of its own."""
PATIENCE_S = 1800.0
"""Where others want the processor too, Spark takes minutes to start."""
TRIES = 5
FILE = """
pipeline: numbers
variables: {most: 100, master: "local[2]"}
cluster: {bootstrap.servers: "ADDRESS"}
session:
  master: ${master}
  config:
    spark.driver.memory: 512m
    spark.executor.memory: 512m
    spark.sql.shuffle.partitions: 2
    # No JVM lives so long that what C2 compiles is worth its time.
    spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    spark.executor.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
checkpoint: ./checkpoint
trigger: {every: 100ms}
limits: {records-per-batch: "${most}"}
sources:
  numbers: {topic: numbers, key: text, value: text}
steps:
  - name: kept
    from: numbers
    filter: value IS NOT NULL
  - name: odd
    from: kept
    filter: CAST(split(value, '-')[1] AS INT) % 2 = 1
sinks:
  all: {from: kept, topic: copied, key: key, value: {format: text, expression: value}}
  some: {from: odd, topic: odd, key: key, value: {format: text, expression: value}}
"""
OWN = """  table: {from: kept, python: {class: "own_sinks:Table", arguments: {path: TABLE}}}
"""
"""One sink more."""
HALF = "own-sink-half"
"""The point at which a sink in Python has written half of a batch."""
CLUSTER = "local-cluster[2,1,512]"
"""Two executors of one core, each a process."""
TARGETS = {"copied": 2, "odd": 1}

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("pyspark") is None or shutil.which("java") is None,
        reason="Spark is not here",
    ),
]


class Victim(NamedTuple):
    """Which process is killed, and at which point, "" for a random moment."""

    name: str
    point: str = ""


class Run:
    """The command, started again whenever it has ended, as a broker does that runs it."""

    def __init__(self, folder: Path, dice: random.Random, name: str = "numbers.yaml") -> None:
        self._folder = folder
        self._file = folder / name
        self._dice = dice
        self._mosts = [20, 50, 100, 300]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        path = self._folder / "run.log"
        return path.read_text()[-4000:] if path.exists() else ""

    @property
    def done(self) -> int:
        """The last batch that the checkpoint knows of."""
        commits = (self._folder / "checkpoint" / "commits").glob("[0-9]*")
        return max((int(one.name) for one in commits), default=-1)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The last one, started at the first use."""
        if self._process is None:
            self._process = self._start("")
        return self._process

    def again(self, point: str = "", master: str = "local[2]") -> None:
        """End the one that runs, and start another one."""
        self._end()
        self._process = self._start(point, master)

    def catch_up(self) -> None:
        """From now on with large batches: the producer is faster than small ones."""
        self._mosts = [10_000]
        self.again()

    def start_if_ended(self, master: str = "local[2]") -> None:
        if self.process.poll() is not None:
            self.again(master=master)

    def goes_on(self, master: str = "local[2]") -> None:
        """Until one more batch is done, started again as often as it ends."""
        before = self.done

        def look() -> bool:
            self.start_if_ended(master)
            return self.done > before

        until(look, f"a batch behind {before}; {self.log}", seconds=PATIENCE_S, pause=0.1)

    def kill(self, victim: Victim) -> None:
        if victim.point in (*DRIVER, HALF):
            # Where a worker does not come up in time, or the broker has just been killed, it fails before the point.
            for _ in range(TRIES):
                self.again(victim.point)
                if (status := self.process.wait(PATIENCE_S)) != 1:
                    break
            assert status == -signal.SIGKILL, self.log
        elif victim.point:
            # The worker ends; what the driver makes of it is right, if it ends with 1 or goes on.
            self.again(victim.point)
            before = self.done
            until(
                lambda: self.process.poll() is not None or self.done > before + 3,
                "an end of the worker",
                seconds=PATIENCE_S,
            )
            assert self.process.poll() in (None, 1), self.log
            self._end()
        elif victim.name == "driver":
            self.process.kill()
            self.process.wait()
        elif victim.name == "executor":
            self.again(master=CLUSTER)
            for _ in range(TRIES):
                self.goes_on(CLUSTER)
                if len(executors := self._descendants("executor")) == 2:
                    break
            assert len(executors) == 2, self.log
            os.kill(self._dice.choice(executors), signal.SIGKILL)
        else:
            for pid in self._descendants(victim.name):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def stop(self) -> int:
        if self.process.poll() is not None:
            self.again()
            self.goes_on()
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def _end(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _descendants(self, name: str) -> list[int]:
        """Of the driver: its JVM, or one of the workers of that."""
        parents: dict[int, tuple[int, str]] = {}
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, ValueError, IndexError):
                stat = (path / "stat").read_text().rpartition(")")[2].split()
                parents[int(path.name)] = (int(stat[1]), (path / "cmdline").read_text())

        def is_below(pid: int) -> bool:
            while pid in parents and pid != self.process.pid:
                pid = parents[pid][0]
            return pid == self.process.pid

        mine = {pid: line for pid, (_, line) in parents.items() if pid != self.process.pid and is_below(pid)}
        if name == "jvm":
            return [pid for pid, line in mine.items() if "SparkSubmit" in line][:1]
        if name == "executor":
            # What starts one is a process with the same words.
            found = [pid for pid, line in mine.items() if "CoarseGrainedExecutorBackend" in line]
            return [pid for pid in found if not any(parents[other][0] == pid for other in found)]
        workers = [pid for pid, line in mine.items() if "pyspark" in line and "daemon" in line]
        return [self._dice.choice(workers)] if workers else []

    def _start(self, point: str, master: str = "local[2]") -> subprocess.Popen[bytes]:
        most = self._dice.choice(self._mosts)
        armed = {own_sinks.DIES: "1"} if point == HALF else {VARIABLE: point} if point else None
        with (self._folder / "run.log").open("ab") as out:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", "leafcuttr", "spark", "run", str(self._file)),
                    *("--set", f"most={most}", "--set", f"master={master}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=clean_environ(armed),
                start_new_session=True,
            )


@contextmanager
def producing(address: str) -> Iterator[None]:
    """Numbered records come all the time, whatever becomes of the broker."""
    ended = threading.Event()

    def run() -> None:
        producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5})
        number = 0
        while not ended.is_set():
            for partition in range(PARTITIONS):
                with suppress(BufferError):
                    producer.produce(
                        "numbers", b"%d-%d" % (partition, number), b"key-%d" % partition, partition=partition
                    )
            number += 1
            producer.poll(0)
            ended.wait(0.05)
        producer.flush(60)

    thread = threading.Thread(target=run, name="producer")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def plan(dice: random.Random, kills: int, own: tuple[str, ...] = ()) -> list[Victim]:
    """Each point once at least, where there are so many kills; and each of the processes at random. `own` are points of
    a sink in Python."""
    of_driver = (*own, *DRIVER)
    steps = [Victim("driver", point) for point in of_driver] + [Victim("worker", point) for point in WORKER]
    steps += [Victim(name) for name in ("broker", "worker", "jvm", "driver", "executor")]
    while len(steps) < kills:
        name = dice.choice(["driver", "driver", "driver", "worker", "jvm", "executor", "broker"])
        points = {"driver": of_driver, "worker": WORKER}.get(name, ())
        steps.append(Victim(name, dice.choice(points) if points and dice.random() < 0.5 else ""))
    dice.shuffle(steps)
    return steps[:kills]


def by_key(found: list[list[bytes]]) -> list[list[bytes]]:
    """The records of each key, in the order of the partition that they are all in."""
    values = [value for partition in found for value in partition]
    return [[value for value in values if value.startswith(b"%d-" % key)] for key in range(PARTITIONS)]


def in_table(path: Path) -> list[list[bytes]]:
    """The values of each key in a table of our own sink, in the order of the batches. Within one rows may come in any
    order."""
    rows = read_table(path)
    assert len({query for query, _, _ in rows}) == 1
    values = [(batch, int(row["value"].partition("-")[2]), row["value"].encode()) for _, batch, row in rows]
    return by_key([[value for _, _, value in sorted(values)]])


@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("own", [False, True], ids=["topics", "topics and a sink in Python"])
def test_nothing_is_lost_or_comes_twice(
    tmp_path: Path, request: pytest.FixtureRequest, seed: int, own: bool
) -> None:
    kills = request.config.getoption("--kills") or 20
    dice = random.Random(seed)
    began = time.monotonic()
    with Cluster(tmp_path / "broker") as broker:
        librdkafka.create(broker.address, "numbers", PARTITIONS)
        for topic, partitions in TARGETS.items():
            librdkafka.create(broker.address, topic, partitions)
        text = FILE + (OWN.replace("TABLE", str(tmp_path / "table.db")) if own else "")
        (tmp_path / "numbers.yaml").write_text(text.replace("ADDRESS", broker.address))
        shutil.copy(own_sinks.__file__, tmp_path)
        with Run(tmp_path, dice) as run:
            with producing(broker.address):
                steps = plan(dice, kills, (HALF,) if own else ())
                for number, victim in enumerate(steps):
                    # At a point it is a new run that dies, which may be the first thing that happens to the last one.
                    if not victim.point or dice.random() < 0.5:
                        run.goes_on()
                        threading.Event().wait(dice.uniform(0, 2))
                    if victim.name == "broker":
                        broker.kill()
                    else:
                        run.kill(victim)
                    seconds = time.monotonic() - began
                    print(f"{number + 1}: {victim}, {seconds:.0f} s, batch {run.done}", flush=True)
            wanted = committed_records(broker.address, "numbers", PARTITIONS)
            run.catch_up()
            odd = [[value for value in some if int(value.partition(b"-")[2]) % 2] for some in wanted]
            until(
                lambda: is_there(broker.address, "copied", sum(map(len, wanted)), run),
                "all of them",
                seconds=PATIENCE_S,
                pause=1.0,
            )
            assert run.stop() == 0, run.log
        assert min(map(len, wanted)) > 10
        check(by_key(committed_records(broker.address, "copied", TARGETS["copied"])), wanted, "key")
        check(by_key(committed_records(broker.address, "odd", TARGETS["odd"])), odd, "key")
        if own:
            check(in_table(tmp_path / "table.db"), wanted, "key of the table")
    seconds = time.monotonic() - began
    print(
        f"{kills} kills in {seconds:.0f} s, {kills / seconds * 3600:.0f} an hour; {sum(map(len, wanted))} records, "
        "each once and those of a key in their order"
    )


def is_there(address: str, topic: str, count: int, run: Run) -> bool:
    run.start_if_ended()
    try:
        return sum(map(len, committed_records(address, topic, TARGETS[topic]))) >= count
    except (AssertionError, KafkaException):
        return False


def test_the_plan_has_each_point() -> None:
    found = plan(random.Random(1), 20)
    assert {victim.point for victim in found} == {"", *DRIVER, *WORKER}
    assert {victim.point for victim in plan(random.Random(1), 20, (HALF,))} == {"", HALF, *DRIVER, *WORKER}
    assert {victim.name for victim in found} == {"driver", "worker", "jvm", "executor", "broker"}


def test_the_checker_sees_what_is_wrong() -> None:
    wanted = [[b"0-1", b"0-2"], [b"1-1"], [b"2-1"]]
    check(by_key([[b"0-1", b"2-1", b"0-2"], [b"1-1"]]), wanted, "key")
    for found, what in (
        ([[b"0-1", b"2-1"], [b"1-1"]], "key 0: 1 are lost"),
        ([[b"0-1", b"2-1", b"0-2", b"0-2"], [b"1-1"]], "key 0: 1 come twice"),
        ([[b"0-2", b"2-1", b"0-1"], [b"1-1"]], "key 0: their order"),
    ):
        with pytest.raises(AssertionError, match=what):
            check(by_key(found), wanted, "key")


def test_the_checker_sees_what_is_wrong_with_a_table(tmp_path: Path) -> None:
    wanted = [[b"0-1", b"0-2"], [b"1-1"], [b"2-1"]]

    def checked(*batches: list[str]) -> None:
        path = tmp_path / "table.db"
        path.unlink(missing_ok=True)
        table = own_sinks.Table(str(path))
        for number, values in enumerate(batches):
            rows = [Row({"value": value}) for value in values]
            table.write(SimpleNamespace(collect=lambda rows=rows: rows), SinkBatch("q", number))
        check(in_table(path), wanted, "key")

    checked(["2-1", "0-2", "0-1"], ["1-1"])
    checked(["0-1"], [], ["0-2", "2-1", "1-1"])
    for batches, what in (
        ((["0-1", "2-1"], ["1-1"]), "key 0: 1 are lost"),
        ((["0-1", "0-2", "2-1"], ["0-2", "1-1"]), "key 0: 1 come twice"),
        ((["0-2", "2-1"], ["0-1", "1-1"]), "key 0: their order"),
    ):
        with pytest.raises(AssertionError, match=what):
            checked(*batches)


class Row(dict[str, str]):
    """A row of a frame, as far as a sink uses it."""

    def asDict(self, recursive: bool) -> dict[str, str]:
        return self


# The file of 30 lines at most

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "order", "type": "string"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "long"},
    ],
}
CUSTOMER = {
    "type": "record",
    "name": "Customer",
    "fields": [{"name": "id", "type": "string"}, {"name": "region", "type": "string"}],
}
BEGIN_MS = 1_700_000_040_000
"""The begin of a minute."""
MOVED_MS = BEGIN_MS + 150_000
"""When the first customer moves from the north to the south."""


class Shop:
    """Orders, one each second, and customers; and what a pipeline has to make of them."""

    def __init__(self, address: str, schemas: str) -> None:
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 5})
        self._ids = {name: registered(schemas, name, schema) for name, schema in SCHEMAS.items()}
        self.orders: list[dict[str, Any]] = []

    def customers(self) -> None:
        for number in range(4):
            region = "north" if number % 2 == 0 else "west"
            # Not 0, of which librdkafka makes the present.
            self._send("customers", {"id": f"c{number}", "region": region}, BEGIN_MS - 60_000)
        self._send("customers", {"id": "c0", "region": "south"}, MOVED_MS)
        self._producer.flush(60)

    def order(self, count: int) -> None:
        for _ in range(count):
            number = len(self.orders)
            order = {"order": f"o{number}", "customer": f"c{number % 5}", "amount": number}
            self.orders.append(order)
            self._send("orders", order, BEGIN_MS + 1000 * number)
        self._producer.flush(60)

    def _send(self, topic: str, value: dict[str, Any], ms: int) -> None:
        data = io.BytesIO()
        data.write(b"\0" + self._ids[topic].to_bytes(4, "big"))
        fastavro.schemaless_writer(data, SCHEMAS[topic], value)
        key = str(next(iter(value.values()))).encode()
        self._producer.produce(topic, data.getvalue(), key, timestamp=ms)

    def named(self) -> list[tuple[str, str | None]]:
        """Each order, and the region of its customer at its time; there is no customer c4."""
        return sorted((order["order"], self._region(number)) for number, order in enumerate(self.orders))

    def totals(self) -> dict[tuple[str | None, int], tuple[int, int]]:
        """Of each region and minute: how many orders, and how much."""
        found: dict[tuple[str | None, int], tuple[int, int]] = {}
        for number, order in enumerate(self.orders):
            place = (self._region(number), number // 60)
            count, total = found.get(place, (0, 0))
            found[place] = (count + 1, total + order["amount"])
        return found

    def _region(self, number: int) -> str | None:
        customer = number % 5
        if customer == 4:
            return None
        if customer == 0 and BEGIN_MS + 1000 * number >= MOVED_MS:
            return "south"
        return "north" if customer % 2 == 0 else "west"


SCHEMAS = {"orders": ORDER, "customers": CUSTOMER}


def registered(schemas: str, topic: str, schema: dict[str, Any]) -> int:
    request = urllib.request.Request(
        f"{schemas}/subjects/{topic}-value/versions",
        json.dumps({"schema": json.dumps(schema)}).encode(),
        {"content-type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return int(json.load(answer)["id"])


def made(address: str) -> tuple[list[tuple[str, str | None]], dict[tuple[str | None, int], tuple[int, int]]]:
    """What is in the two topics; of the totals the last ones."""
    named = [json.loads(value) for some in committed_records(address, "named", 2) for value in some]
    totals: dict[tuple[str | None, int], tuple[int, int]] = {}
    # One partition: those of no region have no key, and of two partitions none says which total is the last.
    for some in committed_records(address, "totals", 1):
        for value in some:
            row = json.loads(value)
            begin = datetime.fromisoformat(row["window_start"]).replace(tzinfo=UTC)
            minute = (int(begin.timestamp() * 1000) - BEGIN_MS) // 60_000
            totals[row.get("region"), minute] = (row["orders"], row["total"])
    return sorted((row["order"], row.get("region")) for row in named), totals


@pytest.mark.timeout(2 * 3600)
def test_a_file_of_thirty_lines_goes_through_three_kills(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    port = free_port()
    schemas = f"http://127.0.0.1:{port}"
    settings = {
        "lc.schema.registry.enable": "true",
        "lc.schema.registry.host": "127.0.0.1",
        "lc.schema.registry.port": str(port),
    }
    text = (Path(__file__).parent / "joined.yaml").read_text()
    assert len(text.splitlines()) <= 30
    with Cluster(tmp_path / "broker", settings) as broker:
        for topic, partitions in {"orders": 3, "customers": 1, "named": 2, "totals": 1}.items():
            librdkafka.create(broker.address, topic, partitions, retention_ms="-1")
        shop = Shop(broker.address, schemas)
        shop.customers()
        shop.order(60)
        (tmp_path / "joined.yaml").write_text(
            text.replace("localhost:9092", broker.address).replace("http://localhost:8081", schemas)
        )
        with Run(tmp_path, dice, "joined.yaml") as run:
            for victim in (
                Victim("driver", "records-written"),  # between flush and commit
                Victim("driver", "transaction-committed"),  # before the checkpoint
                Victim("executor"),
            ):
                shop.order(60)
                run.kill(victim)
                shop.order(20)
            run.goes_on()

            def is_made() -> bool:
                # A batch may be done before its driver hears of the executor, and the one after that fails.
                run.start_if_ended()
                return made(broker.address) == (shop.named(), shop.totals())

            with suppress(TimeoutError):
                # What is missing then is said below.
                until(is_made, "all of them", seconds=PATIENCE_S, pause=1.0)
            named, totals = made(broker.address)
            assert named == shop.named(), run.log
            assert totals == shop.totals(), run.log
            assert run.stop() == 0, run.log
        assert made(broker.address) == (shop.named(), shop.totals())
