"""What validators with a `peek` get of a batch, and what they may answer. How it is taken out of the records is
`leafcuttr.wire.record_peek`'s."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from leafcuttr.log.append.check import unreadable
from leafcuttr.wire.batch import BatchHeader
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.record_peek import compile_early, peek_records
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import NotReady
from leafcuttr_sdk.peek import Peek, PeekedBatch

SLOWEST_PEEK_S: Final = 1e-6
"""What a record may take that has to be stepped over by itself. Earlier batches, whose records were of one layout, do
not tell: their records took a fifth of it."""


class Peeks:
    """What the validators of a chain ask for, each of it once."""

    def __init__(self, peeks: Iterable[Peek]) -> None:
        self._peeks = frozenset(peeks)
        for peek in self._peeks:
            compile_early(peek)  # so that the first batch is measured by its records alone

    def of(self, records: memoryview, header: BatchHeader, most_headers: float) -> Mapping[Peek, PeekedBatch]:
        """All that is wanted of these records. Raises InvalidRecord, UnknownServerError, TooManyHeaders."""
        try:
            return {
                peek: peek_records(records, header.count, peek, most_headers=most_headers)
                for peek in self._peeks
            }
        except WireError as error:
            raise unreadable(error, compressed=header.codec != Codec.NONE) from error


def refusals_of(answer: object, count: int) -> list[tuple[int, str | NotReady]] | str:
    """The records that a validator refuses, for good or for now, by index and reason, in their order; or what is wrong
    with its answer. Calls methods of that, which may be the plugin's."""
    answers: Mapping[Any, Any] | None = answer if isinstance(answer, Mapping) else None
    if answers is None:
        return f"its answer is {kind_of(answer)}, not a mapping of indexes to reasons"
    refusals: dict[int, str | NotReady] = {}
    for index, reason in answers.items():
        if type(index) is not int:
            return f"its answer names {kind_of(index)}, not the index of a record"
        if not 0 <= index < count:
            return f"its answer names record {index} of {count}"
        if not isinstance(reason, str | NotReady):
            return f"its answer for record {index} is {kind_of(reason)}, not a reason"
        refusals[index] = reason
    return [(index, refusals[index]) for index in sorted(refusals)]
