"""The error codes of an answer are found at every depth."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from leafcuttr.wire.api import APIS
from leafcuttr.wire.error_codes import error_codes, error_codes_in_steps
from leafcuttr.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from leafcuttr.wire.schema import INT16, Array, PrimitiveType, declaration


def test_codes_at_every_depth_in_the_order_of_the_answer() -> None:
    parts = [PartitionData(partition_index=n, error_code=n % 3) for n in range(5)]
    answer = FetchResponse(error_code=71, responses=[FetchableTopicResponse(topic="t", partitions=parts)])
    assert error_codes(FetchResponse)(answer) == [71, 1, 2, 1]


def test_a_long_answer_is_gone_through_in_steps() -> None:
    parts = [PartitionData(partition_index=n, error_code=1) for n in range(1000)]
    walk = error_codes_in_steps(FetchResponse)(
        FetchResponse(responses=[FetchableTopicResponse(partitions=parts)])
    )
    steps, codes = _run(walk)
    assert codes == [1] * 1000
    assert steps >= 10


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: str(api.name))
def test_every_error_code_of_every_api_is_found(api: Any) -> None:
    whole = _filled(api.response)
    expected = _places(api.response)
    assert error_codes(api.response)(whole) == [7] * expected
    assert _run(error_codes_in_steps(api.response)(whole))[1] == [7] * expected
    assert error_codes(api.response)(api.response()) == []


def _run(walk: Generator[None, None, list[int]]) -> tuple[int, list[int]]:
    steps = 0
    while True:
        try:
            next(walk)
        except StopIteration as done:
            return steps, done.value
        steps += 1


def _is_code(spec: Any) -> bool:
    return spec.type == INT16 and spec.name in ("error_code", "partition_error_code")


def _places(cls: type[Any]) -> int:
    """How many codes `_filled` has put into a message."""
    count = 0
    for spec in declaration(cls).fields:
        inner = spec.type.element if isinstance(spec.type, Array) else spec.type
        if isinstance(inner, PrimitiveType):
            count += _is_code(spec)
        else:
            count += _places(inner)
    return count


def _filled(cls: type[Any]) -> Any:
    """A message with code 7 wherever there is one, arrays of one element."""
    values = {}
    for spec in declaration(cls).fields:
        inner = spec.type.element if isinstance(spec.type, Array) else spec.type
        if not isinstance(inner, PrimitiveType):
            values[spec.name] = [_filled(inner)] if isinstance(spec.type, Array) else _filled(inner)
        elif _is_code(spec):
            values[spec.name] = 7
    return cls(**values)
