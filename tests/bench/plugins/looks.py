"""A plugin for the bench: validators that look at five bytes of each value, by records and by first bytes."""

from collections.abc import Iterator, Mapping

from leafcuttr_sdk import Peek, PeekedBatch, Plugin, ProduceValidatorSpec, Record
from leafcuttr_sdk.peek import distinct

PLUGIN = Plugin(name="looks", api_version=1, summary="Looks at five bytes.")
MAGIC = b"\0a"  # as peeking.py and kperf.c begin their values


def leafcuttr_register_produce_validators() -> Iterator[ProduceValidatorSpec]:
    yield ProduceValidatorSpec("whole", "gets each record", Whole)
    yield ProduceValidatorSpec("peeked", "gets five bytes of each", Peeked, Peek(value_bytes=5))


def why_not(head: bytes | None) -> str | None:
    return None if head is not None and len(head) == 5 and head[0] in MAGIC else "no magic byte"


class Whole:
    def __init__(self, context: object) -> None:
        pass

    def validate(self, record: Record) -> str | None:
        return why_not(record.value and record.value[:5])


class Peeked:
    def __init__(self, context: object) -> None:
        pass

    def validate_batch(self, batch: PeekedBatch) -> Mapping[int, str]:
        if all(why_not(head) is None for head in distinct(batch.values)):
            return {}
        return {n: why for n, head in enumerate(batch.values) if (why := why_not(head))}
