"""Writers: regions, failures that leave nothing behind; what a version cannot carry; classes and their defaults."""

import dataclasses
from collections.abc import Sequence

import pytest

from leafcuttr.wire.codec import decode, encode, reader, writer
from leafcuttr.wire.errors import EncodeError, WireError
from leafcuttr.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from leafcuttr.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from leafcuttr.wire.messages.metadata import MetadataResponse
from leafcuttr.wire.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from leafcuttr.wire.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    INT8,
    INT32,
    STRING,
    UINT32,
    UUID,
    array,
    field,
    message,
    struct,
)


class _FileRecords:
    def __init__(self, length: int) -> None:
        self.length = length


def _fetch_response(*records: object) -> FetchResponse:
    partitions = [PartitionData(partition_index=i, records=each) for i, each in enumerate(records)]
    return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])


@pytest.mark.parametrize("version", [4, 11, 12])
def test_records_in_a_file_leave_a_gap_of_their_length(version: int) -> None:
    first, second = b"x" * 300, b"y" * 5
    expected = encode(_fetch_response(first, None, b"in memory", second), version)
    out = bytearray(b"earlier")
    regions: list[tuple[int, object]] = []
    gaps = [_FileRecords(len(first)), _FileRecords(len(second))]
    writer(FetchResponse, version)(
        _fetch_response(gaps[0], None, memoryview(b"in memory"), gaps[1]), out, regions
    )
    assert [region for _, region in regions] == gaps
    (at_first, _), (at_second, _) = regions
    whole = out[:at_first] + first + out[at_first:at_second] + second + out[at_second:]
    assert whole == b"earlier" + expected


def test_encode_refuses_records_in_a_file() -> None:
    with pytest.raises(EncodeError, match=r"PartitionData\.records.*only go to a transport"):
        encode(_fetch_response(_FileRecords(3)), 12)


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (_fetch_response(_FileRecords(9), "text"), r"PartitionData\.records cannot be written"),
        (
            FetchResponse(session_id=2**31),
            r"FetchResponse cannot be written|FetchResponse\.\w+ cannot be written",
        ),
        (
            FetchResponse(responses=[FetchableTopicResponse(topic=None)]),
            r"FetchableTopicResponse\.topic cannot",
        ),
        (FetchResponse(responses=None), r"FetchResponse\.responses cannot be written"),
        (
            FetchResponse(responses=[FetchableTopicResponse(topic="\ud800")]),
            r"topic cannot be written.*surrogates",
        ),
        (FetchResponse(responses=[FetchableTopicResponse(topic=b"t")]), r"topic cannot be written"),
    ],
)
@pytest.mark.parametrize("version", [11, 12])
def test_a_writer_that_fails_leaves_nothing_behind(
    response: FetchResponse, reason: str, version: int
) -> None:
    out, regions = bytearray(b"earlier"), [(7, _FileRecords(1))]
    with pytest.raises(EncodeError, match=reason):
        writer(FetchResponse, version)(response, out, regions)
    assert out == b"earlier"
    assert len(regions) == 1


def test_a_field_that_the_version_lacks_is_left_out_and_read_as_its_default() -> None:
    partition = PartitionProduceResponse(
        index=1,
        error_message="why",
        log_start_offset=9,
        current_leader=LeaderIdAndEpoch(leader_id=3, leader_epoch=4),
    )
    response = ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[partition])])
    (old,) = decode(ProduceResponse, 3, encode(response, 3)).responses[0].partition_responses
    assert old == PartitionProduceResponse(index=1)
    (new,) = decode(ProduceResponse, 10, encode(response, 10)).responses[0].partition_responses
    assert new == partition


def test_a_nullable_struct() -> None:
    for cursor in (None, Cursor(topic_name="t", partition_index=3)):
        request = DescribeTopicPartitionsRequest(cursor=cursor)
        assert decode(DescribeTopicPartitionsRequest, 0, encode(request, 0)) == request


def test_null_where_the_version_has_none_is_an_error() -> None:
    with pytest.raises(EncodeError, match="MetadataResponse"):
        encode(MetadataResponse(brokers=None), 9)  # type: ignore[arg-type]


@struct
class Item:
    number: int = field(UINT32, "0+")
    flags: Sequence[bool] = field(array(BOOL), "0+")


@message("0-1", flexible="1")
class Sample:
    ratio: float = field(FLOAT64, "0+")
    item: Item = field(Item, "0+")
    ids: Sequence[bytes] = field(array(UUID), "0+")
    blobs: Sequence[bytes] = field(array(BYTES), "0+")
    level: int = field(INT8, "0+", default=-2)
    note: str | None = field(STRING, "1+", nullable="1+", default=None, tag=3, tagged="1+")
    maybe: Item | None = field(Item, "1+", nullable="1+", default=None, tag=1, tagged="1+")
    numbers: Sequence[int] | None = field(array(INT32), "1+", nullable="1+", tag=200, tagged="1+")


def test_kinds_that_few_apis_use() -> None:
    full = Sample(
        ratio=0.5,
        item=Item(number=2**32 - 1, flags=(True, False)),
        ids=[bytes(range(16)), bytes(16)],
        blobs=[b"", b"abc"],
        note="",
        maybe=Item(number=7),
        numbers=None,
    )
    assert decode(Sample, 1, encode(full, 1)) == full
    old = decode(Sample, 0, encode(full, 0))
    assert old == dataclasses.replace(full, note=None, maybe=None, numbers=())
    assert encode(Sample(), 1)[-2:] == b"\xfe\x00"
    for version in (0, 1):
        data = encode(full, version)
        for end in range(len(data)):
            with pytest.raises(WireError):
                reader(Sample, version)(data, 0, end)


def test_messages_are_frozen_slotted_dataclasses() -> None:
    item = Item(number=3)
    assert dataclasses.is_dataclass(Item)
    assert [each.name for each in dataclasses.fields(Item)] == ["number", "flags"]
    assert repr(item) == "Item(number=3, flags=())"
    assert dataclasses.replace(item, number=4) == Item(number=4)
    assert hash(Item(number=3, flags=[True])) == hash(Item(number=3, flags=(True,)))
    assert Item(flags=[True]) == Item(flags=(True,))
    assert item != Item(number=4)
    assert item != 3
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"Item\.number cannot be changed"):
        item.number = 4  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del item.number
    with pytest.raises(dataclasses.FrozenInstanceError):
        item.other = 4  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Item(wrong=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Item(3)  # type: ignore[misc]
    decoded = decode(Sample, 0, encode(Sample(), 0))
    assert type(decoded) is Sample
    assert not hasattr(decoded, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        decoded.level = 3  # type: ignore[misc]


def test_readers_and_writers_are_compiled_once() -> None:
    assert reader(Sample, 1) is reader(Sample, 1)
    assert writer(Sample, 1) is writer(Sample, 1)
    assert reader(Sample, 1) is not reader(Sample, 0)
