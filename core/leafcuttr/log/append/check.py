"""The ends of a batch's records, as `lc.records.check` wants them checked, and the error of records that are not whole.

What is inside of records is `conversion`'s; how bytes are stepped over, `leafcuttr.wire.record_lengths`'.
"""

from typing import Final

from leafcuttr.errors import BrokerError, InvalidRecord, UnknownServerError
from leafcuttr.wire.errors import EndlessNumber, WireError
from leafcuttr.wire.record_lengths import check_record_lengths

CHECKED_AT_ONCE: Final = 20_000
"""Records of different lengths that take one or two milliseconds to step over."""


def check_lengths(records: memoryview, count: int, *, compressed: bool = False) -> None:
    """Whether `count` records fill these bytes, which may have come `compressed`. Raises InvalidRecord,
    UnknownServerError: see `unreadable`."""
    try:
        check_record_lengths(records, count)
    except WireError as error:
        raise unreadable(error, compressed=compressed) from error


def unreadable(error: WireError, *, compressed: bool) -> BrokerError:
    """The answer to a batch with such records: Kafka's INVALID_RECORD, and for a length without end that did not come
    compressed its UNKNOWN_SERVER_ERROR. Neither is CORRUPT_MESSAGE, which clients retry: the CRC was right."""
    words = f"The records of the batch cannot be read: {error}"
    return (
        UnknownServerError(words)
        if isinstance(error, EndlessNumber) and not compressed
        else InvalidRecord(words)
    )
