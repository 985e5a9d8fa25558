"""A codec for a schema that some values would keep busy without a bound: in a child process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leafcuttr_registry.json_schema.codec import JsonCodec
from leafcuttr_registry.json_schema.schema import parse
from leafcuttr_registry.people.bounded import BoundedCodec, codec_of
from leafcuttr_sdk.schemas import DataError

BUSY = parse('{"type":"string","pattern":"^(a+)+$"}', {})


@pytest.fixture
def codec() -> Iterator[BoundedCodec]:
    codec = BoundedCodec(BUSY, (0,), 0.5)
    yield codec
    codec.close()


def test_only_such_a_schema_has_a_child() -> None:
    assert isinstance(codec_of(BUSY, (0,)), BoundedCodec)
    assert isinstance(codec_of(parse('{"type":"string"}', {}), (0,)), JsonCodec)


@pytest.mark.long
def test_values_go_both_ways_and_one_that_takes_too_long_is_refused(codec: BoundedCodec) -> None:
    assert codec.decode(b'"aa"') == "aa" and codec.encode("aa") == b'"aa"'
    codec.check(b'"aa"')
    with pytest.raises(DataError, match=r"takes longer than 0\.5 s"):
        codec.decode(b'"' + b"a" * 60 + b'!"')
    for call, wrong in ((codec.decode, b'"b"'), (codec.check, b"{")):
        with pytest.raises(DataError):
            call(wrong)
    assert codec.decode(b'"aaa"') == "aaa"


def test_a_child_that_has_ended_is_replaced(codec: BoundedCodec) -> None:
    assert codec.decode(b'"aa"') == "aa"
    assert codec._child is not None
    codec._child[0].kill()
    codec._child[0].join()
    with pytest.raises(DataError, match="has ended"):
        codec.decode(b'"aa"')
    assert codec.decode(b'"aa"') == "aa"
