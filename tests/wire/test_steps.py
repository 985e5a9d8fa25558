"""Readers and writers in steps: they stop, and do what the plain ones do."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings

from leafcuttr.wire import reading, writing
from leafcuttr.wire.api import APIS, Api
from leafcuttr.wire.codec import decode, encode, reader, reader_in_steps, writer, writer_in_steps
from leafcuttr.wire.emit import PER_STEP
from leafcuttr.wire.errors import EncodeError, MalformedMessage, ManyElements
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.reading import MAX_ELEMENTS, compile_reader
from leafcuttr.wire.writing import compile_writer
from support.gates_slice import sampled
from support.wire_strategies import every_version, messages

T = TypeVar("T")
VERSION = 12


def through(steps: Generator[None, None, T]) -> tuple[T, int]:
    """What it returns, and how often it stopped."""
    stops = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, stops
        stops += 1


def asking_for(count: int) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=f"n{number}") for number in range(count)])


@pytest.mark.one_in(10)
@pytest.mark.hypothesis
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
@pytest.mark.parametrize("part", ["request", "response"])
@pytest.mark.parametrize("newest", [True, False], ids=["newest", "oldest"])
def test_in_steps_the_same_is_read_and_written(
    api: Api, part: str, newest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cls = getattr(api, part)
    version = every_version(cls)[-1 if newest else 0]
    monkeypatch.setattr(reading, "PER_STEP", 1)
    monkeypatch.setattr(writing, "PER_STEP", 1)
    read, write = compile_reader(cls, version, in_steps=True), compile_writer(cls, version, in_steps=True)

    @settings(
        max_examples=sampled(16, at_least=2),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(message=messages(cls, version))
    def check(message: Any) -> None:
        data = encode(message, version)
        out = bytearray()
        through(write(message, out, []))
        assert out == data
        (found, at), _ = through(read(data, 0, len(data)))
        assert (found, at) == (decode(cls, version, data), len(data))

    check()


def test_they_stop_every_so_often() -> None:
    message = asking_for(10 * PER_STEP)
    out = bytearray()
    _, stops = through(writer_in_steps(MetadataRequest, VERSION)(message, out, []))
    assert stops >= 10
    (found, _), stops = through(reader_in_steps(MetadataRequest, VERSION)(out, 0, len(out)))
    assert stops >= 10
    assert len(found.topics or ()) == 10 * PER_STEP


def test_who_allows_few_elements_hears_of_more() -> None:
    data = encode(asking_for(100), VERSION)
    read = reader(MetadataRequest, VERSION)
    read(data, 0, len(data), 100)
    with pytest.raises(ManyElements):
        read(data, 0, len(data), 99)
    out = bytearray(b"before")
    with pytest.raises(ManyElements):
        writer(MetadataRequest, VERSION)(asking_for(100), out, [], 99)
    assert out == b"before"


def test_too_many_elements_are_malformed_either_way() -> None:
    data = encode(asking_for(MAX_ELEMENTS + 1), VERSION)
    with pytest.raises(MalformedMessage, match="more than 25000"):
        decode(MetadataRequest, VERSION, data)
    with pytest.raises(MalformedMessage, match="more than 25000"):
        through(reader_in_steps(MetadataRequest, VERSION)(data, 0, len(data)))


def test_a_failure_in_the_middle_is_told_as_by_the_plain_ones() -> None:
    data = encode(asking_for(3 * PER_STEP), VERSION)
    with pytest.raises(MalformedMessage) as plain:
        reader(MetadataRequest, VERSION)(data, 0, len(data) - 40)
    with pytest.raises(MalformedMessage) as stepwise:
        through(reader_in_steps(MetadataRequest, VERSION)(data, 0, len(data) - 40))
    assert str(stepwise.value) == str(plain.value)
    good = asking_for(3 * PER_STEP).topics or ()
    broken = MetadataRequest(topics=[*good, MetadataRequestTopic(name="x" * 40_000)])
    out = bytearray(b"before")
    with pytest.raises(EncodeError):
        through(writer_in_steps(MetadataRequest, VERSION)(broken, out, []))
    assert out == b"before"
