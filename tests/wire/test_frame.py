"""Request headers and response heads."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as RequestHeaderV1
from kio.schema.request_header.v2.header import RequestHeader as RequestHeaderV2
from kio.schema.response_header.v0.header import ResponseHeader as ResponseHeaderV0
from kio.schema.response_header.v1.header import ResponseHeader as ResponseHeaderV1
from kio.serial import entity_reader, entity_writer

from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.frame import begin_response, end_response, read_client_id

_BEFORE = 8  # bytes of key, version and correlation id
_CLIENT_IDS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(correlation_id=st.integers(-(2**31), 2**31 - 1), client_id=_CLIENT_IDS, flexible=st.booleans())
def test_headers_that_kio_writes_are_read(correlation_id: int, client_id: str | None, flexible: bool) -> None:
    version = 12 if flexible else 11
    header = (RequestHeaderV2 if flexible else RequestHeaderV1)(
        request_api_key=1, request_api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    written = io.BytesIO()
    entity_writer(type(header))(written, header)
    data = b"xx" + written.getvalue() + b"body"
    found, at = read_client_id(memoryview(data), 2 + _BEFORE, len(data), flexible=flexible)
    assert found == (None if client_id is None else client_id.encode())
    assert data[at:] == b"body"
    for end in range(2 + _BEFORE, at):
        with pytest.raises(MalformedMessage, match="RequestHeader"):
            read_client_id(data, 2 + _BEFORE, end, flexible=flexible)


def test_tagged_fields_of_a_header_are_skipped() -> None:
    data = b"\xff\xff\x02\x00\x03abc\x81\x01\x00"
    assert read_client_id(data, 0, len(data), flexible=True) == (None, len(data))
    for tags in (
        b"\x01",
        b"\x01\x00",
        b"\x01\x00\x04abc",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\x00",
    ):
        bad = b"\xff\xff" + tags
        with pytest.raises(MalformedMessage, match="RequestHeader"):
            read_client_id(bad, 0, len(bad), flexible=True)


@pytest.mark.parametrize("client_id", [b"\x00\x05abc", b"\x00", b""])
def test_a_client_id_that_is_cut_off_is_malformed(client_id: bytes) -> None:
    with pytest.raises(MalformedMessage, match=r"RequestHeader\.client_id at byte 0"):
        read_client_id(client_id, 0, len(client_id), flexible=False)


class _FileRecords:
    length = 1000


def test_the_length_of_a_response_counts_its_own_file_regions() -> None:
    out = bytearray()
    start = begin_response(out, 7, 0)
    regions = [(len(out), _FileRecords())]
    assert end_response(out, start, regions) == 4 + 1000
    second = begin_response(out, 8, 1)
    assert second == len(out) - 9
    out += b"abc"
    regions.append((len(out), _FileRecords()))
    assert end_response(out, second, regions) == 5 + 3 + 1000
    assert bytes(out) == struct.pack(">iiiix", 1004, 7, 1008, 8) + b"abc"


def test_a_response_head_is_what_kio_reads() -> None:
    for version, cls in ((0, ResponseHeaderV0), (1, ResponseHeaderV1)):
        out = bytearray()
        begin_response(out, -5, version)
        header, size = entity_reader(cls)(bytes(out), 4)
        assert header.correlation_id == -5
        assert size == len(out) - 4
