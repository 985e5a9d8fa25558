"""Which schema a key or value names."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_http.schemas.claims import claim_of, has_no_claim, schemas_of
from leafcuttr_sdk.records import StoredRecord
from leafcuttr_sdk.schema_framing import KEY_HEADER, VALUE_HEADER, guid_prefix, id_prefix
from leafcuttr_sdk.schemas import DataError

GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")


@pytest.mark.parametrize(
    "data, headers, claim",
    [
        (id_prefix(7) + b"x", (), (7, b"x", False)),
        (id_prefix(7) + b"x", (("other", b""),), (7, b"x", False)),
        (id_prefix(7) + b"x", ((KEY_HEADER, guid_prefix(GUID)),), (7, b"x", False)),
        (guid_prefix(GUID) + b"x", (), (str(GUID), b"x", False)),
        (b"x", ((VALUE_HEADER, guid_prefix(GUID)),), (str(GUID), b"", True)),
        (id_prefix(7) + b"x", ((VALUE_HEADER, guid_prefix(GUID) + b"\2"),), (str(GUID), b"\2", True)),
        (b"", ((VALUE_HEADER, id_prefix(9)),), (9, b"", True)),
        (b"", ((VALUE_HEADER, id_prefix(9)), (VALUE_HEADER, id_prefix(10))), (10, b"", True)),
    ],
)
def test_claims(
    data: bytes, headers: tuple[tuple[str, bytes | None], ...], claim: tuple[int | str, bytes, bool]
) -> None:
    found = claim_of(data, headers, VALUE_HEADER)
    assert (found.key, found.source[found.end :], found.in_header) == claim


@pytest.mark.parametrize(
    "data, headers, says",
    [
        (b"", (), "no bytes"),
        (b"{}", (), "magic byte is 123"),
        (b"\0\0\0", (), "end before"),
        (
            id_prefix(7),
            ((VALUE_HEADER, b"\2"),),
            f"the header {VALUE_HEADER} names no schema: the magic byte is 2",
        ),
        (id_prefix(7), ((VALUE_HEADER, None),), f"the header {VALUE_HEADER}"),
    ],
)
def test_what_names_none(data: bytes, headers: tuple[tuple[str, bytes | None], ...], says: str) -> None:
    with pytest.raises(DataError, match=says):
        claim_of(data, headers, VALUE_HEADER)


@pytest.mark.parametrize(
    "key, headers, plain",
    [
        (b"", (), True),
        (b"text of a key", (), True),
        (b"\0\0\0\1", (), True),
        (id_prefix(1), (), False),
        (guid_prefix(GUID), (), False),
        (b"text", ((KEY_HEADER, b""),), False),
        (b"text", ((VALUE_HEADER, b""),), True),
    ],
)
def test_keys_without_a_schema(
    key: bytes, headers: tuple[tuple[str, bytes | None], ...], plain: bool
) -> None:
    assert has_no_claim(key, headers) == plain


def test_the_schemas_of_records() -> None:
    def record(
        key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...] = ()
    ) -> StoredRecord:
        return StoredRecord("t", 0, 0, 0, key, value, headers)

    found = schemas_of(
        [
            record(id_prefix(1), id_prefix(2) + b"a"),
            record(id_prefix(1), id_prefix(2) + b"b"),
            record(None, None),
            record(b"k", b"no schema"),
            record(id_prefix(1), b"", ((VALUE_HEADER, guid_prefix(GUID)),)),
        ]
    )
    assert list(found) == [1, 2, None, None, None, None, 1, str(GUID), None]


@given(st.binary(), st.lists(st.tuples(st.sampled_from([KEY_HEADER, VALUE_HEADER]), st.none() | st.binary())))
def test_any_bytes(data: bytes, headers: list[tuple[str, bytes | None]]) -> None:
    try:
        claim = claim_of(data, tuple(headers), VALUE_HEADER)
    except DataError:
        return
    assert 0 < claim.end <= len(claim.source)
