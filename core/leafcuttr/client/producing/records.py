"""Records as batches, those of a partition together. No I/O."""

from collections.abc import Sequence
from typing import NamedTuple

from leafcuttr.errors import InvalidRecord, MessageTooLarge, RecordError, UnknownTopicOrPartition
from leafcuttr_sdk.batches import BatchBuilder, Sticky, encode_headers, encode_key, partition_of
from leafcuttr_sdk.records import Record


class Built(NamedTuple):
    """A batch for one partition, and the places of its records in what was given."""

    partition: int
    batch: bytearray
    places: list[int]
    timestamps: list[int]


def choose(
    topic: str, records: Sequence[Record], partitions: Sequence[int | None] | None, count: int, sticky: Sticky
) -> list[int]:
    """The partition of each record, as Java's producer chooses. Raises UnknownTopicOrPartition."""
    if partitions is not None and len(partitions) != len(records):
        raise ValueError(f"{len(partitions)} partitions for {len(records)} records")
    chosen: list[int] = []
    for place, record in enumerate(records):
        number = None if partitions is None else partitions[place]
        if number is None:
            if record.key is not None:
                number = partition_of(record.key, count)
            else:
                number = sticky.take(len(record.value or b""), range(count))
        elif not 0 <= number < count:
            error = UnknownTopicOrPartition(
                f"Topic '{topic}' has {count} partition(s), there is no partition {number}."
            )
            error.record_errors = [RecordError(place, str(error))]
            raise error
        chosen.append(number)
    return chosen


def build(records: Sequence[Record], chosen: Sequence[int], *, now_ms: int, max_bytes: int) -> list[Built]:
    """Batches of at most `max_bytes`, in the order of the records of each partition. Raises MessageTooLarge,
    InvalidRecord for a header that has no UTF-8."""
    places: dict[int, list[int]] = {}
    for place, number in enumerate(chosen):
        places.setdefault(number, []).append(place)
    return [
        each for number, some in places.items() for each in _of_one(number, records, some, now_ms, max_bytes)
    ]


def _of_one(
    number: int, records: Sequence[Record], places: Sequence[int], now_ms: int, max_bytes: int
) -> list[Built]:
    built: list[Built] = []
    builder = BatchBuilder(max_bytes)
    taken: list[int] = []
    times: list[int] = []

    def finish() -> None:
        built.append(Built(number, builder.finish(), list(taken), list(times)))
        builder.clear()
        taken.clear()
        times.clear()

    for place in places:
        value, key, headers, timestamp = records[place]
        try:
            encoded = encode_headers(headers)
        except UnicodeEncodeError as error:
            why = f"a header name has no UTF-8: {error}"
            raise InvalidRecord(why, [RecordError(place, why)]) from None
        time = now_ms if timestamp is None else timestamp
        parts = value, time, encode_key(key), encoded
        if not builder.add(*parts):
            if taken:
                finish()
            if not builder.add(*parts):
                too_large = MessageTooLarge(f"The record is larger than a batch of {max_bytes} bytes.")
                too_large.record_errors = [RecordError(place, str(too_large))]
                raise too_large
        taken.append(place)
        times.append(time)
    if taken:
        finish()
    return built
