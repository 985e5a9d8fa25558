"""The bytes of `__consumer_offsets` are Kafka's: as Kafka 4.3.1 wrote them, and as its own tool reads ours."""

import subprocess
from collections.abc import Callable

import pytest
import trio

from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.groups.events import GroupLimits, Join, Sync
from leafcuttr.state.groups.machine import Group
from leafcuttr.state.groups.offsets import OffsetAndMetadata
from leafcuttr.state.groups.records import (
    GroupKey,
    OffsetKey,
    group_key,
    group_value,
    offset_key,
    offset_value,
    parse_group,
    parse_key,
    parse_offset,
)
from leafcuttr.state.groups.subscription import topics_of
from leafcuttr.wire.errors import WireError
from support import jars
from support.groups import subscription

TOPIC_ID = bytes.fromhex("f4921fdc87c04dbb9f7fa7cb65a2a7d4")


COMMIT_TIME = 0x1A1FD9A5427


@pytest.mark.parametrize(
    ("key", "parsed"),
    [
        (b"\0\1\0\2g1\0\1t\0\0\0\1", OffsetKey("g1", "t", 1)),
        (b"\0\1\0\0\0\1t\0\0\0\0", OffsetKey("", "t", 0)),
        (b"\0\2\0\4gdup", GroupKey("gdup")),
    ],
)
def test_keys_that_kafka_wrote(key: bytes, parsed: OffsetKey | GroupKey) -> None:
    assert parse_key(key) == parsed
    assert (offset_key(*parsed) if isinstance(parsed, OffsetKey) else group_key(*parsed)) == key


def test_keys_of_other_kinds_of_groups_are_ignored() -> None:
    assert parse_key(b"\0\3\0\2g1") is None


@pytest.mark.parametrize(
    ("value", "committed"),
    [
        (
            b"\0\4\0\0\0\0\0\0\0\3\0\0\0\2\2m\0\0\1\xa1\xfd\x9aT'\1\0\x10" + TOPIC_ID,
            OffsetAndMetadata(3, 2, "m", COMMIT_TIME, topic_id=TOPIC_ID),
        ),
        (
            b"\0\4\xff\xff\xff\xff\xff\xff\xff\xfb\0\0\0\2\1\0\0\1\xa1\xfd\x9aT'\1\0\x10" + TOPIC_ID,
            OffsetAndMetadata(-5, 2, "", COMMIT_TIME, topic_id=TOPIC_ID),
        ),
        (
            b"\0\1\0\0\0\0\0\0\0\3\0\1m\0\0\1\xa1\xfd\x9aT'\0\0\1\xa1\xfd\x9b\xda\xe4",
            OffsetAndMetadata(3, -1, "m", COMMIT_TIME, 0x1A1FD9BDAE4),
        ),
    ],
)
def test_offsets_that_kafka_wrote(value: bytes, committed: OffsetAndMetadata) -> None:
    assert parse_offset(value) == committed
    assert offset_value(committed) == value


def test_older_offsets_are_read() -> None:
    version_3 = b"\0\3\0\0\0\0\0\0\0\3\0\0\0\2\0\1m\0\0\0\0\0\0\0\x09"
    assert parse_offset(version_3) == OffsetAndMetadata(3, 2, "m", 9)
    version_2 = b"\0\2\0\0\0\0\0\0\0\3\0\1m\0\0\0\0\0\0\0\x09"
    assert parse_offset(version_2) == OffsetAndMetadata(3, -1, "m", 9)


def test_empty_group_as_kafka_wrote_it() -> None:
    value = b"\0\3\0\0\0\0\0\0\xff\xff\xff\xff\0\0\1\xa1\xfd\x9aT'\0\0\0\0"
    assert group_value(Group("g", GroupLimits()), {}, COMMIT_TIME) == value
    assert parse_group(value).current_state_timestamp == COMMIT_TIME


@pytest.mark.parametrize("damaged", [b"", b"\0", b"\0\1\0\2g", b"\0\2\x7f\xffg"])
def test_damaged_keys(damaged: bytes) -> None:
    with pytest.raises(WireError):
        parse_key(damaged)


def test_subscriptions() -> None:
    assert topics_of(subscription("a", "bc")) == {"a", "bc"}
    for broken in (b"", b"\0", b"\0\0\x7f\xff\xff\xff", b"\0\0\0\0\0\1\0\5ab", b"\0\0\0\0\0\1\0\1\xff"):
        assert topics_of(broken) is None


@pytest.mark.long
async def test_kafkas_own_tool_reads_what_we_write(start: Callable[..., Broker]) -> None:
    if reason := jars.missing():
        pytest.skip(reason)
    broker = start(offsets_topic_num_partitions="1")
    topic = await broker.topics.create("t", 1, {})
    await broker.groups.ready()
    async with trio.open_nursery() as nursery:
        await nursery.start(broker.groups.run)
        joined = broker.groups.join(
            "g",
            Join(
                member_id="",
                instance_id="one",
                client_id="c",
                client_host="/h",
                protocol_type="consumer",
                protocols=(("range", subscription("t")),),
                session_timeout_ms=10_000,
                rebalance_timeout_ms=30_000,
            ),
        ).answer
        assert joined is not None
        member_id = joined.member_id  # type: ignore[union-attr]
        broker.groups.sync(
            "g",
            Sync(
                member_id=member_id,
                instance_id="one",
                generation=1,
                protocol_type=None,
                protocol_name=None,
                assignments={member_id: b""},
            ),
        )
        new = NewOffset("t", topic.id, 0, 42, 0, "said")
        broker.groups.offsets.commit("g", Committer(1, member_id, "one"), [new])
        broker.groups.offsets.commit("simple", Committer(), [new], retention_ms=5)
        broker.groups.delete("simple")
        nursery.cancel_scope.cancel()
    (file,) = topic.partitions[0].log.directory.parent.glob("__consumer_offsets-0/*.log")
    tool = jars.java(
        "4.3.1", "org.apache.kafka.tools.DumpLogSegments", "--offsets-decoder", "--files", str(file)
    )
    done = await trio.run_process(tool, capture_stdout=True, stderr=subprocess.STDOUT)
    text = done.stdout.decode()
    assert '"protocolType":"consumer","generation":1,"protocol":"range"' in text
    assert f'"leader":"{member_id}"' in text and '"groupInstanceId":"one"' in text
    assert 'key: {"type":"1","data":{"group":"g","topic":"t","partition":0}}' in text
    assert '"offset":42,"leaderEpoch":0,"metadata":"said"' in text
    assert 'key: {"type":"2","data":{"group":"simple"}} payload: <DELETE>' in text
