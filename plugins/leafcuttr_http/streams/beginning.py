"""A stream is opened: from what a request says to the offsets where it begins, in a topic as it is now."""

from typing import TYPE_CHECKING

from leafcuttr_http.errors import ApiError, no_topic, of_topic
from leafcuttr_http.schemas.types import TYPES, open_registry
from leafcuttr_http.streams.positions import Positions, tag_of
from leafcuttr_http.streams.query import Query
from leafcuttr_http.streams.reader import notice
from leafcuttr_http.streams.streams import Streams
from leafcuttr_http.streams.subscription import Subscription
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_http.streams.events import Notice
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.topics import TopicInfo


async def subscribe(streams: Streams, name: str, query: Query) -> "tuple[Subscription, list[Notice]]":
    """A stream, and what it has to say before anything else. Raises ApiError."""
    if query.format in TYPES:
        open_registry(streams.broker, 422, f"'format' has to be json or binary: {query.format!r}")
    acting = streams.proxy.acting
    streams.check(name)
    topic = acting.topics.get(name)
    if topic is None:
        raise no_topic(name)
    notices: list[Notice] = []
    try:
        if query.last is not None and query.last.tag == tag_of(topic.topic_id):
            offsets = query.last.offsets
            if len(offsets) > len(topic.partitions):
                raise ApiError(
                    422,
                    f"The id of the last event has {len(offsets)} partitions, {name!r} {len(topic.partitions)}.",
                )
        elif query.last is not None:
            notices.append(notice("reset", message=f"topic {name!r} was deleted and made again"))
            offsets = await _by_time(acting, topic, EARLIEST)
        elif query.offset is not None:
            offsets = [min(query.offset, each.high_watermark) for each in topic.partitions]
        elif query.offsets is not None:
            offsets = _given(topic, query.offsets)
        else:
            offsets = await _by_time(acting, topic, query.time)
    except BrokerError as error:
        raise of_topic(error, name) from error
    start = Positions(tag_of(topic.topic_id), offsets)
    start.add_partitions(len(topic.partitions))
    return Subscription(streams, topic, query.format, query.keys, start), notices


async def _by_time(broker: "Broker", topic: "TopicInfo", time: int) -> list[int]:
    """A partition that cannot be read is found out when it is read."""
    if time == EARLIEST:
        return [each.log_start_offset for each in topic.partitions]
    if time == LATEST:
        return [each.high_watermark for each in topic.partitions]
    online = [each.partition for each in topic.partitions if each.offline is None]
    found = await broker.offsets({TopicPartition(topic.name, number): time for number in online})
    return [
        found.get(TopicPartition(topic.name, each.partition), each.high_watermark)
        for each in topic.partitions
    ]


def _given(topic: "TopicInfo", given: dict[int, int]) -> list[int]:
    """Partitions that are not named begin at their end."""
    for partition, offset in given.items():
        if partition >= len(topic.partitions):
            raise ApiError(422, f"Topic {topic.name!r} has no partition {partition}.")
        end = topic.partitions[partition].high_watermark
        if offset > end:
            raise ApiError(
                422,
                f"Partition {partition} of {topic.name!r} ends at {end}, there is no offset {offset}.",
            )
    return [given.get(each.partition, each.high_watermark) for each in topic.partitions]
