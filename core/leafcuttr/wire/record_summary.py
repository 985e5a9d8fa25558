"""What checks of records need to know of them, without taking out keys, values and headers.

A producer's batches go through `summarize_records`, so it is as fast as Python allows; which record is at fault is
found by `record_shapes` afterwards. The layout is that of `wire/record_layout.py`.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from leafcuttr.wire.primitives import Buffer
from leafcuttr.wire.record_frames import compile_frame


class RecordsSummary(NamedTuple):
    """What the records of a batch have in common. The deltas are of the timestamps, and 0 without records."""

    lowest_delta: int
    highest_delta: int
    keyless: bool  # at least one has no key


class RecordShape(NamedTuple):
    """What a check of a record needs to know, without its contents."""

    timestamp_delta: int
    offset_delta: int
    has_key: bool


# Records are walked over in copies of so many bytes: indexing bytes is cheaper than a view, a copy of all is not.
_WINDOW: Final = 256 * 1024
_MISFIT: Final = "record {index} has a field that does not fit into it"


def summarize_records(view: memoryview, count: int, last_offset_delta: int) -> RecordsSummary:
    """Walk over `count` decompressed records as a broker does that takes them from a producer, in little memory.

    Raises MalformedRecord for whatever `decode_records` refuses, and for offset deltas that do not ascend to the last
    one at most (so that they are the positions of the records, unless some have been taken out); EndlessNumber.
    """
    return _summarize(view, count, last_offset_delta)


def record_shapes(data: Buffer, count: int) -> Iterator[RecordShape]:
    """Walk over `count` decompressed records without taking out keys, values and headers.

    Raises MalformedRecord like `decode_records`; the inside of headers is not checked.
    """
    return _shapes(data, count)


def _compile_summary(view: memoryview, count: int, last_offset_delta: int) -> RecordsSummary:
    global _summarize  # noqa: PLW0603 - compiled once, at the first use
    _summarize = compile_frame(
        _compile_summary,
        _SUMMARIZE,
        misfit=_MISFIT,
        length="encoded_record_length(data, {at}, index)",
        scope={"make": tuple.__new__, "RecordsSummary": RecordsSummary, "WINDOW": _WINDOW},
    )
    return _summarize(view, count, last_offset_delta)


def _compile_shapes(data: Buffer, count: int) -> Iterator[RecordShape]:
    global _shapes  # noqa: PLW0603 - compiled once, at the first use
    _shapes = compile_frame(_compile_shapes, _SHAPES, misfit=_MISFIT, scope={"make": RecordShape._make})
    return _shapes(data, count)


_summarize: Callable[[memoryview, int, int], RecordsSummary] = _compile_summary
_shapes: Callable[[Buffer, int], Iterator[RecordShape]] = _compile_shapes
_SUMMARIZE: Final = """
    def read(view, count, last_offset_delta):
        total, base, index, due = len(view), 0, 0, -1
        lowest, highest, keyless = LONG_MAX, LONG_MIN, False
        while index < count:
            data = bytes(view[base : base + WINDOW])
            size, start = len(data), 0
            try:
                while index < count:
                    at = start
                    @end length size:
                        if length < 0:
                            raise Bad(f"record {index} claims {length} bytes")
                        if base + end > total:
                            raise Bad(f"record {index} claims {length} bytes with {total - base - at} left")
                        if start:
                            break  # it is cut off: the next window begins with it
                        data, size = view[base : base + end], end  # a large record is read in place
                    @skip attributes
                    @read timestamp_delta
                    if timestamp_delta < lowest:
                        lowest = timestamp_delta
                    if timestamp_delta > highest:
                        highest = timestamp_delta
                    due += 1
                    @expect offset_delta due:
                        if not due <= offset_delta <= last_offset_delta:
                            raise Bad(f"record {index} has the offset delta {offset_delta}")
                        due = offset_delta
                    @skip key null: keyless = True
                    @skip value
                    @skip headers
                    if at != end:
                        raise Bad(f"record {index} does not end where its length says")
                    start = end
                    index += 1
            except IndexError:
                if not start:
                    raise Bad(f"record {index} ends in the middle of a number") from None
            base += start
        if base != total:
            raise Bad(f"{total - base} bytes follow the last of {count} records")
        return make(RecordsSummary, (lowest, highest, keyless) if count > 0 else (0, 0, False))
    """

_SHAPES: Final = """
    def read(data, count):
        at, total = 0, len(data)
        for index in range(count):
            has_key = True
            try:
                @end length total:
                    raise Bad(f"record {index} claims {length} bytes with {total - at} left")
                @skip attributes
                @read timestamp_delta
                @read offset_delta
                @skip key null: has_key = False
                @skip value
                @count headers
                if not 0 <= 2 * headers_count <= end - at:  # a header takes two bytes at least
                    raise Bad(f"record {index} has a field that does not fit into it")
            except IndexError:
                raise Bad(f"record {index} ends in the middle of a number") from None
            at = end
            yield make((timestamp_delta, offset_delta, has_key))
        if at != total:
            raise Bad(f"{total - at} bytes follow the last of {count} records")
    """
