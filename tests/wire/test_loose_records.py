"""Records taken apart for filters are those that every other reader finds, and what is broken is refused by both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.wire.errors import MalformedRecord
from leafcuttr.wire.loose_records import put_together, take_apart
from leafcuttr.wire.records import Record, decode_records, encode_batch, encode_records
from leafcuttr_sdk.records import Record as Loose

NOW = 1_700_000_000_000
_sizes = st.sampled_from([0, 1, 63, 64, 65, 8191, 8192, 8193])
_bytes = st.none() | st.binary(max_size=10) | _sizes.map(bytes)
_headers = st.lists(st.tuples(st.text(max_size=70), _bytes), max_size=3).map(tuple)
_records = st.lists(
    st.builds(Record, st.just(0), st.integers(-1, 2**62), _bytes, _bytes, _headers), min_size=1, max_size=70
)


def numbered(records: list[Record]) -> list[Record]:
    return [record._replace(offset=number) for number, record in enumerate(records)]


def loose(record: Record) -> Loose:
    return Loose(record.value, record.key, record.headers, record.timestamp)


@given(_records, st.integers(-1, 2**61))
def test_they_are_what_every_other_reader_finds(records: list[Record], base: int) -> None:
    records = numbered(records)
    data = bytes(encode_records(records, base_offset=0, base_timestamp=base))
    found = take_apart(data, len(records), base)
    assert found.records == [loose(record) for record in records]
    assert put_together(data, found, range(len(records)), found.records, base) == data


@given(_records, st.data())
def test_put_together_anew_they_are_as_if_encoded(records: list[Record], data: st.DataObject) -> None:
    records = numbered(records)
    before = bytes(encode_records(records, base_offset=0, base_timestamp=NOW))
    found = take_apart(before, len(records), NOW)
    kept, after, expected = [], [], []
    for number, record in enumerate(records):
        match data.draw(st.sampled_from("kdc")):
            case "k":
                kept.append(number)
                after.append(found.records[number])
                expected.append(record)
            case "c":
                other = data.draw(_records)[0]
                kept.append(number)
                after.append(loose(other))
                expected.append(other._replace(offset=number))
    assert put_together(before, found, kept, after, NOW) == encode_records(
        expected, base_offset=0, base_timestamp=NOW
    )


@given(_records, st.data())
def test_what_is_broken_is_refused(records: list[Record], data: st.DataObject) -> None:
    batch = encode_batch(numbered(records))
    payload = bytearray(batch[61:])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(payload) - 1))
        payload[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del payload[data.draw(st.integers(0, len(payload))) :]
    batch[61:] = payload
    base = records[0].timestamp
    try:
        expected = list(decode_records(batch))
    except MalformedRecord:
        with pytest.raises(MalformedRecord):
            take_apart(bytes(payload), len(records), base)
        return
    except Exception as error:  # a varint that is too long
        with pytest.raises(type(error)):
            take_apart(bytes(payload), len(records), base)
        return
    if [record.offset for record in expected] != list(range(len(records))):
        with pytest.raises(MalformedRecord, match="offset delta"):
            take_apart(bytes(payload), len(records), base)
        return
    assert take_apart(bytes(payload), len(records), base).records == [loose(record) for record in expected]
