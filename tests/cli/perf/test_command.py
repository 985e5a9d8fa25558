"""`leafcuttr perf` against a broker: the lines of Kafka's scripts with only their names replaced."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.librdkafka import create, read, send, watermarks
from support.making_plugin import making_plugin

Run = Callable[..., Any]
NUMBER = r"\d+\.\d+"
SENT = re.compile(
    rf"(\d+) records sent, ({NUMBER}) records/sec \(({NUMBER}) MB/sec\), ({NUMBER}) ms avg latency, "
    rf"({NUMBER}) ms max latency, (\d+) ms 50th, (\d+) ms 95th, (\d+) ms 99th, (\d+) ms 99.9th\."
)


@pytest.mark.long
def test_the_manuals_lines(run: Run, address: str) -> None:
    """As they stand there after `kafka-producer-perf-test.sh` and `kafka-consumer-perf-test.sh`, with fewer records."""
    producer = f"""--topic perfTest --num-records 20000 \
        --throughput -1 --record-size 1000 \
        --producer-props bootstrap.servers={address}"""
    sent = run("perf", "produce", *shlex.split(producer), at="127.0.0.1:1")
    assert (sent.status, sent.err) == (0, "")
    found = SENT.fullmatch(sent.out.splitlines()[-1])
    assert found is not None, sent.out
    assert int(found[1]) == 20_000
    average, longest, *percentiles = map(float, found.groups()[3:])
    assert 0 < average <= longest
    assert percentiles == sorted(percentiles)
    assert percentiles[-1] <= math.ceil(longest)
    consumer = f"""--topic perfTest --messages 20000 --timeout 100000 \
        --bootstrap-server {address} --show-detailed-stats"""
    got = run("perf", "consume", *shlex.split(consumer), at="127.0.0.1:1")
    assert (got.status, got.err) == (0, "")
    header, *_, names, figures = got.out.splitlines()
    assert header.startswith("time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg")
    row = dict(zip(names.split(", "), figures.split(", "), strict=True))
    assert row["data.consumed.in.nMsg"] == "20000"
    assert float(row["data.consumed.in.MB"]) == pytest.approx(20_000 * 1000 / 1024 / 1024, abs=0.001)
    assert float(row["nMsg.sec"]) > 0
    assert int(row["fetch.time.ms"]) >= 0


def test_json_and_settings(run: Run, address: str, topic: str, tmp_path: Path) -> None:
    create(address, topic, partitions=2)
    (tmp_path / "props").write_text("# ours\nacks = all\nclient.id=from-file\nlinger.ms:50\n")
    words = (
        "--producer.config",
        str(tmp_path / "props"),
        "--producer-props",
        "linger.ms=0",
        "acks=1",
        "-n",
        "500",
    )
    sent = run(
        "perf", "produce", "-t", topic, *words, "--record-size", "10", "--json", "--print-metrics"
    ).json
    assert (sent["records"], sent["bytes"], sent["failed"]) == (500, 5000, 0)
    assert 0 < sent["p50_ms"] <= sent["p95_ms"] <= sent["p99_ms"] <= sent["p999_ms"] <= sent["max_ms"] + 0.1
    assert watermarks(address, topic, 0)[1] + watermarks(address, topic, 1)[1] == 500
    got = run("perf", "consume", "--include", f"{topic}", "-n", "500", "--json", "--fetch-size", "1000").json
    assert (got["records"], got["bytes"]) == (500, 5000)
    assert got["fetch_records_per_s"] >= got["records_per_s"] > 0


def test_no_faster_than_the_given_rate_and_in_transactions(run: Run, address: str, topic: str) -> None:
    create(address, topic)
    words = (
        "-t",
        topic,
        "-n",
        "300",
        "--throughput",
        "300",
        "--payload-monotonic",
        "--warmup-records",
        "100",
    )
    sent = run("perf", "produce", *words, "--transaction-duration-ms", "200", "--json").json
    assert sent["seconds"] >= 0.99  # the last one is due a second after the start
    assert (sent["records"], sent["steady"]["records"]) == (300, 200)
    got = read(address, topic, 300, isolation_level="read_committed")
    assert [message.value() for message in got] == [b"%d" % number for number in range(300)]
    assert got[-1].offset() > 299  # markers between them


def test_payloads_from_a_file(run: Run, address: str, topic: str, tmp_path: Path) -> None:
    create(address, topic)
    (tmp_path / "payloads").write_bytes(b"one|two||three|")
    words = (
        "-t",
        topic,
        "-n",
        "200",
        "--payload-file",
        str(tmp_path / "payloads"),
        "--payload-delimiter",
        "|",
    )
    assert run("perf", "produce", *words, "--throughput", "-1").status == 0
    assert {message.value() for message in read(address, topic, 200)} == {b"one", b"two", b"three"}


def test_records_of_a_format(
    run: Run, address: str, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With keys, headers and times, in turn, and the same again with the same seed."""
    create(address, topic)
    words = (
        "perf",
        "produce",
        "-t",
        topic,
        "--format",
        "well",
        "--format-option",
        "size=24",
        "--distinct",
        "40",
    )
    with making_plugin(tmp_path / "plugins", monkeypatch):
        sent = run(*words, "-n", "100", "--seed", "5", "--json").json
        assert (sent["records"], sent["bytes"], sent["failed"]) == (100, 2400, 0)
        assert run(*words, "-n", "40", "--seed", "5").status == 0
        assert run(*words, "-n", "40", "--seed", "6").status == 0
        none = run("perf", "produce", "-t", topic, "-n", "1", "--format", "plain")
    got = [
        (message.key(), message.value(), message.headers(), message.timestamp()[1])
        for message in read(address, topic, 180)
    ]
    first = got[:40]
    assert len({value for _, value, _, _ in first}) == 40
    assert got[:100] == first * 2 + first[:20]
    assert got[100:140] == first
    assert got[140:] != first
    key, value, headers, timestamp = first[0]
    assert key.startswith(b"k") and value.startswith(topic.encode()[:24])
    assert (headers, timestamp) == ([("kind", b"made"), ("none", None)], 1_700_000_000_000)
    assert none.status == 2
    assert "--format: plain makes no records; those that do: avro, well" in none.err


def test_random_records_come_from_the_seed(run: Run, address: str, topic: str) -> None:
    create(address, topic)
    for seed in ("1", "1", "2"):
        assert (
            run("perf", "produce", "-t", topic, "-n", "3", "--record-size", "30", "--seed", seed).status == 0
        )
    values = [message.value() for message in read(address, topic, 9)]
    assert values[:3] == values[3:6] != values[6:]
    assert len(set(values[:3])) == 3


def test_what_fails(run: Run, address: str, topic: str) -> None:
    create(address, topic, max_message_bytes="100")
    sent = run("perf", "produce", "-t", topic, "-n", "10", "--record-size", "500")
    assert (sent.status, sent.err.count("\n")) == (1, 1)
    assert "TOO_LARGE" in sent.err
    send(address, topic, [b"x"], timestamp=1)
    got = run("perf", "consume", "-t", topic, "-n", "5", "--timeout", "1500", "--hide-header")
    assert got.status == 1
    assert got.err == "leafcuttr: 1 of 5 records came, then none for 1,500 ms (--timeout)\n"
    assert got.out.split(", ")[4] == "1"
    missing = run("perf", "consume", "-t", "no-such-topic", "-n", "5")
    assert (missing.status, missing.err) == (1, "leafcuttr: there is no topic no-such-topic\n")


@pytest.mark.parametrize(
    "words",
    [
        ("produce", "-t", "t", "-n", "1"),
        ("produce", "-t", "t", "-n", "1", "--record-size", "1", "--payload-monotonic"),
        ("produce", "-t", "t", "-n", "1", "--record-size", "1", "--throughput", "0"),
        ("produce", "-t", "t", "-n", "1", "--record-size", "1", "--producer-props", "acks"),
        ("produce", "-t", "t", "-n", "1", "--record-size", "1", "--producer-props", "buffer.memory=much"),
        ("produce", "-t", "t", "-n", "1", "--record-size", "1", "--producer-props", "no.such.setting=1"),
        ("produce", "-t", "t", "-n", "1", "--record-size", "1", "--format", "text"),
        ("produce", "-t", "t", "-n", "1", "--record-size", "1", "--distinct", "5"),
        ("produce", "-t", "t", "-n", "1", "--record-size", "1", "--format-option", "a=b"),
        ("produce", "-t", "t", "-n", "1", "--format", "text"),
        ("produce", "-t", "t", "-n", "1", "--format", "no-such-format"),
        ("consume", "-n", "1"),
        ("consume", "-t", "t", "--include", "t", "-n", "1"),
    ],
)
def test_wrong_usage(run: Run, words: tuple[str, ...]) -> None:
    wrong = run("perf", *words)
    assert (wrong.status, wrong.out) == (2, "")
