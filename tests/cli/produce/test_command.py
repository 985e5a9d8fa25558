"""`leafcuttr produce` against a broker, its records read back by librdkafka."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from support.broker_process import clean_environ
from support.librdkafka import create, read, send, watermarks
from support.waiting import until
from support.wire_client import WireClient

Run = Callable[..., Any]


@pytest.fixture
def one(address: str, topic: str) -> str:
    """A topic of one partition."""
    create(address, topic)
    return topic


def values(address: str, topic: str, **settings: Any) -> list[bytes | None]:
    end = watermarks(address, topic)[1]
    return [message.value() for message in read(address, topic, end, **settings)] if end else []


def test_lines_become_records_as_they_are(run: Run, address: str, one: str) -> None:
    lines = [
        b"plain",
        b"",
        b"\xff\xfe no text",
        b"tab\tand \x00 zero",
        "grün".encode(),
        b"dos",
        b"x" * 300_000,
    ]
    sent = run("produce", one, stdin=b"\n".join([*lines[:5], b"dos\r", lines[6]]))
    assert (sent.status, sent.out, sent.err) == (0, "", "7 records acknowledged\n")
    assert values(address, one) == lines


def test_files_and_standard_input(run: Run, address: str, one: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"{name}1\n{name}2\n")
    assert run("produce", one, tmp_path / "a", "-", str(tmp_path / "b"), stdin=b"in\n").status == 0
    assert values(address, one) == [b"a1", b"a2", b"in", b"b1", b"b2"]
    missing = run("produce", one, str(tmp_path / "c"))
    assert missing.status == 2
    assert "does not exist" in missing.err


def test_keys_choose_partitions_as_javas_clients_do(run: Run, address: str, topic: str) -> None:
    from kafka.partitioner.default import murmur2  # type: ignore[import-not-found,unused-ignore]

    create(address, topic, partitions=5)
    keys = [b"key-%d" % number for number in range(40)]
    assert run("produce", topic, "-K", "\\t", stdin=b"".join(key + b"\tv\n" for key in keys)).status == 0
    for partition in range(5):
        expected = [key for key in keys if (murmur2(key) & 0x7FFFFFFF) % 5 == partition]
        assert watermarks(address, topic, partition)[1] == len(expected)
        got = read(address, topic, len(expected), partition=partition) if expected else []
        assert [message.key() for message in got] == expected


def test_the_options_say_what_the_lines_do_not(run: Run, address: str, one: str) -> None:
    words = ("--key", "k", "-H", "a=1", "-H", "a=2", "--null", "NULL", "--timestamp", "2023-11-14T22:13:20Z")
    assert run("produce", one, *words, "-p", "0", "-z", "lz4", stdin=b"v\nNULL\n").status == 0
    first, second = read(address, one, 2)
    assert (first.key(), first.value(), first.timestamp()[1]) == (b"k", b"v", 1_700_000_000_000)
    assert first.headers() == [("a", b"1"), ("a", b"2")]
    assert second.value() is None


def test_json_lines(run: Run, address: str, one: str) -> None:
    records = [
        {"value": "text", "key": "k", "headers": {"a": "1", "b": None}, "timestamp": 5, "partition": 0},
        {"value_base64": "/w==", "key_base64": "AAE=", "timestamp": "1970-01-01T00:00:00.007Z"},
        {"headers": [{"name": "a", "value": "1"}, {"name": "a", "value_base64": "/w=="}]},
        {"value": {"n": 1}, "key": 7, "offset": 99, "topic": "elsewhere", "timestamp_type": "CreateTime"},
    ]
    sent = run("produce", one, "--json", "-H", "all=1", stdin="\n\n".join(map(json.dumps, records)).encode())
    assert (sent.status, sent.err) == (0, "4 records acknowledged\n")
    got = read(address, one, 4)
    assert [(m.key(), m.value()) for m in got] == [
        (b"k", b"text"),
        (b"\x00\x01", b"\xff"),
        (None, None),
        (b"7", b'{"n": 1}'),
    ]
    assert [m.timestamp()[1] for m in got[:2]] == [5, 7]
    assert [m.headers() for m in got[:3]] == [
        [("a", b"1"), ("b", None), ("all", b"1")],
        [("all", b"1")],
        [("a", b"1"), ("a", b"\xff"), ("all", b"1")],
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"vale": 1}', "a record has no member 'vale'"),
        ("[]", "no JSON object: expected { at column 1"),
        ('{"value": 1', "expected , or } at column 12"),
        ('{"value": 1} x', "more after the object"),
        ('{"value": "a", "value_base64": "YQ=="}', "both value and value_base64"),
        ('{"value_base64": "?"}', "value_base64 is not a string of base64"),
        ('{"partition": -1}', "partition: expected a number from 0 to 2147483647"),
        ('{"partition": true}', "partition: expected a number"),
        ('{"timestamp": "soon"}', "timestamp: 'soon' is no time"),
        ('{"headers": [1]}', "headers: expected a list"),
        ('{"headers": {"a": 1}}', "headers: expected a list"),
        ('{"value": "\\ud800"}', "surrogates not allowed"),
        ("\xff", "byte 0 is not UTF-8"),
        ('{"value": ' + "[" * 100_000, "nested too deeply"),
        ('{"partition": ' + "9" * 5000 + "}", ""),
    ],
)
def test_a_json_line_that_is_wrong(run: Run, one: str, line: str, says: str) -> None:
    sent = run("produce", one, "--json", stdin=b'{"value": "ok"}\n' + line.encode("latin-1"))
    assert sent.status == 2
    assert sent.err.startswith("leafcuttr: line 2: ")
    assert says in sent.err
    assert sent.err.endswith("; 1 of 1 record acknowledged\n")
    assert sent.err.count("\n") == 1


def test_what_consume_prints_can_be_fed_back(run: Run, address: str, topic: str) -> None:
    from confluent_kafka import Producer

    copy = f"{topic}-copy"
    for name in (topic, copy):
        create(address, name, partitions=3)
    producer = Producer({"bootstrap.servers": address})
    odd: list[bytes | None] = [
        None,
        b"",
        b"null",
        b"text",
        b"\xff\x00",
        b'{"a": 1.10}',
        b'"quoted"',
        "ü\u2028".encode(),
    ]
    for number, value in enumerate(odd):
        for key in odd:
            headers = [("h", value), ("h", key), ("ü", b"1")] if number % 2 else None
            producer.produce(
                topic, value, key, partition=number % 3, timestamp=1000 + number, headers=headers
            )
    assert producer.flush(60) == 0
    for words in ((), ("--format", "json", "--key-format", "json", "--skip-errors")):
        printed = run("consume", topic, "--json", *words)
        assert printed.status == 0
        fed = run("produce", copy, "--json", *words[:4], stdin=printed.out.encode())
        assert fed.status == 0, fed.err

    def seen(name: str, skipped: int = 0) -> list[Any]:
        found = []
        for partition in range(3):
            low, high = watermarks(address, name, partition)
            found.append(
                [
                    (m.key(), m.value(), m.headers(), m.timestamp())
                    for m in read(address, name, high - low, partition=partition)
                ]
            )
        return found

    def is_json(data: bytes | None) -> bool:
        return data in (None, b"null", b'{"a": 1.10}', b'"quoted"')

    original, copied = seen(topic), seen(copy)
    for partition in range(3):
        documents = [one for one in original[partition] if is_json(one[0]) and is_json(one[1])]
        assert copied[partition] == original[partition] + documents


def test_a_whole_file_and_back(run: Run, address: str, one: str, tmp_path: Path) -> None:
    content = bytes(range(256)) * 1000
    (tmp_path / "blob").write_bytes(content)
    assert run("produce", one, "--whole", "--key", "blob", str(tmp_path / "blob")).status == 0
    assert run("produce", one, "--whole", "-z", "gzip", stdin=b"two\nlines\n").status == 0
    assert values(address, one) == [content, b"two\nlines\n"]
    back = run("consume", one, "-n", "1", "--delimiter", "", "--format", "hex")
    assert bytes.fromhex(back.out) == content


def test_formats(run: Run, address: str, one: str) -> None:
    assert run("produce", one, "--format", "hex", stdin=b"00ff\n").status == 0
    assert (
        run("produce", one, "--format", "base64", "--key-format", "hex", "-K", ":", stdin=b"01:AP8=\n").status
        == 0
    )
    assert run("produce", one, "--format-option", "encoding=latin-1", stdin="é\n".encode()).status == 0
    assert values(address, one) == [b"\x00\xff", b"\x00\xff", b"\xe9"]
    assert (
        run("consume", one, "--format", "hex", "--key-format", "hex", "-k").out
        == "null\t00ff\n01\t00ff\nnull\te9\n"
    )
    wrong = run("produce", one, "--format", "json", stdin=b"1\n{\n")
    assert (wrong.status, wrong.err.count("\n")) == (2, 1)
    assert "line 2: value: no JSON: " in wrong.err
    unknown = run("produce", one, "--format", "jsn", stdin=b"")
    assert unknown.status == 2
    assert "did you mean json?" in unknown.err
    assert "there are encoding" in run("consume", one, "--format-option", "x=1").err


def test_a_failed_delivery_is_one_line(run: Run, address: str, topic: str) -> None:
    create(address, topic, max_message_bytes="200")
    sent = run("produce", topic, "-X", "batch.num.messages=1", stdin=b"a\nb\n" + b"x" * 1000 + b"\n")
    assert (sent.status, sent.err.count("\n")) == (1, 1)
    assert sent.err.startswith("leafcuttr: line 3: ")
    assert "TOO_LARGE" in sent.err
    assert sent.err.endswith("; 2 of 3 records acknowledged\n")
    assert values(address, topic) == [b"a", b"b"]


def test_a_partition_that_is_not_there(run: Run, one: str) -> None:
    sent = run("produce", one, "-p", "7", stdin=b"a\n")
    assert (sent.status, sent.err) == (
        1,
        f"leafcuttr: line 1: {one} has no such partition; nothing is sent\n",
    )


def test_a_line_that_is_too_long(run: Run, one: str) -> None:
    sent = run("produce", one, "-X", "message.max.bytes=1000", stdin=b"a\n" + b"x" * 2000)
    assert (sent.status, sent.err) == (
        2,
        "leafcuttr: line 2: longer than 1,000 bytes; 1 of 1 record acknowledged\n",
    )


def test_the_summary_for_programs(run: Run, one: str) -> None:
    sent = run("produce", one, "--json-summary", "-q", stdin=b"a\nbb\n")
    figures = sent.json
    assert figures.pop("seconds") >= 0
    assert figures == {"sent": 2, "acknowledged": 2, "bytes": 3}
    wrong = run("produce", one, "--json-summary", "--json", stdin=b"a\n")
    assert wrong.status == 2
    assert wrong.json["error"].startswith("line 1: ")


def _producers(address: str, topic: str) -> int:
    with WireClient(address) as client:
        answer = client.ask(
            DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(0,)),)), 0
        )
    return len(answer.topics[0].partitions[0].active_producers)


def test_idempotence(run: Run, address: str, one: str) -> None:
    for words in (("--acks", "1"), ("-X", "acks=1"), ("--no-idempotence",), ("--acks", "0")):
        assert run("produce", one, *words, stdin=b"a\n").status == 0
    assert _producers(address, one) == 0
    assert run("produce", one, stdin=b"a\n").status == 0
    assert _producers(address, one) == 1
    assert run("produce", one, "--acks", "1", "--idempotence").status == 2


def test_a_transaction_is_seen_whole_or_not_at_all(run: Run, address: str, one: str) -> None:
    ended = run("produce", one, "-t", f"id-{one}", "-K", ":", stdin=b"k:1\nk:2\nwrong\n")
    assert (ended.status, ended.err) == (
        2,
        "leafcuttr: line 3: no ':' in it; 0 of 2 records committed\n",
    )
    assert run("consume", one).out == ""
    done = run(
        "produce", one, "-t", f"id-{one}", "--transaction-size", "2", "--json-summary", stdin=b"a\nb\nc\n"
    )
    assert (done.status, done.err) == (0, "3 records committed\n")
    assert (done.json["committed"], done.json["transactions"]) == (3, 2)
    assert run("consume", one).out == "a\nb\nc\n"
    assert [v for v in values_until(address, one, 3) if v] == [b"a", b"b", b"c"]
    assert run("produce", one, "--transaction-size", "2").status == 2
    assert run("produce", one, "-t", "x", "--acks", "1").status == 2


def values_until(address: str, topic: str, count: int) -> list[bytes]:
    return [message.value() for message in read(address, topic, count, isolation_level="read_committed")]


@pytest.mark.long
def test_the_queue_is_bounded(run: Run, address: str, one: str, tmp_path: Path) -> None:
    """A hundred megabytes go through a client whose queue holds four, in a process of its own to be weighed."""
    line = b"x" * 999 + b"\n"
    with (tmp_path / "much").open("wb") as file:
        for _ in range(100):
            file.write(line * 1000)
    words = ["produce", one, "-X", "message.max.bytes=1000000", "-X", "queue.buffering.max.kbytes=4096"]
    weighed = """
import atexit, pathlib
from leafcuttr.cli import main
atexit.register(lambda: print(pathlib.Path("/proc/self/status").read_text()))
main()
"""
    command = [sys.executable, "-c", weighed, *words, "-b", address, str(tmp_path / "much")]
    done = subprocess.run(command, env=clean_environ(), capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "100,000 records acknowledged\n")
    most = int(done.stdout.partition("VmHWM:")[2].split()[0])
    assert most < 90_000, "KiB"


def test_what_is_typed_goes_out_at_once_and_ctrl_c_ends_it(address: str, one: str) -> None:
    command = [sys.executable, "-m", "leafcuttr", "produce", one, "-b", address]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=clean_environ(), **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(b"first\nhal")
        process.stdin.flush()
        until(lambda: watermarks(address, one)[1] == 1, "the first line to arrive")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b"leafcuttr: interrupted; 1 of 1 record acknowledged\n"
    assert values(address, one) == [b"first"]


def test_a_failure_is_heard_while_nothing_is_typed(address: str, topic: str) -> None:
    create(address, topic, max_message_bytes="100")
    command = [sys.executable, "-m", "leafcuttr", "produce", topic, "-b", address]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=clean_environ(), **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(b"x" * 500 + b"\n")
        process.stdin.flush()
        assert process.wait(60) == 1  # though standard input is still open
        assert b"line 1: " in process.stderr.read()


def test_kcat_reads_the_same(run: Run, address: str, one: str) -> None:
    import shutil

    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    run("produce", one, "-K", ":", "-H", "h=1", "-z", "zstd", stdin=b"a:1\nb:2\n")
    command = ["kcat", "-C", "-q", "-b", address, "-t", one, "-o", "beginning", "-e", "-f", "%o %k %s %h\\n"]
    assert subprocess.check_output(command, timeout=60) == b"0 a 1 h=1\n1 b 2 h=1\n"


def test_wrong_usage(run: Run, one: str) -> None:
    for words in (
        ("--json", "--whole"),
        ("--json", "-K", ":"),
        ("--ignore", "key"),
        ("-H", "x"),
        ("-K", ""),
        ("--timestamp", "soon"),
        ("--format-option", "x"),
    ):
        wrong = run("produce", one, *words)
        assert wrong.status == 2, words


def test_members_are_left_out(run: Run, address: str, one: str) -> None:
    send(address, one, [b"v"], timestamp=5)
    line = b'{"key": "k", "value": "v", "headers": {"a": "1"}, "partition": 77, "timestamp": 3}\n'
    words = [word for name in ("key", "headers", "partition", "timestamp") for word in ("--ignore", name)]
    assert run("produce", one, "--json", *words, stdin=line).status == 0
    (_, got) = read(address, one, 2)
    assert (got.key(), got.headers()) == (None, None)
    assert got.timestamp()[1] > 1_600_000_000_000
