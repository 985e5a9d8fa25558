"""The ends of a batch's records, as `lc.records.check` asks for them, and the error of records that are not whole.

What is inside of records is `leafcuttr.log.convert`'s; how bytes are stepped over, `leafcuttr.wire.record_lengths`'.
"""

from typing import Final

from leafcuttr.errors import BrokerError, InvalidRecord, UnknownServerError
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.record_lengths import check_record_lengths
from leafcuttr.wire.records import EndlessNumber

CHECKED_AT_ONCE: Final = 20_000
"""Records of different lengths that take one or two milliseconds to step over."""


def check_lengths(records: memoryview, count: int) -> None:
    """Whether `count` records fill these bytes. Raises InvalidRecord, UnknownServerError: see `unreadable`."""
    try:
        check_record_lengths(records, count)
    except WireError as error:
        raise unreadable(error) from error


def unreadable(error: WireError) -> BrokerError:
    """The answer to a batch with such records: Kafka's INVALID_RECORD, and for a length without end its
    UNKNOWN_SERVER_ERROR. Neither is CORRUPT_MESSAGE, which clients retry: the CRC was right."""
    words = f"The records of the batch cannot be read: {error}"
    return UnknownServerError(words) if isinstance(error, EndlessNumber) else InvalidRecord(words)
