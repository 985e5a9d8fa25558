"""What `produce` and `consume` do when the broker goes away under them, or has no such topic."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from leafcuttr.cli.common.librdkafka.client import client_settings
from leafcuttr.cli.consume.reading import TopicReader, Watch
from support.broker_process import clean_environ, running_broker, start_broker
from support.librdkafka import create, send, watermarks
from support.waiting import free_port, until

T0 = 1_700_000_000_000


def command(*words: str) -> Any:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    line = [sys.executable, "-m", "leafcuttr", *words]
    return subprocess.Popen(line, env=clean_environ(), **pipes)  # type: ignore[call-overload]


def test_one_that_follows_says_so_and_goes_on(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    settings = {"listeners": f"PLAINTEXT://{address}"}
    with running_broker(tmp_path, settings) as broker:
        create(address, "t")
        send(address, "t", [b"before"], timestamp=T0)
        reader = command("consume", "t", "--follow", "-b", address, "-X", "reconnect.backoff.max.ms=200")
        try:
            assert reader.stdout.readline() == b"before\n"
            broker.stop(signal.SIGKILL)
            assert (
                reader.stderr.readline()
                == f"leafcuttr: no broker answers at {address}; trying again\n".encode()
            )
            again = start_broker(tmp_path, settings)
            try:
                send(address, "t", [b"after"], timestamp=T0)
                assert reader.stdout.readline() == b"after\n"
                reader.send_signal(signal.SIGINT)
                assert reader.wait(60) == 0
            finally:
                again.stop()
        finally:
            reader.kill()
            reader.wait()


@pytest.mark.long
def test_one_that_does_not_follow_gives_up(tmp_path: Path) -> None:
    """A reader in the middle of a large topic, and a writer in the middle of its input: one line, status 1."""
    with running_broker(tmp_path) as broker:
        address = broker.address
        create(address, "t")
        send(address, "t", [b"x" * 1000] * 20_000, timestamp=T0)
        reader = command("consume", "t", "-b", address, "-X", "queued.max.messages.kbytes=1024")
        writer = command("produce", "t", "-b", address)
        writer.stdin.write(b"first\n")
        writer.stdin.flush()
        assert reader.stdout.readline() == b"x" * 1000 + b"\n"
        until(lambda: watermarks(address, "t")[1] == 20_001, "the writer's first line")
        broker.stop(signal.SIGKILL)
        writer.stdin.write(b"second\n")
        writer.stdin.flush()
        reader.stdout.read()
        assert reader.wait(120) == 1
        assert reader.stderr.read() == f"leafcuttr: no broker answers at {address}\n".encode()
        assert writer.wait(120) == 1
        said = writer.stderr.read()
        assert said.startswith(b"leafcuttr: line 2: ")
        assert said.count(b"\n") == 1


def test_a_topic_that_is_never_created(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"auto.create.topics.enable": "false"}) as broker:
        words = ("-b", broker.address, "-X", "topic.metadata.propagation.max.ms=500")
        writer = command("produce", "nowhere", *words)
        _, said = writer.communicate(b"x\n", timeout=60)
    assert writer.returncode == 1
    why = b"there is no topic nowhere, and the broker makes none; 0 of 1 record acknowledged"
    assert said == b"leafcuttr: line 1: " + why + b"\n"


def test_ctrl_c_while_librdkafka_calls_back_ends_the_reading() -> None:
    class Interrupting(Watch):
        def heard(self, error: Any) -> None:
            if not self.down:
                self.down = True
                signal.raise_signal(signal.SIGINT)

    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    watch = Interrupting()
    settings = client_settings(address, **{"group.id": "x", "error_cb": watch.heard})
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition("words", 0)])
        with pytest.raises(KeyboardInterrupt):
            for _ in TopicReader(consumer, watch, address, None).batches(lambda: 1):
                pass
    finally:
        consumer.close()


@pytest.mark.parametrize("in_group", [False, True])
def test_who_may_read_a_topic_needs_no_right_on_a_group(in_group: bool) -> None:
    """librdkafka looks for the coordinator of its group whether or not it is a member of one, and says what it gets."""

    class Refused:
        def error(self) -> KafkaError:
            return KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)

    class Nothing:
        def assign(self, partitions: Any) -> None: ...

    reader = TopicReader(Nothing(), Watch(), "broker.test:9092", None)
    if in_group:
        with pytest.raises(KafkaException):
            reader._is_wanted(Refused())
    else:
        reader.assign("t", {0: 0})
        assert not reader._is_wanted(Refused())
