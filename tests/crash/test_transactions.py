"""Transactional producers and read_committed readers, both sides killed at random: from the log alone, nothing that was
committed is lost, nothing that was aborted visible, nothing there twice; all of a transaction or none of it, across
partitions and offsets.

Writers (librdkafka, and one of transaction version 2) fill an input topic, copiers take it to output topics in
transactions with their offsets, all in processes of their own (`txn_client`). A plugin in the broker does what copiers
do (`txn_mover`). The broker is killed at random moments
and at the points of the transaction coordinator, or told to stop, the clients in whatever they do; now and then one
stands still, is replaced, and goes on as a zombie, which has to be fenced. At the end the log is read as files
(`txn_audit`), by new readers, and compared with what a reader got that was there all the time.

The gate kills the broker a few times, `--long` 60 times, `--kills` as often as one likes. `--crash-seed` repeats the
plan of a run, not its timing.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from crash import acknowledged
from crash import txn_audit as audit
from crash.acknowledged import ALL, NONE, SOME, Files
from crash.txn_mover import CONFIG
from crash.txn_plan import COMMITTED, INPUT, PARTITIONS, Journal, plan
from crash.workload import KEEP_COORDINATORS
from support import librdkafka
from support.broker_process import BrokerProcess, clean_environ, start_broker
from support.forked_start import run_leafcuttr
from support.waiting import free_port, until

INTERNAL = 2  # partitions of each internal topic
SETTINGS = {
    "log.segment.bytes": "1048576",
    "log.flush.offset.checkpoint.interval.ms": "700",
    "offsets.topic.num.partitions": str(INTERNAL),
    "transaction.state.log.num.partitions": str(INTERNAL),
}
GROUPED, ALONE, PLUGIN = "grouped", "alone", "plugin"
OUTPUTS = {GROUPED: "out-grouped", ALONE: "out-alone", PLUGIN: "out-plugin"}
POINTS = [
    "append.written",
    "append.published",
    "group-commit.appended",
    "roll.file-created",
    "soft-checkpoint.renamed",
    "transaction.before-complete",
    "transaction.before-prepare",
    "transaction.marked",
    "transaction.prepared",
    "transaction.written",
]
PATIENCE_S = 180  # for anything at all to happen: only a hang takes so long


class Child:
    """A client's process, again and again."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.name: str = config["name"]
        self.journal = Journal(folder / f"{self.name}.journal")
        self.log = folder / f"{self.name}.log"
        self.fatal = 0
        self.output: str = config.get("output", "")
        self._config = {**config, "journal": str(self.journal.path)}
        self._process: subprocess.Popen[bytes] | None = None
        self._seen = 0

    def start(self) -> None:
        """Unless it runs. One that has ended by itself had a fatal error."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            if self._process.returncode != -9:
                assert self._process.returncode == 3, f"{self.name}: {self.log.read_text()[-3000:]}"
                self.fatal += 1
        root = Path(__file__).parents[1]
        environ = clean_environ()
        path = ":".join(filter(None, [str(root), environ.get("PYTHONPATH", "")]))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(root / "crash/txn_client.py"), json.dumps(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environ, "PYTHONPATH": path},
            )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def replace(self) -> subprocess.Popen[bytes] | None:
        """Stop it where it is and start another in its place; returns the one that does not know."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGSTOP)
        self.start()
        return process

    def say_where(self) -> None:
        """In its log: what it is at just now."""
        if self._process is not None:
            self._process.send_signal(signal.SIGUSR1)

    def finish(self) -> None:
        """End it after the transaction at hand."""
        self.start()
        assert self._process is not None
        self._process.terminate()
        status = self._process.wait(PATIENCE_S)
        # One that has not got its handler yet is ended by the signal itself.
        assert status in (0, 3, -15), f"{self.name} ends with {status}: {self.log.read_text()[-3000:]}"

    def mark(self) -> None:
        self._seen = self.journal.count(COMMITTED)

    @property
    def got_on(self) -> bool:
        """Whether it has committed anything since the mark."""
        return self.journal.count(COMMITTED) > self._seen


class Mover:
    """The plugin in the broker, whose life is the broker's."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.name = PLUGIN
        self.output = OUTPUTS[PLUGIN]
        self.journal = Journal(folder / f"{PLUGIN}.journal")
        self.anomalies = folder / f"{PLUGIN}.anomalies"
        self._plugins = folder / "plugins"
        self._seed = seed
        self._seen = 0
        self._plugins.mkdir()
        source = "from crash.txn_mover import PLUGIN, leafcuttr_register_services\n"
        (self._plugins / "mover.py").write_text(source)

    @property
    def settings(self) -> dict[str, str]:
        return {"lc.plugins.path": str(self._plugins)}

    @property
    def environ(self) -> dict[str, str]:
        config = {
            "name": self.name,
            "output": self.output,
            "seed": self._seed,
            "journal": str(self.journal.path),
            "anomalies": str(self.anomalies),
        }
        return {CONFIG: json.dumps(config), "PYTHONPATH": str(Path(__file__).parents[1])}

    def mark(self) -> None:
        self._seen = self.journal.count(COMMITTED)

    @property
    def got_on(self) -> bool:
        return self.journal.count(COMMITTED) > self._seen

    def check(self) -> None:
        assert not self.anomalies.exists(), self.anomalies.read_text()


class Watcher:
    """A read_committed reader that is there all the time, through every start of the broker."""

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        self.seen: dict[tuple[str, int], list[audit.Read]] = {
            (topic, number): [] for topic in topics for number in range(PARTITIONS)
        }
        self.failure: str | None = None
        self._consumer = consumer(bootstrap, "watcher", "read_committed")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        from confluent_kafka import TopicPartition

        try:
            self._consumer.assign([TopicPartition(topic, number, 0) for topic, number in self.seen])
            while not self._over.is_set():
                message = self._consumer.poll(0.2)
                if message is not None and message.error() is None:
                    where = message.topic(), message.partition()
                    self.seen[where].append((message.offset(), message.value()))
        except Exception as error:
            self.failure = repr(error)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        self._consumer.close()


def consumer(bootstrap: str, group: str, isolation: str, **more: Any) -> Any:
    from confluent_kafka import Consumer

    return Consumer(
        {
            **KEEP_COORDINATORS,
            **{name.replace("_", "."): value for name, value in more.items()},
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "check.crcs": True,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )


def read_all(bootstrap: str, topic: str, isolation: str) -> list[list[audit.Read]]:
    """Each partition up to its last stable offset."""
    from confluent_kafka import KafkaError, TopicPartition

    reader = consumer(bootstrap, "reader", isolation, enable_partition_eof=True)
    found: list[list[audit.Read]] = [[] for _ in range(PARTITIONS)]
    try:
        reader.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        ended: set[int] = set()
        while len(ended) < PARTITIONS:
            message = reader.poll(PATIENCE_S)
            assert message is not None, f"nothing more comes of {topic}"
            if message.error() is None:
                found[message.partition()].append((message.offset(), message.value()))
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ended.add(message.partition())
    finally:
        reader.close()
    return found


class Run:
    """One run: a directory, a broker on one port, the clients, and chance."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.chance = random.Random(seed)
        # In topic sync mode all that a transaction needs waits for workers, and waits differ.
        self.syncs = self.chance.random() < 0.25
        self.bootstrap = f"127.0.0.1:{free_port()}"
        self.broker: BrokerProcess | None = None
        self.reached: Counter[str] = Counter()
        self.killed: Counter[str] = Counter()
        self._unused = threading.Event()
        writers = [self._child("writer", f"w{number}") for number in range(2)]
        self.writers = [*writers, self._child("raw", "raw")]
        self.copiers = [
            *(self._copier(GROUPED, f"grouped-{number}", member=True) for number in range(2)),
            self._copier(ALONE, ALONE, member=False),
        ]
        self.children = [*self.writers, *self.copiers]
        self.mover = Mover(folder, seed)

    def _child(self, kind: str, name: str, **more: Any) -> Child:
        codec = self.chance.choice(("none", "lz4"))
        common = {"kind": kind, "name": name, "seed": self.seed, "bootstrap": self.bootstrap, "codec": codec}
        return Child(self.folder, {**common, **more})

    def _copier(self, group: str, name: str, *, member: bool) -> Child:
        return self._child("copier", name, group=group, output=OUTPUTS[group], member=member)

    def start(self, point: str = "") -> None:
        """Start the broker; it may die at `point` before it is ready."""
        settings = {**SETTINGS, **self.mover.settings, "listeners": f"PLAINTEXT://{self.bootstrap}"}
        if self.syncs:
            settings["lc.log.sync.always"] = "true"
        try:
            self.broker = start_broker(
                self.folder,
                settings,
                environ={**self.mover.environ, "LEAFCUTTR_CRASH_POINT": point},
                seconds=PATIENCE_S,
            )
        except RuntimeError as error:
            if not point or "status -9" not in str(error):
                raise
            self.broker = None

    def kill(self, point: str) -> None:
        """End the broker at its point, or now."""
        if self.broker is not None:
            if point:
                try:
                    self.broker.process.wait(10)
                except subprocess.TimeoutExpired:
                    point = ""
            self.broker.process.kill()
            status = self.broker.process.wait()
            assert status == -9, f"the broker ended with status {status}: {self.broker.log[-3000:]}"
        self.reached[point.partition(":")[0] or "at random"] += 1

    def stop(self) -> None:
        """End the broker as its service manager does, in the middle of everything."""
        assert self.broker is not None
        status = self.broker.stop(seconds=PATIENCE_S)
        assert status == 0, f"the broker stopped with status {status}: {self.broker.log[-3000:]}"
        self.reached["SIGTERM"] += 1

    def kill_children(self) -> None:
        for child in self.chance.sample(self.children, self.chance.randint(0, 2)):
            child.kill()
            self.killed[child.name] += 1

    def get_on(self, besides: Child | None = None) -> None:
        """Everybody runs, and everybody commits something; of the members of the group one, and `besides`."""
        for client in (*self.children, self.mover):
            client.mark()

        def all_got_on() -> bool:
            assert self.broker is not None and self.broker.alive(), "the broker has died"
            for child in self.children:
                child.start()
            grouped = any(child.got_on for child in self.copiers[:-1])
            alone = (*self.writers, self.copiers[-1], besides or self.copiers[-1], self.mover)
            return grouped and all(child.got_on for child in alone)

        try:
            until(all_got_on, "a transaction of everybody", seconds=PATIENCE_S, pause=0.05)
        except TimeoutError as error:
            stuck = [client.name for client in (*self.children, self.mover) if not client.got_on]
            for child in self.children:
                child.say_where()
            self.linger(1)
            logs = {child.name: child.log.read_text()[-1000:] for child in self.children}
            raise AssertionError(f"{stuck} commit nothing: {logs}") from error

    def haunt(self) -> None:
        """One client stands still while another takes its place, then goes on: it is fenced, and ends by that."""
        child = self.chance.choice(self.children)
        self.get_on(child)  # one that is only starting would be the one who fences
        zombie = child.replace()
        assert zombie is not None
        try:
            self.get_on(child)
            zombie.send_signal(signal.SIGCONT)
            if child in self.copiers[:-1]:
                # A member without partitions has nothing to be fenced for but the group; give it time to try.
                self.get_on(child)
            else:
                zombie.wait(PATIENCE_S)
            status = zombie.poll()
            assert status in (3, None), (
                f"the zombie of {child.name}: {status}, {child.log.read_text()[-3000:]}"
            )
        finally:
            zombie.kill()
            zombie.wait()
        self.killed["zombies"] += 1

    def linger(self, most: float) -> None:
        self._unused.wait(self.chance.uniform(0.0, most))

    def verify(self) -> None:
        done = run_leafcuttr(
            ("verify", str(self.folder / "data")), environ=clean_environ(), seconds=PATIENCE_S
        )
        assert done.returncode == 0, f"verify: {done.stdout[-3000:]}{done.stderr[-2000:]}"

    def drain(self) -> None:
        """The writers end, the copiers copy what is there and end too; then no transaction is left open."""
        for writer in self.writers:
            writer.finish()
        self._fence(self.writers)
        ends = [
            max((offset for offset, _ in records), default=-1) + 1
            for records in read_all(self.bootstrap, INPUT, "read_committed")
        ]
        until(lambda: all(self._is_at(group, ends) for group in OUTPUTS), "the copies", seconds=PATIENCE_S)
        for copier in self.copiers:
            copier.finish()
        self._fence(self.copiers)

    def _fence(self, children: Sequence[Child]) -> None:
        """Whoever was killed within a transaction may have left it open: who takes its id aborts it."""
        from confluent_kafka import Producer

        for child in children:
            settings = {**KEEP_COORDINATORS, "bootstrap.servers": self.bootstrap, "log_level": 0}
            Producer({**settings, "transactional.id": child.name}).init_transactions(PATIENCE_S)

    def _is_at(self, group: str, ends: Sequence[int]) -> bool:
        from confluent_kafka import KafkaException, TopicPartition

        for copier in self.copiers:
            copier.start()
        asker = consumer(self.bootstrap, group, "read_committed")
        try:
            found = asker.committed(
                [TopicPartition(INPUT, number) for number in range(PARTITIONS)], timeout=10
            )
        except KafkaException:
            return False
        finally:
            asker.close()
        return all(each.offset >= end for each, end in zip(found, ends, strict=True))

    def files(self, kafka_reads: int) -> Files:
        """Of the broker, which does not run."""
        topics = [INPUT, *OUTPUTS.values(), "__consumer_offsets", "__transaction_state"]
        return Files(self.folder / "data", topics, self.seed, kafka_reads=kafka_reads)

    def faults(self, files: Files) -> Iterator[acknowledged.Fault]:
        """What was acknowledged as committed and is not in the files as such, where the broker has said."""
        stored = {
            (topic, number): acknowledged.committed(files.partition(topic, number))
            for topic in (INPUT, *OUTPUTS.values())
            for number in range(PARTITIONS)
        }
        source = [stored[INPUT, number] for number in range(PARTITIONS)]
        for client in (*self.children, self.mover):
            if client in self.writers:
                topic, due = INPUT, audit.due_of_writer(client.journal, self.seed, client.name)
            else:
                topic, due = client.output, audit.due_of_copier(client.journal, source)
            for number, records in due.items():
                yield from acknowledged.every(topic, number, files.counted(records), stored[topic, number])

    def name_missing(self, error: Exception) -> None:
        """Raises AssertionError, if the files of the broker, which was killed, say what the run has failed by."""
        try:
            acknowledged.check(self.faults(self.files(NONE)))
        except AssertionError as missing:
            raise AssertionError(f"{missing}\n\nThe run has ended by: {error}") from error

    def check(self, watcher: Watcher, *, thorough: bool) -> list[str]:
        """Compare everything with everything. Stops the broker. Returns what there was to see."""
        assert self.broker is not None
        online = {
            topic: {
                how: read_all(self.bootstrap, topic, how) for how in ("read_committed", "read_uncommitted")
            }
            for topic in (INPUT, *OUTPUTS.values())
        }
        until(
            lambda: all(
                len(watcher.seen[topic, number]) >= len(records)
                for topic, found in online.items()
                for number, records in enumerate(found["read_committed"])
            ),
            "the reader that was there all the time",
            seconds=PATIENCE_S,
        )
        watcher.stop()
        assert watcher.failure is None, watcher.failure
        assert self.broker.stop() == 0
        self.verify()
        files = self.files(ALL if thorough else SOME)
        acknowledged.check(self.faults(files))
        notes = files.said()
        # A process that is killed may not have noted all it was told; this one notes it before it goes on.
        raw = self.writers[-1]
        whole = [plan(self.seed, raw.name, number) for number in raw.journal.committed()]
        due = audit.due_of_writer(raw.journal, self.seed, raw.name)
        assert sum(map(len, due.values())) == sum(sum(each.counts.values()) for each in whole)
        committed: dict[str, list[list[audit.Read]]] = {}
        for topic, found in online.items():
            stored = [audit.partition(files, topic, number) for number in range(PARTITIONS)]
            committed[topic] = [each.read_committed for each in stored]
            for number, each in enumerate(stored):
                where = f"{topic}-{number}"
                assert found["read_uncommitted"][number] == each.raw, f"{where}: not what a raw reader gets"
                assert found["read_committed"][number] == each.read_committed, f"{where}: read_committed"
                assert watcher.seen[topic, number] == each.read_committed, f"{where}: what was seen meanwhile"
            counts = [
                sum(map(len, each)) for each in ([p.committed for p in stored], [p.aborted for p in stored])
            ]
            notes.append(f"{topic}: {counts[0]} records committed, {counts[1]} aborted")
        offsets = audit.group_offsets(files, INTERNAL)
        for writer in self.writers:
            journal = writer.journal.transactions()
            tally, last = audit.check_writer(committed[INPUT], self.seed, writer.name, journal)
            notes.append(f"{writer.name}: {len(journal)} begun, {tally}, {writer.fatal} fatal errors")
            if writer.name == "raw" and last >= 0:
                assert offsets["raw", 0] == last, (
                    f"the raw writer's group is at {offsets['raw', 0]}, not {last}"
                )
        for group, topic in OUTPUTS.items():
            mine = {number: offsets.get((group, number), 0) for number in range(PARTITIONS)}
            audit.check_copies(group, committed[INPUT], committed[topic], mine)
        for copier in self.copiers:
            notes.append(
                f"{copier.name}: {len(copier.journal.transactions())} begun, {copier.fatal} fatal errors"
            )
        self.mover.check()
        words = Counter(self.mover.journal.transactions().values())
        assert words[COMMITTED], "the plugin has committed nothing"
        notes.append(f"{PLUGIN}: {dict(words)}")
        states = audit.transaction_states(files, INTERNAL)
        assert PLUGIN in states
        assert set(states.values()) <= {"Empty", "CompleteCommit", "CompleteAbort"}, states
        return notes

    def abandon(self) -> None:
        for child in self.children:
            child.kill()
        if self.broker is not None and self.broker.alive():
            self.broker.process.kill()
            self.broker.process.wait()


@pytest.mark.long
@pytest.mark.timeout(0)
def test_transactions_survive(
    tmp_path: Path, seed: int, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    long = request.config.getoption("--long", default=False)
    kills = request.config.getoption("--kills", default=None)
    kills = kills if kills is not None else (60 if long else 2)
    run, notes = Run(tmp_path, seed), ["the run has not come to its end"]
    watcher: Watcher | None = None
    try:
        run.start()
        for topic in (INPUT, *OUTPUTS.values()):
            sync = {"lc_log_sync_always": "true"} if run.chance.random() < 0.3 else {}
            librdkafka.create(run.bootstrap, topic, PARTITIONS, **sync)
        watcher = Watcher(run.bootstrap, [INPUT, *OUTPUTS.values()])
        point = ""
        for number in range(kills):
            if not point:
                if number % 4 == 2:
                    run.haunt()
                for _ in range(run.chance.randint(1, 3)):
                    run.get_on()
                    run.linger(0.5)
                    run.kill_children()
            if point or run.chance.random() < 0.75:
                run.kill(point)
            else:
                run.stop()
            if number % 4 == 3:
                run.verify()
            point = f"{run.chance.choice(POINTS)}:{run.chance.randint(1, 30)}" if number % 2 == 0 else ""
            run.start(point)
            if run.broker is None:
                run.reached[point.partition(":")[0]] += 1
                point = ""
                run.start()
        if point:
            run.kill(point)
            run.start()
        run.get_on()
        run.kill_children()
        run.drain()
        notes = run.check(watcher, thorough=long)
    except Exception as error:
        run.abandon()
        run.name_missing(error)
        raise
    finally:
        run.abandon()
        with capsys.disabled():
            print(
                f"\ntransactions: seed {seed}, broker killed {dict(run.reached)}, clients {dict(run.killed)}"
            )
            if run.syncs:
                print("  everything in topic sync mode")
            for note in notes:
                print(f"  {note}")
