"""`leafcuttr consume` against a broker, its records written by librdkafka."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.broker_process import clean_environ
from support.librdkafka import PATIENCE_S, Group, admin, create, send
from support.waiting import until

T0 = 1_700_000_000_000


Run = Callable[..., Any]


@pytest.fixture
def ten(address: str, topic: str) -> str:
    """A topic of one partition with the values 0 to 9, a second apart."""
    from confluent_kafka import Producer

    create(address, topic)
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    for number in range(10):
        producer.produce(topic, b"%d" % number, b"k%d" % (number % 2), 0, timestamp=T0 + number * 1000)
    assert producer.flush(PATIENCE_S) == 0
    return topic


def lines(*numbers: int) -> str:
    return "".join(f"{number}\n" for number in numbers)


@contextmanager
def following(address: str, *words: str) -> Iterator[Any]:
    """A `consume` that goes on; killed at the end."""
    command = [sys.executable, "-m", "leafcuttr", "consume", *words, "-b", address]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=clean_environ(), **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), range(10)),
        (("--from", "earliest"), range(10)),
        (("--from", "latest"), ()),
        (("--from", "7"), (7, 8, 9)),
        (("--from", "99"), ()),
        (("--from", "-3"), (7, 8, 9)),
        (("--from", "-99"), range(10)),
        (("--from", f"@{T0 + 6000}"), (6, 7, 8, 9)),
        (("--from", "2023-11-14T22:13:27.5Z"), (8, 9)),
        (("--from", "-1h"), ()),
        (("--from", "@0"), range(10)),
        (("--to", "3"), (0, 1, 2)),
        (("--to", "-8"), (0, 1)),
        (("--from", "2", "--to", f"@{T0 + 4000}"), (2, 3)),
        (("--from", "5", "--to", "5"), ()),
        (("--from", "5", "--to", "4"), ()),
        (("--to", "now", "--max", "4"), (0, 1, 2, 3)),
        (("-p", "0", "-n", "2", "--from", "3"), (3, 4)),
        (("--filter", "value >= 8"), (8, 9)),
        (("--filter", "value >= 4 and key == 'k1'", "-n", "2"), (5, 7)),
        (("--idle", "0.5", "--from", "8"), (8, 9)),
        (("--follow", "--idle", "0.5", "--from", "8"), (8, 9)),
    ],
)
def test_where_it_begins_and_ends(run: Run, ten: str, words: tuple[str, ...], expected: Any) -> None:
    read = run("consume", ten, *words)
    assert (read.status, read.out, read.err) == (0, lines(*expected), "")


def test_fields(run: Run, address: str, ten: str) -> None:
    send(address, ten, [b"v"], timestamp=T0 + 123)
    read = run("consume", ten, "--from", "9", "--print", "topic,partition,offset,timestamp,key,headers,value")
    assert read.out == (
        f"{ten}\t0\t9\t2023-11-14T22:13:29.000Z\tk1\t\t9\n{ten}\t0\t10\t2023-11-14T22:13:20.123Z\tnull\t\tv\n"
    )
    read = run("consume", ten, "--from", "9", "-k", "--separator", "\\x01", "--delimiter", "|", "--null", "")
    assert read.out == "k1\x019|\x01v|"
    wrong = run("consume", ten, "--print", "keys")
    assert wrong.status == 2
    assert "no field 'keys'; there are topic, partition" in wrong.err


def test_json(run: Run, address: str, ten: str) -> None:
    last = run("consume", ten, "--from", "-1", "--json").json
    assert last == {
        "topic": ten,
        "partition": 0,
        "offset": 9,
        "timestamp": T0 + 9000,
        "timestamp_type": "CreateTime",
        "key": "k1",
        "value": "9",
        "headers": [],
    }
    assert run("consume", ten, "--from", "-1", "--json", "--format", "json").json["value"] == 9
    assert run("consume", ten, "--from", "-1", "--json", "--format", "hex").json["value"] == "39"


def test_log_append_time(run: Run, address: str, topic: str) -> None:
    create(address, topic, message_timestamp_type="LogAppendTime")
    send(address, topic, [b"x"], timestamp=5)
    record = run("consume", topic, "--json").json
    assert record["timestamp_type"] == "LogAppendTime"
    assert record["timestamp"] > T0


def test_records_that_are_not_of_the_format(run: Run, address: str, topic: str) -> None:
    create(address, topic)
    send(address, topic, [b"1", b"{", b"3", b"\xff"], timestamp=T0)
    read = run("consume", topic, "--format", "json")
    assert (read.status, read.out) == (1, "1\n")
    assert read.err.startswith(f"leafcuttr: {topic}-0 offset 1: value: no JSON: ")
    assert read.err.count("\n") == 1
    read = run("consume", topic, "--format", "json", "--skip-errors", "--json")
    assert (read.status, read.err) == (0, "leafcuttr: 2 records not of the format left out\n")
    assert [json.loads(line)["value"] for line in read.out.splitlines()] == [1, 3]


def test_kcat_and_we_print_the_same(run: Run, address: str, ten: str) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    kcat = ["kcat", "-C", "-q", "-b", address, "-t", ten, "-o", "beginning", "-e", "-f", "%p\t%o\t%k\t%s\\n"]
    printed = subprocess.check_output(kcat, timeout=60)
    assert run("consume", ten, "--print", "partition,offset,key,value").out.encode() == printed


def test_aborted_records_and_markers_at_the_end(run: Run, address: str, topic: str) -> None:
    """The last offsets are those of markers: there is no record to wait for."""
    from confluent_kafka import Producer

    create(address, topic)
    producer = Producer({"bootstrap.servers": address, "transactional.id": f"id-{topic}"})
    producer.init_transactions(PATIENCE_S)
    for value, commit in ((b"aborted", False), (b"committed", True), (b"aborted too", False)):
        producer.begin_transaction()
        producer.produce(topic, value, partition=0)
        assert producer.flush(PATIENCE_S) == 0
        (producer.commit_transaction if commit else producer.abort_transaction)(PATIENCE_S)
    assert run("consume", topic).out == "committed\n"
    everything = run("consume", topic, "--isolation", "read_uncommitted")
    assert everything.out == "aborted\ncommitted\naborted too\n"
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    assert run("consume", topic).out == "committed\n"
    assert run("consume", topic, "--isolation", "read_uncommitted", "-p", "0").out.endswith("open\n")
    producer.abort_transaction(PATIENCE_S)


def test_the_end_is_the_one_at_the_start(run: Run, address: str, ten: str) -> None:
    """A topic that is written to all the time is read to an end."""
    from confluent_kafka import Producer

    stop = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
        while not stop.is_set():
            producer.produce(ten, b"more", partition=0)
            producer.flush(1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        read = run("consume", ten)
    finally:
        stop.set()
        writer.join()
    assert read.status == 0
    assert read.out.startswith(lines(*range(10)))


def test_follow_waits_and_ctrl_c_ends_it(address: str, ten: str) -> None:
    for how in (signal.SIGINT, signal.SIGTERM):
        with following(address, ten, "--follow", "--from", "-1") as process:
            first = process.stdout.readline()
            assert first in (b"9\n", b"more\n")
            send(address, ten, [b"more"], timestamp=T0)
            assert process.stdout.readline() == b"more\n"
            process.send_signal(how)
            assert process.wait(60) == 0
            assert process.stderr.read() == b""


def test_the_reader_of_the_pipe_goes(address: str, ten: str) -> None:
    with following(address, ten, "--follow") as process:
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        # It notices with the next record.
        send(address, ten, [b"more"], timestamp=T0)
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_deleted_records_are_passed_over(run: Run, address: str, ten: str) -> None:
    from confluent_kafka import TopicPartition

    client = admin(address)
    for future in client.delete_records([TopicPartition(ten, 0, 6)]).values():
        future.result(PATIENCE_S)
    assert run("consume", ten, "--from", "2").out == lines(6, 7, 8, 9)
    assert run("consume", ten, "--from", "-5", "--max", "1").out == lines(6)


def committed(address: str, group: str, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    try:
        return int(consumer.committed([TopicPartition(topic, 0)], PATIENCE_S)[0].offset)
    finally:
        consumer.close()


def test_a_group_commits_what_is_printed(run: Run, address: str, ten: str) -> None:
    group = f"group-{ten}"
    assert run("consume", ten, "-g", group, "-n", "3").out == lines(0, 1, 2)
    assert committed(address, group, ten) == 3
    assert run("consume", ten, "-g", group, "--filter", "value == 4", "-n", "1").out == lines(4)
    assert committed(address, group, ten) == 5
    assert run("consume", ten, "-g", group, "--from", "latest").out == lines(5, 6, 7, 8, 9)
    assert run("consume", ten, "-g", group).out == ""
    assert run("consume", ten, "-g", f"{group}-late", "--from", "latest").out == ""


def test_a_group_keeps_what_could_not_be_printed(run: Run, address: str, topic: str) -> None:
    create(address, topic)
    send(address, topic, [b"1", b"{", b"3"], timestamp=T0)
    read = run("consume", topic, "-g", f"group-{topic}", "--format", "json")
    assert (read.status, read.out) == (1, "1\n")
    assert committed(address, f"group-{topic}", topic) == 1


def test_a_member_that_gets_no_partition_ends(run: Run, address: str, ten: str) -> None:
    other = Group(address, f"group-{ten}", [ten])
    try:
        assert len(other.take(10)) == 10
        stop = threading.Event()

        def stay() -> None:
            while not stop.is_set():
                other.take(0)
                other._consumer.poll(0.1)

        member = threading.Thread(target=stay)
        member.start()
        try:
            read = run("consume", ten, "-g", f"group-{ten}")
        finally:
            stop.set()
            member.join()
    finally:
        other.close()
    # Whichever of the two got the partition: nothing was committed, so it is all or nothing.
    assert read.status == 0
    assert read.out in ("", lines(*range(10)))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--from", "yesterday"), "'yesterday' is no position in a partition"),
        (("--to", "soon"), "--to: 'soon'"),
        (("--filter", "value ="), "--filter: '=' has no meaning here, at column 7"),
        (("-g", "g", "-p", "0"), "--group reads where the group is"),
        (("-g", "g", "--from", "-1h"), "--group reads where the group is"),
        (("--follow", "--to", "4"), "--follow has no end"),
        (("--json", "-k"), "--json prints all fields"),
        (("--format", "cbor"), "no format 'cbor': there are text, json, hex, base64"),
        (("-X", "no.such=1"), "no.such"),
    ],
)
def test_wrong_usage(run: Run, ten: str, words: tuple[str, ...], says: str) -> None:
    wrong = run("consume", ten, *words)
    assert (wrong.status, wrong.out) == (2, "")
    assert says in wrong.err


def test_what_is_not_there(run: Run, ten: str) -> None:
    for words, says in (
        (("consume", "no-such-topic"), "there is no topic no-such-topic"),
        (("consume", ten, "-p", "5"), f"{ten} has no partition 5"),
    ):
        read = run(*words)
        assert (read.status, read.err) == (1, f"leafcuttr: {says}\n")


def test_a_record_arrives_at_once(address: str, ten: str) -> None:
    """Not only when a batch is full."""
    with following(address, ten, "--follow", "--from", "latest", "--json") as process:
        got: list[bytes] = []
        reader = threading.Thread(target=lambda: got.append(process.stdout.readline()))
        reader.start()

        def arrived() -> bool:
            send(address, ten, [b"now"], timestamp=T0)
            return bool(got)

        until(arrived, "a record on the way", pause=0.2)
        reader.join()
    assert json.loads(got[0])["value"] == "now"
