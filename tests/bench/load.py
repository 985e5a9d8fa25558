"""The loads: what is done to a broker in one measurement, and the figures that come of it."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kafka_peer import java
from peers import HERE, LeafCuttr, Peer
from rawclient import RawClient, seconds_to_first_ack

Figures = dict[str, float]
BUILD = HERE / "results" / "kperf"
LONGEST_S = 1800  # for a program that will not end; each takes a minute or two
ONE_A_BATCH = ("batch.num.messages=1", "linger.ms=0", "enable.idempotence=false")


class Scale:
    """What the loads are multiplied by: less than 1 only to try the machinery (`run.py --scale`)."""

    by = 1.0


def scaled(count: int) -> int:
    return max(100, int(count * Scale.by))


def kperf(*words: str) -> dict[str, float]:
    """Run the librdkafka load program; build it at first use, and when its source has changed."""
    if not BUILD.exists() or BUILD.stat().st_mtime < (HERE / "kperf.c").stat().st_mtime:
        BUILD.parent.mkdir(exist_ok=True)
        subprocess.run(["sh", str(HERE / "build_kperf.sh"), str(BUILD), sys.executable], check=True)
    done = subprocess.run(
        [str(BUILD), *words], stdout=subprocess.PIPE, text=True, check=False, timeout=LONGEST_S
    )
    if done.returncode:
        raise RuntimeError(f"kperf {' '.join(words)}: {done.stdout}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _program(name: str, *words: str) -> Figures:
    """Run a program of this folder, which prints its figures."""
    return _figures([sys.executable, str(HERE / name), *words])


def _figures(words: list[str]) -> Figures:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONGEST_S)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: Figures = json.loads(done.stdout)
    return found


def with_cpu(peer: Peer, work: Callable[[], dict[str, float]], gigabytes: float) -> Figures:
    before = peer.cpu_s()
    figures = work()
    figures["cpu_s_per_gb"] = (peer.cpu_s() - before) / gigabytes
    return figures


def produce_1000(peer: Peer, run: int) -> Figures:
    count = scaled(600_000)
    return with_cpu(
        peer, lambda: kperf("produce", peer.address, f"p1000-{run}", str(count), "1000"), count * 1000 / 1e9
    )


def produce_100(peer: Peer, run: int) -> Figures:
    return kperf("produce", peer.address, f"p100-{run}", str(scaled(3_000_000)), "100")


def produce_cpu(peer: Peer, run: int, *, count: int, size: str) -> Figures:
    """The broker's CPU for each record, by librdkafka with its defaults. `size` may be a range: `50-150`.

    Memory that the host has not handed out yet makes a write cost four times as much CPU. So the topic goes again, and
    all runs but the first write into the memory of the one before.
    """
    topic = f"cpu-{size}-{run}"
    count, before = scaled(count), peer.cpu_s()
    found = kperf("produce", peer.address, topic, str(count), size)
    used = peer.cpu_s() - before
    delete_topic(peer, topic)
    return {"records_per_s": found["records_per_s"], "cpu_us_per_record": used * 1e6 / count}


def delete_topic(peer: Peer, topic: str) -> None:
    """Delete it, and wait until its files are gone."""
    _delete(peer, [topic])


def delete_topics(peer: Peer) -> None:
    """Delete what clients have made, and wait until the files are gone: the next run writes into the same memory."""
    from confluent_kafka.admin import AdminClient

    found = AdminClient({"bootstrap.servers": peer.address}).list_topics(timeout=30).topics
    _delete(peer, [topic for topic in found if not topic.startswith("__")])


def _delete(peer: Peer, topics: list[str]) -> None:
    from confluent_kafka.admin import AdminClient

    if topics:
        admin = AdminClient({"bootstrap.servers": peer.address})  # its requests end with it
        for done in admin.delete_topics(topics).values():
            done.result(30)
    deadline = time.monotonic() + 60
    while left := [topic for topic in topics if _has_files(peer, topic)]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"files stay: {', '.join(left)}")
        time.sleep(0.05)


def _has_files(peer: Peer, topic: str) -> bool:
    try:
        return any(peer.directory.rglob(f"{topic}-0*"))
    except FileNotFoundError:  # gone while it was looked into
        return True


def consume_1000(peer: Peer, run: int) -> Figures:
    count, topic = scaled(600_000), f"c1000-{run}"
    kperf("produce", peer.address, topic, str(count), "1000")
    return with_cpu(peer, lambda: kperf("consume", peer.address, topic, str(count)), count * 1000 / 1e9)


_PERF_LINE = re.compile(
    r"\d+ (?:steady state )?records sent, ([0-9.]+) records/sec .*? (\d+) ms 50th, .*? (\d+) ms 99th"
)


def java_produce(peer: Peer, run: int, *, size: int, count: int) -> Figures:
    """Kafka's own kafka-producer-perf-test with the producer's defaults: acks=all, idempotence, linger, batch size.

    The JVM's own warming up is not counted: of the tool's two reports the one after the first sixth.
    """
    count, topic = scaled(count), f"java-{size}-{run}"
    _create(peer, topic)
    words = java(
        "512m",
        "org.apache.kafka.tools.ProducerPerformance",
        *("--bootstrap-server", peer.address, "--topic", topic, "--throughput", "-1"),
        *("--num-records", str(count), "--record-size", str(size), "--warmup-records", str(count // 6)),
    )
    before = peer.cpu_s()
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=LONGEST_S)
    cpu = peer.cpu_s() - before
    found = _PERF_LINE.search(done.stdout.strip().rpartition("\n")[2])
    if done.returncode or found is None:
        raise RuntimeError(f"ProducerPerformance: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    rate = float(found[1])
    return {
        "records_per_s": rate,
        "mb_per_s": rate * size / 1e6,
        "cpu_s_per_gb": cpu / (count * size / 1e9),
        "p50_ms": float(found[2]),
        "p99_ms": float(found[3]),
    }


def one_a_batch(peer: Peer, run: int) -> Figures:
    count = str(scaled(100_000))
    return kperf("produce", peer.address, f"one-{run}", count, "100", *ONE_A_BATCH, "max.in.flight=100")


def eight_clients(peer: Peer, run: int) -> Figures:
    """Eight processes, each with one record under way at a time."""
    count, topic = scaled(8_000), f"eight-{run}"
    words = [str(BUILD), "produce", peer.address, topic, str(count), "100", *ONE_A_BATCH, "max.in.flight=1"]
    kperf("produce", peer.address, topic, "1", "100")
    children = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    results = [json.loads(child.communicate()[0]) for child in children]
    return {
        "records_per_s": sum(r["records_per_s"] for r in results),
        "failed": sum(r["failed"] for r in results),
    }


def memory(peer: Peer, run: int) -> Figures:
    """Resident after three of the loads above."""
    produce_1000(peer, run)
    produce_100(peer, run)
    consume_1000(peer, run)
    return {"loaded_mb": peer.rss_mb()}


def synced(peer: Peer, run: int, *, clients: int) -> Figures:
    """Clients with one record under way each, acknowledged when it is on the disk: topic sync mode here,
    flush.messages=1 there. One partition."""
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = f"synced-{clients}-{run}"
    config = {"lc.log.sync.always": "true"} if isinstance(peer, LeafCuttr) else {"flush.messages": "1"}
    admin = AdminClient({"bootstrap.servers": peer.address})
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(60)
    return _program("closed_loop.py", peer.address, topic, str(clients), str(max(0.5, 5 * Scale.by)))


def transactions(peer: Peer, run: int) -> Figures:
    """One librdkafka producer: 100 records of 100 bytes, then commit, again and again."""
    topic = f"transactions-{run}"
    _create(peer, topic)
    return kperf("transact", peer.address, topic, str(scaled(1000)), "100", "100", "linger.ms=0")


def java_transactions(peer: Peer, run: int) -> Figures:
    """As `transactions`, by Kafka's own producer, which lets a Produce add its partition (KIP-890)."""
    topic = f"java-transactions-{run}"
    _create(peer, topic)
    words = java("256m", str(HERE / "Transact.java"), peer.address, topic, str(scaled(1000)), "100", "100")
    return _figures(words)


def _create(peer: Peer, topic: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": peer.address})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(60)


def latency(peer: Peer, run: int) -> Figures:
    found = kperf("latency", peer.address, f"latency-{run}", "1000", str(max(1, int(10 * Scale.by))))
    ack: dict[str, float] = found["ack"]  # type: ignore[assignment]
    return {name: value for name, value in ack.items() if name != "n"}


def start(peer: Peer, run: int) -> Figures:
    """A start on an empty directory: to the first acknowledgement, then at rest. Leaves the broker running."""
    peer.stop() if peer.pid else None
    peer.wipe()
    began = time.monotonic()
    peer.start()
    first = seconds_to_first_ack(peer.port, "first", began)
    time.sleep(3)
    cpu, at = peer.cpu_s(), time.monotonic()
    time.sleep(max(1, 10 * Scale.by))
    return {
        "first_ack_s": first,
        "idle_mb": peer.rss_mb(),
        "idle_cpu_percent": 100 * (peer.cpu_s() - cpu) / (time.monotonic() - at),
    }


def after_kill(peer: Peer, run: int) -> Figures:
    """SIGKILL with nearly one 1 GB segment of batches of one 1 kB record; then the first acknowledgement."""
    import signal

    kperf(
        "produce",
        peer.address,
        "big",
        str(scaled(900_000)),
        "1000",
        "batch.num.messages=1",
        "linger.ms=5",
        "max.in.flight=100",
    )
    time.sleep(2)
    peer.stop(signal.SIGKILL)
    began = time.monotonic()
    peer.start()
    return {"first_ack_s": seconds_to_first_ack(peer.port, "big", began)}


def many_partitions(peer: Peer, run: int, *, count: int) -> Figures:
    """A clean stop and a start with `count` partitions that all hold data."""
    count = scaled(count)
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": peer.address})
    admin.create_topics([NewTopic("many", count, 1)], request_timeout=300)["many"].result(300)
    _fill(peer, "many", count)
    stopped = peer.stop()
    began = time.monotonic()
    peer.start()
    return {"first_ack_s": seconds_to_first_ack(peer.port, "many", began, 300), "stop_s": stopped}


def _fill(peer: Peer, topic: str, partitions: int) -> None:
    client = RawClient(peer.port, timeout=60)
    until = time.monotonic() + 120
    for partition in range(partitions):
        # A new partition may have no leader yet (errors 3, 5, 6).
        while code := client.produce(topic, partition=partition):
            if code not in (3, 5, 6) or time.monotonic() > until:
                raise RuntimeError(f"{topic}-{partition}: error {code}")
            time.sleep(0.05)
    client.close()


def crowd(peer: Peer, run: int) -> Figures:
    """1,000 connections that produce once a second while 200 consumers in 20 groups read. What is sent and read is the
    same in each run, so that the CPU that it takes says more than the delays, which the host's other guests change."""
    before = peer.cpu_s()
    figures = _program("crowd.py", peer.address, "--seconds", str(max(2, int(20 * Scale.by))))
    return figures | {"cpu_s": peer.cpu_s() - before}


def warm_memory(megabytes: int) -> None:
    """Touch memory once: a fresh virtual machine hands out its first gigabytes slowly."""
    scratch = Path(os.environ.get("TMPDIR", "/tmp")) / "leafcuttr-bench-warm"
    with contextlib.suppress(OSError), scratch.open("wb") as file:
        chunk = bytes(1 << 20)
        for _ in range(megabytes):
            file.write(chunk)
    scratch.unlink(missing_ok=True)
