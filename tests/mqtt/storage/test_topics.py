"""The internal topics: whose they are, and their settings."""

import pytest

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr_mqtt.storage.topics import CONFIGS, QUEUE, RETAINED, SESSIONS, ensure
from leafcuttr_sdk import NewBatch, Plugin
from leafcuttr_sdk.batches import BatchBuilder
from leafcuttr_sdk.errors import TopicAuthorizationFailed
from mqtt.storage.conftest import Start

ALL = (SESSIONS, RETAINED, QUEUE)


async def test_they_belong_to_the_plugin(start: Start) -> None:
    broker = start()
    await ensure(broker, sync=False)
    for partition in ALL:
        info = broker.topics.get(partition.topic)
        assert info is not None
        assert (info.internal, info.owner, len(info.partitions)) == (True, "mqtt", 1)
    builder = BatchBuilder()
    builder.add(b"", 0)
    other = make_broker_view(broker._core, Plugin("other", 1, "another plugin"))  # type: ignore[attr-defined]
    (answer,) = await other.append([NewBatch(QUEUE, builder.finish())])
    assert isinstance(answer, TopicAuthorizationFailed)


async def test_settings(start: Start) -> None:
    broker = start(compression_type="zstd", log_message_timestamp_type="LogAppendTime")
    await ensure(broker, sync=False)
    for partition, policy in ((SESSIONS, "compact"), (RETAINED, "compact"), (QUEUE, "delete")):
        configs = broker.topics.configs(partition.topic)
        assert configs["cleanup.policy"] == policy
        assert configs["compression.type"] == "producer"
        assert configs["message.timestamp.type"] == "CreateTime"
        assert int(configs["max.message.bytes"] or 0) > 268_435_456
        assert configs["lc.log.sync.always"] == "false"
    assert broker.topics.configs(QUEUE.topic)["retention.ms"] == "-1"


async def test_sync(start: Start) -> None:
    broker = start()
    await ensure(broker, sync=True)
    assert all(broker.topics.configs(name)["lc.log.sync.always"] == "true" for name in CONFIGS)


async def test_sync_later_and_for_good(start: Start) -> None:
    broker = start()
    await ensure(broker, sync=False)
    await broker.topics.alter(QUEUE.topic, {"retention.bytes": "1000000"})
    for sync in (True, False):
        await ensure(broker, sync=sync)
        assert all(broker.topics.configs(name)["lc.log.sync.always"] == "true" for name in CONFIGS)
    assert broker.topics.configs(QUEUE.topic)["retention.bytes"] == "1000000"


@pytest.mark.parametrize("partition", ALL)
async def test_any_time_of_arrival_is_stored(start: Start, partition: object) -> None:
    """A client's messages are kept whatever the clock says."""
    broker = start()
    await ensure(broker, sync=False)
    builder = BatchBuilder()
    from leafcuttr_sdk.batches import encode_key

    builder.add(b"", broker.clock.now_ms() + 1_000_000_000_000, encode_key(b"k"))
    builder.add(b"", 0, encode_key(b"k"))
    (answer,) = await broker.append([NewBatch(partition, builder.finish())])  # type: ignore[arg-type]
    assert not isinstance(answer, Exception)
