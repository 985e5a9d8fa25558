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

from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.frame import RequestHeader, begin_response, end_response, parse_request_header

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
    found, at = parse_request_header(memoryview(data), 2, len(data))
    assert found == RequestHeader(ApiKey.FETCH, version, correlation_id, client_id)
    assert data[at:] == b"body"
    for end in range(2, at):
        with pytest.raises(MalformedMessage, match="RequestHeader"):
            parse_request_header(data, 2, end)


def _header(key: int, version: int, client_id: bytes = b"\xff\xff", tags: bytes = b"") -> bytes:
    return struct.pack(">hhi", key, version, 7) + client_id + tags


def test_tagged_fields_of_a_header_are_skipped() -> None:
    data = _header(ApiKey.FETCH, 12, tags=b"\x02\x00\x03abc\x81\x01\x00")
    assert parse_request_header(data, 0, len(data)) == (RequestHeader(1, 12, 7, None), len(data))
    for tags in (
        b"\x01",
        b"\x01\x00",
        b"\x01\x00\x04abc",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\x00",
    ):
        bad = _header(ApiKey.FETCH, 12, tags=tags)
        with pytest.raises(MalformedMessage, match="RequestHeader"):
            parse_request_header(bad, 0, len(bad))


def test_an_api_versions_request_from_the_future_has_a_readable_header() -> None:
    data = _header(ApiKey.API_VERSIONS, 99, b"\x00\x02me", b"\x00")
    assert parse_request_header(data, 0, len(data)) == (RequestHeader(18, 99, 7, "me"), len(data))


def test_an_unknown_key_is_reported_with_its_header() -> None:
    data = _header(999, 0, b"\x00\x02me")
    assert parse_request_header(data, 0, len(data))[0] == RequestHeader(999, 0, 7, "me")


@pytest.mark.parametrize("client_id", [b"\x00\x05abc", b"\x00\x02\xc3\x28"])
def test_a_bad_client_id_is_malformed(client_id: bytes) -> None:
    data = _header(ApiKey.FETCH, 4, client_id)
    with pytest.raises(MalformedMessage, match=r"RequestHeader\.client_id at byte"):
        parse_request_header(data, 0, len(data))


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
