"""The records of a turn, by partition, and the batches that they become."""

from collections.abc import Callable
from typing import Final

from leafcuttr_mqtt.mapping.targets import KafkaTopic
from leafcuttr_sdk.batches.builder import BatchBuilder, EncodedRecord


class Batch:
    """One batch, and which messages of the turn its records are."""

    __slots__ = ("builder", "indexes", "kafka", "partition")

    def __init__(self, kafka: KafkaTopic, partition: int) -> None:
        self.kafka: Final = kafka
        self.partition: Final = partition
        self.builder: Final = BatchBuilder(kafka.limit)
        self.indexes: list[int] = []


TooLarge = Callable[[KafkaTopic, int], None]
"""Called with the index of a message that is larger than its Kafka topic allows."""


class PartitionRecords:
    """The records of one partition, and which messages of the turn they are."""

    __slots__ = ("indexes", "kafka", "partition", "records")

    def __init__(self, kafka: KafkaTopic, partition: int) -> None:
        self.kafka: Final = kafka
        self.partition: Final = partition
        self.records: list[EncodedRecord] = []
        self.indexes: list[int] = []

    def batches(self, too_large: TooLarge) -> list[Batch]:
        """One, or as many as the limit of the topic makes of them."""
        made = [Batch(self.kafka, self.partition)]
        self._put(made, self.records, self.indexes, too_large)
        return made if made[-1].indexes else made[:-1]

    def _put(
        self, made: list[Batch], records: list[EncodedRecord], indexes: list[int], too_large: TooLarge
    ) -> None:
        batch = made[-1]
        if batch.builder.extend_encoded(records):
            batch.indexes += indexes
        elif len(indexes) > 1:
            middle = len(indexes) // 2
            self._put(made, records[:middle], indexes[:middle], too_large)
            self._put(made, records[middle:], indexes[middle:], too_large)
        elif batch.builder.count:
            made.append(Batch(self.kafka, self.partition))
            self._put(made, records, indexes, too_large)
        else:
            too_large(self.kafka, indexes[0])
