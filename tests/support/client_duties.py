"""What every client must do with the broker: the list that the programs below tests/clients/programs, the markers of
the tests and the matrix in docs/reference/clients.md share.

A program is called with the address of the broker and a name, makes three topics and goes through the duties in this
order. It ends with 0 after it has said `did DUTY: WHAT` for each, a line of its own; anything else is a failure.

    NAME        3 partitions. For each codec that the client has, 90 records: number n goes to partition n % 3 with
                the key `CODEC-n`, the value `CODEC n xxx...` (none at all for 89), the headers codec and n, and a
                timestamp a second after the last one, all of the past hour. It stays, for `check` to read.
    NAME-group  4 partitions, read by the group NAME-g: numbers from 0 on.
    NAME-tx     1 partition: a transaction of ten `a`, one of ten `b`, one of ten `c`; the second one is aborted.
"""

from __future__ import annotations

from dataclasses import dataclass

from leafcuttr.wire.batch import batch_size, parse
from leafcuttr.wire.messages.fetch import PartitionData
from leafcuttr.wire.messages.list_groups import ListGroupsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.records import decode_records
from support.librdkafka import PATIENCE_S, admin
from support.wire_client import WireClient

DUTIES = {
    "create": "a topic with partitions and settings of its own",
    "produce": "keys, headers, timestamps, a value that is missing, in each compression the client has",
    "read": "every record whole and in order",
    "rebalance": "two members share a group, one leaves, the other takes over; each record comes once",
    "commit": "offsets are committed, read back, and consumed from",
    "seek by time": "the first record at or after a moment; none after the last",
    "read committed": "aborted records are not returned, and are returned with read_uncommitted",
    "alter": "a setting of a topic, and no other",
    "delete": "a group and a topic",
}
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Told:
    """What a program said: for each duty its further words. `error` is empty if it went through."""

    did: dict[str, str]
    error: str = ""

    @classmethod
    def by(cls, out: str, error: str) -> Told:
        did: dict[str, str] = {}
        for line in out.splitlines():
            if line.startswith("did "):
                duty, _, words = line.removeprefix("did ").partition(":")
                did[duty] = words.strip()
        return cls(did, error)


def check(duty: str, address: str, name: str, told: Told) -> None:
    """What the broker itself says of a duty, read by other means than the client's."""
    if duty == "create":
        with WireClient(address) as wire:
            asked = [MetadataRequestTopic(name=name)]
            (topic,) = wire.ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 12).topics
        assert len(topic.partitions) == 3
        assert _config(address, name)["segment.bytes"] == "16777216"
    elif duty == "produce":
        codecs = told.did[duty].split()
        assert codecs[:2] == ["none", "gzip"]
        for partition in range(3):
            assert _kept(address, name, partition) == dict.fromkeys(codecs, 30)
    elif duty == "alter":
        found = _config(address, name)
        assert (found["retention.ms"], found["segment.bytes"]) == ("172800000", "16777216")
    elif duty == "delete":
        with WireClient(address) as wire:
            topics = {topic.name for topic in wire.ask(MetadataRequest(topics=None), 12).topics}
            groups = {group.group_id for group in wire.ask(ListGroupsRequest(), 4).groups}
        assert name in topics
        assert f"{name}-group" not in topics
        assert f"{name}-g" not in groups or told.did[duty] == "topics"


def _config(address: str, topic: str) -> dict[str, str]:
    from confluent_kafka.admin import ConfigResource

    client = admin(address)
    (future,) = client.describe_configs([ConfigResource("topic", topic)]).values()
    return {name: entry.value for name, entry in future.result(PATIENCE_S).items()}


def _records(fetched: PartitionData) -> memoryview:
    assert fetched.records is None or isinstance(fetched.records, bytes | bytearray | memoryview)
    return memoryview(fetched.records or b"")


def _kept(address: str, topic: str, partition: int) -> dict[str, int]:
    """How many whole records there are by codec, as the batches in the log say."""
    found: dict[str, int] = {}
    number = offset = 0
    with WireClient(address) as wire:
        while data := _records(wire.fetch(topic, offset, partition=partition)):
            at = 0
            while at < len(data) and (size := batch_size(data, at)) is not None and at + size <= len(data):
                header, batch = parse(data, at), data[at : at + size]
                codec = CODECS[header.attributes & 7]
                for record in decode_records(batch):
                    key, headers = (record.key or b"").decode(), dict(record.headers)
                    n = number % 30 * 3 + partition
                    assert key == f"{codec}-{n}"
                    assert headers == {"codec": codec.encode(), "n": str(n).encode()}
                    assert (record.value is None) == (n == 89)
                    number += 1
                found[codec] = found.get(codec, 0) + header.count
                offset, at = header.base_offset + header.last_offset_delta + 1, at + size
    return found
