"""Every setting of type long with its largest and its smallest value, in a broker that does all that settings act on.

The rows are those of the catalogue, so that a setting that is added later is tried too. What a setting does is tested
elsewhere: with each of these values the broker has to work, or say what it refuses, and nothing may raise.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from leafcuttr.config.catalog import BROKER, GROUP, TOPIC
from leafcuttr.config.setting import LONG_MAX, BadValueError, ConfigKey, ConfigType, Effect
from leafcuttr.errors import ErrorCode
from leafcuttr.plugins.catalogue import catalog_of
from leafcuttr.plugins.finding import Choice, find_plugins
from leafcuttr.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from leafcuttr.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from leafcuttr.wire.records import Record, encode_batch
from support import librdkafka
from support.bundled import BUNDLED
from support.live_broker import LiveBroker
from support.wire_client import WireClient

DAY = 86_400_000
LONG_MIN = -LONG_MAX - 1
QUIET = {
    # By hand, and not at a moment that depends on the machine.
    "log.cleaner.backoff.ms": str(DAY),
    "log.retention.check.interval.ms": str(DAY),
    "offsets.topic.num.partitions": "1",
}
SMALL = {"segment.ms": "1000", "min.cleanable.dirty.ratio": "0.01"}
ALL_IS_KEPT = {"lc.log.min.free.bytes"}  # with its largest value nothing is taken from producers


def ends(setting: ConfigKey) -> Iterator[int]:
    """The smallest and the largest value that it takes."""
    for bound, instead in ((setting.minimum, LONG_MIN), (setting.maximum, LONG_MAX)):
        value = instead if bound is None else int(bound)
        try:
            assert setting.parse(str(value)) == value
        except BadValueError:
            pytest.fail(f"{setting.name}: its own bound {value} is refused")
        if setting.refuses(value) is None:
            yield value


def longs(table: Mapping[str, ConfigKey]) -> list[ConfigKey]:
    return [setting for setting in table.values() if setting.type is ConfigType.LONG]


def rows(table: Mapping[str, ConfigKey]) -> list[Any]:
    """Those that have an effect, each with each of its ends."""
    return [
        pytest.param(setting.name, value, id=f"{setting.name}={value}")
        for setting in longs(table)
        if setting.effect is not Effect.NONE
        for value in ends(setting)
    ]


def test_no_table_of_settings_is_forgotten() -> None:
    """Groups have settings of their own: none is a long yet. Those of bundled plugins are tried with theirs."""
    assert not longs(GROUP)
    catalog = catalog_of(find_plugins(Choice()))
    names = {setting.name for setting in (*longs(catalog.broker), *longs(catalog.topic))}
    others = names - {setting.name for setting in (*longs(BROKER), *longs(TOPIC))}
    assert {catalog.owner_of(name) for name in others} <= BUNDLED.keys()


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("name", "value"), rows(TOPIC))
def test_a_topic_with_it_is_served(
    serve: Any, name: str, value: int, caplog: pytest.LogCaptureFixture
) -> None:
    settings = QUIET | {TOPIC[name].synonyms[0][0]: str(value)} if _fits(name, value) else QUIET
    with serve(settings) as broker:
        use(broker, {name: str(value)})
    with serve(settings) as broker:
        use_again(broker)
    nothing_was_raised(caplog)


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("name", "value"), rows(BROKER))
def test_a_broker_with_it_serves(serve: Any, name: str, value: int, caplog: pytest.LogCaptureFixture) -> None:
    takes = value < LONG_MAX or name not in ALL_IS_KEPT
    with serve(QUIET | {name: str(value)}) as broker:
        use(broker, {}, takes=takes)
    with serve(QUIET | {name: str(value)}) as broker:
        use_again(broker, takes=takes)
    nothing_was_raised(caplog, () if takes else ("nothing more is taken from producers",))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("end", [min, max])
def test_those_without_effect_have_none(serve: Any, end: Any, caplog: pytest.LogCaptureFixture) -> None:
    """All at once: what is only accepted cannot hide what another one does."""
    of_broker, of_topic = (
        {each.name: str(end(ends(each))) for each in longs(table) if each.effect is Effect.NONE}
        for table in (BROKER, TOPIC)
    )
    assert of_broker
    assert of_topic
    with serve(QUIET | of_broker) as broker:
        use(broker, of_topic)
    with serve(QUIET | of_broker) as broker:
        use_again(broker)
    nothing_was_raised(caplog)


def _fits(name: str, value: int) -> bool:
    """Whether the broker's default for the topic setting may have this value too."""
    synonyms = TOPIC[name].synonyms
    return bool(synonyms) and value in ends(BROKER[synonyms[0][0]])


def use(broker: LiveBroker, config: dict[str, str], *, takes: bool = True) -> None:
    """Five days of a topic that is compacted and one whose records go."""
    for topic, policy in (("compacted", "compact"), ("deleted", "delete")):
        given = {"cleanup.policy": policy, **SMALL, **config}
        librdkafka.create(broker.address, topic, **{n.replace(".", "_"): v for n, v in given.items()})
        for day in range(5):
            with WireClient(broker.address) as client:
                stamp = broker.clock.ms
                row = [
                    Record(0, stamp, b"k", None if day == 1 else b"v"),
                    Record(1, stamp, b"%d" % day, b"v"),
                ]
                data = encode_batch(row, producer_id=7, producer_epoch=0, base_sequence=day * 2)
                answer = client.produce(topic, data)
                assert answer.error_code == (0 if takes else ErrorCode.KAFKA_STORAGE_ERROR), answer
                _ask(client, topic, stamp)
            broker.pass_time(DAY)
            _background(broker)
    with WireClient(broker.address) as client:
        item = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [OffsetCommitRequestTopic(name="deleted", partitions=[item])]
        commit = OffsetCommitRequest(group_id="g", topics=topics)
        assert client.ask(commit, 8).topics[0].partitions[0].error_code == 0
        item = DeleteRecordsPartition(partition_index=0, offset=client.list_offset("deleted", -1).offset)
        topics = [DeleteRecordsTopic(name="deleted", partitions=[item])]
        answer = client.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2)
        assert answer.topics[0].partitions[0].error_code == 0
    broker.pass_time(DAY)
    _background(broker)


def use_again(broker: LiveBroker, *, takes: bool = True) -> None:
    """After a restart, one long after: the rest of what time does."""
    with WireClient(broker.address) as client:
        for topic in ("compacted", "deleted"):
            _ask(client, topic, broker.clock.ms)
            data = encode_batch([Record(0, broker.clock.ms, b"k", b"v")])
            assert (client.produce(topic, data).error_code == 0) is takes
    broker.pass_time(365 * DAY)
    _background(broker)
    librdkafka.delete(broker.address, "deleted")
    broker.pass_time(365 * DAY)


def _ask(client: WireClient, topic: str, stamp: int) -> None:
    start = client.list_offset(topic, -2)
    for time in (0, stamp, LONG_MAX, -1, -3):
        assert client.list_offset(topic, time).error_code == 0
    assert client.fetch(topic, start.offset).error_code == 0


def _background(broker: LiveBroker) -> None:
    """What loops do now and then, and `pass_time` does not."""
    logs = broker.broker.logs
    if broker.broker.settings.int("log.cleaner.backoff.ms"):  # else it does so itself, all the time
        broker.run(logs.cleaner.clean_due)
    assert not logs.cleaner.uncleanable
    for step in (logs.checkpoint, logs.expire_producers, logs.watch_free_space):
        broker.run(step)
    groups = broker.broker.groups
    broker.call(lambda: [groups.expire(entry) for entry in list(groups._table)])


def nothing_was_raised(caplog: pytest.LogCaptureFixture, expected: tuple[str, ...] = ()) -> None:
    bad = [
        record.getMessage()
        for record in caplog.records
        if record.exc_info or (record.levelno >= logging.ERROR and record.name.startswith("leafcuttr"))
    ]
    assert not [line for line in bad if not line.startswith(expected or ("none of these",))]
