"""What a broker does with a directory that was killed, or damaged: a real process, a real directory, real clients."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.batch import parse
from support import librdkafka
from support.broker_process import clean_environ, running_broker
from support.forked_start import run_leafcuttr
from support.logs import NOW, batch
from support.wire_client import WireClient

STORAGE = ErrorCode.KAFKA_STORAGE_ERROR
FIRST = f"{0:020d}"


def fill(client: WireClient, topic: str, batches: int, *, size: int = 300_000) -> list[int]:
    """Acknowledged base offsets."""
    answers = [client.produce(topic, batch(2, size=size, timestamp=NOW + at)) for at in range(batches)]
    assert not any(answer.error_code for answer in answers)
    return [answer.base_offset for answer in answers]


def verify(data: Path) -> None:
    """`leafcuttr verify` finds nothing."""
    done = run_leafcuttr(("verify", str(data)), environ=clean_environ())
    assert done.returncode == 0, done.stdout + done.stderr


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def lose(path: Path) -> None:
    path.unlink()


def flip_a_header(path: Path) -> None:
    """The last batch claims another length."""
    data, at = bytearray(path.read_bytes()), 0
    while at + parse(data, at).size < len(data):
        at += parse(data, at).size
    data[at + 8] ^= 0x40
    path.write_bytes(data)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("damage", [cut, lose, flip_a_header])
def test_one_damaged_partition_is_offline_and_the_rest_serve(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    with running_broker(tmp_path) as broker:
        for topic in ("bad", "good"):
            librdkafka.create(broker.address, topic, segment_bytes=str(1 << 20))
            with WireClient(broker.address) as client:
                assert fill(client, topic, 8, size=100_000) == list(range(0, 16, 2))
    damage(broker.data / "bad-0" / f"{FIRST}.log")
    before = len(broker.log)
    with running_broker(tmp_path) as broker:
        with WireClient(broker.address) as client:
            # A clean stop is taken at its word first; the look at it comes within the first second.
            while client.produce("bad", batch()).error_code != STORAGE:
                pass
            assert client.produce("bad", batch()).error_code == STORAGE
            assert client.fetch("bad", 0).error_code == STORAGE
            assert client.fetch("good", 0).error_code == 0
            assert client.produce("good", batch()).base_offset == 16
        assert len(librdkafka.read(broker.address, "good", 17)) == 17
        lines = [line for line in broker.log[before:].splitlines() if "bad-0" in line]
        assert len(lines) == 1, lines
        assert "offline" in lines[0]


@pytest.mark.long
def test_everything_acknowledged_is_there_after_sigkill(tmp_path: Path) -> None:
    """Over several segments, again and again; what the kill has torn is cut."""
    expected: list[int] = []
    for _ in range(3):
        with running_broker(tmp_path) as broker:
            if not expected:
                librdkafka.create(broker.address, "t", segment_bytes=str(1 << 20))
            with WireClient(broker.address) as client:
                expected += fill(client, "t", 7)
                assert client.list_offset("t", -1).offset == len(expected) * 2
                request_in_flight = batch(2, size=500_000)
                client.send_produce("t", request_in_flight)
            broker.stop(signal.SIGKILL)
        with running_broker(tmp_path) as broker:
            with WireClient(broker.address) as client:
                end = client.list_offset("t", -1).offset
                assert end in (len(expected) * 2, len(expected) * 2 + 2)
            got = librdkafka.read(broker.address, "t", end, check_crcs=True)
            assert [message.offset() for message in got] == list(range(end))
            expected = list(range(0, end, 2))
        verify(broker.data)
    assert len(list((broker.data / "t-0").glob("*.log"))) > 5


def test_a_torn_end_is_cut_and_written_over(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        librdkafka.create(broker.address, "t")
        with WireClient(broker.address) as client:
            fill(client, "t", 3, size=1000)
        broker.stop(signal.SIGKILL)
    with (broker.data / "t-0" / f"{FIRST}.log").open("ab") as file:
        file.write(batch(5, size=1000)[:-7])
    (broker.data / "t-0" / f"{FIRST}.index").write_bytes(b"\xff" * 800)
    with running_broker(tmp_path) as broker:
        assert librdkafka.watermarks(broker.address, "t") == (0, 6)
        with WireClient(broker.address) as client:
            assert fill(client, "t", 1, size=1000) == [6]
        assert len(librdkafka.read(broker.address, "t", 8, check_crcs=True)) == 8
    verify(broker.data)


def test_a_newer_directory_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        librdkafka.create(broker.address, "t")
    marker = broker.data / "leafcuttr.format"
    before = marker.read_text()
    marker.write_text("version=2\n")
    with pytest.raises(RuntimeError, match="newer"), running_broker(tmp_path):
        pass
    marker.write_text(before)
    with running_broker(tmp_path) as broker:
        assert librdkafka.watermarks(broker.address, "t") == (0, 0)
