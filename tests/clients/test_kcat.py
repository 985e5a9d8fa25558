"""kcat: Debian's librdkafka, some years older than that of confluent-kafka."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.librdkafka import create
from support.waiting import until

Fresh = Callable[[str], str]
pytestmark = [
    pytest.mark.client(
        "kcat", lacks=dict.fromkeys(("create", "alter", "delete"), "it has no administration")
    ),
    pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)"),
]
LINES = "".join(f"line {at}\n" for at in range(300))


def kcat(bootstrap: str, *arguments: str, given: str = "") -> str:
    command = ["kcat", "-b", bootstrap, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "codec",
    ["none", *(pytest.param(one, marks=pytest.mark.long) for one in ("gzip", "snappy", "lz4", "zstd"))],
)
@pytest.mark.duty("produce", "read")
def test_round_trip(bootstrap: str, fresh: Fresh, codec: str) -> None:
    topic = fresh("topic")
    kcat(bootstrap, "-P", "-t", topic, "-z", codec, "-X", "acks=all", given=LINES)
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q") == LINES


def test_metadata_and_offsets(bootstrap: str, fresh: Fresh) -> None:
    topic = fresh("topic")
    kcat(bootstrap, "-P", "-t", topic, given="a\nb\nc\n")
    told = json.loads(kcat(bootstrap, "-L", "-J", "-t", topic))
    assert [one["topic"] for one in told["topics"]] == [topic]
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-1").split()[-1] == "3"
    assert kcat(bootstrap, "-C", "-t", topic, "-o", "-2", "-e", "-q") == "b\nc\n"


@pytest.mark.long
@pytest.mark.duty("commit")
def test_group(bootstrap: str, fresh: Fresh) -> None:
    topic, group = fresh("topic"), fresh("group")
    kcat(bootstrap, "-P", "-t", topic, "-X", "enable.idempotence=true", given=LINES)
    read = ("-G", group, "-q", "-X", "auto.offset.reset=earliest", topic)
    assert kcat(bootstrap, "-c", "100", *read) + kcat(bootstrap, "-c", "200", *read) == LINES


@pytest.mark.long
@pytest.mark.duty("produce", "read", "seek by time")
def test_records_come_back_whole(bootstrap: str, fresh: Fresh) -> None:
    """Keys, headers, null values; seek by time."""
    topic = fresh("topic")
    kcat(bootstrap, "-P", "-t", topic, "-K", ":", "-Z", "-H", "a=1", "-H", "b", given="k1:v1\nk2:\nk3:v3\n")
    got = [
        json.loads(line)
        for line in kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-J").splitlines()
    ]
    assert [(one["key"], one["payload"]) for one in got] == [("k1", "v1"), ("k2", None), ("k3", "v3")]
    assert all(one["headers"] == ["a", "1", "b", None] for one in got)
    first, last = got[0]["ts"], got[-1]["ts"]
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:{first}").split()[-1] == "0"
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:{last + 1}").split()[-1] == "-1"


@pytest.mark.long
@pytest.mark.duty("read committed")
def test_read_committed(bootstrap: str, fresh: Fresh) -> None:
    """What another client has aborted is not seen."""
    from confluent_kafka import Producer

    topic = fresh("topic")
    create(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": fresh("transactional")})
    producer.init_transactions(60)
    for letter in "abc":
        producer.begin_transaction()
        for _ in range(3):
            producer.produce(topic, letter.encode(), partition=0)
        producer.flush(60)
        if letter == "b":
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
    for level, expected in (("read_committed", "aaaccc"), ("read_uncommitted", "aaabbbccc")):
        reading = ("-C", "-t", topic, "-o", "beginning", "-e", "-q", "-X", f"isolation.level={level}")
        assert "".join(kcat(bootstrap, *reading).split()) == expected


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
@pytest.mark.duty("rebalance")
def test_group_rebalances(bootstrap: str, fresh: Fresh, tmp_path: Path, strategy: str) -> None:
    """A second member takes a part; when it leaves, the first has all again and reads on."""
    topic, group = fresh("topic"), fresh("group")
    create(bootstrap, topic, 4)
    word = [
        "kcat",
        "-b",
        bootstrap,
        "-G",
        group,
        "-X",
        "auto.offset.reset=earliest",
        "-u",
        "-X",
        "session.timeout.ms=6000",
    ]
    word += ["-X", f"partition.assignment.strategy={strategy}", topic]
    members = []
    try:
        for name in ("first", "second"):
            with (tmp_path / name).open("wb") as out, (tmp_path / f"{name}.err").open("wb") as told:
                members.append(subprocess.Popen(word, stdin=subprocess.DEVNULL, stdout=out, stderr=told))
            until(
                lambda name=name: ": topic-" in (tmp_path / f"{name}.err").read_text(), f"{name}'s partitions"
            )
        until(lambda: "revoke" in (tmp_path / "first.err").read_text(), "the first one's rebalance")
        members[1].terminate()
        members[1].wait(120)
        for at in range(4):
            kcat(bootstrap, "-P", "-t", topic, "-p", str(at), given=f"to {at}\n")
        expected = [f"to {at}" for at in range(4)]
        until(lambda: sorted((tmp_path / "first").read_text().splitlines()) == expected, "all four records")
    finally:
        for member in members:
            member.kill()
            member.wait()
