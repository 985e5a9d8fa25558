"""Where a stream is in each partition: what Spark keeps in the checkpoint.

    {"version": 1, "offsets": {"orders": {"0": 42, "1": 17}}, "topics": {"orders": "4sN2mYp4R3uXo0eT7fQkBA"}}

`offsets` has the form of Spark's Kafka connector and can be given as `startingOffsets`. `topics` are the ids of the
topics, without which one that was deleted and created anew would be taken for the old one; a cluster before Kafka 2.8
has none. `tick` is there once the source had no records for a while: the time, in ms since 1970, to which it has moved
event time instead.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError

VERSION: Final = 1


class Positions(NamedTuple):
    """The next offset to read of each partition, and the ids of their topics, as far as there are any."""

    offsets: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, str]
    tick_ms: int | None = None
    """To which event time was moved last without a record."""

    def as_json(self) -> dict[str, Any]:
        """As Spark keeps it, always in the same order: it compares texts."""
        offsets: dict[str, dict[str, int]] = {}
        for partition in sorted(self.offsets):
            offsets.setdefault(partition.topic, {})[str(partition.partition)] = self.offsets[partition]
        ids = {topic: self.topic_ids[topic] for topic in offsets if topic in self.topic_ids}
        tick = {} if self.tick_ms is None else {"tick": self.tick_ms}
        return {"version": VERSION, "offsets": offsets, "topics": ids, **tick}


def positions_of(kept: Any) -> Positions:
    """Raises OptionError for what is none of ours."""
    try:
        if kept["version"] != VERSION:
            raise OptionError(
                f"the checkpoint has offsets of version {kept['version']}, this source knows {VERSION}: it was"
                " written by a later LeafCuttr"
            )
        offsets = {
            TopicPartition(str(topic), int(number)): int(offset)
            for topic, numbers in kept["offsets"].items()
            for number, offset in numbers.items()
        }
        tick = kept.get("tick")
        ids = {str(topic): str(one) for topic, one in kept["topics"].items()}
        return Positions(offsets, ids, None if tick is None else int(tick))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, OptionError):
            raise
        raise OptionError("the checkpoint has offsets that are not of this source") from None


def id_text(topic_id: bytes) -> str | None:
    """As Kafka's tools print it; None for the zeros of a cluster without ids."""
    if not any(topic_id):
        return None
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
