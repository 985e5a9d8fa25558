"""Whatever the bytes, a reader gives a message or MalformedMessage: no other error, no allocation by claim."""

import re
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr.wire.api import APIS
from leafcuttr.wire.codec import decode, encode, reader
from leafcuttr.wire.errors import MalformedMessage, UnsupportedVersion, WireError
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.create_topics import CreateTopicsRequest
from leafcuttr.wire.messages.fetch import FetchRequest, FetchTopic
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from leafcuttr.wire.reading import MAX_ELEMENTS
from support.gates_slice import sampled
from support.wire_strategies import every_version, messages

_CLASSES = [cls for api in APIS.values() for cls in (api.request, api.response)]
_quick = settings(
    max_examples=sampled(24, at_least=3),
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def _ends(cls: type[Any]) -> list[int]:
    """The first, middle and last version: enough for bad input, the formats differ by flexibility alone."""
    found = every_version(cls)
    return sorted({found[0], found[len(found) // 2], found[-1]})


@pytest.mark.one_in(12)
@pytest.mark.hypothesis
@pytest.mark.parametrize("cls", _CLASSES, ids=lambda cls: cls.__name__)
def test_every_prefix_of_a_message_is_malformed(cls: type[Any]) -> None:
    @_quick
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(_ends(cls)))
        whole = encode(data.draw(messages(cls, version)), version)
        read = reader(cls, version)
        step = max(1, len(whole) // 200)
        for end in range(0, len(whole), step):
            assert _is_refused(decode, cls, version, whole[:end])
            # The bytes after `end` are there, and must not be used.
            assert _is_refused(read, whole, 0, end)

    check()


@pytest.mark.one_in(10)
@pytest.mark.hypothesis
@pytest.mark.parametrize("cls", _CLASSES, ids=lambda cls: cls.__name__)
def test_flipped_bytes_are_malformed_or_another_message(cls: type[Any]) -> None:
    @_quick
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        version = data.draw(st.sampled_from(_ends(cls)))
        good = encode(data.draw(messages(cls, version)), version)
        replacements = data.draw(st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), min_size=1, max_size=3))
        for at in range(0, len(good), max(1, len(good) // 100)):
            bad = bytearray(good)
            for offset, byte in enumerate(replacements):
                if at + offset < len(bad):
                    bad[at + offset] = byte
            _read_anything(cls, version, bytes(bad))

    check()


@pytest.mark.one_in(3)
@pytest.mark.hypothesis
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_noise_is_malformed_or_a_message(api: Any) -> None:
    @settings(_quick, max_examples=sampled(100))
    @given(noise=st.binary(max_size=120), version=st.sampled_from(_ends(api.request)))
    def check(noise: bytes, version: int) -> None:
        _read_anything(api.request, version, noise)

    check()


def _is_refused(read: Callable[..., object], *given: object) -> bool:
    """As `pytest.raises` has it, of which hundreds would take longer than what they watch."""
    try:
        read(*given)
    except MalformedMessage:
        return True
    return False


def _read_anything(cls: type[Any], version: int, data: bytes) -> None:
    try:
        message = decode(cls, version, data)
    except MalformedMessage as error:
        assert re.match(r"\w+(\.\w+)? at byte \d+: .|\w+: \d+ bytes are left over", str(error))
    else:
        assert type(message) is cls


_HUGE = struct.pack(">i", 0x7FFFFFFF)
_HUGE_COMPACT = b"\xff\xff\xff\xff\x0f"


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (MetadataRequest, 8, _HUGE),
        (MetadataRequest, 12, _HUGE_COMPACT),
        (MetadataRequest, 12, _HUGE_COMPACT + bytes(1000)),
        (ProduceRequest, 7, b"\x7f\xff"),
        (ProduceRequest, 12, _HUGE_COMPACT),
        (
            ProduceRequest,
            7,
            b"\xff\xff\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x01" + bytes(4) + _HUGE,
        ),
        (ApiVersionsRequest, 3, b"\x02a\x02b" + _HUGE_COMPACT),
        (ApiVersionsRequest, 3, b"\x02a\x02b\x01\x00" + _HUGE_COMPACT),
        (CreateTopicsRequest, 7, _HUGE_COMPACT),
        (FetchRequest, 11, bytes(13) + bytes(8) + _HUGE),
    ],
)
def test_a_huge_claim_allocates_nothing(cls: type[Any], version: int, data: bytes) -> None:
    read = reader(cls, version)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            read(data, 0, len(data))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024


def test_more_elements_than_any_client_needs_are_refused() -> None:
    topics = [MetadataRequestTopic(name="")] * (MAX_ELEMENTS + 1)
    with pytest.raises(MalformedMessage, match=r"MetadataRequest\.topics at byte .*more than 25000"):
        decode(MetadataRequest, 9, encode(MetadataRequest(topics=topics), 9))
    assert (
        len(decode(MetadataRequest, 9, encode(MetadataRequest(topics=topics[:-1]), 9)).topics or ())
        == MAX_ELEMENTS
    )
    with pytest.raises(MalformedMessage, match="more than 25000"):
        decode(ApiVersionsRequest, 3, b"\x02a\x02b\xff\xff\x7f" + bytes(2 * 0x1FFFFF))


@pytest.mark.parametrize(
    ("cls", "version", "data", "reason"),
    [
        (
            ProduceRequest,
            7,
            b"\xff\xff\x00\x01",
            r"ProduceRequest\.topic_data at byte 2: the bytes end too early",
        ),
        (
            ApiVersionsRequest,
            3,
            b"\x03\xc3\x28\x01\x00",
            r"ApiVersionsRequest\.client_software_name.*not UTF-8",
        ),
        (ApiVersionsRequest, 3, b"\x00", r"ApiVersionsRequest\.client_software_name at byte 1: is null"),
        (
            ApiVersionsRequest,
            3,
            b"\x03ab",
            r"ApiVersionsRequest\.client_software_version at byte 3: the bytes end",
        ),
        (
            ApiVersionsRequest,
            3,
            b"\x05ab",
            r"ApiVersionsRequest\.client_software_name at byte 1: the length exceeds",
        ),
        (ApiVersionsRequest, 3, b"\x01\x01\x00!", r"1 bytes are left over at byte 3"),
        (ApiVersionsRequest, 3, b"\x80\x80\x80\x80\x80\x01", "more than 5 bytes"),
        (ApiVersionsRequest, 3, b"\xff\xff\xff\xff\x7f", "exceeds 32 bits"),
        (CreateTopicsRequest, 4, b"\xff\xff\xff\xff", r"CreateTopicsRequest\.topics at byte 4: is null"),
        (
            FetchRequest,
            12,
            bytes(25) + b"\x01\x01\x01\x01\x00\x03\x01a\x00",
            r"FetchRequest\.cluster_id.*size it claims",
        ),
    ],
)
def test_the_error_names_class_field_and_position(
    cls: type[Any], version: int, data: bytes, reason: str
) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        decode(cls, version, data)


def test_unknown_tagged_fields_are_skipped() -> None:
    request = decode(ApiVersionsRequest, 3, b"\x02a\x02b\x02\x00\x01!\x80\x01\x03abc")
    assert request == ApiVersionsRequest(client_software_name="a", client_software_version="b")
    topic = FetchTopic(topic="t")
    known = encode(FetchRequest(topics=[topic], cluster_id="c"), 12)
    assert known.endswith(b"\x01\x00\x02\x02c")
    more = known[:-5] + b"\x02\x00\x02\x02c\x05\x00"
    assert decode(FetchRequest, 12, more) == FetchRequest(topics=[topic], cluster_id="c")


def test_a_compact_string_is_no_longer_than_kafka_allows() -> None:
    longest = ApiVersionsRequest(client_software_name="x" * 32767)
    assert decode(ApiVersionsRequest, 3, encode(longest, 3)) == longest
    with pytest.raises(WireError, match=r"client_software_name cannot be written: .*32767"):
        encode(ApiVersionsRequest(client_software_name="x" * 32768), 3)
    claim = b"\x81\x80\x02" + b"x" * 32768
    with pytest.raises(MalformedMessage, match="32767"):
        decode(ApiVersionsRequest, 3, claim + b"\x01\x00")


def test_versions_that_do_not_exist_are_unsupported() -> None:
    for version in (2, 14, -1):
        with pytest.raises(UnsupportedVersion, match=f"ProduceRequest has no version {version}"):
            reader(ProduceRequest, version)


def test_records_are_a_view_and_strings_are_copies() -> None:
    request = ProduceRequest(
        topic_data=[
            TopicProduceData(name="t", partition_data=[PartitionProduceData(records=memoryview(b"abc"))])
        ]
    )
    buffer = bytearray(b"head" + encode(request, 9) + b"tail")
    got, at = reader(ProduceRequest, 9)(buffer, 4, len(buffer) - 4)
    assert at == len(buffer) - 4
    records = got.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    buffer[buffer.index(b"abc")] = ord("x")
    assert bytes(records) == b"xbc"
