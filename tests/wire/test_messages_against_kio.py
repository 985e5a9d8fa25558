"""Every message and version, both directions, byte for byte, against kio: generated from Kafka's own definitions.

kio has other types for some fields (error codes, durations, dates, UUIDs); messages are made within what it can hold.
"""

import dataclasses
import datetime
import importlib
import io
import typing
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from leafcuttr.wire.api import APIS, Api
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.emit import present_fields
from leafcuttr.wire.schema import Array, FieldSpec, PrimitiveType
from support.gates_slice import sampled
from support.wire_strategies import every_version, messages

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_YEAR_2100_MS = 4_102_444_800_000


def _cases() -> list[Any]:
    return [
        pytest.param(api, part, version, id=f"{api.name}-{part}-v{version}")
        for api in APIS.values()
        for part in ("request", "response")
        for version in every_version(getattr(api, part))
    ]


@pytest.mark.hypothesis
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("api", "part", "version"), _cases())
def test_kio_reads_what_we_write_and_writes_what_we_read(api: Api, part: str, version: int) -> None:
    ours = getattr(api, part)
    theirs = _kio_class(api, part, version)
    pairs = dict(_pairs(ours, theirs, version))
    read, write = entity_reader(theirs), entity_writer(theirs)

    def limits(struct: type[Any], spec: FieldSpec) -> st.SearchStrategy[Any] | None:
        return _within_kio(pairs[struct, spec.name])

    @settings(
        max_examples=sampled(20, at_least=3),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(message=messages(ours, version, limits))
    def check(message: Any) -> None:
        data = encode(message, version)
        entity, size = read(data, 0)
        assert size == len(data)
        _assert_same(message, entity, version, pairs)
        back = io.BytesIO()
        write(back, entity)
        assert back.getvalue() == data
        assert decode(ours, version, data) == message

    check()


def _kio_class(api: Api, part: str, version: int) -> type[Any]:
    module = importlib.import_module(f"kio.schema.{api.module}.v{version}.{part}")
    found: type[Any] = getattr(module, f"{api.name}{part.capitalize()}")
    return found


def _pairs(
    ours: type[Any], theirs: type[Any], version: int
) -> Iterator[tuple[tuple[type[Any], str], "dataclasses.Field[Any]"]]:
    """Our fields and kio's, paired by order: both follow Kafka's definition, while kio drops units from names."""
    plain, tagged = present_fields(ours, version)
    names = [spec.name for spec in (*plain, *tagged)]
    in_order = [field for field in dataclasses.fields(ours) if field.name in names]
    hints = typing.get_type_hints(theirs)
    specs = {spec.name: spec for spec in (*plain, *tagged)}
    for mine, other in zip(in_order, dataclasses.fields(theirs), strict=True):
        assert mine.name.startswith(other.name.rstrip("_"))
        spec = specs[mine.name]
        assert other.metadata.get("tag", -1) == (spec.tag if version in spec.tagged else -1)
        yield (ours, mine.name), other
        inner = spec.type.element if isinstance(spec.type, Array) else spec.type
        if not isinstance(inner, PrimitiveType):
            yield from _pairs(inner, _entity_in(hints[other.name]), version)


def _entity_in(hint: Any) -> type[Any]:
    if dataclasses.is_dataclass(hint):
        return typing.cast(type[Any], hint)
    return next(_entity_in(inner) for inner in typing.get_args(hint) if inner not in (type(None), ...))


def _within_kio(field: "dataclasses.Field[Any]") -> st.SearchStrategy[Any] | None:
    """The values that kio can hold, where those are not all. Of its times only optional ones can be -1, which is None
    there."""
    kind = field.metadata.get("kafka_type")
    if kind == "datetime_i64" and type(None) not in typing.get_args(field.type):
        return st.integers(0, _YEAR_2100_MS)
    return _WITHIN_KIO.get(kind)


_WITHIN_KIO: dict[str | None, st.SearchStrategy[Any]] = {
    "error_code": st.sampled_from([code.value for code in ErrorCode]),
    "datetime_i64": st.integers(-1, _YEAR_2100_MS),
    "timedelta_i64": st.integers(-(2**45), 2**45),
}


def _assert_same(mine: Any, theirs: Any, version: int, pairs: dict[Any, "dataclasses.Field[Any]"]) -> None:
    plain, tagged = present_fields(type(mine), version)
    for spec in (*plain, *tagged):
        other = pairs[type(mine), spec.name]
        value, counterpart = getattr(mine, spec.name), getattr(theirs, other.name)
        inner = spec.type.element if isinstance(spec.type, Array) else spec.type
        if isinstance(spec.type, Array) and value is not None:
            assert len(value) == len(counterpart)
            for one, another in zip(value, counterpart, strict=True):
                _assert_one(one, another, inner, version, pairs)
        else:
            _assert_one(value, counterpart, inner, version, pairs)


def _assert_one(mine: Any, theirs: Any, type_: Any, version: int, pairs: dict[Any, Any]) -> None:
    if mine is not None and not isinstance(type_, PrimitiveType):
        _assert_same(mine, theirs, version, pairs)
    else:
        assert mine == _plain(theirs, type_)


def _plain(value: Any, type_: Any) -> Any:
    """A value of kio's as we hold it."""
    match value:
        case ErrorCode():
            return value.value
        case datetime.datetime():
            return (value - _EPOCH) // datetime.timedelta(milliseconds=1)
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case uuid.UUID():
            return value.bytes
        case None if isinstance(type_, PrimitiveType) and type_.name == "uuid":
            return bytes(16)
        case None if isinstance(type_, PrimitiveType) and type_.name == "int64":
            return -1
        case _:
            return value
