"""The topics that the broker keeps for itself, and the shape it creates them in. Their records are handled
elsewhere."""

from collections.abc import Mapping
from typing import NamedTuple

from leafcuttr.config.settings import Settings
from leafcuttr.state.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE


class TopicShape(NamedTuple):
    """How many partitions a topic gets, and the settings that differ from the broker's defaults."""

    partitions: int
    overrides: Mapping[str, str]


def internal_topic(name: str, settings: Settings) -> TopicShape | None:
    """The shape by `settings`, or None if `name` is no topic of the broker's own."""
    if name == CONSUMER_OFFSETS:
        return TopicShape(
            settings.int("offsets.topic.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(settings.int("offsets.topic.segment.bytes")),
            },
        )
    if name == TRANSACTION_STATE:
        return TopicShape(
            settings.int("transaction.state.log.num.partitions"),
            {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "segment.bytes": str(settings.int("transaction.state.log.segment.bytes")),
            },
        )
    return None
