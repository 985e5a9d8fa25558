"""Where MirrorMaker 2 stopped: the positions that its workers keep in a topic at the target, for a flow that has none.

Connect stores them as JSON: the key `[connector, {"cluster": alias, "partition": number, "topic": topic}]`, the value
`{"offset": offset of the last record that was copied}`. Source: MirrorUtils.wrapPartition of
org.apache.kafka.connect.mirror, and ConnectorOffsetBackingStore of Connect.
"""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.flows.positions import read_entries
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.peers import Peer


class MirrorMakerPositions:
    """A `PositionSource` of one flow: the topic of MirrorMaker's workers, and the alias that it has for the source."""

    def __init__(self, topic: str, alias: str, told: Callable[[str], None]) -> None:
        """`told` gets a line when there are some."""
        self._topic: Final = topic
        self._alias: Final = alias
        self._told: Final = told

    async def positions(
        self, source: "Peer", target: "Peer", partitions: Mapping[TopicPartition, TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Raises BrokerError."""
        found = (await target.topics([self._topic])).get(self._topic)
        if found is None:
            return {}
        known: dict[TopicPartition, int] = {}
        for number in range(found.partitions):
            for key, value in (await read_entries(target, TopicPartition(self._topic, number))).items():
                read = next_offset(key, value, self._alias)
                if read is not None and read[0] in partitions:
                    known[read[0]] = read[1]
        if known:
            self._told(
                f"{len(known)} of {len(partitions)} partitions went on where MirrorMaker stopped ({self._topic})"
            )
        return known


def next_offset(key: bytes, value: bytes, alias: str) -> tuple[TopicPartition, int] | None:
    """The partition and the offset behind the last record that was copied of it; None for anything else, also for what
    the other connectors of MirrorMaker have stored."""
    try:
        names, offset = json.loads(key), json.loads(value)
    except (ValueError, RecursionError):
        return None
    match names, offset:
        case [
            [str(), {"cluster": str(cluster), "topic": str(topic), "partition": int(number)}],
            {"offset": int(last)},
        ] if cluster == alias and type(number) is int and type(last) is int and last >= 0 and number >= 0:
            return TopicPartition(topic, number), last + 1
    return None
